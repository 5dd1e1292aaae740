"""Ratings and P(best) as sentences, for readers who are not statisticians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.display.text import timepoint_texts
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import Choice, ratings_among
from polarbear_plugins.selection.preferences import probability_best

if TYPE_CHECKING:
    from polarbear_plugins.racing.result import RaceResult

#: What the two numbers tell, told where they stand.
DIFFERENCE = "The rating says how much a lead matters, P(best) how sure it is."


def rating_text(result: RaceResult, robust: Posterior, name: str, place: int, unit: str = "") -> str:
    """Sentences about the rating of an algorithm at a timepoint and its lead; empty if it was not observed there.

    A rating by the model stands beside what was counted: with few instances the check of the model notices little, and
    the interval does not contain what the model gets wrong.

    Parameters
    ----------
    robust
        Posterior to choose from: that of the race, or that of first places if the model does not fit.
    place
        Index of the timepoint.
    """
    column = robust.algorithms.index(name)
    if not robust.observed[place, column]:
        return ""
    low, high = np.quantile(robust.ratings[:, place, column], [0.05, 0.95])
    mean = float(robust.mean_ratings[place, column])
    by_model = robust is result.posterior
    count = len(robust.algorithms)
    whom = f"all {count}" if by_model else f"the {count} that are left"
    when = f"{timepoint_texts(result.timepoints)[place]}{f' {unit}' if unit else ''}"
    says = (
        f"At {when} {name} would be the best of {whom} on {of_hundred(mean)} of 100 {new_instances(result)} "
        f"(rating {mean:.2f}, 90 % interval {low:.2f} to {high:.2f})"
    )
    counted = _counted(result, column, place) if by_model else ""
    if len(result.pareto_set) < 2:
        return f"{says}.{counted}"
    among = ratings_among(robust, result.pareto_set)[:, place]  # 0 for those that were not observed there
    p_best = probability_best(among)[result.pareto_set.index(name)]
    basis = "under the model" if by_model else "by first places"
    sure = f"that no other of those left has a higher rating is {_sure(p_best)} sure {basis} (P(best))"
    return f"{says}; {sure}.{counted}"


def _counted(result: RaceResult, column: int, place: int) -> str:
    """Sentence about the share of first places of an algorithm, as counted and by the model; empty if not checked."""
    check = result.check
    if check is None or np.isnan(check.observed[place, column]):
        return ""
    observed, modelled = check.observed[place, column], check.modelled[place, column]
    return f" Where it was run, it was first on {observed:.0%} of the instances, and by the model on {modelled:.0%}."


def leader_text(result: RaceResult, robust: Posterior, unit: str = "") -> str:
    """Sentence about the algorithm with the highest rating of those left at the last timepoint; empty if unknown."""
    columns = [robust.algorithms.index(name) for name in result.pareto_set]
    seen = np.where(robust.observed[-1, columns], robust.mean_ratings[-1, columns], -1.0)
    name = result.pareto_set[int(np.argmax(seen))]
    return rating_text(result, robust, name, result.timepoints.size - 1, unit)


def choice_text(choice: Choice, result: RaceResult) -> str:
    """Sentence about the value of a choice and about its lead; empty if there was nothing to choose.

    Nothing is called sure if the preference spans several timepoints and the posterior is not joint.
    """
    if len(choice.candidates) < 2:
        return ""
    row = choice.to_dict()["candidates"][choice.algorithm]
    several = result.timepoints.size > 1 and (choice.weights is None or np.count_nonzero(choice.weights) > 1)
    too_sure = several and not result.posterior.joint
    interval = "" if too_sure else f", 95 % interval {row['low']:.2f} to {row['high']:.2f}"
    if choice.weights is None:  # not a share of instances
        says = f"Under this preference {choice.algorithm} has the value {row['mean']:.2f}{interval}"
    else:
        says = (
            f"Of 100 {new_instances(result)}, with budgets by this preference, {choice.algorithm} would be the best of "
            f"the {len(choice.candidates)} candidates on {of_hundred(row['mean'])} (value {row['mean']:.2f}{interval})"
        )
    if too_sure:
        return f"{says}; how sure its lead is cannot be told from these draws."
    return (
        f"{says}; that no other candidate has a higher value is {_sure(row['p_best'])} sure (p best). The value says "
        "how much a lead matters, p best how sure it is."
    )


def new_instances(result: RaceResult) -> str:
    """What the certainty is about, as a plural."""
    groups = result.posterior.groups
    if groups is None:
        return "new instances"
    return "instances of new groups" if groups.scope == "new" else "new instances of the same groups"


def of_hundred(share: float) -> str:
    """Text of a share as a number of 100, never none and never all.

    >>> [of_hundred(share) for share in (0.001, 0.412, 0.999)]
    ['less than 1', 'about 41', 'more than 99']
    """
    return f"about {_within(share)}" if 0.005 <= share <= 0.995 else _within(share)


def _sure(probability: float) -> str:
    """Text of a probability in percent; draws cannot show that it is 0 or 1.

    >>> [_sure(p) for p in (0.0, 0.926, 1.0)]
    ['less than 1 %', '93 %', 'more than 99 %']
    """
    return f"{_within(probability)} %"


def _within(share: float) -> str:
    if share < 0.005:
        return "less than 1"
    return "more than 99" if share > 0.995 else f"{100 * share:.0f}"
