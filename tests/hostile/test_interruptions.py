"""Ctrl-C more than once, clocks that jump, plugins that fail, and who may write to standard output."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, hookimpl, load_plugins, race, resume
from polarbear_plugins.errors import PluginWarning
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import PortfolioSource, SuiteSource, make_request, sample_at_timepoints
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.problems.protocols import Identity

SETTINGS = RaceSettings(seed=4, draws=100, max_rounds=2, batch_size=6, batch_min=4)
OPTIONS = {"algorithms": 3, "seed": 2}
PLUGIN = """
import os
import subprocess
from polarbear_plugins import hookimpl
from polarbear_plugins.plugins.synthetic import synthetic_portfolio

class Noisy:
    def __init__(self, algorithm):
        self.name, self.algorithm = algorithm.name, algorithm

    def run(self, problem, horizon, seed):
        print("noise")
        os.write(1, b"noise of a library")
        subprocess.run(["echo", "noise of a child"], check=True)
        return self.algorithm.run(problem, horizon, seed)

@hookimpl
def polarbear_portfolio(name, options):
    '''Noisy ones.'''
    return [Noisy(algorithm) for algorithm in synthetic_portfolio(algorithms=2)] if name == "noisy" else None
"""
demo_module = importlib.import_module("polarbear_plugins.cli.demo")


def synthetic(**options: Any) -> RaceResult:
    options = {"workers": 0, **options}
    return race("synthetic", "synthetic", [1, 2, 3], SETTINGS, portfolio_options=OPTIONS, **options)


@pytest.fixture(scope="module")
def in_peace() -> RaceResult:
    return synthetic()


def test_ctrl_c_again_while_workers_are_ended_loses_nothing(
    in_peace: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(progress: Progress) -> None:
        if len(progress.state.rounds) == 1 and progress.done >= 2:
            signal.raise_signal(signal.SIGINT)

    closed: list[bool] = []
    close = Dispatcher.close

    def disturbed(self: Dispatcher, at_once: bool = False) -> None:
        signal.raise_signal(signal.SIGINT)
        close(self, at_once)
        signal.raise_signal(signal.SIGINT)
        closed.append(at_once)

    path = tmp_path / "race.db"
    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "close", disturbed)
        result = synthetic(workers=2, journal=path, progress=impatient)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert closed == [True, False]
    assert result.stopped == "interrupted"
    assert result.rounds == in_peace.rounds[:1]
    assert_same_result(resume(path, workers=0), in_peace)


@pytest.mark.slow
def test_ctrl_c_again_while_the_demo_writes_its_report_leaves_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient:
        def __enter__(self) -> Impatient:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __call__(self, progress: Progress) -> None:
            if len(progress.state.rounds) == 1:
                signal.raise_signal(signal.SIGINT)

    def disturbed(result: RaceResult, output: Path, **_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        output.write_text(str(result))  # the real one takes seconds

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_module, "find_spec", lambda _: None)
    monkeypatch.setattr(demo_module, "ProgressView", Impatient)
    monkeypatch.setattr(demo_module, "write_report", disturbed)
    found = Command("demo", "--workers", "0").data()
    assert (found["stopped"], len(found["rounds"])) == ("interrupted", 1)
    assert "1 round," in Path("demo-report.html").read_text()


def test_clocks_that_jump_change_nothing(in_peace: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, jumps = time.time, itertools.cycle([0.0, 9e8, -9e8, 3600.0])
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: clock() + next(jumps))
        patch.setattr(time, "time_ns", lambda: int(1e9 * (clock() + next(jumps))))
        result = synthetic(workers=2, run_timeout=30, journal=tmp_path / "race.db")
    assert_same_result(result, in_peace)


@pytest.mark.parametrize("room", ["cli", "execution", "experiments", "journal", "racing", "trajectories"])
def test_no_part_of_a_race_asks_for_the_time_of_day(root: Path, room: str) -> None:
    modules = sorted((root / "polarbear_plugins" / room).rglob("*.py"))
    assert modules
    wrong = {path.name: found for path in modules if (found := clocks_of_day(ast.parse(path.read_text())))}
    assert not wrong


def clocks_of_day(tree: ast.Module) -> set[str]:
    """What a module uses that tells the time of day; that clock may jump."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    clocks = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "time"}
    names = {alias.name for node in imports for alias in node.names} | {getattr(node, "module", "") for node in imports}
    taken = {alias.name for node in imports if getattr(node, "module", "") == "time" for alias in node.names}
    return (clocks | taken) - {"monotonic", "perf_counter", "sleep"} | names & {"datetime"}


@pytest.mark.parametrize(
    "line", ["import datetime", "from datetime import date", "time.time()", "from time import time"]
)
def test_the_search_for_the_time_of_day_finds_it(line: str) -> None:
    assert clocks_of_day(ast.parse(line))


def test_a_plugin_that_fails_hides_nothing_from_the_others() -> None:
    class Listener:
        def __init__(self, problem: Exception | None) -> None:
            self.problem, self.rounds = problem, []  # type: ignore[var-annotated]

        @hookimpl
        def polarbear_round_finished(self, state: Any) -> None:
            self.rounds.append(len(state.rounds))
            if self.problem is not None:
                raise self.problem

    listeners = [Listener(None), Listener(RuntimeError("on fire")), Listener(None), Listener(ValueError("no disk"))]
    plugins = load_plugins()
    for number, listener in enumerate(listeners):
        plugins.register(listener, f"listener{number}")
    with pytest.warns(PluginWarning) as warned:
        synthetic(plugins=plugins)
    assert [listener.rounds for listener in listeners] == [[1, 2]] * 4
    told = [str(warning.message) for warning in warned]
    failed = "The plugin listener1 failed in polarbear_round_finished: RuntimeError: on fire, test_interruptions.py"
    assert (len(told), sum(text.startswith(failed) for text in told)) == (4, 2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs echo")
def test_only_the_result_goes_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(PLUGIN)
    about = tmp_path / "noisy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[polarbear]\nnoisy = noisy\n")
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    found = []
    for workers in ("0", "1"):
        options = ("--budget", "3", "--seed", "1", "--max-rounds", "1", "--batch-size", "2", "--workers", workers)
        done = subprocess.run(
            [sys.executable, "-m", "polarbear_plugins.cli", "race", "noisy", "synthetic", *options, "--json"],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
        for noise in ("noise\n", "noise of a library", "noise of a child\n"):
            assert done.stderr.count(noise) >= 4
    assert found[0] == found[1]


def test_what_a_worker_prints_goes_to_standard_error() -> None:
    script = """
from polarbear_plugins.execution.local_processes import LocalProcesses
with LocalProcesses(1) as executor:
    executor.submit(print, "noise").result()
print("result")
"""
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout == "result\n"
    assert "noise\n" in done.stderr


def test_a_trajectory_of_another_class_becomes_a_plain_one() -> None:
    class Own(Trajectory):
        pass

    suite = SuiteSource.of(["p0"], None, None)
    portfolio = PortfolioSource.of({"a": lambda *_: None}, None, None)  # type: ignore[dict-item,return-value]
    request = make_request(portfolio, suite, "a", Identity("p0"), 3.0, 7, np.array([1.0, 2.0, 3.0]))
    run = sample_at_timepoints(Own(algorithm="a", instance="p0", times=[1, 3], best=[2, 1], horizon=9), request)
    assert type(run) is Trajectory
    assert (run.times.tolist(), run.best.tolist(), run.horizon, run.seed) == ([1, 3], [2, 1], 3, 7)
