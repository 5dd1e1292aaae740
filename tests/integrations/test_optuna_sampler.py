from __future__ import annotations

import importlib
import multiprocessing
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings
from polarbear_plugins.errors import InvalidInputError, MissingExtraError

optuna = pytest.importorskip("optuna")
sampler_module = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")
PolarBearSampler = sampler_module.PolarBearSampler
race_result = sampler_module.race_result
TrialState = optuna.trial.TrialState

SETTINGS = RaceSettings(draws=500, alpha=0.95, epsilon=0.2, batch_size=3, batch_min=3, seed=1)
CANDIDATES = {"good": {"x": 0.3}, "fair": {"x": 0.6}, "poor": {"x": 0.9}}
CELL = "polarbear:cell"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    yield
    optuna.logging.set_verbosity(before)


def objective(trial: Any) -> float:
    instance = trial.suggest_int("instance", 0, 29)
    x = trial.suggest_float("x", 0, 1)
    return float((x - 0.3) ** 2 + 0.04 * np.random.default_rng([instance, int(1e6 * x)]).normal() + 10 * instance)


def create(storage: Any = None, **options: Any) -> Any:
    sampler = PolarBearSampler(**{"candidates": CANDIDATES, "settings": SETTINGS, **options})
    return optuna.create_study(sampler=sampler, storage=storage, study_name="race", load_if_exists=True)


def cells(study: Any) -> list[tuple[str, int]]:
    return [(trial.system_attrs[CELL]["candidate"], trial.params["instance"]) for trial in study.trials]


# Given candidates


@pytest.fixture(scope="module")
def raced() -> Any:
    """A study whose race is over."""
    study = create()
    study.optimize(objective, n_trials=300)
    return study


def test_the_race_finds_the_best_and_stops_the_study(raced: Any) -> None:
    result = race_result(raced)
    assert (result.pareto_set, result.stopped, result.resolved) == (("good",), "resolved", True)
    assert len(raced.trials) == result.cost < 90
    assert {out.algorithm for out in result.eliminations} == {"fair", "poor"}
    assert result.about["candidates"] == CANDIDATES


def test_each_candidate_meets_each_instance_at_most_once_and_has_its_own_parameters(raced: Any) -> None:
    assert max(Counter(cells(raced)).values()) == 1
    for trial in raced.trials:
        assert trial.params["x"] == CANDIDATES[trial.system_attrs[CELL]["candidate"]]["x"]


def test_the_candidates_of_a_round_meet_the_same_instances() -> None:
    study = create()
    study.optimize(objective, n_trials=9)
    assert Counter(name for name, _ in cells(study)) == {"good": 3, "fair": 3, "poor": 3}
    assert len({instance for _, instance in cells(study)}) == 3


def test_maximisation_flips() -> None:
    study = optuna.create_study(direction="maximize", sampler=PolarBearSampler(CANDIDATES, settings=SETTINGS))
    study.optimize(objective, n_trials=300)
    assert race_result(study).pareto_set == ("poor",)


def test_the_instance_may_be_a_choice_under_another_name() -> None:
    def folds(trial: Any) -> float:
        fold = trial.suggest_categorical("fold", ["a", "b", "c"])
        return float(trial.suggest_float("x", 0, 1) + "abc".index(fold))

    study = create(instance="fold")
    study.optimize(folds, n_trials=50)
    assert {trial.params["fold"] for trial in study.trials} == {"a", "b", "c"}
    assert race_result(study).stopped in ("instances", "resolved")
    assert len(study.trials) == 9


def test_the_parameters_may_be_asked_for_before_the_instance() -> None:
    def backwards(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        return float(x + trial.suggest_int("instance", 0, 9))

    study = create()
    study.optimize(backwards, n_trials=100)
    assert race_result(study).pareto_set == ("good",)


def test_ask_and_tell_go_on_after_the_race_is_settled() -> None:
    study = create()
    for _ in range(100):
        trial = study.ask()
        study.tell(trial, objective(trial))
    assert race_result(study).pareto_set == ("good",)
    later = study.trials[-10:]
    assert {trial.system_attrs[CELL]["candidate"] for trial in later} == {"good"}


def test_the_same_seed_gives_the_same_race() -> None:
    one, other = create(), create()
    for study in (one, other):
        study.optimize(objective, n_trials=12)
    assert cells(one) == cells(other)


def test_a_failed_trial_is_repeated_once_then_the_candidate_ranks_last() -> None:
    def failing(trial: Any) -> float:
        value = objective(trial)
        if trial.params["x"] == 0.3:
            raise RuntimeError("crash")
        return value

    study = create()
    study.optimize(failing, n_trials=300, catch=RuntimeError)
    result = race_result(study)
    assert "good" not in result.pareto_set
    tried = Counter(cell for cell in cells(study) if cell[0] == "good")
    assert set(tried.values()) == {2}
    assert {failure.algorithm for failure in result.failures} == {"good"}


def test_a_pruned_trial_ranks_last() -> None:
    def pruned(trial: Any) -> float:
        value = objective(trial)
        if trial.params["x"] == 0.3:
            raise optuna.TrialPruned
        return value

    study = create()
    study.optimize(pruned, n_trials=300)
    assert "good" not in race_result(study).pareto_set
    assert max(Counter(cells(study)).values()) == 1


def test_a_stale_trial_is_done_again_by_somebody_else() -> None:
    study = create()
    stale = study.ask()
    stale.suggest_int("instance", 0, 29)
    study.optimize(objective, n_trials=300)
    assert race_result(study).pareto_set == ("good",)
    cell = (study.trials[0].system_attrs[CELL]["candidate"], study.trials[0].params["instance"])
    assert cells(study).count(cell) == 2


def test_an_enqueued_trial_is_a_newcomer_that_catches_up() -> None:
    study = create()
    study.optimize(objective, n_trials=5)
    study.enqueue_trial({"x": 0.31})
    study.optimize(objective, n_trials=300)
    result = race_result(study)
    assert result.about["candidates"]["t5"] == {"x": 0.31}
    assert result.summary().loc["t5", "instances"] > 3
    assert "fair" not in result.pareto_set


def test_curves_are_compared_at_every_timepoint() -> None:
    def curve(trial: Any) -> float:
        instance = trial.suggest_int("instance", 0, 39)
        name = trial.suggest_categorical("name", ["early", "late", "never"])
        rng = np.random.default_rng([instance, len(name)])
        for step in (1, 10, 100):
            level = {"early": 5.0, "late": 8.0 if step < 100 else 1.0, "never": 12.0}[name]
            trial.report(level + 0.1 * rng.normal(), step)
        return 0.0

    candidates = [{"name": name} for name in ("early", "late", "never")]
    study = create(candidates=candidates, timepoints=[1, 10, 100])
    study.optimize(curve, n_trials=200)
    result = race_result(study)
    assert result.pareto_set == ("0", "1")
    assert result.timepoints.tolist() == [1, 10, 100]
    ratings = result.posterior.ratings.mean(axis=0)
    assert ratings[0, 0] > ratings[0, 1]
    assert ratings[2, 0] < ratings[2, 1]


# Candidates from a base sampler


@pytest.mark.parametrize("base", ["TPESampler", "RandomSampler", "NSGAIISampler"])
def test_the_base_sampler_proposes_and_candidates_keep_their_parameters(base: str) -> None:
    study = create(candidates=None, base=getattr(optuna.samplers, base)(seed=1), n_candidates=4)
    study.optimize(objective, n_trials=80)
    assert len(study.trials) == 80
    values: dict[str, set[float]] = {}
    for trial in study.trials:
        values.setdefault(trial.system_attrs[CELL]["candidate"], set()).add(trial.params["x"])
    assert len(values) > 4
    assert all(len(own) == 1 for own in values.values())
    result = race_result(study)
    assert set(result.algorithms) == set(values)
    assert result.eliminations


def test_newcomers_catch_up_on_the_instances_that_others_have_seen() -> None:
    study = create(candidates=None, n_candidates=3, seed=2)
    study.optimize(objective, n_trials=60)
    first = {instance for name, instance in cells(study) if name == "t0"}
    entered = [trial for trial in study.trials if (trial.system_attrs[CELL]["founder"] or 0) > 1]
    assert entered
    assert {trial.params["instance"] for trial in entered} <= first


def test_the_base_sampler_sees_one_trial_for_each_candidate() -> None:
    seen: list[int] = []

    class Watching(optuna.samplers.RandomSampler):  # type: ignore[misc]
        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            seen.append(len([t for t in study.trials if t.state == TrialState.COMPLETE and "instance" not in t.params]))
            return super().sample_independent(study, trial, name, distribution)

    study = create(candidates=None, base=Watching(seed=1), n_candidates=3)
    study.optimize(objective, n_trials=60)
    assert seen[:3] == [0, 0, 0]
    assert seen[3] == 3
    assert seen == sorted(seen)


def test_without_an_instance_the_base_sampler_takes_over() -> None:
    studies = [
        optuna.create_study(sampler=sampler)
        for sampler in (PolarBearSampler(base=optuna.samplers.TPESampler(seed=3)), optuna.samplers.TPESampler(seed=3))
    ]
    for study in studies:
        study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=25)
    assert [trial.params for trial in studies[0].trials] == [trial.params for trial in studies[1].trials]


# Storages and processes


def storage_of(kind: str, folder: str) -> Any:
    if kind == "sqlite":
        return f"sqlite:///{folder}/study.db"
    if kind == "journal":
        backend = optuna.storages.journal.JournalFileBackend(f"{folder}/study.log")
        return optuna.storages.JournalStorage(backend)
    return None


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_resumed_study_is_the_study_that_was_never_stopped(kind: str, tmp_path: Path) -> None:
    whole = create()
    whole.optimize(objective, n_trials=18)
    for _ in range(3):
        part = create(storage_of(kind, str(tmp_path)))
        part.optimize(objective, n_trials=6)
    assert cells(part)[: len(whole.trials)] == cells(whole)


def test_the_result_is_read_without_the_sampler(tmp_path: Path) -> None:
    study = create(storage_of("sqlite", str(tmp_path)))
    study.optimize(objective, n_trials=300)
    loaded = optuna.load_study(study_name="race", storage=storage_of("sqlite", str(tmp_path)))
    assert race_result(loaded).rounds == race_result(study).rounds


def work(kind: str, folder: str, candidates: Any) -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    study = create(storage_of(kind, folder), candidates=candidates, n_candidates=4)

    def slow(trial: Any) -> float:
        time.sleep(0.05)  # of trials that take no time, one that is kept waiting soon looks abandoned
        return objective(trial)

    study.optimize(slow, n_trials=12)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "candidates"), [("sqlite", CANDIDATES), ("journal", CANDIDATES), ("journal", None)])
def test_four_processes_share_a_race(kind: str, candidates: Any, tmp_path: Path) -> None:
    create(storage_of(kind, str(tmp_path)), candidates=candidates, n_candidates=4)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    workers = [context.Process(target=work, args=(kind, str(tmp_path), candidates)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    study = optuna.load_study(study_name="race", storage=storage_of(kind, str(tmp_path)))
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    values: dict[str, set[float]] = {}
    for trial in study.trials:
        values.setdefault(trial.system_attrs[CELL]["candidate"], set()).add(trial.params["x"])
    assert all(len(own) == 1 for own in values.values())
    done = cells(study)
    # Each process may begin one more trial while another one does the last that the race needs.
    over = race_result(study).stopped == "resolved"
    assert len(done) - len(set(done)) <= (4 if over else 1)


def test_a_pruner_that_hides_trials_does_no_harm() -> None:
    sampler = PolarBearSampler(CANDIDATES, settings=SETTINGS)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.HyperbandPruner())
    study.optimize(objective, n_trials=300)
    assert race_result(study).pareto_set == ("good",)


def test_threads_share_a_race() -> None:
    study = create()
    study.optimize(objective, n_trials=40, n_jobs=3)
    assert race_result(study).pareto_set == ("good",)


# Private names


def test_one_module_alone_uses_private_names_of_optuna(root: Path) -> None:
    private = re.compile(r"\._(storage|study_id|trial_id|contains|suggest)\b")
    users = [path.name for path in root.glob("[ai]*/optuna_*/*.py") if private.search(path.read_text())]
    assert users == ["study_storage.py"]


# Mistakes


@pytest.mark.parametrize("module", ["", ".rules", ".sampler", ".result", ".study_view"])
def test_without_optuna_the_sampler_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = "polarbear_plugins.integrations.optuna_sampler"
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"PolarBearSampler needs 'optuna'.*polarbear-plugins\[optuna\]"):
        importlib.import_module(package + module)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": [{"x": 1}]}, "at least two candidates, got 1"),
        ({"candidates": 3}, "expected a list of parameters"),
        ({"candidates": [{"x": 1}, 3]}, "'1' must be parameters by name"),
        ({"candidates": [{"x": 1}, {"x": [1]}]}, "x must be a number"),
        ({"candidates": [{"x": 1}, {"instance": 1}]}, "has a value for 'instance'. The race chooses the instance"),
        ({"base": "tpe"}, "base: expected a sampler"),
        ({"n_candidates": 1}, "n_candidates"),
        ({"timepoints": [3, 1]}, "timepoints"),
        ({"seed": -1}, "seed"),
        ({"instance": ""}, "instance"),
        ({"settings": RaceSettings(elimination="joint")}, "joint"),
    ],
)
def test_options_without_meaning_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PolarBearSampler(**options)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([{"y": 1}, {"y": 2}], "'0' has no 'x', which the objective asks for; it has y"),
        ([{"x": 7}, {"x": 8}], "'0' has x = 7, but the objective asks for FloatDistribution"),
    ],
)
def test_candidates_that_do_not_fit_the_objective_are_named(candidates: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create(candidates=candidates).optimize(objective, n_trials=1)


def test_an_instance_must_be_countable() -> None:
    study = create()
    with pytest.raises(InvalidInputError, match="must be a whole number or a choice"):
        study.optimize(lambda trial: trial.suggest_float("instance", 0, 1), n_trials=1)


def test_a_study_that_was_begun_with_other_candidates_is_refused(tmp_path: Path) -> None:
    create(storage_of("sqlite", str(tmp_path))).optimize(objective, n_trials=2)
    other = create(storage_of("sqlite", str(tmp_path)), candidates=CANDIDATES | {"good": {"x": 0.2}})
    with pytest.raises(InvalidInputError, match=r"begun with {'x': 0.3} for the candidate 'good'"):
        other.optimize(objective, n_trials=1)


def test_there_is_no_result_without_a_race() -> None:
    with pytest.raises(InvalidInputError, match="There is no race in the study"):
        race_result(optuna.create_study())
    study = create()
    with pytest.raises(InvalidInputError, match="has 0 candidates with finished trials; expected two"):
        race_result(study)
    study.optimize(objective, n_trials=1)
    with pytest.raises(InvalidInputError, match="has 1 candidates with finished trials; expected two"):
        race_result(study)
    study.optimize(objective, n_trials=3)
    assert race_result(study).stopped == "interrupted"


@pytest.mark.slow
def test_the_example_races(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "examples" / "optuna_race.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "probably the best" in done.stdout
