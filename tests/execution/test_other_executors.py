"""Races on executors of other packages; those of Dask are in test_dask_executor.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from builders import assert_same_result
from threadpoolctl import threadpool_info, threadpool_limits

from polarbear_plugins import RaceResult, RaceSettings, race, resume
from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.execution.requests import single_threaded
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio

TIMES = [1, 2, 3]
SETTINGS = RaceSettings(seed=4, draws=200, max_rounds=2, batch_size=4, batch_min=2)

ALGORITHMS = """
import os
import signal
import time
from pathlib import Path

from polarbear_plugins.plugins.synthetic import synthetic_portfolio

MARKER = Path(__file__).with_name("killed")
REPORTED = Path(__file__).with_name("reported")


class Deadly:
    '''A synthetic algorithm whose fifth run ends its process, once, after the first four were reported.'''

    def __init__(self, algorithm):
        self.name, self.algorithm = algorithm.name, algorithm

    def run(self, problem, horizon, seed):
        with MARKER.open("a") as log:
            log.write("x")
        if MARKER.stat().st_size == 5:
            for _ in range(30_000):
                if REPORTED.exists():
                    break
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.algorithm.run(problem, horizon, seed)


def deadly():
    return [Deadly(algorithm) for algorithm in synthetic_portfolio()]
"""

MPI_RACE = """
import sys
from mpi4py.futures import MPIPoolExecutor
from polarbear_plugins import RaceSettings, race

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 1, executor.num_workers
        settings = RaceSettings(seed=4, draws=200, max_rounds=2, batch_size=4, batch_min=2)
        race("synthetic", "synthetic", [1, 2, 3], settings, executor=executor).save(sys.argv[1])
"""


def pool() -> Executor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def loky() -> Executor:
    return pytest.importorskip("loky").ProcessPoolExecutor(1)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def here() -> RaceResult:
    return race("synthetic", "synthetic", TIMES, SETTINGS, workers=0)


def test_loky_gives_the_same_result(here: RaceResult) -> None:
    with loky() as executor:
        assert_same_result(race("synthetic", "synthetic", TIMES, SETTINGS, executor=executor), here, about=False)


@pytest.mark.parametrize("make", [pool, loky])
def test_an_executor_that_breaks_says_so_and_the_journal_goes_on(
    worker_module: Callable[[str, str], ModuleType], tmp_path: Path, make: Callable[[], Executor]
) -> None:
    algorithms = worker_module("deadly_algorithms", ALGORITHMS)
    journal = tmp_path / "race.db"

    def report(progress: Progress) -> None:
        if progress.done == 4:  # all four are in the journal
            algorithms.REPORTED.touch()

    with (
        make() as executor,
        pytest.raises(PolarBearError, match=r"The executor broke \(\w+: .*\)\. With a journal .* resume"),
    ):
        race(
            algorithms.deadly(), SyntheticSuite(), TIMES, SETTINGS, executor=executor, journal=journal, progress=report
        )
    found = resume(journal, algorithms.deadly(), SyntheticSuite(), workers=0)
    here = race(synthetic_portfolio(), SyntheticSuite(), TIMES, SETTINGS, workers=0)
    assert_same_result(found, here, about=False)
    repeated = algorithms.MARKER.stat().st_size - sum(1 for _ in found.trajectories())
    assert repeated == 1  # the one that was killed


class Breaking(Executor):
    """Four calls finish, and the fifth finds it broken: when it is submitted, or by its result."""

    def __init__(self, at_submission: bool) -> None:
        self.at_submission, self.calls = at_submission, 0

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls <= 4:
            future.set_result(call(*given, **named))
        elif self.at_submission:
            raise BrokenExecutor("a worker died")
        else:
            future.set_exception(BrokenExecutor("a worker died"))
        return future


@pytest.mark.parametrize("at_submission", [False, True])
def test_runs_that_finished_before_an_executor_broke_are_in_the_journal(tmp_path: Path, at_submission: bool) -> None:
    # On a busy machine the driver learns of all of this at once.
    journal = tmp_path / "race.db"
    with pytest.raises(PolarBearError, match="no finished run is lost"):
        race("synthetic", "synthetic", TIMES, SETTINGS, executor=Breaking(at_submission), journal=journal)
    with journal_copy(journal) as copy:
        assert len(list(copy.runs())) == 4


def test_mpi_gives_the_same_result(here: RaceResult, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("mpi4py is installed, and no MPI that could start processes")
    script, result = tmp_path / "mpi_race.py", tmp_path / "result.npz"
    script.write_text(MPI_RACE)
    as_any_user = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe")
    subprocess.run(
        [mpiexec, "-n", "2", sys.executable, "-m", "mpi4py.futures", str(script), str(result)],
        env=os.environ | dict.fromkeys(as_any_user, "1"),
        check=True,
        timeout=120,
    )
    assert_same_result(RaceResult.load(result), here, about=False)


def test_runs_in_threads_leave_the_process_the_threads_that_it_had() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info()}

    with threadpool_limits(2):
        assert threads() == {2}
        first, second = single_threaded(), single_threaded()
        first.__enter__()
        assert threads() == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}  # for the run that goes on
        second.__exit__(None, None, None)
        assert threads() == {2}
