"""Scores split by the kind of instance, such as the model that is tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

if TYPE_CHECKING:
    from polarbear_plugins.measures.scores import Scores


@dataclass(frozen=True, slots=True)
class PartScore:
    """Scores of an algorithm on one kind of instances.

    Attributes
    ----------
    score
        Mean over the studies of an instance, then over the instances.
    quartiles
        25th, 50th and 75th percentile over the studies; instances weigh the same.
    """

    algorithm: str
    score: float
    quartiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of instances, and the score of each algorithm on them."""

    name: str
    instances: tuple[str, ...]
    scores: tuple[PartScore, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return asdict(self)


def split_scores(scores: Scores, part_of: Mapping[str, str]) -> tuple[Part, ...]:
    """Split scores after the last iteration by the part that each instance belongs to, in the order of their names.

    The scale of an instance does not change, so that the scores of the parts, weighed by their numbers of instances,
    average to the score on the leaderboard.

    Parameters
    ----------
    part_of
        The part of each instance, such as its model.
    """
    missing = [instance for instance in scores.instances if instance not in part_of]
    if missing:
        raise InvalidInputError(f"part_of: expected a part for each instance, got none for {missing[0]!r}.")
    members: dict[str, list[str]] = {}
    for instance in scores.instances:
        members.setdefault(part_of[instance], []).append(instance)
    return tuple(
        Part(
            name,
            tuple(members[name]),
            tuple(_score(scores, algorithm, members[name]) for algorithm in scores.algorithms),
        )
        for name in sorted(members)
    )


def _score(scores: Scores, algorithm: str, instances: Sequence[str]) -> PartScore:
    finals = [scores.losses[algorithm, instance][:, -1] for instance in instances]
    mean = float(np.mean([final.mean() for final in finals]))
    low, middle, high = (100.0 * (1.0 - pooled_quantile(finals, share)) for share in (0.75, 0.5, 0.25))
    return PartScore(algorithm, 100.0 * (1.0 - mean), (low, middle, high))


def pooled_quantile(samples: Sequence[FloatArray], share: float) -> float:
    """Quantile of several samples together, each of which weighs the same.

    >>> pooled_quantile([np.array([1.0, 2.0]), np.array([5.0])], 0.5)
    3.5
    """
    values = np.concatenate(samples)
    weights = np.concatenate([np.full(len(sample), 1.0 / len(sample)) for sample in samples]) / len(samples)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    # If the share ends exactly at a value, the quantile lies between it and the next one.
    low, high = np.searchsorted(below, [share - 1e-9, share + 1e-9])
    return float(values[order[[low, min(high, values.size - 1)]]].mean())
