"""What the presets of the CMA-ES portfolios do: evaluations outside the box, and who ends better.

    python benchmarks/evidence/presets.py --dimension 5 --budget 10000 --instances 2

Every variant runs with the presets paper and bounded on the 24 BBOB functions, with the same seed on the same instance.
Printed for each: the share of evaluations outside the box with paper, and on how many instances the final value is
better with bounded and with paper.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from polarbear_plugins.integrations.bbob import BbobProblem, BbobSuite
from polarbear_plugins.integrations.modcma_portfolio import PRESETS, modcma_portfolio

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


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", type=int, default=5)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ssa", nargs="+", default=["CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES"])
    options = parse_arguments(parser, {"dimension": 2, "budget": 200, "instances": 1, "ssa": ["CSA"]})
    suite = BbobSuite("bbob", instances=range(1, options.instances + 1), dimension=[options.dimension])
    identities = sorted(suite.identities(0), key=lambda identity: identity.name)
    for ssa in options.ssa:
        outside, final = {}, {}
        for preset in PRESETS:
            [algorithm] = modcma_portfolio({"ssa": ssa}, preset=preset)
            problems = [Watched(suite.build(identity)) for identity in identities]
            runs = [algorithm.run(problem, options.budget, options.seed) for problem in problems]
            outside[preset] = sum(problem.outside for problem in problems) / (options.budget * len(problems))
            final[preset] = np.array([run.best[-1] for run in runs])
        better = [int((final[one] < final[other]).sum()) for one, other in (("bounded", "paper"), ("paper", "bounded"))]
        report_figure(
            f"{ssa:7s} outside: paper {outside['paper']:.1%}, bounded {outside['bounded']:.1%}; better: "
            f"bounded {better[0]}, paper {better[1]} of {len(problems)}",
            f"instances on which bounded is better, {ssa}, of {len(problems)}",
            better[0],
            f"preset paper better: {better[1]}",
        )


if __name__ == "__main__":
    main()
