"""The native engine on three hundred hard cases, against exact posteriors and NUTS.

    python benchmarks/evidence/hard_cases.py --output docs/results/hard_cases.json
    python benchmarks/evidence/hard_cases.py --cases 0-20 45 --priors bspline
    python benchmarks/evidence/hard_cases.py --make-references        # needs the extra pymc, and hours

The cases (``ranking_cases.py``) spread over all priors and over what is known to be hard: one algorithm always wins,
all rankings are the same, ties, two instances, absent algorithms, weights, alternating leaders, strong utilities; up to
15 algorithms and 150 timepoints.  Always ``dependence="none"``.

A reference is exact (by quadrature: up to three algorithms, under Dirichlet priors or at a single timepoint) or a long
NUTS run.  The references are stored beside this script.  A NUTS run that is not good is repeated.  If that is not good
either, the case has no reference, and is counted as such; but two runs that agree and whose only fault is that up to
1 % of their draws diverged are kept, and what differs from them is doubtful rather than a failure.

A case is fitted with several seeds.  Compared is the average over the fits that call themselves good.  A case is a
silent failure if that differs from the reference by more than 0.035 in a probability or by more than 0.05 standard
deviations in the mean of a hyperparameter, or if a single good fit differs by more than that and 4 standard errors of
its own draws.

Chance alone: 16,000 independent draws have a standard error of at most 0.004 in a probability and 0.008 standard
deviations in a mean.  NUTS runs are repeated with more draws if theirs are larger than 0.006 and 0.02; some stay above.
So probabilities have a margin of about five standard errors, and means of two to six.  How many means would exceed
their bound by chance if all were right is computed and printed.  Where the standard error of the reference is more than
a third of a bound and could explain why the bound is exceeded, the case is doubtful and counted apart.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from polarbear_plugins import compare, fit
from polarbear_plugins.errors import InferenceWarning, PolarBearError

sys.path.append(str(Path(__file__).parents[1]))
from case_references import Reference, load, make_all
from measuring import parse_arguments, report_figure
from ranking_cases import COUNT, KINDS, PRIORS, Case, case

STORED = Path(__file__).with_name("hard_cases_references.npz")
DRAWS = 4000
BOUNDS = {"p_better": 0.035, "p_anytime": 0.035, "hyperparameters": 0.05}
# A reference with a larger standard error than this share of a bound cannot alone show that the bound is exceeded.
COARSE = 1 / 3
QUICK = ("1", "3", "6", "8", "21", "27", "42", "53", "57", "78", "81", "103")


@dataclass(frozen=True)
class Fit:
    """One fit: what it says of itself, and what is compared.  Hyperparameters are in units of the reference."""

    seed: int
    good: bool
    problems: tuple[str, ...]
    seconds: float
    found: dict[str, np.ndarray]


@dataclass(frozen=True)
class Result:
    """A case: its fits, and the largest differences from its reference."""

    case: Case
    reference: Reference | None
    fits: list[Fit]
    differences: dict[str, float]
    faults: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def good(self) -> int:
        """Number of fits that call themselves good."""
        return sum(one.good for one in self.fits)

    @property
    def slowest(self) -> float:
        """Processor time of the slowest fit."""
        return max(one.seconds for one in self.fits)

    def __str__(self) -> str:
        problems = sorted({problem for one in self.fits for problem in one.problems})
        said = [f"SILENT FAILURE: {', '.join(self.faults)}"] * bool(self.faults)
        said += [f"doubtful: {', '.join(self.doubts)}"] * bool(self.doubts)
        said += [f"good {self.good} of {len(self.fits)}: {'; '.join(problems)}"] * (self.good < len(self.fits))
        return f"{self.case} {_shown(self.differences):48s} {' | '.join(said)}"

    def row(self) -> dict[str, Any]:
        """Everything, as JSON."""
        of = self.case
        fits = [asdict(one) for one in self.fits]
        for entry in fits:
            del entry["found"]
        return {
            **{name: getattr(of, name) for name in ("number", "prior", "kind", "n", "instances", "timepoints")},
            "reference": "missing" if self.reference is None else self.reference.how,
            "differences": self.differences,
            "silent_failures": self.faults,
            "doubtful": self.doubts,
            "fits": fits,
        }


def _shown(differences: dict[str, float]) -> str:
    short = {"p_better": "better", "p_anytime": "anytime", "hyperparameters": "hyper"}
    return "  ".join(f"{short[name]} {value:.3f}" for name, value in differences.items())


def one_fit(of: Case, seed: int, reference: Reference | None) -> Fit:
    """Fit natively and summarise."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)  # counted instead
            posterior = fit(of.table, of.prior, draws=DRAWS, seed=seed, dependence="none")
    except (PolarBearError, ArithmeticError, ValueError) as problem:
        raised = f"raised {type(problem).__name__}: {problem}"
        return Fit(seed, False, (raised,), time.process_time() - began, {})
    took = time.process_time() - began
    relations = compare(posterior)
    found = {"p_better": relations.p_better}
    if relations.joint:
        found["p_anytime"] = relations.p_anytime
    moments = (reference.hyperparameters if reference else None) or {}
    if moments:
        found["hyperparameters"] = np.array(
            [(posterior.hyperparameters[name].mean() - mean) / sd for name, (mean, sd, _) in moments.items()]
        )
    return Fit(seed, posterior.diagnostics.good, posterior.diagnostics.problems, took, found)


def examine(of: Case, reference: Reference | None, seeds: int) -> Result:
    """Fit a case with several seeds, and compare the good fits with its reference."""
    fits = [one_fit(of, seed, reference) for seed in range(seeds)]
    good = [one.found for one in fits if one.good]
    differences: dict[str, float] = {}
    faults, doubts = [], []
    for name, truth, error in _truths(reference) if good else ():
        bound = BOUNDS[name]
        differences[name] = pooled = float(np.abs(np.mean([found[name] for found in good], axis=0) - truth).max())
        if pooled > bound:
            explained = _is_diverged(reference) or (error > COARSE * bound and pooled <= bound + 3 * error)
            (doubts if explained else faults).append(f"{name} off by {pooled:.3f}")
        spread = np.ones_like(truth) if name == "hyperparameters" else np.sqrt(truth * (1 - truth))
        excess = [float((np.abs(found[name] - truth) - 4 * spread / math.sqrt(DRAWS)).max()) for found in good]
        if max(excess) > bound + (3 * error if error > COARSE * bound else 0) and pooled <= bound:
            more = f"{name} of one fit off by {max(excess) - bound:.3f} more than its bound"
            (doubts if _is_diverged(reference) else faults).append(more)
    return Result(of, reference, fits, differences, tuple(faults), tuple(doubts))


def _truths(reference: Reference | None) -> Iterator[tuple[str, np.ndarray, float]]:
    """Measures of a reference: name, true values, and the largest standard error."""
    if reference is None or reference.how == "none":
        return
    assert reference.p_better is not None  # noqa: S101 - there is a reference
    yield "p_better", reference.p_better, reference.p_error
    if reference.p_anytime is not None:
        yield "p_anytime", reference.p_anytime, reference.p_error
    if reference.hyperparameters:
        # One fit measures from the mean of the reference, in its standard deviations.
        yield "hyperparameters", np.zeros(len(reference.hyperparameters)), reference.hyperparameter_error


def expected_by_chance(results: Iterable[Result]) -> float:
    """Number of means of hyperparameters beyond their bound if both they and the references were unbiased."""
    total = 0.0
    for result in results:
        if result.reference is None or not result.good:
            continue
        for _, sd, error in (result.reference.hyperparameters or {}).values():
            total += 2 * norm.sf(BOUNDS["hyperparameters"] / math.hypot(error / sd, (result.good * DRAWS) ** -0.5))
    return float(total)


def print_table(results: Sequence[Result], by: str, groups: Iterable[str]) -> None:
    """Counts and largest differences of each group."""
    heads = (
        "cases",
        "good fits",
        "failures",
        "doubtful",
        "no reference",
        "better",
        "anytime",
        "hyper",
        "CPU s",
        "most",
    )
    print(f"\n{by:22s} " + " ".join(f"{head:>12s}" for head in heads))
    for group in groups:
        here = [result for result in results if getattr(result.case, by) == group]
        if not here:
            continue
        fits = [one for result in here for one in result.fits]
        largest = [
            max((r.differences[name] for r in here if name in r.differences), default=math.nan) for name in BOUNDS
        ]
        cells = [
            str(len(here)),
            f"{np.mean([one.good for one in fits]):.1%}",
            str(sum(bool(result.faults) for result in here)),
            str(sum(bool(result.doubts) for result in here)),
            str(sum(not _has_reference(result) for result in here)),
            *("" if math.isnan(value) else f"{value:.3f}" for value in largest),
            f"{sum(one.seconds for one in fits):.1f}",
            f"{max(one.seconds for one in fits):.2f}",
        ]
        print(f"{group:22s} " + " ".join(f"{cell:>12s}" for cell in cells))


def _is_diverged(reference: Reference | None) -> bool:
    return reference is not None and reference.how == "diverged"


def _has_reference(result: Result) -> bool:
    return result.reference is not None and result.reference.how != "none"


def report(results: Sequence[Result]) -> None:
    """Print tables and figures."""
    print_table(results, "prior", PRIORS)
    print_table(results, "kind", KINDS)
    print("\nSlowest fits:")
    for result in sorted(results, key=lambda result: -result.slowest)[:5]:
        print(f"{result.case} {result.slowest:.2f} CPU s")
    fits = [one for result in results for one in result.fits]
    hows = [result.reference.how if result.reference else "missing" for result in results]
    counts = ", ".join(
        f"{hows.count(how)} {how}" for how in ("exact", "nuts", "diverged", "none", "missing") if how in hows
    )
    print(f"\nReferences: {counts}.  Doubtful cases: {sum(bool(result.doubts) for result in results)}.")
    print(f"Means of hyperparameters expected beyond their bound by chance: {expected_by_chance(results):.1f}")
    good = sum(one.good for one in fits) / len(fits)
    report_figure(f"good fits: {good:.1%} of {len(fits)}", "share of good fits", good, "a target of 0.95", "higher")
    silent = sum(bool(result.faults) for result in results)
    report_figure(f"silent failures: {silent} cases", "silent failures", silent, "a target of 0", "lower")
    total = sum(one.seconds for one in fits)
    report_figure(f"CPU seconds: {total:.1f}", "CPU seconds of all fits", total, "", "lower")


def read_references(cases: Iterable[Case]) -> dict[int, Reference]:
    """References from the file; one that was made for another table or prior is refused."""
    known = load(STORED) if STORED.exists() else {}
    stale = [str(of.number) for of in cases if of.number in known and known[of.number].digest != of.digest]
    if stale:
        sys.exit(f"The references of these cases were made for other data: {', '.join(stale)}. Use --make-references.")
    return known


def parse_numbers(words: Iterable[str]) -> list[int]:
    """Numbers and ranges of cases.

    >>> parse_numbers(["3", "7-9"])
    [3, 7, 8, 9]
    """
    numbers = []
    for word in words:
        first, _, last = word.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def main() -> None:
    """Fit, compare and print; or make references."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=[f"0-{COUNT - 1}"], help="numbers or ranges, such as 3 10-19")
    parser.add_argument("--priors", nargs="+", default=list(PRIORS), choices=PRIORS)
    parser.add_argument("--seeds", type=int, default=4, help="fits of each case")
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    parser.add_argument("--make-references", action="store_true", help="make the references that are missing instead")
    arguments = parse_arguments(parser, {"cases": QUICK, "seeds": 1})
    cases = [of for number in parse_numbers(arguments.cases) if (of := case(number)).prior in arguments.priors]
    if arguments.make_references:
        make_all(cases, STORED)
        return
    references = read_references(cases)
    results = []
    for of in cases:
        results.append(examine(of, references.get(of.number), arguments.seeds))
        if results[-1].faults or results[-1].doubts or results[-1].good < arguments.seeds:
            print(results[-1], flush=True)
    report(results)
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": [result.row() for result in results]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
