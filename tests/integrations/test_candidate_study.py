"""A study with one trial for each candidate of a race."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning

optuna = pytest.importorskip("optuna")
sampler_module = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")
companion_module = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler.candidate_study")
PolarBearSampler, race_result = sampler_module.PolarBearSampler, sampler_module.race_result
candidate_study, update_companion = sampler_module.candidate_study, companion_module.update_companion
as_ended, assignment_of = sampler_module.study_storage.as_ended, sampler_module.study_storage.assignment_of
TrialState = optuna.trial.TrialState

pytestmark = pytest.mark.usefixtures("quiet_optuna")

SETTINGS = RaceSettings(draws=500, alpha=0.95, epsilon=0.2, batch_size=3, batch_min=3, seed=1)
CANDIDATES = {"good": {"x": 0.3}, "fair": {"x": 0.6}, "poor": {"x": 0.9}}


def noise(instance: int, x: float) -> float:
    return float(0.04 * np.random.default_rng([instance, int(1e6 * x)]).normal())


def objective(trial: Any) -> float:
    instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
    return float((x - 0.3) ** 2 + noise(instance, x) + 10 * instance)


def create(candidates: Any = CANDIDATES, storage: Any = None, direction: str = "minimize", **options: Any) -> Any:
    sampler = PolarBearSampler(candidates, **{"settings": SETTINGS, **options})
    return optuna.create_study(sampler=sampler, storage=storage, study_name="race", direction=direction)


def race(objective: Any = objective, n_trials: int = 300, catch: Any = (), **options: Any) -> Any:
    study = create(**options)
    study.optimize(objective, n_trials=n_trials, catch=catch)
    return study


def by_candidate(study: Any) -> dict[str, Any]:
    return {trial.user_attrs["candidate"]: trial for trial in study.trials}


def storage_of(kind: str, folder: Path) -> Any:
    if kind == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "journal")))
    if kind == "sqlite":
        return optuna.storages.RDBStorage(f"sqlite:///{folder / 'study.db'}")
    return optuna.storages.InMemoryStorage()


@pytest.fixture(scope="module")
def raced() -> Any:
    """A study whose race is over."""
    return race()


# What it shows


def test_the_best_trial_is_the_winner_of_the_race(raced: Any) -> None:
    result, candidates = race_result(raced), candidate_study(raced)
    best = candidates.best_trial
    assert (best.user_attrs["candidate"],) == result.pareto_set
    assert best.params == {"x": 0.3}
    assert best.distributions == {"x": optuna.distributions.FloatDistribution(0, 1)}
    assert [trial.user_attrs["candidate"] for trial in candidates.trials] == list(result.algorithms)
    easiest = min(trial.params["instance"] for trial in raced.trials)
    assert raced.best_trial.params["instance"] == easiest  # which says nothing about candidates


def test_a_trial_says_how_its_candidate_fared(raced: Any) -> None:
    result, trials = race_result(raced), by_candidate(candidate_study(raced))
    assert trials["good"].user_attrs["status"] == "in the race"
    out = {out.algorithm: out for out in result.eliminations}["poor"]
    assert trials["poor"].user_attrs["status"].startswith(f"eliminated in round {out.round} by {out.by}, P ")
    instances = result.summary()["instances"]
    for name, trial in trials.items():
        about = trial.user_attrs
        assert about["instances"] == instances[name]
        assert about["failures"] == 0
        assert 0 < about["spread"] < 0.1
    assert [trials[name].user_attrs["rating"] for name in result.algorithms] == pytest.approx(
        result.posterior.mean_ratings[-1]
    )
    assert sum(trial.user_attrs["p_best"] for trial in trials.values()) == pytest.approx(1)
    assert trials["good"].user_attrs["p_best"] > 0.9


def test_the_study_says_what_it_rests_on(raced: Any) -> None:
    about, rounds = candidate_study(raced).user_attrs, len(race_result(raced).rounds)
    assert about["polarbear:candidates of"] == "race"
    assert about["trials of the race"] == len(raced.trials)
    assert about["stopped"] == f"after round {rounds}: every pair is settled"
    assert "same amount on every instance" in about["assumption"]
    assert "contradiction" not in about


def test_a_race_that_is_not_over_says_so() -> None:
    candidates = candidate_study(race(n_trials=7))
    assert candidates.user_attrs["stopped"] == "not over after round 0"
    assert candidates.user_attrs["trials of the race"] == 7
    assert {trial.user_attrs["status"] for trial in candidates.trials} == {"in the race"}


def test_a_candidate_without_a_finished_run_is_left_out() -> None:
    assert set(by_candidate(candidate_study(race(n_trials=2)))) == {"good", "poor"}


def test_the_study_of_the_race_stays_as_it_is() -> None:
    study = race(n_trials=20)
    before = [trial.params for trial in study.trials], study.user_attrs
    candidate_study(study)
    assert ([trial.params for trial in study.trials], study.user_attrs) == before


def test_a_study_without_a_race_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no race"):
        candidate_study(optuna.create_study())


# Values


def test_hard_and_easy_instances_cancel_out() -> None:
    """Each instance is harder than those before: whoever is eliminated first has met only easy ones."""
    order: dict[int, int] = {}

    def harder(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
        return float((x - 0.3) ** 2 + noise(instance, x) + 10 * order.setdefault(instance, len(order)))

    study = race(harder, candidates={**CANDIDATES, "close": {"x": 0.35}})
    trials = by_candidate(candidate_study(study))
    plain = {
        name: np.mean([trial.value for trial in study.trials if trial.params["x"] == trials[name].params["x"]])
        for name in trials
    }
    assert min(plain, key=plain.__getitem__) not in ("good", "close")
    assert candidate_study(study).best_trial.user_attrs["candidate"] in ("good", "close")
    assert trials["poor"].value - trials["good"].value == pytest.approx(0.36, abs=0.1)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_value_is_the_mean_over_all_instances_of_the_race_in_the_units_of_the_objective(direction: str) -> None:
    def additive(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
        return float(-5.0 + 10 * x + 100 * instance)

    study = race(additive, direction=direction)
    candidates = candidate_study(study)
    mean = np.mean([100 * instance for instance in {trial.params["instance"] for trial in study.trials}])
    for trial in candidates.trials:
        assert trial.value == pytest.approx(-5 + 10 * trial.params["x"] + mean, rel=0.01)
    assert candidates.direction == study.direction
    assert (candidates.best_trial.user_attrs["candidate"],) == race_result(study).pareto_set


def test_repeated_runs_count_as_one_run_with_their_mean() -> None:
    def tell(values: dict[str, list[float]]) -> Any:
        study = create({"a": {"x": 0.1}, "b": {"x": 0.2}})
        left = {name: list(each) for name, each in values.items()}
        while any(left.values()):
            trial = study.ask({"instance": optuna.distributions.IntDistribution(0, 0)})
            name = "a" if trial.suggest_float("x", 0, 1) == 0.1 else "b"
            # One more with the mean changes nothing.
            study.tell(trial, left[name].pop() if left[name] else np.mean(values[name]))
        return by_candidate(candidate_study(study))

    repeated, once = tell({"a": [1.0, 5.0, 6.0], "b": [3.0, 9.0]}), tell({"a": [4.0], "b": [6.0]})
    assert [repeated[name].value for name in "ab"] == pytest.approx([once[name].value for name in "ab"])


def test_trajectories_count_with_their_last_timepoint() -> None:
    def curve(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 9), trial.suggest_float("x", 0, 1)
        for step in (1, 10, 20):
            trial.report(x + instance + 100 / step, step)
        return 77.0

    study = race(curve, timepoints=[1, 10])
    candidates = candidate_study(study)
    mean = np.mean(list({trial.params["instance"] for trial in study.trials}))
    assert by_candidate(candidates)["good"].value == pytest.approx(0.3 + 10 + mean, rel=0.01)
    assert candidates.user_attrs["timepoint of the values"] == 10


def test_ratings_are_those_at_the_last_timepoint() -> None:
    def crossing(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
        trial.report(10 + x + instance, 1)
        trial.report(10 - x + instance, 10)
        return 0.0

    trials = by_candidate(candidate_study(race(crossing, timepoints=[1, 10])))
    assert trials["poor"].value < trials["good"].value
    assert trials["poor"].user_attrs["p_best"] > 0.9
    assert trials["poor"].user_attrs["rating"] > trials["good"].user_attrs["rating"]


def test_a_candidate_that_never_reached_the_last_timepoint_has_no_rating_there() -> None:
    def cut(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
        trial.report(x + instance, 1)
        if x == 0.9:
            raise optuna.TrialPruned
        return x + instance

    cut_short = by_candidate(candidate_study(race(cut, n_trials=30, timepoints=[1, 10])))["poor"]
    assert cut_short.state == TrialState.FAIL
    assert (cut_short.user_attrs["rating"], cut_short.user_attrs["p_best"]) == (None, None)


# Failures


def test_instances_on_which_a_candidate_fails_are_left_out_of_its_value_and_counted() -> None:
    def failing(trial: Any) -> float:
        value = objective(trial)
        if trial.params["x"] == 0.6 and trial.params["instance"] % 2:
            raise RuntimeError("crash")
        if trial.params["x"] == 0.9 and not trial.params["instance"] % 2:
            raise optuna.TrialPruned
        return value

    study = race(failing, catch=RuntimeError)
    candidates = candidate_study(study)
    for name, parity in (("fair", 1), ("poor", 0)):
        trial = by_candidate(candidates)[name]
        met = {t.params["instance"] for t in study.trials if t.params["x"] == trial.params["x"]}
        assert trial.state == TrialState.COMPLETE
        assert trial.user_attrs["failures"] == sum(instance % 2 == parity for instance in met) > 0
        assert trial.user_attrs["instances"] == sum(instance % 2 != parity for instance in met) > 0
    values = [trial.value for trial in candidates.trials]
    assert np.isfinite(values).all()


def test_a_candidate_that_always_fails_is_a_failed_trial() -> None:
    def failing(trial: Any) -> float:
        value = objective(trial)
        if trial.params["x"] == 0.6:
            raise RuntimeError("crash")
        return value

    trials = by_candidate(candidate_study(race(failing, catch=RuntimeError)))
    assert trials["fair"].state == TrialState.FAIL
    assert trials["fair"].params == {"x": 0.6}
    assert (trials["fair"].user_attrs["instances"], trials["fair"].user_attrs["spread"]) == (0, None)
    assert trials["fair"].user_attrs["failures"] > 0
    assert {trials[name].state for name in ("good", "poor")} == {TrialState.COMPLETE}


@pytest.mark.parametrize("survivors", [(), (0.3,)])
def test_all_candidates_but_one_may_have_failed_or_all(survivors: tuple[float, ...]) -> None:
    def failing(trial: Any) -> float:
        value = objective(trial)
        if trial.params["x"] not in survivors:
            raise optuna.TrialPruned
        return value

    study = race(failing, n_trials=9)
    candidates = candidate_study(study)
    complete = [trial for trial in candidates.trials if trial.state == TrialState.COMPLETE]
    assert [trial.params["x"] for trial in complete] == list(survivors)
    if complete:  # there is nothing to compare with
        assert complete[0].value == pytest.approx(np.mean([t.value for t in study.trials if t.value is not None]))
        assert complete[0].user_attrs["spread"] is None


# Where the mean and the race disagree


def test_it_says_if_the_best_mean_is_that_of_an_eliminated_candidate() -> None:
    """One candidate is better on most instances, and terrible on every sixth."""

    def risky(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
        return float(100.0 if x < 0.5 and instance % 6 == 0 else x + noise(instance, x))

    study = race(risky, candidates={"risky": {"x": 0.1}, "steady": {"x": 0.9}})
    assert race_result(study).pareto_set == ("risky",)
    disagreement = r"best mean, 'steady', was eliminated .* by risky, P .*ranks"
    with pytest.warns(PolarBearWarning, match=disagreement) as caught:
        candidates = candidate_study(study)
    with pytest.warns(PolarBearWarning, match=disagreement):
        update_companion(study)
    assert candidates.best_trial.user_attrs["candidate"] == "steady"
    assert candidates.user_attrs["contradiction"] == str(caught[0].message)


# Parameters


def test_importances_are_about_the_parameters_of_candidates() -> None:
    def two(trial: Any) -> float:
        instance = trial.suggest_int("instance", 0, 9)
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return x + 0.01 * y + noise(instance, x) + 10 * instance

    rng = np.random.default_rng(1)
    study = race(two, candidates=[{"x": x, "y": y} for x, y in rng.random((16, 2)).tolist()])
    of_trials = optuna.importance.get_param_importances(study)
    assert next(iter(of_trials)) == "instance"
    importances = optuna.importance.get_param_importances(candidate_study(study))
    assert list(importances) == ["x", "y"]
    assert importances["x"] > 0.7


def test_candidates_may_have_different_parameters() -> None:
    def conditional(trial: Any) -> float:
        instance = trial.suggest_int("instance", 0, 9)
        if trial.suggest_categorical("kind", ["tree", "linear"]) == "tree":
            return float(trial.suggest_int("depth", 1, 8) + instance)
        return 20.0 * trial.suggest_float("penalty", 1e-3, 1.0, log=True) + instance

    given = {
        "shallow": {"kind": "tree", "depth": 2},
        "deep": {"kind": "tree", "depth": 8},
        "linear": {"kind": "linear", "penalty": 0.5, "depth": 3},
    }
    with pytest.warns(PolarBearWarning, match="the candidate 'linear' has not asked for depth"):
        study = race(conditional, candidates=given)
    trials = by_candidate(candidate_study(study))
    assert trials["shallow"].params == given["shallow"]
    assert trials["linear"].params == {"kind": "linear", "penalty": 0.5}  # only what the objective asked for
    assert trials["linear"].distributions["penalty"] == optuna.distributions.FloatDistribution(1e-3, 1.0, log=True)
    assert trials["deep"].distributions["depth"] == optuna.distributions.IntDistribution(1, 8)


def test_candidates_from_a_base_sampler_are_shown_too() -> None:
    study = race(candidates=None, n_trials=80, n_candidates=4, seed=1)
    candidates = candidate_study(study)
    names = {trial.system_attrs["polarbear:cell"]["candidate"] for trial in study.trials}
    assert {trial.user_attrs["candidate"] for trial in candidates.trials} <= names
    assert len(candidates.trials) > 4
    assert abs(candidates.best_params["x"] - 0.3) < 0.25


# In a storage


@pytest.mark.parametrize("kind", ["memory", "journal", "sqlite"])
def test_it_is_replaced_and_not_duplicated(kind: str, tmp_path: Path) -> None:
    storage = storage_of(kind, tmp_path)
    study = create(storage=storage)
    for n_trials in (5, 60):
        study.optimize(objective, n_trials=n_trials)
        written = candidate_study(study, storage=storage)
        loaded = optuna.load_study(study_name="race:candidates", storage=storage)
        assert [trial.user_attrs["candidate"] for trial in loaded.trials] == list(CANDIDATES)
        assert [trial.value for trial in loaded.trials] == [trial.value for trial in written.trials]
        assert loaded.user_attrs["trials of the race"] == len(study.trials)
    assert loaded.best_params == {"x": 0.3}
    assert sorted(optuna.get_all_study_names(storage)) == ["race", "race:candidates"]


def test_it_can_be_written_to_the_url_of_another_storage_under_another_name(raced: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    candidate_study(raced, storage=url, study_name="shown")
    candidate_study(raced, storage=url, study_name="shown")
    assert optuna.get_all_study_names(url) == ["shown"]
    assert len(optuna.load_study(study_name="shown", storage=url).trials) == 3


def test_another_study_of_that_name_is_refused_and_kept(raced: Any) -> None:
    storage = optuna.storages.InMemoryStorage()
    other = optuna.create_study(storage=storage, study_name="race:candidates")
    other.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    with pytest.raises(InvalidInputError, match=r"study of another kind .* 'race:candidates'.*Give another study_name"):
        candidate_study(raced, storage=storage)
    assert len(other.trials) == 2
    with pytest.raises(InvalidInputError, match="not replaced"):
        candidate_study(raced, storage=storage)


def test_the_candidates_of_another_race_are_refused_and_kept(raced: Any) -> None:
    storage = optuna.storages.InMemoryStorage()
    sampler = PolarBearSampler(CANDIDATES, settings=SETTINGS)
    other = optuna.create_study(sampler=sampler, study_name="other")
    other.optimize(objective, n_trials=6)
    candidate_study(other, storage=storage, study_name="shown")
    with pytest.raises(InvalidInputError, match="candidates of the study 'other'"):
        candidate_study(raced, storage=storage, study_name="shown")


# Kept up to date


def test_the_companion_is_written_beside_the_race_and_only_if_there_is_something_new(tmp_path: Path) -> None:
    storage = storage_of("journal", tmp_path)
    study = create(storage=storage)
    study.optimize(objective, n_trials=9)
    update_companion(study)
    first = optuna.load_study(study_name="race:candidates", storage=storage)
    first.set_user_attr("seen", True)
    update_companion(study)
    assert "seen" in optuna.load_study(study_name="race:candidates", storage=storage).user_attrs
    study.optimize(objective, n_trials=3)
    update_companion(study)
    later = optuna.load_study(study_name="race:candidates", storage=storage).user_attrs
    assert "seen" not in later
    assert later["trials of the race"] == 12


def test_the_companion_counts_the_trial_that_is_ending() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = create(storage=storage)
    study.optimize(objective, n_trials=8)
    trial = study.ask()
    value = objective(trial)
    frozen = study.get_trials()[trial.number]
    update_companion(study, as_ended(frozen, assignment_of(frozen), TrialState.COMPLETE, [value]))
    about = optuna.load_study(study_name="race:candidates", storage=storage).user_attrs
    assert about["trials of the race"] == 9
    assert about["stopped"] == "not over after round 1"


def test_a_companion_that_has_seen_more_is_kept(tmp_path: Path) -> None:
    storage = storage_of("journal", tmp_path)
    study = create(storage=storage)
    study.optimize(objective, n_trials=9)
    behind = companion_module._Content.of(study)
    study.optimize(objective, n_trials=3)
    update_companion(study)
    kept = companion_module._replace(behind, storage, "race:candidates")
    assert kept.user_attrs["trials of the race"] == 12


def test_the_companion_of_an_earlier_race_of_the_same_name_is_replaced() -> None:
    storage = optuna.storages.InMemoryStorage()
    for n_trials in (12, 9):
        study = create(storage=storage)
        study.optimize(objective, n_trials=n_trials)
        update_companion(study)
        companion = optuna.load_study(study_name="race:candidates", storage=storage)
        assert companion.user_attrs["trials of the race"] == n_trials
        optuna.delete_study(study_name="race", storage=storage)


def test_a_companion_that_cannot_be_written_is_a_warning() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = create(storage=storage)
    study.optimize(objective, n_trials=9)
    optuna.create_study(storage=storage, study_name="race:candidates")
    with pytest.warns(PolarBearWarning, match=r"'race:candidates' is not up to date: InvalidInputError, .*continues"):
        update_companion(study)


def test_a_companion_of_a_race_that_has_only_begun_is_a_warning() -> None:
    with pytest.warns(PolarBearWarning, match="1 candidates with finished trials"):
        update_companion(race(n_trials=1))


class FilledByTwo(optuna.storages.InMemoryStorage):  # type: ignore[misc]
    """A storage in which another process adds trials to the new study, as with the identifiers of SQLite."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def create_new_trial(self, study_id: int, template_trial: Any = None) -> int:
        if self.left:
            self.left -= 1
            super().create_new_trial(study_id, template_trial)
        return int(super().create_new_trial(study_id, template_trial))


def test_a_study_that_two_processes_have_filled_is_written_again(raced: Any) -> None:
    assert len(candidate_study(raced, storage=FilledByTwo(times=4)).trials) == 3
    with pytest.raises(PolarBearError, match=r"'race:candidates' was changed 5 times by another process.* Try again"):
        candidate_study(raced, storage=FilledByTwo(times=1000))


WRITER = """
import sys
import optuna
from polarbear_plugins.integrations.optuna_sampler.candidate_study import _Content, _replace

optuna.logging.set_verbosity(optuna.logging.ERROR)
kind, place = sys.argv[1:]
if kind == "journal":
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(place))
else:
    storage = optuna.storages.RDBStorage("sqlite:///" + place, engine_kwargs={"connect_args": {"timeout": 60}})
content = _Content.of(optuna.load_study(study_name="race", storage=storage))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(10):
    _replace(content, storage, "race:candidates")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["journal", pytest.param("sqlite", marks=pytest.mark.long)])
def test_processes_that_write_it_at_once_leave_one_trial_for_each_candidate(kind: str, tmp_path: Path) -> None:
    storage = storage_of(kind, tmp_path)
    create(storage=storage).optimize(objective, n_trials=30)
    place = str(tmp_path / ("journal" if kind == "journal" else "study.db"))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, kind, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    errors = [process.communicate("go\n", timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    written = optuna.load_study(study_name="race:candidates", storage=storage_of(kind, tmp_path))
    assert [trial.user_attrs["candidate"] for trial in written.trials] == list(CANDIDATES)


# Kept up to date by the sampler


def test_the_sampler_keeps_the_companion_up_to_date_round_by_round() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = create(storage=storage, companion=True)
    seen = []
    for _ in range(12):
        study.optimize(objective, n_trials=1)
        names = optuna.get_all_study_names(storage)
        known = optuna.load_study(study_name="race:candidates", storage=storage) if len(names) > 1 else None
        seen.append(0 if known is None else known.user_attrs["trials of the race"])
    assert seen == [0] * 8 + [9] * 3 + [9 if len(race_result(study).rounds) == 1 else 12]
    study.optimize(objective, n_trials=300)
    about = optuna.load_study(study_name="race:candidates", storage=storage)
    assert about.user_attrs["trials of the race"] == len(study.trials)
    assert about.user_attrs["stopped"].endswith("every pair is settled")
    assert about.best_trial.user_attrs["candidate"] == "good"


def test_without_being_asked_the_sampler_writes_no_other_study() -> None:
    storage = optuna.storages.InMemoryStorage()
    create(storage=storage).optimize(objective, n_trials=300)
    assert optuna.get_all_study_names(storage) == ["race"]
