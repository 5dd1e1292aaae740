"""Pruners at equal budget: the regret of the configuration that a user takes from a study.

    python benchmarks/evidence/equal_budget.py --yahpo yahpo_data --output equal_budget.json
    python benchmarks/evidence/equal_budget.py --tasks noisy --methods polarbear --first-seed 1000 --beside others.json

Each study may spend the fold evaluations of 60 complete trials; what pruning saves goes to further trials.  A trial
that the end of the budget cuts off does not count.  Tasks are described in benchmarks/fold_tasks.py, methods in
benchmarks/pruning_methods.py.  All methods of a seed see the same folds and, for equal parameters, the same losses.

Printed for each task and sampler: the regret of the pick on folds that the study did not see, in units in which the
median configuration has about 1, with its standard error over seeds; the paired difference to the method with the
lowest mean ("behind"), its standard error, and their ratio z; trials, those with all folds, evaluations, and processor
seconds of the study and of the pruner in it.  The best is marked =, and ~ means z < 2: not significantly worse.
The best is chosen by the same seeds, which makes its lead look larger than it is, and nothing is corrected for the
number of methods.  Averages over tasks follow: of regret, and of regret relative to the mean regret without pruning,
which is taken as known in the standard error.

Seeds 0 to 29 are for reporting.  Develop rules on seeds from 1000 on.

WilcoxonPruner's p-values with ties are computed by a quicker method than scipy's, with the same result: with scipy it
would take longer than its seconds say on svm-digits.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))
from fold_tasks import NAMES, YAHPO, Parameters, Sources, Task, fingerprint, generator_of, load_task
from measuring import parse_arguments, skip
from paired_regrets import Rows, compare_regrets, print_averages, print_block
from pruning_methods import METHODS, Plan

from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace, Integer

SAMPLERS: dict[str, type[BaseSampler]] = {"tpe": TPESampler, "random": RandomSampler}
QUICK_TASKS = ("noisy", "ridge-diabetes", "gauss")


class BudgetSpentError(Exception):
    """The budget ends within a trial."""


@dataclass(frozen=True)
class Job:
    """One study."""

    task: str
    sampler: str
    method: str
    seed: int
    complete_trials: int
    sources: Sources


class FoldObjective:
    """Objective of a study: evaluates folds until the trial is complete or pruned, or the budget is spent."""

    def __init__(self, job: Job, task: Task) -> None:
        self.spent, self.pruning_seconds = 0, 0.0
        self.plan = Plan(n_folds=task.n_folds, budget=job.complete_trials * task.n_folds)
        self._seed, self._method = job.seed, METHODS[job.method]
        self._space = task.space
        self.drawn = task.draw(job.seed)

    def __call__(self, trial: optuna.Trial) -> float:
        """Mean loss over all folds, or what the method says about a pruned trial."""
        losses = self.drawn.losses(suggest(trial, self._space))
        seen: list[float] = []
        for fold in self._order(trial.number):
            seen.append(float(losses[fold]))
            self.spent += 1
            self._report(trial, seen, fold)
            if len(seen) == self.plan.n_folds:
                break
            if self._should_prune(trial):
                return self._method.ending(trial.study, trial, seen)
            if self.spent == self.plan.budget:
                raise BudgetSpentError
        return float(losses.mean())

    def stop(self, study: optuna.Study, _: optuna.trial.FrozenTrial) -> None:
        """Stop the study when the budget is spent; a callback."""
        if self.spent == self.plan.budget:
            study.stop()

    def _order(self, number: int) -> Iterable[int]:
        folds = range(self.plan.n_folds)
        if self._method.report == "mean":
            return folds
        return [int(fold) for fold in generator_of(self._seed, "order", number).permutation(folds)]

    def _report(self, trial: optuna.Trial, seen: Sequence[float], fold: int) -> None:
        if self._method.report == "mean":
            trial.report(float(np.mean(seen)), step=len(seen))
        else:
            trial.report(seen[-1], step=fold)

    def _should_prune(self, trial: optuna.Trial) -> bool:
        start = time.process_time()
        answer = trial.should_prune()
        self.pruning_seconds += time.process_time() - start
        return answer


def suggest(trial: optuna.Trial, space: ConfigurationSpace) -> Parameters:
    """A configuration; the spaces here have no conditions."""
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Categorical):
            trial.suggest_categorical(name, parameter.choices)
        elif isinstance(parameter, Integer):
            trial.suggest_int(name, parameter.lower, parameter.upper, log=parameter.log)
        else:
            trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.log)
    return trial.params


def run_study(job: Job) -> dict[str, Any]:
    """Run one study; the regret of each pick, and what was spent."""
    task = load_task(job.task, job.sources)
    objective = FoldObjective(job, task)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(
            sampler=SAMPLERS[job.sampler](seed=job.seed),
            pruner=METHODS[job.method].make_pruner(objective.plan),
            study_name=f"seed {job.seed}",  # from which Hyperband derives its brackets
        )
    study.optimize(objective, catch=BudgetSpentError, callbacks=[objective.stop])
    seconds = time.process_time() - start
    trials = study.get_trials(deepcopy=False)
    return {
        "regret": {name: objective.drawn.regret(pick(study)) for name, pick in METHODS[job.method].picks.items()},
        "trials": len(trials),
        "complete": sum(len(trial.intermediate_values) == task.n_folds for trial in trials),
        "evaluations": objective.spent,
        "seconds": seconds,
        "pruning_seconds": objective.pruning_seconds,
    }


def run_block(pool: ProcessPoolExecutor, jobs: Sequence[Job]) -> Rows:
    """Run the studies of a task and a sampler; figures by method and pick, one for each seed."""
    rows: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    began, shown = time.monotonic(), time.monotonic()
    for number, (job, found) in enumerate(zip(jobs, pool.map(run_study, jobs), strict=True), 1):
        for pick, regret in found["regret"].items():
            label = job.method if pick == "best trial" else f"{job.method}, {pick}"
            for key, value in (found | {"regret": regret}).items():
                rows[label][key].append(value)
        if time.monotonic() - shown > 10 and number < len(jobs):
            shown = time.monotonic()
            done = f"{number} of {len(jobs)} studies in {shown - began:.0f} s"
            print(f"{job.task}, {job.sampler}: {done}", file=sys.stderr, flush=True)
    return {label: {key: np.array(values) for key, values in row.items()} for label, row in rows.items()}


def blocks(options: argparse.Namespace, sources: Sources) -> Iterator[tuple[str, str, list[Job]]]:
    """The studies of each sampler and task."""
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for sampler, task in itertools.product(options.samplers, options.tasks):
        jobs = [
            Job(task, sampler, method, seed, options.complete_trials, sources)
            for seed in seeds
            for method in options.methods
        ]
        yield sampler, task, jobs


def read_earlier(path: Path, about: Mapping[str, Any]) -> dict[tuple[str, str], Rows]:
    """Figures by task and sampler from an earlier output, as :func:`run_block` gives them."""
    data = json.loads(path.read_text())
    different = [key for key, value in about.items() if data[key] != value]
    if different:
        sys.exit(f"{path} is from other studies: {', '.join(different)} differ. Run its methods again.")
    earlier: dict[tuple[str, str], Rows] = defaultdict(dict)
    for row in data["rows"]:
        figures = {key: np.array(values) for key, values in row["seeds"].items()}
        earlier[row["task"], row["sampler"]][row["method"]] = figures
    return earlier


def prepare_worker() -> None:
    """Use one thread, and keep Optuna from logging each trial."""
    threadpool_limits(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def read_options() -> argparse.Namespace:
    """Options of the command line; tasks that need data which are not given are left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=NAMES, default=NAMES, metavar="TASK", help=", ".join(NAMES))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--complete-trials", type=int, default=60, help="the budget, in trials that are not pruned")
    parser.add_argument("--yahpo", type=Path, metavar="FOLDER", help="a copy of yahpo_data; without it no such tasks")
    parser.add_argument("--grid", type=int, default=15, help="positions on an axis of the tables of cross-validation")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "polarbear_equal_budget",
        help="folder for tables that take minutes to compute",
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--beside", type=Path, metavar="JSON", help="an earlier output, whose methods are shown as well"
    )
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"seeds": 2, "complete_trials": 8, "grid": 3, "tasks": QUICK_TASKS})
    if options.seeds < 2:
        parser.error(f"--seeds must be at least 2 for a standard error, got {options.seeds}")
    if options.yahpo is None:
        left_out = [task for task in options.tasks if task in YAHPO]
        options.tasks = [task for task in options.tasks if task not in YAHPO]
        if left_out:
            print(f"without --yahpo the tasks {', '.join(left_out)} are left out")
    return options


def main() -> None:
    """Run the studies, print the tables, and write the figures down."""
    options = read_options()
    if not options.tasks:
        skip("all tasks need --yahpo FOLDER")
    sources = Sources(options.cache, options.grid, options.yahpo)
    about = {key: getattr(options, key) for key in ("seeds", "first_seed", "complete_trials")}
    about["tasks"] = fingerprint(sources)
    earlier = read_earlier(options.beside, about) if options.beside else {}
    folds = {task: load_task(task, sources, options.workers).n_folds for task in options.tasks}
    found: dict[str, dict[str, Rows]] = defaultdict(dict)
    with ProcessPoolExecutor(options.workers, initializer=prepare_worker) as pool:
        for sampler, task, jobs in blocks(options, sources):
            found[sampler][task] = earlier.get((task, sampler), {}) | run_block(pool, jobs)
            budget = options.complete_trials * folds[task]
            title = f"{task}, {sampler}: {folds[task]} folds, {budget} evaluations, {options.seeds} seeds"
            print_block(title, found[sampler][task])
    averages = {sampler: print_averages(sampler, tasks) for sampler, tasks in found.items()}
    if options.output:
        data = {**about, "averages": averages, "rows": list(as_json(found))}
        options.output.write_text(json.dumps(data) + "\n")


def as_json(found: Mapping[str, Mapping[str, Rows]]) -> Iterator[dict[str, Any]]:
    """Everything that was found, a row for each sampler, task and method."""
    for sampler, tasks in found.items():
        for task, rows in tasks.items():
            compared = compare_regrets(rows)
            for label, row in rows.items():
                seeds = {key: values.round(6).tolist() for key, values in row.items()}
                yield {"task": task, "sampler": sampler, "method": label, **compared[label], "seeds": seeds}


if __name__ == "__main__":
    main()
