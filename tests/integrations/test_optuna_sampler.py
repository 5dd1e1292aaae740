from __future__ import annotations

import importlib
import itertools
import logging
import multiprocessing
import pickle
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import RaceSettings
from polarbear_plugins.errors import InvalidInputError, MissingExtraError, PolarBearWarning
from polarbear_plugins.inference.fitting import make_prior

optuna = pytest.importorskip("optuna")
sampler_module = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")
PolarBearSampler = sampler_module.PolarBearSampler
race_result = sampler_module.race_result
StudyView = sampler_module.study_view.StudyView
TrialState = optuna.trial.TrialState

pytestmark = pytest.mark.usefixtures("quiet_optuna")

SETTINGS = RaceSettings(draws=500, alpha=0.95, epsilon=0.2, batch_size=3, batch_min=3, seed=1)
CANDIDATES = {"good": {"x": 0.3}, "fair": {"x": 0.6}, "poor": {"x": 0.9}}
CELL = "polarbear:cell"


def objective(trial: Any) -> float:
    instance = trial.suggest_int("instance", 0, 29)
    x = trial.suggest_float("x", 0, 1)
    return float((x - 0.3) ** 2 + 0.04 * np.random.default_rng([instance, int(1e6 * x)]).normal() + 10 * instance)


def create(storage: Any = None, **options: Any) -> Any:
    sampler = PolarBearSampler(**{"candidates": CANDIDATES, "settings": SETTINGS, **options})
    return optuna.create_study(sampler=sampler, storage=storage, study_name="race", load_if_exists=True)


def cells(study: Any) -> list[tuple[str, int]]:
    return [(trial.system_attrs[CELL]["candidate"], trial.params["instance"]) for trial in study.trials]


@pytest.mark.parametrize("instance", ["instance", "y"])
@pytest.mark.parametrize(("low", "high", "allowed"), [(0, 20, True), (0, 5, False), (20, 30, False)])
def test_a_candidate_keeps_its_parameters_and_a_range_without_them_is_refused(
    instance: str, low: int, high: int, allowed: bool
) -> None:
    def ranged(low: int, high: int) -> Callable[[Any], float]:
        return lambda trial: (
            trial.suggest_int("instance", 0, 9)
            + sum((trial.suggest_float("x", low, high), trial.suggest_int("y", low, high)))
        )

    study = create(candidates=None, n_candidates=4, instance=instance, base=optuna.samplers.RandomSampler(seed=1))
    study.optimize(ranged(0, 10), n_trials=10)
    if allowed:
        study.optimize(ranged(low, high), n_trials=10)
        assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    else:
        with pytest.raises(InvalidInputError, match="For another search space, make a new study"):
            study.optimize(ranged(low, high), n_trials=30)


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


# Failures before the instance is asked for


def test_a_candidate_that_fails_before_it_asks_for_its_instance_is_eliminated() -> None:
    def failing(trial: Any) -> float:
        x = trial.suggest_int("x", 0, 9)
        if x == 9:
            raise RuntimeError("crash")
        return float(
            x + np.random.default_rng([x, instance := trial.suggest_int("instance", 0, 39)]).normal() + instance
        )

    study = create(candidates=[{"x": x} for x in (0, 1, 9)])
    study.optimize(failing, n_trials=400, catch=RuntimeError)
    result = race_result(study)
    assert result.stopped == "resolved"
    assert "2" in {out.algorithm for out in result.eliminations}
    assert {failure.algorithm for failure in result.failures} == {"2"}
    failed = Counter(trial.system_attrs[CELL]["instance"] for trial in study.trials if trial.state == TrialState.FAIL)
    assert set(failed.values()) == {2}
    assert len(study.trials) < 120


def test_a_trial_that_is_pruned_before_it_asks_for_its_instance_ranks_last() -> None:
    def pruned(trial: Any) -> float:
        if trial.suggest_float("x", 0, 1) == 0.3:
            raise optuna.TrialPruned
        return objective(trial)

    study = create()
    study.optimize(pruned, n_trials=300)
    result = race_result(study)
    assert result.stopped == "resolved"
    assert "good" not in result.pareto_set
    places = [(cell["candidate"], cell["instance"]) for cell in (trial.system_attrs[CELL] for trial in study.trials)]
    assert max(Counter(places).values()) == 1


def fail(trial: Any) -> float:
    trial.suggest_float("x", 0, 1)
    raise RuntimeError("crash")


@pytest.mark.parametrize(("options", "trials"), [({}, 6), ({"candidates": None, "n_candidates": 4}, 8)])
def test_a_study_whose_trials_all_fail_before_they_ask_is_stopped_with_a_warning(
    options: dict[str, Any], trials: int
) -> None:
    study = create(**options)
    with pytest.warns(PolarBearWarning, match=f"All {trials} trials failed before any of them asked .* 'instance'"):
        study.optimize(fail, catch=RuntimeError)
    assert len(study.trials) == trials  # each candidate twice
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        study.optimize(fail, catch=RuntimeError)
    assert len(study.trials) == trials + 1


def test_while_others_fail_at_once_a_candidate_that_asks_begins_the_race() -> None:
    def only_poor(trial: Any) -> float:
        if trial.suggest_float("x", 0, 1) < 0.9:
            raise RuntimeError("crash")
        return objective(trial)

    study = create()
    study.optimize(only_poor, n_trials=300, catch=RuntimeError)
    assert race_result(study).pareto_set == ("poor",)


def test_a_newcomer_that_fails_before_it_asks_is_out_like_any_other() -> None:
    def failing(trial: Any) -> float:
        if trial.suggest_float("x", 0, 1) > 0.35:
            raise RuntimeError("crash")
        return objective(trial)

    study = create(candidates=None, n_candidates=3, base=optuna.samplers.RandomSampler(seed=2))
    study.optimize(failing, n_trials=150, catch=RuntimeError)
    result = race_result(study)
    broken = {name for name, parameters in result.about["candidates"].items() if parameters["x"] > 0.35}
    assert len(broken) > 2
    assert broken <= {out.algorithm for out in result.eliminations}
    tries = Counter(
        (trial.system_attrs[CELL]["candidate"], trial.system_attrs[CELL]["instance"]) for trial in study.trials
    )
    assert max(tries.values()) == 2


# What the objective asks for


def test_an_objective_that_does_not_ask_for_an_instance_is_an_error_that_says_what_to_do() -> None:
    study = create()
    with pytest.raises(InvalidInputError, match=r'trial.suggest_int\("instance", 0, n - 1\).*number of the repetition'):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    assert [(trial.state, trial.value) for trial in study.trials] == [(TrialState.COMPLETE, 0.3)]


def test_a_trial_that_does_not_ask_for_an_instance_where_others_did_is_an_error() -> None:
    study = create(candidates=None, n_candidates=3)
    study.optimize(objective, n_trials=4)
    with pytest.raises(InvalidInputError, match="Trial 4 is complete and has not asked for its instance"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)


def test_parameters_of_candidates_that_are_never_asked_for_are_named_once() -> None:
    study = create(candidates={"a": {"x": 0.1, "typo": 1, "z": 2}, "b": {"x": 0.2, "typo": 2, "z": 2}})
    with pytest.warns(PolarBearWarning, match="candidate 'a' has not asked for typo, z") as caught:
        study.optimize(objective, n_trials=6)
    assert len([one for one in caught if one.category is PolarBearWarning]) == 1


def test_a_conditional_parameter_is_asked_for_by_the_candidates_that_have_it() -> None:
    def conditional(trial: Any) -> float:
        x = trial.suggest_categorical("kind", ["plain", "tuned"])
        return objective(trial) + (trial.suggest_float("rate", 0, 1) if x == "tuned" else 1.0)

    study = create(candidates=[{"x": 0.1, "kind": "plain"}, {"x": 0.1, "kind": "tuned", "rate": 0.5}])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PolarBearWarning)
        study.optimize(conditional, n_trials=6)


def test_values_of_each_parameter_are_a_grid_as_for_the_grid_sampler() -> None:
    grid = {"x": [0.3, 0.9], "y": ["a", "b"], "z": np.arange(1)}
    rules = PolarBearSampler(grid).rules
    assert rules.candidates == {
        "x=0.3, y=a, z=0": {"x": 0.3, "y": "a", "z": 0},
        "x=0.3, y=b, z=0": {"x": 0.3, "y": "b", "z": 0},
        "x=0.9, y=a, z=0": {"x": 0.9, "y": "a", "z": 0},
        "x=0.9, y=b, z=0": {"x": 0.9, "y": "b", "z": 0},
    }
    study = create(candidates={"x": [0.3, 0.9]})
    study.optimize(objective, n_trials=100)
    assert race_result(study).pareto_set == ("x=0.3",)


@pytest.mark.parametrize(
    "value",
    [np.int64(3), np.float64(0.5), np.float32(0.5), np.bool_(True), np.str_("text")],
    ids=lambda one: str(type(one)),
)
def test_a_number_of_numpy_is_the_number(value: Any) -> None:
    candidates = PolarBearSampler([{"x": value}, {"x": None}]).rules.candidates
    assert candidates["0"]["x"] == value.item()
    assert type(candidates["0"]["x"]) is type(value.item())


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path: Path) -> None:
    study = create(storage_of("journal", str(tmp_path)), candidates=None, n_candidates=np.int64(3), seed=np.int64(7))
    study.optimize(objective, n_trials=6)
    loaded = optuna.load_study(study_name="race", storage=storage_of("journal", str(tmp_path)))
    assert race_result(loaded).state.settings.seed == 7


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


def test_candidates_come_from_the_default_base_sampler_in_a_database_too(tmp_path: Path) -> None:
    study = create(storage_of("sqlite", str(tmp_path)), candidates=None, n_candidates=3)
    study.optimize(objective, n_trials=6)
    assert len(race_result(study).algorithms) >= 3


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


def test_a_race_that_candidates_have_left_is_reported_with_all_of_them() -> None:
    study = create(candidates=None, n_candidates=3, base=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=150)
    result = race_result(study)
    standing = study.sampler.race.standing(
        *(getattr(StudyView.of(study, study.sampler.rules), part) for part in ("cells", "instances", "entrants"))
    )
    assert standing.retired
    assert standing.state.algorithms == standing.state.pareto_set
    assert set(result.algorithms) == {trial.system_attrs[CELL]["candidate"] for trial in study.trials}
    assert {out.algorithm for out in result.eliminations} == {out.algorithm for out in standing.state.eliminations}
    gone = [result.algorithms.index(out.algorithm) for out in result.eliminations]
    entered = [k for k, name in enumerate(result.algorithms) if name in {*standing.retired, *standing.state.algorithms}]
    assert result.state.resolved[:, gone][:, :, entered].all()
    assert result.posterior.algorithms == result.algorithms


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
    # A storage has no lock: two processes choose the same cell if each looks before the other has written its choice.
    # Without the second look at the study there are about ten.
    assert len(done) - len(set(done)) <= len(workers)


def test_a_pruner_that_hides_trials_does_no_harm() -> None:
    sampler = PolarBearSampler(CANDIDATES, settings=SETTINGS)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.HyperbandPruner())
    study.optimize(objective, n_trials=300)
    assert race_result(study).pareto_set == ("good",)


def test_threads_share_a_race() -> None:
    study = create()
    study.optimize(objective, n_trials=40, n_jobs=3)
    assert race_result(study).pareto_set == ("good",)


class Counting(optuna.storages.InMemoryStorage):  # type: ignore[misc]
    """Counts how often all trials are read."""

    reads = 0

    def get_all_trials(self, *arguments: Any, **options: Any) -> Any:
        self.reads += 1
        return super().get_all_trials(*arguments, **options)


@pytest.mark.parametrize("candidates", [CANDIDATES, None])
def test_all_trials_are_read_at_most_twice_a_trial_once_by_optuna_itself(candidates: Any) -> None:
    storage = Counting()
    study = create(storage, candidates=candidates, n_candidates=4, base=optuna.samplers.RandomSampler(seed=1))

    def several(trial: Any) -> float:
        return objective(trial) + (0.0 if candidates else sum(trial.suggest_float(f"x{k}", 0, 1) for k in range(5)))

    for _ in range(30):  # not at once: that reads them too
        study.optimize(several, n_trials=1)
    finished = len(study.get_trials(deepcopy=False))
    assert storage.reads - 1 <= 2 * finished + 1  # the first trial knows nothing


def test_one_sampler_serves_several_studies() -> None:
    sampler = PolarBearSampler(CANDIDATES, settings=SETTINGS)
    studies = [optuna.create_study(sampler=sampler, study_name="race") for _ in range(2)]
    for _ in range(12):
        for study in studies:
            study.optimize(objective, n_trials=1)
    alone = create()
    alone.optimize(objective, n_trials=12)
    assert cells(studies[0]) == cells(studies[1]) == cells(alone)


def test_a_study_that_is_deleted_and_made_again_begins_anew(tmp_path: Path) -> None:
    storage = optuna.storages.get_storage(storage_of("sqlite", str(tmp_path)))  # which uses identifiers again
    sampler = PolarBearSampler(CANDIDATES, settings=SETTINGS)
    done = []
    for _ in range(2):
        study = optuna.create_study(study_name="race", storage=storage, sampler=sampler)
        study.optimize(objective, n_trials=7)
        done.append(cells(study))
        assert race_result(optuna.load_study(study_name="race", storage=storage)).cost == 7
        optuna.delete_study(study_name="race", storage=storage)
    assert done[0] == done[1]
    storage.remove_session()


def test_a_sampler_can_be_copied_in_the_middle_of_a_race() -> None:
    study = create()
    study.optimize(objective, n_trials=5)
    whole = create()
    whole.optimize(objective, n_trials=9)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))  # noqa: S301 - its own
    study.optimize(objective, n_trials=4)
    assert cells(study) == cells(whole)


def test_a_trial_may_be_continued_by_a_sampler_that_knows_nothing_of_it() -> None:
    study = create(candidates=None, n_candidates=3)
    study.optimize(objective, n_trials=8)
    begun = study.ask()
    study.sampler = create(candidates=None, n_candidates=3).sampler
    study.tell(begun, objective(begun))
    name = study.trials[8].system_attrs[CELL]["candidate"]
    same = [trial for trial in study.trials if trial.system_attrs[CELL]["candidate"] == name]
    assert len(same) > 1
    assert len({trial.params["x"] for trial in same}) == 1


# What is logged


def test_threads_leave_the_log_of_optuna_as_it_is() -> None:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    study = create(candidates=None, n_candidates=3)
    study.optimize(objective, n_trials=60, n_jobs=4)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_only_the_studies_of_the_base_sampler_go_unannounced_and_only_in_their_thread() -> None:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("optuna").addHandler(handler)
    elsewhere: list[str] = []
    numbers = itertools.count()

    class Creating(optuna.samplers.RandomSampler):  # type: ignore[misc]
        def sample_independent(self, *arguments: Any) -> Any:
            elsewhere.append(optuna.create_study(study_name=f"own {next(numbers)}").study_name)
            return super().sample_independent(*arguments)

    try:
        study = create(candidates=None, n_candidates=3, base=Creating(seed=1))
        study.optimize(objective, n_trials=20, n_jobs=2)
        with sampler_module.proposals.ANNOUNCEMENTS.silenced():
            thread = threading.Thread(target=lambda: optuna.create_study(study_name="in another thread"))
            thread.start()
            thread.join()
            optuna.create_study(study_name="silent")
    finally:
        logging.getLogger("optuna").removeHandler(handler)
    announced = [text.rpartition(" name: ")[2] for text in said if "new study" in text]
    assert sorted(announced) == sorted(["race", *elsewhere, "in another thread"])


# The view of a study


def finished_trials(seed: int) -> list[Any]:
    """Trials of a race as they might be: complete, failed, abandoned, pruned, running, with and without an instance."""
    rng = np.random.default_rng(seed)
    uniform = optuna.distributions.FloatDistribution(0, 1)
    trials = []
    for number in range(int(rng.integers(1, 25))):
        state = [TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING][
            rng.choice(4, p=[0.5, 0.3, 0.1, 0.1])
        ]
        cell: dict[str, Any] = {"candidate": f"t{rng.integers(3)}", "instance": int(rng.integers(3)), "founder": None}
        if rng.random() < 0.3:
            cell["founder"] = int(rng.integers(1, 3))
        cell |= {"failed": True} if state == TrialState.FAIL and rng.random() < 0.7 else {}
        cell |= {"sure": True} if rng.random() < 0.7 else {}
        instances = optuna.distributions.IntDistribution(0, 2 if number < 20 else 4)
        distributions = {key: uniform for key in "yx" if rng.random() < 0.6}
        if rng.random() < 0.8:
            distributions["instance"] = instances
        trials.append(
            optuna.trial.create_trial(
                state=state,
                value=rng.random() if state == TrialState.COMPLETE else None,
                params={key: int(rng.integers(3)) if key == "instance" else rng.random() for key in distributions},
                distributions=distributions,
                system_attrs={CELL: cell},
            )
        )
        trials[-1].number = number
    return trials


def described(view: Any) -> dict[str, Any]:
    names = "asked instances without_instance given_up sure founders entrants parameters ended cost racing"
    return {name: getattr(view, name) for name in names.split()} | {
        "cells": {cell: [run.tolist() for run in runs] for cell, runs in view.cells.items()},
        "claims": {place: sorted(numbers) for place, numbers in view.claims.items()},
        "order": list(view.parameters),
        "keys": {name: list(parameters) for name, parameters in view.parameters.items()},
        "distributions": {name: view.distributions_of(name) for name in view.parameters},
        "hopeless": view.is_hopeless(),
    }


@pytest.mark.parametrize("candidates", [{"t0": {"x": 0.1}, "t1": {"x": 0.2}}, None])
@given(seed=st.integers(0, 2**32 - 1), order=st.randoms(use_true_random=False))
def test_a_view_does_not_depend_on_the_order_in_which_trials_end(candidates: Any, seed: int, order: Any) -> None:
    empty = StudyView(PolarBearSampler(candidates, n_candidates=2, seed=1).rules, 1.0)
    trials = finished_trials(seed)
    at_once = empty.with_trials(trials)
    order.shuffle(trials)
    grown = empty.with_trials(())
    for trial in trials:
        if trial.state.is_finished():
            grown.add(trial)
            described(grown.with_trials(trials[:2]))  # which must leave it alone
    assert described(grown.with_trials([one for one in trials if not one.state.is_finished()])) == described(at_once)
    assert not empty.runs


@pytest.mark.parametrize("candidates", [CANDIDATES, None])
def test_what_a_sampler_remembers_is_what_the_storage_has(candidates: Any) -> None:
    study = create(candidates=candidates, n_candidates=3)
    rng = np.random.default_rng(1)
    running: list[Any] = []
    for _ in range(60):
        trial = study.ask()
        value = objective(trial)
        running.append((trial, value))
        while len(running) > rng.integers(0, 5):
            trial, value = running.pop(rng.integers(len(running)))
            failed = rng.random() < 0.1
            study.tell(trial, None if failed else value, state=TrialState.FAIL if failed else None)
    memory = study.sampler._recall(study)
    assert described(memory.look(study)) == described(StudyView.of(study, study.sampler.rules))
    assert set(memory.assignments) == {trial._trial_id for trial, _ in running}


def test_an_end_that_the_storage_refuses_is_not_remembered() -> None:
    study = create()
    study.optimize(objective, n_trials=3)
    trial = study.ask()
    value = objective(trial)
    frozen = study._storage.get_trial(trial._trial_id)
    study.sampler.after_trial(study, frozen, TrialState.COMPLETE, [value])  # and the storage never hears of it
    memory = study.sampler._recall(study)
    assert len(memory.view.ended) == 4
    assert described(memory.look(study)) == described(StudyView.of(study, study.sampler.rules))
    assert len(memory.view.ended) == 3


# Private names


def test_one_module_of_a_package_alone_uses_private_names_of_optuna(root: Path) -> None:
    private = re.compile(r"\._(storage|study_id|trial_id|contains|suggest)\b")
    users = [path.name for path in root.glob("[ai]*/optuna_*/*.py") if private.search(path.read_text())]
    assert set(users) == {"study_storage.py"}


# Mistakes


@pytest.mark.parametrize("module", ["", ".proposals", ".rules", ".sampler", ".result", ".study_memory", ".study_view"])
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
        ({"candidates": {"x": [1, 2], "y": []}}, "the list of values of 'y' is empty"),
        ({"candidates": {"x": [1, 2], "b": {"x": 1}}}, "'x' has a list of values and 'b' has .*either the parameters"),
        ({"candidates": {"x": [1, 2], "y": 3}}, "'x' has a list of values and 'y' has 3"),
        ({"candidates": {"x": [1, 1]}}, "two of the name 'x=1'"),
        ({"candidates": {"x": [1]}}, "at least two candidates, got 1"),
        ({"candidates": {"x": [1, 2], "instance": [1, 2]}}, "has a value for 'instance'"),
        ({"candidates": {"x": [1, np.datetime64("2020-01-01")]}}, "x must be a number"),
        ({"base": "tpe"}, "base: expected a sampler"),
        ({"n_candidates": 8.5}, "n_candidates must be a whole number"),
        ({"n_candidates": 8.0}, "n_candidates must be a whole number"),
        ({"seed": 1.0}, "seed must be a whole number"),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"settings": replace(SETTINGS, alpha=0.9)}, "alpha was 0.95 and is 0.9"),
        ({"settings": replace(SETTINGS, guard="none")}, "guard was 'counts' and is 'none'"),
        ({"instance": "fold"}, "instance was 'instance' and is 'fold'"),
        ({"timepoints": [1, 2]}, r"timepoints was None and is \(1.0, 2.0\)"),
        ({"candidates": CANDIDATES | {"good": {"x": 0.2}}}, r"'good' was {'x': 0.3} and is {'x': 0.2}"),
        ({"candidates": CANDIDATES | {"fine": {"x": 0.2}}}, "the candidate 'fine' is new.*study.enqueue_trial"),
        ({"candidates": [*CANDIDATES.values()]}, "'good' is missing.*the candidate '0' is new"),
        (
            {"candidates": dict(reversed(CANDIDATES.items()))},
            "order of the candidates was good, fair, poor and is poor",
        ),
        ({"candidates": None}, "candidates were given and are from the base sampler"),
        ({"settings": replace(SETTINGS, prior=make_prior("dirichlet", {}))}, "objects, which cannot be compared"),
    ],
)
def test_a_study_that_was_begun_under_other_rules_is_refused(options: dict[str, Any], message: str) -> None:
    storage = optuna.storages.InMemoryStorage()
    create(storage).optimize(objective, n_trials=2)
    other = create(storage, **options)
    with pytest.raises(InvalidInputError, match=message):
        other.optimize(objective, n_trials=1)
    create(storage).optimize(objective, n_trials=1)  # the rules are still the first ones


def test_the_number_of_candidates_counts_where_they_come_from_the_base_sampler() -> None:
    storage = optuna.storages.InMemoryStorage()
    create(storage, candidates=None).optimize(objective, n_trials=2)
    with pytest.raises(InvalidInputError, match="n_candidates was 8 and is 3"):
        create(storage, candidates=None, n_candidates=3).optimize(objective, n_trials=1)


def test_the_limits_of_a_race_may_change() -> None:
    storage = optuna.storages.InMemoryStorage()
    first = create(storage, settings=replace(SETTINGS, max_rounds=1))
    first.optimize(objective, n_trials=100)
    assert race_result(first).stopped == "max_rounds"
    longer = create(storage, n_candidates=5)  # which means nothing with given candidates
    longer.optimize(objective, n_trials=100)
    loaded = optuna.load_study(study_name="race", storage=storage)
    assert race_result(loaded).stopped == "resolved"


def test_a_study_with_several_objectives_is_refused_with_a_word_on_what_to_do() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=PolarBearSampler())
    with pytest.raises(InvalidInputError, match=r"this one has 2\. Race one of them, or make a study for each"):
        study.optimize(lambda trial: (0.0, trial.suggest_float("x", 0, 1)), n_trials=1)


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
