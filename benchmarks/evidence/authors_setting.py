"""What the authors of the paper must have run in its second case study: who leads when, under several settings.

    python benchmarks/evidence/authors_setting.py            # d = 30, 60,000 evaluations, 12 instances: 15 minutes

The paper says that MXNES leads early, CSA to about 30,000 evaluations and XNES from then on, and that LPXNES is clearly
inferior.  Printed for each setting: the share of evaluations outside the box, and mean ranks at a few timepoints.

letter      appendix B, with modcma's COTN and UNIFORM
edge        the same; points outside are moved to the edge before they are evaluated
infinite    the same; points outside are infinite
documented  COTN as it is documented, by hand: a coordinate outside is drawn again, half-normal from the edge inwards.
            Without TPA, which evaluates further points
uniform     SATURATE with modcma's UNIFORM restarts
paper       the preset paper: SATURATE, restarts uniform in the box
"""

from __future__ import annotations

import argparse
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from polarbear_plugins import best_at
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.ma_bbob import MaBbobProblem, MaBbobSuite
from polarbear_plugins.integrations.modcma_portfolio import modcma_portfolio, set_seed
from polarbear_plugins.trajectories import HorizonReached, Recorder

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments

STEP_SIZES = ("CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES")
SETTINGS: dict[str, dict[str, Any]] = {
    "letter": {"preset": "appendix-b"},
    "edge": {"preset": "appendix-b"},
    "infinite": {"preset": "appendix-b"},
    "documented": {},
    "uniform": {"preset": "appendix-b", "bound_correction": "SATURATE"},
    "paper": {"preset": "paper"},
}


class Watched:
    """A problem that counts the points outside its box, and may treat them in its own way."""

    def __init__(self, problem: MaBbobProblem, setting: str) -> None:
        self.identity, self.lower, self.upper = problem.identity, problem.lower, problem.upper
        self._problem, self._setting = problem, setting
        self.outside = 0

    def evaluate(self, x: np.ndarray, /) -> float:
        """Value at a point."""
        out = bool((np.abs(x) > 5).any())
        self.outside += out
        if out and self._setting == "infinite":
            return np.inf
        return self._problem.evaluate(np.clip(x, -5, 5) if self._setting == "edge" else x)


def run_documented(problem: Watched, ssa: str, budget: int, seed: int) -> Any:
    """Run CMA-ES with COTN as it is documented."""
    library = require("modcma.c_maes", extra="ioh", who="This benchmark")
    options, modules, edge = library.options, library.Modules(), np.full(problem.lower.size, 5.0)
    modules.active = modules.repelling_restart = True
    modules.restart_strategy = options.RestartStrategy.IPOP
    modules.ssa = options.StepSizeAdaptation.__members__[ssa]
    rng = np.random.default_rng(seed)
    set_seed(library, int(rng.integers(2**31)))
    start = rng.uniform(-5, 5, edge.size)
    settings = library.Settings(edge.size, modules=modules, lb=-edge, ub=edge, sigma0=2.0, budget=2**62, x0=start)
    optimizer = library.ModularCMAES(library.Parameters(settings))
    recorder, points = Recorder("evaluations", budget), []
    objective = recorder.watch(problem.evaluate)

    def corrected(x: np.ndarray) -> float:
        inwards = 10 * np.abs(rng.normal(0, 1 / 3, x.size))
        points.append(np.where(x < -5, -5 + inwards, np.where(x > 5, 5 - inwards, x)))
        return objective(points[-1])

    try:
        while True:
            if optimizer.p.criteria.any():
                optimizer.p.settings.x0 = rng.uniform(-5, 5, edge.size)
            points.clear()
            optimizer.mutate(corrected)
            population = optimizer.p.pop
            population.X = np.array(points[-population.X.shape[1] :]).T
            population.Y = (population.X - np.asarray(optimizer.p.adaptation.m).reshape(-1, 1)) / population.S
            optimizer.select()
            optimizer.recombine()
            optimizer.adapt()
    except HorizonReached:
        pass
    return recorder.trajectory(algorithm=ssa, instance=problem.identity.name, seed=seed)


def run_one(work: tuple[str, str, int, int, int]) -> tuple[float, Any]:
    """Share of evaluations outside the box, and the trajectory, of one run."""
    setting, ssa, number, dimension, budget = work
    suite = MaBbobSuite(dimension)
    identity = next(itertools.islice(suite.identities(12345), number, None))
    problem, seed = Watched(suite.build(identity), setting), 1000 + number
    if setting == "documented":
        run = run_documented(problem, ssa, budget, seed)
    else:
        configuration = {"ssa": ssa, **SETTINGS[setting]}
        preset = configuration.pop("preset")
        [algorithm] = modcma_portfolio(configuration, preset=preset)
        run = algorithm.run(problem, budget, seed)
    return problem.outside / budget, run


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", type=int, default=30)
    parser.add_argument("--budget", type=int, default=60_000)
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    quick = {"dimension": 3, "budget": 300, "instances": 1, "workers": 1}
    options = parse_arguments(parser, quick)
    grid = [max(100, round(share * options.budget)) for share in (0.006, 0.012, 0.05, 0.13, 0.25, 0.4, 0.6, 1)]
    grid = sorted(set(grid))
    with ProcessPoolExecutor(options.workers) as pool:
        for setting in options.settings:
            names = [name for name in STEP_SIZES if (setting, name) != ("documented", "TPA")]
            works = [
                (setting, name, number, options.dimension, options.budget)
                for number in range(options.instances)
                for name in names
            ]
            outside, runs = zip(*pool.map(run_one, works), strict=True)
            shares = np.reshape(outside, (-1, len(names))).mean(axis=0)
            values = np.array([best_at(run, grid) for run in runs]).reshape(-1, len(names), len(grid))
            ranks = rankdata(values, axis=1).mean(axis=0)
            print(setting, "outside:", ", ".join(f"{n} {share:.0%}" for n, share in zip(names, shares, strict=True)))
            for place, time in enumerate(grid):
                order = np.argsort(ranks[:, place])
                print(f"  {time:7,d}  " + ", ".join(f"{names[k]} {ranks[k, place]:.1f}" for k in order), flush=True)


if __name__ == "__main__":
    main()
