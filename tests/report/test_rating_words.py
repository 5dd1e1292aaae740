from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import posterior_of

from polarbear_plugins import Posterior, RaceResult, select
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.report import sections
from polarbear_plugins.report.rating_words import choice_text, leader_text, of_hundred, rating_text


def left(told: RaceResult, ratings: list[list[list[float]]], **more: object) -> Posterior:
    """Posterior of a and b alone, as by first places."""
    return posterior_of(ratings, algorithms=("a", "b"), timepoints=told.timepoints, **more)


def test_a_rating_is_a_number_of_100_instances_and_its_lead_is_as_sure_as_the_draws(told: RaceResult) -> None:
    # b is at 0.6 in three draws and at 0.35 in one; a, which is left with it, is never above.
    assert rating_text(told, told.posterior, "b", 2, "evaluations") == (
        "At 2,000 evaluations b would be the best of all 5 on about 54 of 100 new instances (rating 0.54, 90 % "
        "interval 0.39 to 0.60); that no other of those left has a higher rating is more than 99 % sure under the "
        "model (P(best))."
    )
    assert "a would be the best of all 5 on about 48 of 100" in rating_text(told, told.posterior, "a", 0)
    assert "is 75 % sure under the model" in rating_text(told, told.posterior, "a", 0)


def test_a_rating_by_the_model_stands_beside_what_was_counted(told: RaceResult) -> None:
    shares = np.full((3, 5), 0.2)
    observed = shares.copy()
    observed[2, told.algorithms.index("b")] = 0.48
    observed[0] = np.nan
    check = ModelCheck(
        algorithms=told.algorithms,
        timepoints=told.timepoints,
        p=0.4,
        p_first=np.full(3, 0.4),
        p_pairs=np.full(3, 0.4),
        observed=observed,
        modelled=shares,
        first_gap=None,
        pair_gap=None,
    )
    checked = replace(told, _posterior=replace(told.posterior, check=check))
    counted = " Where it was run, it was first on 48% of the instances, and by the model on 20%."
    assert rating_text(checked, checked.posterior, "b", 2).endswith(f"(P(best)).{counted}")
    assert "Where it was run" not in rating_text(checked, checked.posterior, "b", 0)
    robust = left(told, [[[0.2, 0.8]] * 3] * 4)
    assert "Where it was run" not in rating_text(checked, robust, "b", 2)


def test_at_the_end_it_is_told_of_the_highest_of_those_left(told: RaceResult) -> None:
    assert leader_text(told, told.posterior) == rating_text(told, told.posterior, "b", 2)


def test_by_first_places_it_is_the_best_of_those_left_and_not_under_the_model(told: RaceResult) -> None:
    robust = left(told, [[[0.2, 0.8]] * 3] * 3 + [[[0.7, 0.3]] * 3])
    says = rating_text(told, robust, "b", 1)
    assert "the best of the 2 that are left on about 68 of 100" in says
    assert "is 75 % sure by first places" in says
    assert "model" not in says


def test_what_was_never_observed_has_no_sentence(told: RaceResult) -> None:
    observed = np.ones((3, 5), dtype=bool)
    observed[2, 3] = False
    unseen = replace(told.posterior, observed=observed)
    assert rating_text(replace(told, _posterior=unseen), unseen, "b", 2) == ""
    assert "At 2,000 a would" in leader_text(replace(told, _posterior=unseen), unseen)


@pytest.mark.parametrize(
    ("scope", "said"),
    [("new", "of 100 instances of new groups ("), ("same", "of 100 new instances of the same groups (")],
)
def test_with_groups_it_says_which_instances(told: RaceResult, scope: str, said: str) -> None:
    effect = GroupEffect(scope=scope, groups=2, instances=6, p=0.01, inflation=np.ones(3), spread=np.zeros(3))  # type: ignore[arg-type]
    grouped = replace(told.posterior, groups=effect)
    assert said in rating_text(replace(told, _posterior=grouped), grouped, "b", 2)


def test_the_report_tells_the_numbers_before_their_table(told: RaceResult) -> None:
    markup = sections.budgets(told, told.posterior, {}, "evaluations")
    sentence = rating_text(told, told.posterior, "b", 2, "evaluations")
    assert 0 <= markup.index(sentence) < markup.index("The rating says how much") < markup.index("<table>")
    assert "P(best) how sure it is" in markup


# Choices


def test_a_choice_for_one_budget_is_a_number_of_100_instances(told: RaceResult) -> None:
    choice = select(told.posterior, told.pareto_set, "final")
    assert choice_text(choice, told) == (
        "Of 100 new instances, with budgets by this preference, b would be the best of the 2 candidates on about 84 "
        "(value 0.84, 95 % interval 0.78 to 0.86); that no other candidate has a higher value is more than 99 % sure "
        "(p best). The value says how much a lead matters, p best how sure it is."
    )


@pytest.mark.parametrize("preference", ["uniform", "worst"])
def test_over_several_timepoints_nothing_is_sure_without_a_joint_posterior(told: RaceResult, preference: str) -> None:
    says = choice_text(select(told.posterior, told.pareto_set, preference), told)
    assert says.endswith("; how sure its lead is cannot be told from these draws.")
    assert "interval" not in says
    joint = replace(told, _posterior=replace(told.posterior, joint=True))
    assert "% sure" in choice_text(select(joint.posterior, told.pareto_set, preference), joint)


def test_a_value_that_is_no_share_of_instances_is_not_called_one(told: RaceResult) -> None:
    says = choice_text(select(told.posterior, told.pareto_set, "worst"), told)
    assert says.startswith("Under this preference b has the value 0.")
    assert "of 100" not in says


def test_nothing_is_said_about_the_only_candidate(told: RaceResult) -> None:
    assert choice_text(select(told.posterior, ["a"]), told) == ""


def test_a_small_share_is_told_as_it_is() -> None:
    assert [of_hundred(share) for share in (0.004, 0.006, 0.03, 0.97, 0.996)] == [
        "less than 1",
        "about 1",
        "about 3",
        "about 97",
        "more than 99",
    ]
