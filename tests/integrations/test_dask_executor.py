"""Races on a real scheduler with real workers, which are killed, stopped and added while runs are under way."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, race, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning, RunWarning
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import Request, UnfitWorkerError
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.integrations import dask_executor
from polarbear_plugins.integrations.dask_executor import DaskExecutor
from polarbear_plugins.integrations.dask_executor import executor as executors
from polarbear_plugins.integrations.dask_executor.connecting import connect
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Algorithm, Identity
from polarbear_plugins.testing import check_executor

distributed = pytest.importorskip("distributed")

TIMES = [1, 2, 3]
SETTINGS = RaceSettings(seed=4, draws=200, max_rounds=2, batch_size=4, batch_min=2)
SHORT = ("synthetic", "synthetic", "--budget", "5", "--seed", "4", "--draws", "200")

# Workers import what they run, and test modules cannot be imported there.
ALGORITHMS = """
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np

from polarbear_plugins import Trajectory

HERE = Path(__file__).parent


class Slow:
    def __init__(self, algorithm):
        self.name, self.algorithm = algorithm.name, algorithm

    def run(self, problem, horizon, seed):
        time.sleep(0.05)
        return self.algorithm.run(problem, horizon, seed)


def good(problem, horizon, seed):
    times = np.arange(1.0, horizon + 1)
    best = np.random.default_rng(seed).random() - times
    return Trajectory(algorithm="?", instance="?", times=times, best=best, horizon=horizon)


def raises(problem, horizon, seed):
    raise ValueError("it does not  converge\\non " + problem)


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def is_mute(problem, horizon, seed):
    raise MuteError


def mumbles(problem, horizon, seed):
    raise ValueError("bad \\ud800 name" + "m" * 5_000_000)


def eats(problem, horizon, seed):
    eaten = []
    while True:
        eaten.append(np.ones(2_000_000))
        time.sleep(0.005)


def crashes(problem, horizon, seed):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(problem, horizon, seed):
    (HERE / "hanging").touch()
    while True:
        time.sleep(600)


class Counted:
    name = "counted"

    def __init__(self, seconds):
        self.seconds = seconds

    def run(self, problem, horizon, seed):
        with (HERE / "counted").open("a") as log:
            log.write(f"{seed}\\n")
        for _ in range(round(100 * self.seconds)):
            time.sleep(0.01)
            if (HERE / "enough").exists():
                break
        where = problem.identity.name
        return Trajectory(algorithm="counted", instance=where, seed=seed, times=[1], best=[seed], horizon=horizon)


class Odd:
    name = "odd"

    def __init__(self, raises, dies):
        self.raises, self.dies = raises, dies

    def run(self, problem, horizon, seed):
        if seed in self.raises:
            raise ValueError("not today")
        if seed in self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        where = problem.identity.name
        return Trajectory(algorithm="odd", instance=where, seed=seed, times=[1], best=[seed], horizon=horizon)


def kills_workers(problem, horizon, seed):
    if problem == "p0":
        (HERE / f"killed-{os.getpid()}").touch()
        os.kill(multiprocessing.parent_process().pid, signal.SIGKILL)
        time.sleep(600)
    return good(problem, horizon, seed)


def raises_once(problem, horizon, seed):
    if problem == "p0":
        raise ValueError("as bad as killing the worker")
    return good(problem, horizon, seed)
"""


class Cluster:
    """A scheduler and its workers, on this machine and in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.odd: list[subprocess.Popen[bytes]] = []  # those with a path of their own
        self.scheduler: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a scheduler, if none is running."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.kill_everything()
            self.file.unlink(missing_ok=True)
            self.scheduler = self._process("dask_scheduler", "--port", "0", "--idle-timeout", "300s")
            self.address  # wait for it  # noqa: B018

    @property
    def file(self) -> Path:
        return self.folder / "scheduler.json"

    @property
    def address(self) -> str:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if self.file.exists() and self.file.read_text().endswith("}"):
                return str(json.loads(self.file.read_text())["address"])
            time.sleep(0.02)
        raise TimeoutError((self.folder / "log").read_text()[-2000:])

    def add(self, *path: Path) -> subprocess.Popen[bytes]:
        """Start a worker, which finds modules in ``path`` before any other."""
        arguments = ("--no-nanny", "--nthreads", "1", "--death-timeout", "300")
        worker = self._process("dask_worker", *arguments, path=path)
        self.workers.append(worker)
        if path:
            self.odd.append(worker)
        return worker

    def need(self, count: int) -> str:
        """Have so many workers; returns the address of the scheduler."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        for worker in self.workers[count:]:
            self.kill(worker)
        del self.workers[count:]
        for _ in range(count - len(self.workers)):
            self.add()
        with distributed.Client(self.address, set_as_default=False) as client:
            deadline = time.monotonic() + 300
            while len(client.nthreads()) != count:  # those that were killed are gone, too
                assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.02)
        return self.address

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_everything(self) -> None:
        for process in self.processes:
            self.kill(process)
        self.processes, self.workers, self.scheduler = [], [], None

    def _process(self, module: str, *arguments: str, path: tuple[Path, ...] = ()) -> subprocess.Popen[bytes]:
        places = [*map(str, path), str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(places),
            # A worker that was stopped is missed after 5 seconds (ten heartbeats) rather than 5 minutes, and a run is
            # suspected as soon as one worker died.
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1s",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
        }
        common = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self.file))
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *common, *arguments],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its children are killed with it
            )
        self.processes.append(process)
        return process


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "dask_algorithms.py").write_text(ALGORITHMS)
    found = Cluster(folder)
    try:
        yield found
    finally:
        found.kill_everything()


@pytest.fixture
def cluster(machines: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    machines.start()
    for worker in machines.odd:  # left by a test that failed
        machines.kill(worker)
    monkeypatch.syspath_prepend(machines.folder)
    yield machines
    sys.modules.pop("dask_algorithms", None)


@pytest.fixture(scope="module")
def here() -> RaceResult:
    """The race that all others must equal."""
    return race("synthetic", "synthetic", TIMES, SETTINGS, workers=0)


def slow() -> list[Algorithm]:
    import dask_algorithms

    return [dask_algorithms.Slow(algorithm) for algorithm in synthetic_portfolio()]


def once(action: Callable[[], object]) -> Callable[[Progress], None]:
    """A watcher that acts when three runs have finished."""
    acted: list[object] = []

    def watch(progress: Progress) -> None:
        if progress.done >= 3 and not acted:
            acted.append(True)
            action()

    return watch


def runs_in(journal: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(journal) as database:
        found = database.execute("SELECT algorithm, instance FROM runs").fetchall()
    database.close()
    return found


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "polarbear_plugins":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_us(folder: Path) -> Path:
    """A folder that keeps this package from those who find it first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(ABSENT)
    return folder


def fake_version(folder: Path) -> Path:
    """A folder that tells another version of this package to those who find it first."""
    metadata = folder / "polarbear_plugins-99.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: polarbear-plugins\nVersion: 99.0\n")
    return folder


@pytest.mark.slow
def test_without_a_worker_the_user_is_told_and_a_late_one_does_the_work(
    cluster: Cluster, here: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polarbear_plugins.integrations.dask_executor.executor._WARN_AFTER", 0.1)
    late = threading.Timer(1.5, cluster.add)
    late.start()
    with connect(cluster.need(0), 60) as executor, pytest.warns(PolarBearWarning, match=r"tcp://.* has no worker"):
        assert_same_result(race("synthetic", "synthetic", TIMES, SETTINGS, executor=executor), here, about=False)
    late.join()


@pytest.mark.slow
def test_a_worker_with_another_version_is_left_out_and_refused_where_there_is_no_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    address = cluster.need(1)
    [good] = cluster.workers
    settings = replace(SETTINGS, batch_size=8)
    journal = tmp_path / "race.db"
    with connect(address, 60) as executor, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other = cluster.add(fake_version(tmp_path / "other"))
        lacking = cluster.add(without_us(tmp_path / "lacking"))

        def until_they_are_there() -> None:
            while len(executor._workers.threads) < 3:
                time.sleep(0.02)

        found = race(
            slow(),
            SyntheticSuite(),
            TIMES,
            settings,
            executor=executor,
            journal=journal,
            progress=once(until_they_are_there),
        )
    assert_same_result(found, race(synthetic_portfolio(), SyntheticSuite(), TIMES, settings, workers=0), about=False)
    told = sorted(str(warning.message).partition("is left out: ")[2] for warning in caught)
    assert len(told) == 2
    assert told[0].startswith("it has no polarbear-plugins that fits (")
    assert "No module named 'polarbear_plugins" in told[0]
    assert told[1].startswith("it has polarbear-plugins 99.0, and this process")
    assert not found.failures
    assert lacking.poll() is None  # it was left out, not brought down
    for worker in (good, lacking):
        cluster.kill(worker)
    assert cluster.need(1) == address
    with pytest.raises(UnfitWorkerError, match=r"The worker tcp://\S+: it has polarbear-plugins 99\.0, and this"):
        connect(address, 60)
    cluster.kill(other)


@pytest.mark.slow
def test_the_contract_of_executors_is_kept(cluster: Cluster) -> None:
    check_executor(dask_executor, f"dask:{cluster.need(2)}")


@pytest.mark.slow
def test_commands_race_and_resume_by_name_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    journal = str(tmp_path / "race.db")
    there = ("--executor", f"dask:{cluster.need(2)}")
    Command("race").data(*SHORT, "--max-rounds", "1", "--journal", journal, *there)
    resumed = Command("resume").data(journal, "--max-rounds", "2", *there)
    assert resumed == Command("race").data(*SHORT, "--max-rounds", "2", "--workers", "0")


def test_any_executor_of_a_client_gives_the_same_result(cluster: Cluster, here: RaceResult) -> None:
    with distributed.Client(cluster.need(2), set_as_default=False) as client:
        with client.get_executor() as executor:
            assert_same_result(race("synthetic", "synthetic", TIMES, SETTINGS, executor=executor), here, about=False)
        with DaskExecutor(client) as ours:
            assert_same_result(race("synthetic", "synthetic", TIMES, SETTINGS, executor=ours), here, about=False)
        assert client.submit(abs, -1).result() == 1  # who hands it over closes it


def test_what_was_given_as_python_travels_and_closures_too(cluster: Cluster) -> None:
    import dask_algorithms

    def shifted(problem: object, horizon: float, seed: int) -> Any:
        return dask_algorithms.good(problem, horizon, seed + 1)

    portfolio = {"good": dask_algorithms.good, "shifted": shifted}
    settings = replace(SETTINGS, max_rounds=1)
    with connect(cluster.need(2), 60) as executor:
        found = race(portfolio, ["p0", "p1", "p2", "p3"], TIMES, settings, executor=executor)
    assert_same_result(found, race(portfolio, ["p0", "p1", "p2", "p3"], TIMES, settings, workers=0), about=False)


def test_what_a_worker_cannot_load_is_named(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text(ALGORITHMS)
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with (
        connect(cluster.need(2), 60) as executor,
        pytest.raises(InvalidInputError, match=r"'[ab]' on 'p[01]': .*only_here.*every"),
    ):
        race({"a": only_here.good, "b": only_here.good}, ["p0", "p1"], TIMES, SETTINGS, executor=executor)


@pytest.mark.slow
@pytest.mark.long
def test_runs_that_raise_crash_or_hang_fail_as_in_local_processes_and_free_their_worker(cluster: Cluster) -> None:
    import dask_algorithms

    names = ("good", "raises", "is_mute", "mumbles", "crashes", "hangs", "eats")
    portfolio = {name: getattr(dask_algorithms, name) for name in names}
    settings = replace(SETTINGS, max_rounds=1, batch_size=1, batch_min=1)
    limits: Any = {"run_timeout": 10.0, "run_memory": 200}
    with connect(cluster.need(2), 60) as executor:
        with pytest.warns(RunWarning):
            found = race(portfolio, ["p0"], TIMES, settings, executor=executor, **limits)
        assert executor.submit(abs, -1).result(timeout=30) == 1
    assert all(worker.poll() is None for worker in cluster.workers)
    with pytest.warns(RunWarning):
        locally = race(portfolio, ["p0"], TIMES, settings, workers=1, **limits)
    assert_same_result(found, locally, about=False)
    assert len(found.failures) == 6


def test_ctrl_c_ends_the_runs_under_way_and_frees_their_worker(cluster: Cluster) -> None:
    import dask_algorithms

    (cluster.folder / "hanging").unlink(missing_ok=True)

    def interrupt(progress: Progress) -> None:
        if progress.done:
            while not (cluster.folder / "hanging").exists():
                time.sleep(0.02)
            raise KeyboardInterrupt

    portfolio = {name: getattr(dask_algorithms, name) for name in ("good", "hangs")}
    address = cluster.need(1)
    with connect(address, 60) as executor:
        found = race(portfolio, ["p0", "p1"], TIMES, SETTINGS, executor=executor, progress=interrupt)
    assert found.stopped == "interrupted"
    executor = connect(address, 60)
    try:
        assert executor.submit(abs, -1).result(timeout=30) == 1
    finally:
        executor.shutdown(cancel_futures=True)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(cluster: Cluster, tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    with connect(cluster.need(2), 60) as executor:

        def replace_one() -> None:
            cluster.kill(cluster.workers[0])
            cluster.add()

        found = race(
            slow(), SyntheticSuite(), TIMES, SETTINGS, executor=executor, journal=journal, progress=once(replace_one)
        )
    assert_same_result(found, race(synthetic_portfolio(), SyntheticSuite(), TIMES, SETTINGS, workers=0), about=False)
    assert not found.failures
    assert len(runs_in(journal)) == len(set(runs_in(journal)))


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced_by_the_others(cluster: Cluster) -> None:
    with connect(cluster.need(2), 60) as executor:
        found = race(
            slow(),
            SyntheticSuite(),
            TIMES,
            SETTINGS,
            executor=executor,
            progress=once(lambda: cluster.workers[0].send_signal(signal.SIGSTOP)),
        )
        cluster.kill(cluster.workers[0])
    assert_same_result(found, race(synthetic_portfolio(), SyntheticSuite(), TIMES, SETTINGS, workers=0), about=False)
    assert not found.failures


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_kills_its_workers_fails_in_the_end_and_alone(cluster: Cluster) -> None:
    import dask_algorithms

    problems = ["p0", "p1", "p2"]
    settings = replace(SETTINGS, max_rounds=1, batch_size=3, batch_min=1)
    with (
        connect(cluster.need(3), 60) as executor,
        pytest.warns(RunWarning, match="every worker that it was sent to died"),
    ):
        found = race(
            {"good": dask_algorithms.good, "killer": dask_algorithms.kills_workers},
            problems,
            TIMES,
            settings,
            executor=executor,
        )
    assert [(failure.algorithm, failure.instance) for failure in found.failures] == [("killer", "p0")]
    # With no death of a worker allowed, it was sent to one, suspected, and sent to another as the only suspect.
    assert len(list(cluster.folder.glob("killed-*"))) == 2
    with pytest.warns(RunWarning):
        expected = race(
            {"good": dask_algorithms.good, "killer": dask_algorithms.raises_once}, problems, TIMES, settings, workers=0
        )
    assert np.array_equal(found.posterior.ratings, expected.posterior.ratings)


@pytest.mark.slow
@pytest.mark.long
def test_a_scheduler_that_dies_ends_the_race_and_the_journal_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    with connect(cluster.need(1), 60) as executor:

        def kill() -> None:
            assert cluster.scheduler is not None
            cluster.kill(cluster.scheduler)

        with pytest.raises(PolarBearError, match=r"The executor broke .*scheduler at tcp://\S+ is gone.*resume"):
            race(slow(), SyntheticSuite(), TIMES, SETTINGS, executor=executor, journal=journal, progress=once(kill))
        with pytest.raises(PolarBearError, match="scheduler"):
            race(slow(), SyntheticSuite(), TIMES, SETTINGS, executor=executor)
    before = len(runs_in(journal))
    assert before >= 3
    found = resume(journal, slow(), SyntheticSuite(), workers=0)
    assert_same_result(found, race(synthetic_portfolio(), SyntheticSuite(), TIMES, SETTINGS, workers=0), about=False)


@pytest.mark.slow
def test_a_local_cluster_comes_and_goes_with_its_race() -> None:
    there = ("--executor", "dask:local", "-E", "workers=1", "--max-rounds", "1")
    assert Command("race").data(*SHORT, *there) == Command("race").data(*SHORT, "--max-rounds", "1", "--workers", "0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--executor", "dask:nowhere"), "expected dask:tcp://HOST:PORT"),
        (("--executor", "dask:tcp://127.0.0.1:1", "-E", "timeout=1"), "No scheduler of Dask answers at tcp://127"),
        (("--executor", "dask:tls://127.0.0.1:1"), "distributed.comm.tls, names no certificate for this client"),
        (("--executor", "dask:local", "-E", "cores=1"), "no option 'cores'"),
        (("-E", "workers=1"), "give its address with --executor"),
    ],
)
def test_a_mistake_in_the_address_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in Command("race").fail(*SHORT, *arguments)


def test_only_a_client_that_waits_makes_an_executor() -> None:
    with pytest.raises(InvalidInputError, match=r"distributed\.Client"):
        DaskExecutor("tcp://127.0.0.1:8786")


def requests(seconds: float, count: int) -> list[Request]:
    """Requests for runs that take a while and leave a trace, or end as soon as they are told that it is enough."""
    import dask_algorithms

    found = []
    for seed in range(count):
        problem = GivenProblem(Identity(f"p{seed}"), "p")
        algorithm = dask_algorithms.Counted(seconds)
        found.append(Request(algorithm, "counted", problem, None, problem.identity, 2.0, seed, np.array([1.0, 2.0])))
    return found


def begun(cluster: Cluster) -> list[int]:
    file = cluster.folder / "counted"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.fixture
def traces(cluster: Cluster) -> Iterator[Cluster]:
    for name in ("counted", "enough"):
        (cluster.folder / name).unlink(missing_ok=True)
    yield cluster
    (cluster.folder / "enough").touch()


LOCAL: Any = {
    "threads_per_worker": 1,
    "processes": True,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
    "memory_limit": 0,
}


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def drain(dispatcher: Dispatcher) -> list[int]:
    found: list[int] = []
    while dispatcher.in_flight:
        found += [outcome.request.seed for outcome in dispatcher.collect()]
    return found


def test_runs_that_have_not_begun_are_withdrawn_and_never_begin(traces: Cluster) -> None:
    with connect(traces.need(2), 60) as executor:
        dispatcher = Dispatcher(executor=executor)
        assert dispatcher.room == 4
        sent = requests(60, 12)
        for each in sent:
            dispatcher.submit(each)
        wait_until(lambda: len(begun(traces)) == 2)
        withdrawn = dispatcher.withdraw(sent)
        assert len(withdrawn) == 10
        assert not {each.seed for each in withdrawn} & set(begun(traces))
        assert dispatcher.withdraw(sent) == []
        (traces.folder / "enough").touch()
        last = requests(0, 13)[12]
        dispatcher.submit(last)
        assert sorted(drain(dispatcher)) == sorted(
            {each.seed for each in sent} - {each.seed for each in withdrawn} | {12}
        )
    assert len(begun(traces)) == 3


def test_a_run_that_is_not_needed_any_more_is_ended_and_frees_its_worker(traces: Cluster) -> None:
    with connect(traces.need(2), 60) as executor:
        dispatcher = Dispatcher(executor=executor)
        sent = requests(600, 3)
        for each in sent:
            dispatcher.submit(each)
        wait_until(lambda: len(begun(traces)) == 2)
        first, second = (sent[seed] for seed in begun(traces))
        assert dispatcher.end(sent) == {}  # nothing says that they are long
        dispatcher._times.note(first, 600.0)
        ended = dispatcher.end([first])
        assert list(ended) == [first]
        assert 0 < ended[first] < 600
        assert dispatcher.in_flight == 2
        wait_until(lambda: len(begun(traces)) == 3)
        (traces.folder / "enough").touch()
        assert set(drain(dispatcher)) == {0, 1, 2} - {first.seed}
        assert second.seed in begun(traces)


def test_short_runs_are_sent_together_and_each_has_its_own_outcome(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask_algorithms

    together: list[int] = []
    send = DaskExecutor.submit_together

    def noted(self: DaskExecutor, requests: Any) -> Any:
        together.append(len(requests))
        return send(self, requests)

    monkeypatch.setattr(DaskExecutor, "submit_together", noted)
    sent = []
    for seed in range(40):
        problem = GivenProblem(Identity(f"p{seed}"), "p")
        algorithm = dask_algorithms.Odd(raises=(3,), dies=(11,))
        sent.append(Request(algorithm, "odd", problem, None, problem.identity, 2.0, seed, np.array([1.0, 2.0])))
    with connect(cluster.need(2), 60) as executor:
        dispatcher = Dispatcher(executor=executor)
        dispatcher._times.note(sent[0], 0.001)
        found = {outcome.request.seed: outcome for outcomes in dispatcher.carry_out(sent) for outcome in outcomes}
    assert together[:2] == [20, 20]
    assert sorted(found) == list(range(40))
    assert {seed for seed, outcome in found.items() if outcome.failure} == {3, 11}
    assert "ValueError: not today" in str(found[3].failure)
    assert found[11].failure == "its process died (killed by SIGKILL)"
    assert all(outcome.trajectory.best.tolist() == [seed] for seed, outcome in found.items() if not outcome.failure)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("traces")
def test_nothing_is_lost_or_doubled_on_a_cluster_that_grows_and_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_POLL", 0.1)
    with (
        distributed.LocalCluster(n_workers=1, **LOCAL) as local,
        distributed.Client(local, set_as_default=False) as client,
        DaskExecutor(client) as executor,
    ):
        dispatcher = Dispatcher(executor=executor)
        sent, waiting = requests(0.15, 60), requests(0.15, 60)[::-1]
        found: list[int] = []
        for size in (1, 3, 1, 2):
            local.scale(size)
            wait_until(lambda size=size: executor.capacity() == size)
            assert dispatcher.room == max(0, 2 * size - dispatcher.in_flight)
            for _ in range(8):
                while waiting and dispatcher.room:
                    dispatcher.submit(waiting.pop())
                found += [outcome.request.seed for outcome in dispatcher.collect()]
        while waiting:
            dispatcher.submit(waiting.pop())
        found += drain(dispatcher)
    assert sorted(found) == [each.seed for each in sent]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("traces")
def test_an_adaptive_cluster_without_workers_is_given_work_and_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_POLL", 0.1)
    monkeypatch.setattr(executors, "_WARN_AFTER", 300.0)
    with (
        distributed.LocalCluster(n_workers=0, **LOCAL) as local,
        distributed.Client(local, set_as_default=False) as client,
        DaskExecutor(client) as executor,
    ):
        local.adapt(minimum=0, maximum=2, target_duration="100ms", interval="200ms")
        dispatcher = Dispatcher(executor=executor)
        assert executor.capacity() == 0
        assert dispatcher.room >= 1
        waiting = requests(0.3, 40)[::-1]
        found: list[int] = []
        most = 0
        while waiting or dispatcher.in_flight:
            while waiting and dispatcher.room:
                dispatcher.submit(waiting.pop())
            found += [outcome.request.seed for outcome in dispatcher.collect()]
            most = max(most, executor.capacity())
        assert sorted(found) == list(range(40))
        assert most == 2
