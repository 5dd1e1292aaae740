"""What the presets of the CMA-ES portfolios do: evaluations outside the box, and who ends better.

    python benchmarks/evidence/presets.py --dimension 5 --budget 10000 --instances 2

Every variant runs with the presets appendix-b and paper on the 24 BBOB functions, with the same seed on the same
instance.  Printed for each: the share of evaluations outside the box with appendix-b, and on how many instances the
final value is better with paper and with appendix-b.  At first, what modcma's corrections do: how far from the box the
points of a first generation lie whose step size is twice the box.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from polarbear_plugins.extras import require
from polarbear_plugins.integrations.bbob import BbobProblem, BbobSuite
from polarbear_plugins.integrations.modcma_portfolio import modcma_portfolio

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


class Watched:
    """A problem that counts the points outside its box."""

    def __init__(self, problem: BbobProblem) -> None:
        self.identity, self.lower, self.upper = problem.identity, problem.lower, problem.upper
        self._problem = problem
        self.outside = 0

    def evaluate(self, x: np.ndarray, /) -> float:
        """Value at a point."""
        self.outside += bool((abs(x) > 5).any())
        return self._problem.evaluate(x)


def show_corrections(dimension: int = 50, points: int = 200) -> None:
    """Print what each correction of modcma makes of points of which most lie outside [-5, 5]^d."""
    library = require("modcma.c_maes", extra="ioh", who="This benchmark")
    for name in ("NONE", "COTN", "SATURATE", "MIRROR", "UNIFORM_RESAMPLE"):
        modules = library.Modules()
        modules.bound_correction = library.options.CorrectionMethod.__members__[name]
        edge = np.full(dimension, 5.0)
        settings = library.Settings(
            dimension, modules=modules, x0=0 * edge, lb=-edge, ub=edge, sigma0=20.0, lambda0=points
        )
        seen: list[np.ndarray] = []

        def sphere(x: np.ndarray, seen: list[np.ndarray] = seen) -> float:
            seen.append(np.array(x))
            return float(x @ x)

        library.ModularCMAES(library.Parameters(settings)).step(sphere)
        distance = np.abs(np.array(seen))
        print(f"{name:16s} coordinates outside {(distance > 5).mean():.1%}, the farthest at {distance.max():.0f}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", type=int, default=5)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ssa", nargs="+", default=["CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES"])
    options = parse_arguments(parser, {"dimension": 2, "budget": 200, "instances": 1, "ssa": ["CSA"]})
    show_corrections()
    suite = BbobSuite("bbob", instances=range(1, options.instances + 1), dimension=[options.dimension])
    identities = sorted(suite.identities(0), key=lambda identity: identity.name)
    for ssa in options.ssa:
        outside, final = {}, {}
        for preset in ("appendix-b", "paper"):
            [algorithm] = modcma_portfolio({"ssa": ssa}, preset=preset)
            problems = [Watched(suite.build(identity)) for identity in identities]
            runs = [algorithm.run(problem, options.budget, options.seed) for problem in problems]
            outside[preset] = sum(problem.outside for problem in problems) / (options.budget * len(problems))
            final[preset] = np.array([run.best[-1] for run in runs])
        pairs = ("paper", "appendix-b"), ("appendix-b", "paper")
        better = [int((final[one] < final[other]).sum()) for one, other in pairs]
        report_figure(
            f"{ssa:7s} outside: appendix-b {outside['appendix-b']:.1%}, paper {outside['paper']:.1%}; better: "
            f"paper {better[0]}, appendix-b {better[1]} of {len(problems)}",
            f"instances on which the preset paper is better, {ssa}, of {len(problems)}",
            better[0],
            f"preset appendix-b better: {better[1]}",
        )


if __name__ == "__main__":
    main()
