"""The native engine against long NUTS runs, for every prior and kernel.

    python benchmarks/references.py --output docs/results/references.json     # needs the extra pymc

Printed: the largest difference of any p_better and p_anytime from the NUTS run, over several seeds, and the mean
difference of p_anytime.  NUTS itself has an error: with 8,000 draws of full worth, up to 0.02 in the worst entry.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from inference import rankings

from polarbear_plugins import compare, fit
from polarbear_plugins.errors import InferenceWarning

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dirichlet": ("dirichlet", {}),
    "hierarchical-dirichlet": ("hierarchical-dirichlet", {}),
    "gp matern32": ("gp", {}),
    "gp matern52": ("gp", {"kernel": "matern52"}),
    "gp se": ("gp", {"kernel": "se", "jitter": 1e-5}),
    "sparse-gp": ("sparse-gp", {"inducing": 6}),
    "hsgp": ("hsgp", {}),
    "random-walk": ("random-walk", {}),
    "bspline": ("bspline", {}),
}


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sampler", default="auto", choices=["auto", "nutpie", "pymc"])
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    arguments = parser.parse_args()
    table = rankings(4, 20, 12)
    results = {}
    for case in arguments.cases:
        prior, options = CASES[case]
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)  # printed instead
            nuts = fit(
                table,
                prior,
                "nuts",
                draws=8000,
                seed=0,
                dependence="none",
                time_scale="linear",
                engine_options={"sampler": arguments.sampler, "target_accept": 0.95},
                **options,
            )
        truth = compare(nuts)
        better, anytime = [], []
        for seed in range(arguments.seeds):
            relations = compare(fit(table, prior, seed=seed, dependence="none", time_scale="linear", **options))
            better.append(np.abs(relations.p_better - truth.p_better).max())
            if relations.joint:
                anytime.append(np.abs(relations.p_anytime - truth.p_anytime))
        row = {
            "p_better": float(max(better)),
            "p_anytime": float(np.max(anytime)) if anytime else None,
            "p_anytime_mean": float(np.mean(anytime)) if anytime else None,
            "nuts": {"r_hat": nuts.diagnostics.r_hat, "divergences": nuts.diagnostics.divergences},
            "nuts_problems": nuts.diagnostics.problems,
        }
        results[case] = row
        joint = f"p_anytime {row['p_anytime']:.3f}, mean {row['p_anytime_mean']:.4f}" if anytime else ""
        doubt = "" if nuts.diagnostics.good else f"   NUTS: {'; '.join(nuts.diagnostics.problems)}"
        seconds = time.perf_counter() - start
        print(f"{case:24s} p_better {row['p_better']:.3f}   {joint}   ({seconds:.0f} s){doubt}", flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
