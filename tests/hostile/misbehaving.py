"""Algorithms that do what they should not; workers and other processes import this file."""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import resource
import signal
import stat
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


class MuteError(Exception):
    """An exception without words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class NamelessError(Exception, metaclass=Meta):
    """An exception whose class has no name."""


class DemandingError(Exception):
    """An exception that can neither be pickled nor unpickled."""

    def __init__(self, one: str, *, other: threading.Lock) -> None:
        super().__init__(one)
        self.other = other


def curve(level: float, horizon: float, seed: int, kind: type[Trajectory] = Trajectory) -> Trajectory:
    times = np.arange(1.0, horizon + 1)
    best = level + np.random.default_rng(seed).random() - times
    return kind(algorithm="?", instance="?", times=times, best=best, horizon=horizon)


def honest(level: float, _: Any, horizon: float, seed: int) -> Trajectory:
    """Run, and fail where a run before has left its traces."""
    if Path.cwd() != HOME:
        raise RuntimeError("somebody has moved")
    if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL or signal.getitimer(signal.ITIMER_REAL)[0]:
        raise RuntimeError("somebody has left a signal")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 32:
        raise RuntimeError("somebody has lowered a limit")
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


def leaves_signals(_: Any, horizon: float, seed: int) -> Trajectory:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(1)  # would end the process in another run
    return curve(0, horizon, seed)


def hurries_descriptors(_: Any, horizon: float, seed: int) -> Trajectory:
    for descriptor in range(3, 40) if multiprocessing.parent_process() else ():  # not those of pytest
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.set_blocking(descriptor, False)
        except OSError:
            continue
    return curve(0, horizon, seed)


def lowers_limits(_: Any, horizon: float, seed: int) -> Trajectory:
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
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


def surrogates(*_: Any) -> Trajectory:
    raise ValueError("bad \ud800 name")


def mute(*_: Any) -> Trajectory:
    raise MuteError


def nameless(*_: Any) -> Trajectory:
    raise NamelessError("whoever")


def shouts(*_: Any) -> Trajectory:
    raise ValueError("a" + "h" * 5_000_000 + "!")


def paints(*_: Any) -> Trajectory:
    raise ValueError("\x1b[31mred\x9b2J\n\u202etxt")


def several(*_: Any) -> Trajectory:
    raise ExceptionGroup("several", [ValueError("one"), TypeError("other")])


def unpicklable(*_: Any) -> Trajectory:
    raise DemandingError("give me another", other=threading.Lock())


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


def writes_garbage(_: Any, horizon: float, seed: int) -> Trajectory:
    write_everywhere(b"\xff" * 100 + b"\n", also_pipes=True)
    return curve(0, horizon, seed)


def writes_a_length(_: Any, horizon: float, seed: int) -> Trajectory:
    write_everywhere(b"\x00\x00\x01\x00")  # as before a message of 256 bytes
    return curve(0, horizon, seed)


def writes_garbage_and_hangs(*_: Any) -> Trajectory:
    write_everywhere(b"garbage")
    time.sleep(600)
    raise AssertionError


def write_everywhere(garbage: bytes, also_pipes: bool = False) -> None:
    for descriptor in range(3, 40):
        try:
            # There is a pipe of Python's resource tracker, which complains at length and goes on.
            if also_pipes or stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, garbage)
        except OSError:
            continue


HONEST = {f"honest{level}": functools.partial(honest, level) for level in range(3)}
FINE = [
    moves,
    seeds,
    hurries_descriptors,
    starts_threads,
    returns_twice,
    leaves_signals,
    lowers_limits,
    own_class,
    huge,
]
FAILING = {
    wrong_length: "got 3 times, 2 values",
    grows: "best",
    nan_times: "times",
    mutilated: "got 3 times, 1 values",
    cancelled: "Cancelled: by the library, misbehaving.py line",
    generator_exit: "GeneratorExit",
    exits: "SystemExit: 3",
    surrogates: "ValueError: bad \\ud800 name, misbehaving.py line",
    mute: "MuteError: a MuteError whose text raises RuntimeError, misbehaving.py line",
    nameless: "NamelessError: whoever, misbehaving.py line",
    shouts: "ValueError: ahhh",
    paints: "ValueError: \\u001b[31mred\\u009b2J \\u202etxt, misbehaving.py line",
    several: "ExceptionGroup: several (2 sub-exceptions), the first ValueError: one",
    unpicklable: "DemandingError: give me another, misbehaving.py line",
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
    writes_garbage: "its process sent something else than an answer and was ended",
    writes_a_length: "its process sent something else than an answer and was ended",
    writes_garbage_and_hangs: "its process sent something else than an answer and was ended",
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
