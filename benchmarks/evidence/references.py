"""The native engine against long NUTS runs, for every prior and kernel.

    python benchmarks/evidence/references.py --output docs/results/references.json     # needs the extra pymc

Printed: the largest difference of any p_better and p_anytime from the NUTS run, over several seeds, and the largest
difference of p_anytime after averaging over the seeds.  NUTS itself has an error: with 8,000 draws of full worth, up to
0.02 in the worst entry.
"""

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import RankingTable, compare, fit
from polarbear_plugins.errors import InferenceWarning

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from simulated_rankings import rankings

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


# The models of the stored runs, as these were made; time runs from 1 to T.
STORED: dict[str, tuple[str, dict[str, Any]]] = {
    "dirichlet-n7-p100-t20": ("dirichlet", {"alpha": 1}),
    "bspline-n5-p30-t30": ("bspline", {"basis": 15}),
    "gp-matern32-n5-p30-t30": ("gp", {}),
    # Unit steps: on the scaled time axis the innovations are larger by the root of the number of steps.
    "random-walk-n5-p30-t100": ("random-walk", {"first": 1.5, "scale": (-2 + 0.5 * math.log(99), 1)}),
}


def differences(
    table: RankingTable, prior: str, options: dict[str, Any], better: np.ndarray, anytime: np.ndarray | None, seeds: int
) -> dict[str, float | None]:
    """Largest and mean differences of the native engine from given probabilities, over several seeds."""
    off = ~np.eye(len(table.algorithms), dtype=bool)
    worst, joint = [], []
    for seed in range(seeds):
        relations = compare(fit(table, prior, seed=seed, dependence="none", time_scale="linear", **options))
        worst.append(np.abs(relations.p_better - better)[:, off].max())
        if relations.joint and anytime is not None:
            joint.append((relations.p_anytime - anytime)[off])
    return {
        "p_better": float(max(worst)),
        "p_anytime": float(np.abs(joint).max()) if joint else None,
        "p_anytime_mean": float(np.abs(np.mean(joint, axis=0)).max()) if joint else None,
    }


def against_nuts(case: str, sampler: str, seeds: int) -> tuple[dict[str, Any], str]:
    """Differences from a NUTS run made here, and what is wrong with that run, if anything."""
    prior, options = CASES[case]
    table = rankings(4, 20, 12)
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
            engine_options={"sampler": sampler, "target_accept": 0.95},
            **options,
        )
    truth = compare(nuts)
    row: dict[str, Any] = {
        **differences(table, prior, options, truth.p_better, truth.p_anytime if truth.joint else None, seeds),
        "nuts": {"r_hat": nuts.diagnostics.r_hat, "divergences": nuts.diagnostics.divergences},
        "nuts_problems": nuts.diagnostics.problems,
    }
    return row, "" if nuts.diagnostics.good else f"   NUTS: {'; '.join(nuts.diagnostics.problems)}"


def against_stored(file: Path, seeds: int) -> dict[str, Any]:
    """Differences from the summaries of a NUTS run made long ago."""
    prior, options = STORED[file.stem]
    with np.load(file) as reference:
        places = np.argsort(reference["orders"], axis=-1).transpose(1, 0, 2)
        better, anytime = reference["p_better"].astype(float), reference["p_anytime"].astype(float)
    table = RankingTable.from_values(
        places.astype(float),
        algorithms=[str(k) for k in range(places.shape[2])],
        timepoints=np.arange(1, places.shape[1] + 1),
    )
    return differences(table, prior, options, better, anytime, seeds)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sampler", default="auto", choices=["auto", "nutpie", "pymc"])
    parser.add_argument("--stored", type=Path, help="a folder of stored NUTS runs (.npz) to compare with as well")
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    arguments = parse_arguments(parser, {"cases": ["dirichlet", "bspline"], "seeds": 2})
    results = {}
    for file in sorted(arguments.stored.glob("*.npz")) if arguments.stored else ():
        results[f"stored {file.stem}"] = row = against_stored(file, arguments.seeds)
        show(f"stored {file.stem}", row)
    for case in arguments.cases:
        start = time.perf_counter()
        results[case], doubt = against_nuts(case, arguments.sampler, arguments.seeds)
        show(case, results[case], f"({time.perf_counter() - start:.0f} s){doubt}")
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": results}, indent=1) + "\n")


def show(case: str, row: dict[str, Any], more: str = "") -> None:
    """Print a line."""
    joint = "" if row["p_anytime"] is None else f"p_anytime {row['p_anytime']:.3f}, mean {row['p_anytime_mean']:.4f}"
    report_figure(
        f"{case:32s} p_better {row['p_better']:.3f}   {joint}   {more}",
        f"largest difference of p_better, {case}",
        row["p_better"],
        "a long NUTS run",
        "lower",
    )


if __name__ == "__main__":
    main()
