"""A race in a study that several processes share, one of which is killed."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings

optuna = pytest.importorskip("optuna")
sampler_module = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")
PolarBearSampler, race_result = sampler_module.PolarBearSampler, sampler_module.race_result
TrialState = optuna.trial.TrialState

pytestmark = pytest.mark.usefixtures("quiet_optuna")
# By its new name, or that of Optuna 4, about which Optuna 5 warns.
RETRY = next(
    name for name in ("RetryHeartbeatStaleTrialCallback", "RetryFailedTrialCallback") if hasattr(optuna.storages, name)
)

CANDIDATES = {"good": {"x": 0.3}, "fair": {"x": 0.6}, "poor": {"x": 0.9}}
CELL = "polarbear:cell"
SETTINGS = RaceSettings(draws=300, alpha=0.95, epsilon=0.2, batch_size=3, batch_min=3, seed=1)

# Processes are forked by a process of their own, which has nothing in it but what the race needs.
RACE = """
import json, multiprocessing, os, signal, sys, time, warnings
import numpy as np, optuna
from polarbear_plugins import RaceSettings
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler

def objective(trial):
    instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
    return float((x - 0.3) ** 2 + 0.04 * np.random.default_rng([instance, int(1e6 * x)]).normal() + 10 * instance)

def storage_of(kind, place):
    if kind == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(place))
    if kind == "sqlite":
        return optuna.storages.RDBStorage("sqlite:///" + place, engine_kwargs={"connect_args": {"timeout": 60}})
    with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
        return optuna.storages.RDBStorage(place, heartbeat_interval=5, grace_period=60)

def work(kind, place, settings, candidates, last, gone):
    sampler = PolarBearSampler(candidates, settings=RaceSettings.from_json(settings))
    study = optuna.load_study(study_name="race", storage=storage_of(kind, place), sampler=sampler)
    begun = []

    def killed(trial):
        value = objective(trial)
        time.sleep(0.05)  # of trials that take no time, one that is kept waiting soon looks abandoned
        begun.append(trial.number)
        if len(begun) == last:
            gone.set()
            os.kill(os.getpid(), signal.SIGKILL)
        if len(begun) == 3:
            gone.wait(300)  # so that the race is not over before, however busy the machine is
        return value

    study.optimize(killed, n_trials=60)

if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    given = json.loads(sys.argv[1])
    fork = multiprocessing.get_context("fork")
    gone = fork.Event()
    processes = [fork.Process(target=work, args=(*given, last, gone)) for last in (2, None, None, None)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(json.dumps([process.exitcode for process in processes]))
"""
here: dict[str, Any] = {"__name__": "race"}
exec(compile(RACE, "race", "exec"), here)  # noqa: S102 - the text above
objective, storage_of = here["objective"], here["storage_of"]


def create(storage: Any = None, **options: Any) -> Any:
    sampler = PolarBearSampler(**{"candidates": CANDIDATES, "settings": SETTINGS, **options})
    return optuna.create_study(sampler=sampler, storage=storage, study_name="race", load_if_exists=True)


@pytest.fixture
def close() -> Iterator[Callable[[Any], Any]]:
    """Have a storage closed when the test is over."""
    opened: list[Any] = []

    def later(storage: Any) -> Any:
        opened.append(storage)
        return storage

    yield later
    for storage in opened:
        if isinstance(storage, optuna.storages.RDBStorage):
            storage.remove_session()
            storage.engine.dispose()


def cell_of(trial: Any) -> tuple[str, int]:
    return trial.system_attrs[CELL]["candidate"], trial.params["instance"]


@pytest.fixture
def postgresql() -> Iterator[str]:
    """The URL of a database on a server of its own, which is gone afterwards."""
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    programs = [Path(found).parent for found in [shutil.which("initdb")] if found]
    programs += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    programs = [folder for folder in programs if (folder / "initdb").exists() and (folder / "postgres").exists()]
    if not programs:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    # The server does not run as root; and the name of a socket must be short, which that of tmp_path is not.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        someone = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("nobody")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            someone = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        init = [programs[0] / "initdb", "--no-sync", "--auth=trust", "--username=race", f"--pgdata={folder}/data"]
        made = subprocess.run(init, cwd=folder, capture_output=True, text=True, **someone)
        if made.returncode:
            pytest.skip(f"PostgreSQL cannot make a database here: {made.stderr.strip()}")
        with (Path(folder) / "log").open("wb") as log:
            options = ["-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
            server = subprocess.Popen(
                [programs[0] / "postgres", *options], cwd=folder, stdout=log, stderr=log, **someone
            )
        try:
            _wait_for(f"host={folder} user=race dbname=postgres", server)
            yield f"postgresql+psycopg://race@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGQUIT)  # at once, whoever is connected
            server.wait(30)


def _wait_for(connection: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(connection).close()
        except psycopg.OperationalError:
            assert server.poll() is None, "the server did not start"
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="module")
def alone() -> Any:
    """The race as one process runs it that nobody kills."""
    study = create()
    study.optimize(objective, n_trials=100)
    return race_result(study)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed by a signal")
@pytest.mark.parametrize(
    "kind",
    ["journal", pytest.param("sqlite", marks=pytest.mark.long), pytest.param("postgresql", marks=pytest.mark.long)],
)
def test_a_race_of_four_processes_outlives_one_that_is_killed(
    kind: str, alone: Any, tmp_path: Path, request: pytest.FixtureRequest, close: Callable[[Any], Any]
) -> None:
    place = request.getfixturevalue("postgresql") if kind == "postgresql" else str(tmp_path / "study")
    storage = close(storage_of(kind, place))
    create(storage)
    done = subprocess.run(
        [sys.executable, "-c", RACE, json.dumps([kind, place, SETTINGS.to_json(), CANDIDATES])],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout) == [-signal.SIGKILL, 0, 0, 0], done.stderr
    study = optuna.load_study(study_name="race", storage=storage)
    result = race_result(study)

    # What the killed process began is nobody's result, and does not keep the others from the end.
    assert Counter(trial.state.name for trial in study.trials)["RUNNING"] == 1
    assert all(trial.state in (TrialState.RUNNING, TrialState.COMPLETE) for trial in study.trials)
    assert result.stopped == alone.stopped == "resolved"
    assert not result.failures

    # A cell counts once, and is done once but for a few: when another process did the last run that the race needed, or
    # when one was kept waiting for so long that its trial looked abandoned.  How many depends on how busy the
    # machine is; that a choice which others have overtaken is made again has a test of its own below.
    finished = Counter(cell_of(trial) for trial in study.trials if trial.state == TrialState.COMPLETE)
    assert finished.total() < 1.5 * len(finished)
    rows = result.state.table
    assert np.bincount(rows.instance_index, rows.weights) == pytest.approx(1)

    # The same data and the same rules, the same decisions.
    assert result.rounds == alone.rounds
    assert result.pareto_set == alone.pareto_set
    gone = {out.algorithm for out in result.eliminations}
    assert not gone & set(result.pareto_set)
    assert gone | set(result.pareto_set) == set(CANDIDATES)
    copied = optuna.create_study(study_name="race", sampler=PolarBearSampler(CANDIDATES, settings=SETTINGS))
    copied.add_trials(trial for trial in study.trials if trial.state.is_finished())
    again = race_result(copied)
    assert again.rounds == result.rounds
    assert np.array_equal(again.posterior.ratings, result.posterior.ratings)


# What others did meanwhile


def begin(study: Any, trials: int) -> None:
    """Begin trials and leave them running."""
    for _ in range(trials):
        objective(study.ask())


def test_a_choice_that_others_have_overtaken_is_made_again() -> None:
    storage = optuna.storages.InMemoryStorage()
    one, other = create(storage), create(storage)
    one.optimize(objective, n_trials=1)
    other.optimize(objective, n_trials=1)
    begin(one, 6)  # of which the other has not heard when it chooses
    begin(other, 1)
    assert len({cell_of(trial) for trial in one.trials}) == 9, "each cell of the first round once"


def test_no_more_newcomers_are_founded_than_there_is_room_for_by_whoever_has_not_heard_of_the_last() -> None:
    storage = optuna.storages.InMemoryStorage()
    one, other = (create(storage, candidates=None, n_candidates=3) for _ in range(2))
    one.optimize(objective, n_trials=1)
    other.optimize(objective, n_trials=1)
    begin(one, 1)
    begin(other, 1)
    assert [trial.system_attrs[CELL]["founder"] for trial in one.trials] == [1, 1, 1, None]


# What is left behind


def abandon(study: Any, *, begin: bool = True, failed: bool = False) -> Any:
    """Begin a trial as a process that is killed; with a heartbeat, Optuna fails it when its time is up."""
    trial = study.ask()
    if begin:
        objective(trial)
    if failed:
        study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
    return study.trials[trial.number]


def test_a_killed_process_is_no_failure_of_its_candidate() -> None:
    study = create()
    study.optimize(objective, n_trials=1)
    lost = Counter(cell_of(abandon(study, failed=True)) for _ in range(12))
    assert max(lost.values()) == 2  # so many errors would be enough
    study.optimize(objective, n_trials=100)
    result = race_result(study)
    assert not result.failures
    assert np.isfinite(result.state.table.values[~np.isnan(result.state.table.values)]).all()


def test_a_candidate_that_kills_every_process_ranks_last() -> None:
    study = create()
    for _ in range(100):
        trial = study.ask()
        value = objective(trial)
        if trial.params["x"] == CANDIDATES["good"]["x"]:
            study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
        else:
            study.tell(trial, value)
    result = race_result(study)
    assert "good" not in result.pareto_set
    assert {failure.algorithm for failure in result.failures} == {"good"}
    tried = Counter(cell_of(trial) for trial in study.trials if trial.system_attrs[CELL]["candidate"] == "good")
    assert set(tried.values()) == {4}


@pytest.mark.parametrize("failed", [False, True])
def test_a_newcomer_whose_process_was_killed_is_replaced(failed: bool) -> None:
    study = create(candidates=None, n_candidates=3, seed=2)
    study.optimize(objective, n_trials=2)
    lost = abandon(study, begin=False, failed=failed)
    study.optimize(objective, n_trials=40)
    result = race_result(study)
    assert lost.system_attrs[CELL]["candidate"] not in result.algorithms
    founders = [trial for trial in study.trials if trial.system_attrs[CELL]["founder"] == 1]
    # As many later trials make a trial stale as the sampler waits for: 16, and 4 for each that runs.
    assert len(founders) == 4
    assert founders[-1].number <= lost.number + 24
    assert len(result.rounds) > 0


@pytest.mark.slow
def test_the_heartbeat_of_optuna_frees_what_a_killed_process_had_claimed(
    tmp_path: Path, close: Callable[[Any], Any]
) -> None:
    lost = abandon(create(close(storage_of("sqlite", f"{tmp_path}/study.db"))))
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db", heartbeat_interval=1, grace_period=1)
    study = create(close(storage))
    storage.record_heartbeat(lost._trial_id)  # the last one
    time.sleep(2.1)  # the database counts in whole seconds
    study.optimize(objective, n_trials=9)
    assert study.trials[lost.number].state == TrialState.FAIL
    again = [trial.number for trial in study.trials if cell_of(trial) == cell_of(lost)]
    assert len(again) == 2
    assert again[1] <= lost.number + 8
    assert len(race_result(study).rounds) == 1


def test_a_trial_that_waits_to_be_run_again_keeps_its_cell() -> None:
    study = create()
    study.optimize(objective, n_trials=3)
    lost = abandon(study, failed=True)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        retry = getattr(optuna.storages, RETRY)(max_retry=1)
    retry(study, lost)
    view = sampler_module.study_view.StudyView.of(study, study.sampler.rules)
    assert any(lost.number + 1 in numbers for numbers in view.claims.values())
    other = study.ask()  # takes the one that waits
    assert other.number == lost.number + 1
    study.optimize(objective, n_trials=5)
    study.tell(other, objective(other))
    done = Counter(cell_of(trial) for trial in study.trials if trial.state == TrialState.COMPLETE)
    assert done[cell_of(lost)] == 1
    assert max(done.values()) == 1
