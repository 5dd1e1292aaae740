"""Algorithms that do what they should not; workers and other processes import this file."""

from __future__ import annotations

import functools
import os
import random
import resource
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import Trajectory
from polarbear_plugins.problems.given import FunctionAlgorithm

HOME = Path.cwd()


class Own(Trajectory):
    """A trajectory class of somebody's own."""


class Cancelled(BaseException):
    """What some libraries raise to end what is under way."""


def curve(level: float, horizon: float, seed: int, kind: type[Trajectory] = Trajectory) -> Trajectory:
    times = np.arange(1.0, horizon + 1)
    best = level + np.random.default_rng(seed).random() - times
    return kind(algorithm="?", instance="?", times=times, best=best, horizon=horizon)


def honest(level: float, _: Any, horizon: float, seed: int) -> Trajectory:
    """Run, and fail where a run before has left its traces."""
    if Path.cwd() != HOME:
        raise RuntimeError("somebody has moved")
    return curve(level, horizon, seed)


# --- what goes well in the end


def moves(_: Any, horizon: float, seed: int) -> Trajectory:
    os.chdir("/")
    return curve(0, horizon, seed)


def seeds(_: Any, horizon: float, seed: int) -> Trajectory:
    random.seed(1)
    np.random.seed(1)
    return curve(0, horizon, seed)


def starts_threads(_: Any, horizon: float, seed: int) -> Trajectory:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return curve(0, horizon, seed)


def returns_twice(_: Any, horizon: float, seed: int) -> Trajectory:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python says itself that this is no good idea
        child = not os.fork()
    if child:
        return curve(-100, horizon, seed)  # before the other one
    time.sleep(0.3)
    return curve(0, horizon, seed)


def own_class(_: Any, horizon: float, seed: int) -> Trajectory:
    return curve(0, horizon, seed, Own)


def huge(_: Any, horizon: float, seed: int) -> Trajectory:
    few, times = curve(0, horizon, seed), np.linspace(1, horizon, 2**20 + 1)
    best = few.best[np.searchsorted(few.times, times, side="right") - 1]
    return Trajectory(algorithm="?", instance="?", times=times, best=best, horizon=horizon)


# --- what fails


def wrong_length(_: Any, horizon: float, __: int) -> Trajectory:
    return Trajectory(algorithm="?", instance="?", times=[1, 2, 3], best=[3, 2], horizon=horizon)


def grows(_: Any, horizon: float, __: int) -> Trajectory:
    return Trajectory(algorithm="?", instance="?", times=[1, 2], best=[1, 2], horizon=horizon)


def nan_times(_: Any, horizon: float, __: int) -> Trajectory:
    return Trajectory(algorithm="?", instance="?", times=[1, np.nan], best=[2, 1], horizon=horizon)


def mutilated(_: Any, horizon: float, seed: int) -> Trajectory:
    made = curve(0, horizon, seed)
    object.__setattr__(made, "best", made.best[:1])
    return made


def cancelled(*_: Any) -> Trajectory:
    raise Cancelled("by the library")


def generator_exit(*_: Any) -> Trajectory:
    raise GeneratorExit


def exits(*_: Any) -> Trajectory:
    raise SystemExit(3)


def eats_memory(*_: Any) -> Trajectory:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, before[1]))
    try:
        eaten = []
        while True:
            eaten.append(bytearray(2**24))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


# --- what costs the process; only for workers


def exits_hard(*_: Any) -> Trajectory:
    os._exit(9)


def aborts(*_: Any) -> Trajectory:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()


def interrupts(*_: Any) -> Trajectory:
    raise KeyboardInterrupt


def closes_files(_: Any, horizon: float, seed: int) -> Trajectory:
    os.closerange(3, 1024)
    return curve(0, horizon, seed)


def closes_files_and_hangs(*_: Any) -> Trajectory:
    os.closerange(3, 1024)
    time.sleep(600)
    raise AssertionError


def dies_before_its_child(*_: Any) -> Trajectory:
    if not os.fork():
        time.sleep(600)
    os._exit(5)


def ignores_sigterm(problem: Any, horizon: float, seed: int) -> Trajectory:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    if problem == "p0":
        time.sleep(600)
    return curve(0, horizon, seed)


HONEST = {f"honest{level}": functools.partial(honest, level) for level in range(3)}
FINE = [moves, seeds, starts_threads, returns_twice, own_class, huge]
FAILING = {
    wrong_length: "got 3 times, 2 values",
    grows: "best",
    nan_times: "times",
    mutilated: "got 3 times, 1 values",
    cancelled: "Cancelled: by the library, misbehaving.py line",
    generator_exit: "GeneratorExit",
    exits: "SystemExit: 3",
}
if Path("/proc/self/statm").exists():
    FAILING[eats_memory] = "MemoryError"
DEADLY = {
    exits_hard: "its process died (exit code 9)",
    aborts: "its process died (killed by SIGABRT)",
    interrupts: "KeyboardInterrupt",
    closes_files: "its process died",
    closes_files_and_hangs: "its process died (killed by SIGKILL)",
    dies_before_its_child: "its process died (exit code 5)",
    ignores_sigterm: "it ran for more than 5 s and was ended",
}


class Slow:
    """An algorithm that takes its time, and writes down which process ran what."""

    def __init__(self, name: str, level: float, log: str, seconds: float) -> None:
        self.name, self.level, self.log, self.seconds = name, level, log, seconds

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        with open(self.log, "a") as log:  # noqa: PTH123
            log.write(f"{os.getpid()} {self.name} {problem.identity.name} {horizon:g}\n")
        time.sleep(self.seconds)
        run = FunctionAlgorithm(self.name, functools.partial(honest, self.level))
        return run.run(problem, horizon, seed)


def slow_portfolio(log: object, seconds: float = 0.0) -> list[Slow]:
    return [Slow(f"slow{level}", level / 3, str(log), seconds) for level in range(3)]
