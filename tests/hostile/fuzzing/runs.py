"""Runs as readers give them: in an answer, with what must be true of them, and some to write files with."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fuzzing.kinds import Answer
from polarbear_plugins import Trajectory, rank
from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.trajectories.trajectory import UNRANKED


def some_runs() -> list[Trajectory]:
    """Twelve runs: three algorithms on two instances, twice."""
    rng = np.random.default_rng(1)
    return [
        Trajectory.from_evaluations(rng.random(12), algorithm=algorithm, instance=f"f{instance}", seed=seed)
        for algorithm in ("csa", "msr", "tpa")
        for instance in (1, 2)
        for seed in (0, 1)
    ]


@functools.cache
def plugin(module: str) -> Plugins:
    """A single plugin of this package."""
    plugins = Plugins()
    plugins.register(importlib.import_module(module), module)
    return plugins


def answer_of(trajectories: Iterable[Trajectory], kind: str = "run") -> Answer:
    """Runs as parts of an answer; they are ranked as well, which must succeed or be refused in our words."""
    found = list(trajectories)
    with contextlib.suppress(PolarBearError):  # there the runs have no file any more that an error could name
        rank(found, [max(run.horizon for run in found)])
    answer: Answer = {}
    for run in found:
        key = (kind, run.algorithm, run.instance, run.seed)
        about = (run.group, run.fixed_group, run.dimension, run.end)
        answer[key if key not in answer else (*key, len(answer))] = steps(run.times, run.best, run.horizon, *about)
    return answer


def steps(times: Any, best: Any, horizon: float, *about: Any) -> tuple[Any, ...]:
    """A run as a part of an answer: steps, horizon, group, whether groups are fixed, dimension, end."""
    return tuple(map(float, times)), tuple(map(float, best)), float(horizon), *about


def improvements(rows: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Where the best value so far changes, by the plainest loop there is; nan is a failed evaluation."""
    times: list[float] = []
    best: list[float] = []
    last = math.inf
    for time, value in rows:
        if value < last:
            last = value
            times.append(time)
            best.append(value)
    return times, best


def flaw_of_runs(answer: Answer) -> str:
    """What is wrong with runs, whatever they were read from."""
    groups: dict[str, Any] = {}
    for key, (times, best, horizon, group, fixed, dimension, end) in answer.items():
        kind, algorithm, instance, seed = key[:4]
        if len(key) > 4:
            return f"{key!r} is there twice"
        try:
            named = all(name.strip() and name.encode() for name in (algorithm, instance, *((group,) if group else ())))
        except UnicodeEncodeError:
            named = False
        ordered = all(a < b for a, b in itertools.pairwise(times))
        # The value of an incumbent may increase, and so may one after a time in which nothing was known.
        falls = kind == "incumbent" or all(b <= a or UNRANKED in (a, b) for a, b in itertools.pairwise(best))
        checks = {
            "names": named,
            "seed": type(seed) is int,
            "times": len(times) == len(best) and ordered and all(0 <= time < math.inf for time in times),
            "values": falls and not any(map(math.isnan, best)),
            "horizon": math.isfinite(horizon) and horizon >= (times[-1] if times else 0),
            "group": groups.setdefault(instance, group) == group,
            "fixed group": isinstance(fixed, bool) and not (fixed and group is None),
            "dimension": dimension is None or (type(dimension) is int and dimension >= 1),
            "end": end in ("unknown", "stopped", "done"),
        }
        wrong = [name for name, right in checks.items() if not right]
        if wrong:
            return f"{wrong[0]} of {key!r}: {answer[key]!r}"[:400]
    return ""
