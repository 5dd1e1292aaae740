"""What a run costs beside modcma and its objective: evaluations a second of our runner against the bare loop.

    python benchmarks/speed/runner.py --evaluations 10000 --repeats 21

The runner is ``polarbear_plugins.execution.requests.perform``, as in the worker of a race: it counts, records, ends the
run exactly and makes the trajectory.  The named alternative, measured in turn with it, is modcma's own ``run`` with the
ioh problem itself as the objective, the same configuration, start and seed, and nothing recorded.  Others may use
the machine: the two take turns, and the ratio is the median over the turns.  The target is 0.95.
"""

import argparse
import sys
import time
from pathlib import Path

import ioh
import numpy as np
from modcma import c_maes

from polarbear_plugins.execution.requests import Request, perform
from polarbear_plugins.integrations import modcma_portfolio
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import Algorithm, Identity

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


class Bbob:
    """A BBOB problem of ioh as a box problem, with nothing in between."""

    def __init__(self, function: int, dimension: int) -> None:
        self.identity = Identity(f"f{function}-d{dimension}")
        self.lower, self.upper = np.full(dimension, -5.0), np.full(dimension, 5.0)
        self.evaluate = ioh.get_problem(function, 1, dimension, ioh.ProblemClass.BBOB)


def bare(problem: Bbob, ssa: str, evaluations: int, seed: int) -> float:
    """Measure evaluations a second of modcma by itself, with the configuration of the paper."""
    options = c_maes.options
    modules = c_maes.Modules()
    modules.active = modules.repelling_restart = True
    modules.bound_correction = options.CorrectionMethod.COTN
    modules.restart_strategy = options.RestartStrategy.IPOP
    modules.center_placement = options.CenterPlacement.UNIFORM
    modules.ssa = getattr(options.StepSizeAdaptation, ssa)
    rng = np.random.default_rng(seed)
    problem.evaluate.reset()
    began = time.process_time()
    modcma_portfolio.set_seed(c_maes, int(rng.integers(2**31)))
    settings = c_maes.Settings(
        problem.lower.size,
        modules=modules,
        budget=evaluations,
        sigma0=2.0,
        x0=rng.uniform(-5, 5, problem.lower.size),
        lb=problem.lower,
        ub=problem.upper,
    )
    c_maes.ModularCMAES(c_maes.Parameters(settings)).run(problem.evaluate)
    return float(problem.evaluate.state.evaluations) / (time.process_time() - began)


def ours(problem: Bbob, algorithm: Algorithm, evaluations: int, seed: int) -> float:
    """Measure evaluations a second of a run of a race, sampled at 50 timepoints."""
    timepoints = np.unique(np.geomspace(100, evaluations, 50).round())
    request = Request(algorithm, algorithm.name, problem, None, problem.identity, evaluations, seed, timepoints)
    problem.evaluate.reset()
    began = time.process_time()
    perform(request)
    seconds = time.process_time() - began
    if problem.evaluate.state.evaluations != evaluations:
        raise SystemExit(f"{algorithm.name}: {problem.evaluate.state.evaluations} evaluations instead of {evaluations}")
    return evaluations / seconds


def main() -> None:
    """Measure both in turn and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--functions", type=int, nargs="*", default=[1, 21])
    parser.add_argument("--dimensions", type=int, nargs="*", default=[5, 30])
    parser.add_argument("--preset", choices=modcma_portfolio.PRESETS, default="paper")
    options = parse_arguments(parser, {"evaluations": 1000, "repeats": 2, "functions": [1], "dimensions": [5]})
    plugins = Plugins()
    plugins.register(modcma_portfolio, "modcma")
    algorithms = plugins.portfolio("modcma-ssa", preset=options.preset, random_search=False)
    print(f"{options.evaluations} evaluations, median of {options.repeats} turns, preset {options.preset}")
    ratios = []
    for dimension in options.dimensions:
        for function in options.functions:
            problem = Bbob(function, dimension)
            for algorithm in algorithms:
                rates = np.zeros((options.repeats, 2))
                for turn in range(options.repeats):
                    for which in (turn % 2, 1 - turn % 2):
                        rates[turn, which] = (
                            ours(problem, algorithm, options.evaluations, turn)
                            if which
                            else bare(problem, algorithm.name, options.evaluations, turn)
                        )
                alone, raced = np.median(rates, axis=0)
                ratios.append(np.median(rates[:, 1] / rates[:, 0]))
                print(
                    f"f{function:<3} d={dimension:<3} {algorithm.name:7} bare {alone:9,.0f}/s  runner {raced:9,.0f}/s  "
                    f"ratio {ratios[-1]:.3f}",
                    flush=True,
                )
    report_figure(
        f"ratio: median {np.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}",
        "evaluations/s, the median",
        float(np.median(ratios)),
        "modcma's own run",
        "higher",
    )


if __name__ == "__main__":
    main()
