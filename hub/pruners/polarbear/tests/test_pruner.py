from __future__ import annotations

import optuna
import optunahub
import pytest


PolarBearPruner = optunahub.load_local_module(
    package="pruners/polarbear", registry_root="package/"
).PolarBearPruner


def is_pruned(losses: list[float], finished: list[float], direction: str = "minimize") -> bool:
    """Whether a trial is pruned after these losses, beside a trial that has finished."""
    study = optuna.create_study(direction=direction, pruner=PolarBearPruner())
    study.add_trial(
        optuna.trial.create_trial(
            value=sum(finished) / len(finished), intermediate_values=dict(enumerate(finished))
        )
    )
    trial = study.ask()
    for instance, loss in enumerate(losses):
        trial.report(loss, step=instance)
    return trial.should_prune()


def test_a_trial_that_is_worse_on_every_instance_is_pruned() -> None:
    assert is_pruned([instance + 1.0 for instance in range(12)], [*map(float, range(12))])


def test_a_trial_that_is_better_on_every_instance_is_not_pruned() -> None:
    assert not is_pruned([*map(float, range(12))], [instance + 1.0 for instance in range(12)])


def test_a_trial_that_is_as_good_is_not_pruned() -> None:
    assert not is_pruned([*map(float, range(12))], [*map(float, range(12))])


def test_the_direction_of_the_study_counts() -> None:
    better, worse = [instance + 1.0 for instance in range(12)], [*map(float, range(12))]
    assert is_pruned(worse, better, direction="maximize")
    assert not is_pruned(better, worse, direction="maximize")


def test_too_few_instances_prune_nothing() -> None:
    assert not is_pruned([1.0, 2.0], [0.0, 1.0])


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_alpha_lies_between_one_half_and_one(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        PolarBearPruner(alpha=alpha)
