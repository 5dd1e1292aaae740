from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from polarbear_plugins.errors import InvalidInputError  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner, explain, race_folds  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

FOLDS = range(12)


def run(study: Any, loss: Callable[[int], float], **options: Any) -> Any:
    """Run a trial over the folds; the race over the folds."""
    made = []

    def objective(trial: Any) -> float:
        folds = race_folds(trial, FOLDS, **options)
        made.append(folds)
        for fold in folds:
            fold.report(loss(fold.number))
        return folds.value

    study.optimize(objective, n_trials=1)
    return made[0]


def study_with(pruner: Any) -> Any:
    """A study whose first trial has the losses 0 to 11."""
    study = optuna.create_study(pruner=pruner)
    run(study, float)
    return study


def test_the_value_is_the_mean_and_every_loss_is_reported_under_its_number() -> None:
    study = study_with(PolarBearPruner())
    assert study.trials[0].value == 5.5
    assert study.trials[0].intermediate_values == {fold: float(fold) for fold in FOLDS}


def test_the_value_of_all_folds_is_no_estimate() -> None:
    study = optuna.create_study(pruner=PolarBearPruner())
    study.add_trial(optuna.trial.create_trial(value=100.0, intermediate_values={0: 0.0}))
    assert run(study, float).value == 5.5


def test_each_trial_has_its_own_order_which_the_seed_decides() -> None:
    study = optuna.create_study()
    orders = [list(run(study, float, seed=seed).losses) for seed in (0, 0, 1)]
    assert all(sorted(order) == list(FOLDS) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    again = optuna.create_study()
    assert [list(run(again, float, seed=seed).losses) for seed in (0, 0, 1)] == orders


def test_to_keep_good_trials_a_bad_one_is_pruned_by_raising() -> None:
    study = study_with(PolarBearPruner())
    folds = run(study, lambda fold: fold + 1.0)
    assert study.trials[1].state == TrialState.PRUNED
    assert 3 <= len(folds.losses) < 12
    assert explain(study).loc[1, "instances"] == sorted(folds.losses)


def test_to_optimize_a_bad_trial_ends_with_an_estimate() -> None:
    study = study_with(PolarBearPruner(goal="optimize"))
    folds = run(study, lambda fold: fold + 1.0)
    assert study.trials[1].state == TrialState.COMPLETE
    assert study.trials[1].value == folds.value == pytest.approx(6.5)
    assert len(folds.losses) == 3


@pytest.mark.parametrize(("pruned", "state"), [("raise", TrialState.PRUNED), ("estimate", TrialState.COMPLETE)])
@pytest.mark.parametrize("goal", ["keep", "optimize"])
def test_how_a_trial_ends_can_be_chosen(goal: Any, pruned: str, state: Any) -> None:
    study = study_with(PolarBearPruner(goal=goal))
    run(study, lambda fold: fold + 1.0, pruned=pruned)
    assert study.trials[1].state == state


def test_a_trial_is_not_pruned_after_its_last_fold() -> None:
    study = optuna.create_study(pruner=PolarBearPruner(min_instances=12, alpha=0.9))
    run(study, float)
    run(study, lambda fold: fold + 1.0)
    assert study.trials[1].state == TrialState.COMPLETE


def test_a_failure_on_a_fold_is_a_loss_there() -> None:
    study = study_with(PolarBearPruner())
    run(study, lambda _: math.nan)
    assert study.trials[1].state == TrialState.PRUNED


class Limit(optuna.pruners.BasePruner):  # type: ignore[misc]
    """A pruner of somebody else."""

    def prune(self, study: Any, trial: Any) -> bool:  # noqa: ARG002 - as Optuna calls it
        return max(trial.intermediate_values.values()) > 100


def test_other_pruners_judge_the_same_reports() -> None:
    study = study_with(Limit())
    folds = run(study, lambda fold: 1000.0 if fold == 3 else 0.0)
    assert study.trials[1].state == TrialState.PRUNED
    assert list(folds.losses)[-1] == 3
    with pytest.raises(InvalidInputError, match='pruned="estimate" needs a study with a PolarBearPruner, got Limit'):
        run(study, float, pruned="estimate")


@pytest.mark.parametrize(
    ("place", "state"), [(0, TrialState.PRUNED), (10, TrialState.PRUNED), (11, TrialState.COMPLETE)]
)
def test_a_trial_is_judged_after_each_fold_but_the_last(place: int, state: TrialState) -> None:
    order = list(run(optuna.create_study(), float).losses)
    study = optuna.create_study(pruner=Limit())
    folds = run(study, lambda fold: 1000.0 if fold == order[place] else 0.0)
    assert list(folds.losses) == order[: place + 1]
    assert study.trials[0].state == state


def test_another_ending_is_refused() -> None:
    with pytest.raises(InvalidInputError, match='pruned: expected "raise" or "estimate", got \'stop\''):
        race_folds(optuna.create_study().ask(), FOLDS, pruned="stop")  # type: ignore[arg-type]


def test_a_fold_without_a_loss_is_named() -> None:
    trial = optuna.create_study().ask()
    loop = iter(race_folds(trial, ["a", "b"]))
    number = next(loop).number
    with pytest.raises(InvalidInputError, match=rf"fold {number} ended without a loss. Call fold.report"):
        next(loop)


def test_a_second_loss_on_a_fold_is_refused() -> None:
    fold = next(iter(race_folds(optuna.create_study().ask(), ["a"])))
    fold.report(1.0)
    with pytest.raises(InvalidInputError, match="fold 0 has a loss already"):
        fold.report(1.0)


def test_the_value_before_the_end_is_refused() -> None:
    folds = race_folds(optuna.create_study().ask(), ["a", "b"])
    next(iter(folds)).report(1.0)
    with pytest.raises(InvalidInputError, match="1 of 2 folds have no loss yet"):
        folds.value  # noqa: B018 - the value is asked for


@pytest.mark.parametrize(
    ("folds", "message"), [(3, "expected a splitter or a list of folds, got 3"), ([], "there are no folds")]
)
def test_what_has_no_folds_is_refused(folds: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        race_folds(optuna.create_study().ask(), folds)


class Splitter:
    """As scikit-learn's splitters are."""

    def __init__(self, shuffle: bool = False, random_state: Any = None) -> None:
        self.shuffle, self.random_state = shuffle, random_state

    def split(self, x: Any, y: Any = None, groups: Any = None) -> Any:
        assert y is not None
        self.groups = groups
        for fold in range(3):
            test = np.arange(len(x)) % 3 == fold
            yield np.flatnonzero(~test), np.flatnonzero(test)


def test_a_splitter_gives_train_and_test() -> None:
    x = np.arange(9)
    for fold in race_folds(optuna.create_study().ask(), Splitter(), x, x):
        assert fold.test.tolist() == [fold.number, fold.number + 3, fold.number + 6]
        assert sorted([*fold.train, *fold.test]) == list(range(9))
        fold.report(0.0)


def test_a_splitter_is_given_the_groups_if_there_are_any() -> None:
    x, splitter = np.arange(9), Splitter()
    race_folds(optuna.create_study().ask(), splitter, x, x, groups="abc")
    assert splitter.groups == "abc"
    race_folds(optuna.create_study().ask(), splitter, x, x)
    assert splitter.groups is None


@pytest.mark.parametrize("state", [None, np.random.RandomState(1)])
def test_a_splitter_that_splits_differently_each_time_is_refused(state: Any) -> None:
    with pytest.raises(InvalidInputError, match="splits differently in every trial"):
        race_folds(optuna.create_study().ask(), Splitter(shuffle=True, random_state=state), [1], [1])


@pytest.mark.parametrize("name", ["KFold", "StratifiedKFold", "RepeatedKFold", "ShuffleSplit"])
def test_splitters_of_scikit_learn_are_taken(name: str) -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    make = getattr(selection, name)
    options = {"shuffle": True} if "Stratified" in name or name == "KFold" else {}
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    trial = optuna.create_study().ask()
    with pytest.raises(InvalidInputError, match="Give it a whole number as random_state"):
        race_folds(trial, make(n_splits=2, **options), x, y)
    folds = race_folds(trial, make(n_splits=2, random_state=1, **options), x, y)
    for fold in folds:
        assert not set(fold.train) & set(fold.test)
        fold.report(float(fold.number))
    assert folds.value == np.mean(range(len(folds)))


# Epochs inside folds


def test_a_callback_reports_epochs_of_its_fold() -> None:
    study = optuna.create_study(pruner=PolarBearPruner(n_timepoints=3))
    trial = study.ask()
    folds = race_folds(trial, range(2))
    for fold in folds:
        for epoch in range(5):  # more than there are timepoints
            fold.trial.report(10.0 * fold.number - epoch, epoch)
            assert not fold.trial.should_prune()
        assert fold.trial.number == trial.number
        fold.report(10.0 * fold.number)
    reported = study.trials[0].intermediate_values
    assert reported == {0: 0.0, 1: -1.0, 2: -2.0, 3: 10.0, 4: 9.0, 5: 8.0}


def test_a_callback_needs_a_pruner_with_timepoints() -> None:
    fold = next(iter(race_folds(optuna.create_study().ask(), ["a"])))
    with pytest.raises(InvalidInputError, match="needs a study with a PolarBearPruner"):
        fold.trial.report(1.0, 0)


def test_lightgbm_reports_through_the_callback_of_optuna() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    integration = pytest.importorskip("optuna_integration")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] + 0.1 * rng.normal(size=200)
    study = optuna.create_study(pruner=PolarBearPruner(n_timepoints=4))

    def objective(trial: Any) -> float:
        rate = trial.suggest_float("learning_rate", 0.01, 0.5)
        folds = race_folds(trial, Splitter(), x, y)
        for fold in folds:
            fit, held_out = (lightgbm.Dataset(x[part], y[part]) for part in (fold.train, fold.test))
            callback = integration.LightGBMPruningCallback(fold.trial, "l2", valid_name="valid_0")
            settings = {"objective": "l2", "learning_rate": rate, "verbosity": -1}
            model = lightgbm.train(settings, fit, num_boost_round=4, valid_sets=[held_out], callbacks=[callback])
            fold.report(model.best_score["valid_0"]["l2"])
        return folds.value

    study.optimize(objective, n_trials=2)
    assert all(set(trial.intermediate_values) == set(range(12)) for trial in study.trials)
