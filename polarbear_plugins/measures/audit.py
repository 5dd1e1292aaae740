"""Which places of a leaderboard can be told apart: neighbours, rank intervals and tie groups, from all pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_array, as_choice, as_number, as_whole_number
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.sign_flips import (
    corrected_p,
    counts_all,
    flip_signs,
    least_observations,
    rounding_of,
)
from polarbear_plugins.names import as_name
from polarbear_plugins.planning.sample_size import detectable_effect, number_of_instances
from polarbear_plugins.rankings.ranks import ranks_of

if TYPE_CHECKING:
    import pandas as pd


Better = Literal["higher", "lower"]

_ROUNDING = 1e-12  # means this small, relative to the differences, are rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two algorithms on adjacent places.

    Attributes
    ----------
    difference
        Lead of the first, in the units of the scores; never negative.
    p
        Probability of as large a lead of any pair by chance, corrected for all pairs of the leaderboard.
    needed
        Number of instances (of groups, if there are groups) that would tell them apart with the power of the audit if
        the difference and its spread are those observed; ``None`` if they are told apart already, if there is no
        difference, or if there are too few instances to plan from.
    detectable
        Smallest difference of the two that the audit would find with its power; ``None`` if it finds none of any size.
    """

    first: str
    second: str
    difference: float
    p: float
    told_apart: bool
    needed: int | None
    detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a leaderboard says about the order of its algorithms.  Returned by :func:`audit_scores`.

    Attributes
    ----------
    algorithms, scores
        Best first, with mean scores over the instances.
    places
        Equal scores share the better place.
    rank_intervals
        Lowest and highest rank of each algorithm; all contain the true ranks together with probability ``level``.
    p
        ``p[i, j]``: of each pair, corrected for all pairs; 1 on the diagonal.
    told_apart
        ``told_apart[i, j]``: the first is better than the second.
    tie_groups
        First and last position of the longest runs of algorithms among which no two are told apart; they may overlap.
    units
        Number of independent observations: groups, or instances if there are no groups.
    least_units
        With fewer observations than this no pair can be told apart, whatever the scores.
    exact
        All flips of signs were counted; otherwise ``flips`` were drawn.
    """

    algorithms: tuple[str, ...]
    scores: tuple[float, ...]
    places: tuple[int, ...]
    better: Better
    rank_intervals: tuple[tuple[int, int], ...]
    neighbours: tuple[Neighbours, ...]
    tie_groups: tuple[tuple[int, int], ...]
    instances: int
    groups: int | None
    level: float
    power: float
    flips: int
    exact: bool
    p: FloatArray
    told_apart: BoolArray

    @property
    def units(self) -> int:
        """Number of independent observations."""
        return self.instances if self.groups is None else self.groups

    @property
    def least_units(self) -> int:
        """Smallest number of observations that can tell any pair apart."""
        return least_observations(1 - self.level)

    @property
    def separable(self) -> int:
        """Number of neighbours that are told apart."""
        return sum(pair.told_apart for pair in self.neighbours)

    @property
    def separated_pairs(self) -> int:
        """Number of pairs, of all, that are told apart."""
        return int(self.told_apart.sum())

    @property
    def tied_with_first(self) -> int:
        """Number of algorithms that are not told apart from the first, itself included."""
        return len(self.algorithms) - int(self.told_apart[0].sum())

    def to_pandas(self) -> pd.DataFrame:
        """A row for each algorithm, best first; the columns about the next place are empty in the last row."""
        import pandas as pd

        rows = itertools.zip_longest(self.algorithms, self.scores, self.places, self.rank_intervals, self.neighbours)
        return pd.DataFrame(
            [
                {
                    "algorithm": name,
                    "place": place,
                    "score": score,
                    "lowest_rank": low,
                    "highest_rank": high,
                    "lead": pair and pair.difference,
                    "p": pair and pair.p,
                    "told_apart": pair and pair.told_apart,
                    "needed": pair and pair.needed,
                }
                for name, score, place, (low, high), pair in rows
            ]
        ).set_index("algorithm")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        ranked = zip(self.algorithms, self.scores, self.places, self.rank_intervals, strict=True)
        return {
            "better": self.better,
            "instances": self.instances,
            "groups": self.groups,
            "level": self.level,
            "power": self.power,
            "flips": self.flips,
            "exact": self.exact,
            "least_units": self.least_units,
            "neighbours_told_apart": self.separable,
            "pairs_told_apart": self.separated_pairs,
            "tied_with_first": self.tied_with_first,
            "algorithms": [
                {"name": name, "score": score, "place": place, "ranks": list(ranks)}
                for name, score, place, ranks in ranked
            ],
            "neighbours": [asdict(pair) for pair in self.neighbours],
            "tie_groups": [list(self.algorithms[first : last + 1]) for first, last in self.tie_groups],
        }

    def _repr_html_(self) -> str:
        what = f"{self.separable} of {len(self.neighbours)} neighbours can be told apart"
        return f"<p>{text(what)}</p>{summary_table(self.to_pandas(), 'Leaderboard')}"


def audit_scores(
    scores: ArrayLike,
    algorithms: Sequence[str],
    *,
    better: Better,
    groups: Sequence[str] | None = None,
    level: float = 0.95,
    power: float = 0.8,
    flips: int = 9_999,
    seed: int = 0,
) -> Audit:
    """Find out which places of a leaderboard by mean scores can be told apart.

    The probability of calling any pair different that is not is at most ``1 - level``, over all pairs of the
    leaderboard together, and so over its neighbours, which the same scores choose.  This is exact for any number of
    instances if the differences among equally good algorithms are as likely as with the opposite signs, as for two that
    solve an instance or not; for several of them, all differences together.  Otherwise, above all for skewed
    differences with equal means, it holds approximately, the better the more instances there are.

    Parameters
    ----------
    scores
        ``scores[instance, algorithm]``, complete.
    better
        Whether ``"higher"`` or ``"lower"`` scores are better.
    groups
        Group of each instance.  Instances of a group may be alike in anything; only the groups count as independent.
    level
        Probability with which all statements hold together.
    power
        Probability of telling a pair apart, for the numbers of instances needed.
    flips
        How often to flip the signs at random; all possible flips are counted if there are no more than these.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = audit_scores(rng.random((60, 3)) + [0.3, 0.28, 0.0], ["csa", "msr", "tpa"], better="higher")
    >>> found.rank_intervals, found.separable
    (((1, 2), (1, 2), (3, 3)), 1)
    """
    values = as_array(scores, "scores")
    names = tuple(as_name(name, "algorithm") for name in algorithms)
    _check(values, names, groups)
    as_choice(better, Better, "better")
    level = as_number(level, "level", above=0, below=1)
    power = as_number(power, "power", above=1 - level, below=1)
    flips = as_whole_number(flips, "flips", at_least=99)
    order = np.argsort(values.mean(axis=0) * (-1 if better == "higher" else 1), kind="stable")
    names, values = tuple(names[place] for place in order), values[:, order]
    leads = values if better == "higher" else -values
    units = _units(leads, groups)
    signs = flip_signs(len(units), flips, as_whole_number(seed, "seed", at_least=0))
    p = corrected_p(units, signs)
    ahead = units.sum(axis=0)
    told: BoolArray = (p <= 1 - level) & (ahead[:, None] > ahead)
    return Audit(
        algorithms=names,
        scores=tuple(values.mean(axis=0).tolist()),
        places=tuple(ranks_of(-units.mean(axis=0)[None], rounding_of(units))[0].tolist()),
        better=better,
        rank_intervals=tuple(
            (1 + worse, len(names) - beaten)
            for worse, beaten in zip(told.sum(axis=0).tolist(), told.sum(axis=1).tolist(), strict=True)
        ),
        neighbours=_neighbours(names, units, p, told, level, power),
        tie_groups=_tie_groups(told),
        instances=len(values),
        groups=None if groups is None else len(units),
        level=level,
        power=power,
        flips=len(signs),
        exact=counts_all(len(units), flips),
        p=p,
        told_apart=told,
    )


def _check(values: FloatArray, names: tuple[str, ...], groups: Sequence[str] | None) -> None:
    if values.ndim != 2 or not len(values) or values.shape[1] != len(names):
        raise InvalidInputError(
            f"scores: expected an array [instance, algorithm] with {len(names)} algorithms, got the shape "
            f"{values.shape}."
        )
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidInputError(f"algorithms: expected at least two different names, got {', '.join(names) or 'none'}.")
    if not np.isfinite(values).all():
        instance, algorithm = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"scores: that of {names[algorithm]!r} on instance {instance} is {values[instance, algorithm]}. A mean "
            "needs a finite score of every algorithm on every instance; leave out instances that were not scored."
        )
    if groups is not None and len(groups) != len(values):
        raise InvalidInputError(f"groups: expected one for each of {len(values)} instances, got {len(groups)}.")


def _units(leads: FloatArray, groups: Sequence[str] | None) -> FloatArray:
    """``[unit, algorithm]``: independent observations whose mean is the score, up to a constant for each unit."""
    centred = leads - leads.mean(axis=1, keepdims=True)  # precise where scores are large and differences small
    if groups is None:
        return centred
    names = list(dict.fromkeys(groups))
    place = {name: k for k, name in enumerate(names)}
    sums = np.zeros((len(names), leads.shape[1]))
    np.add.at(sums, [place[name] for name in groups], centred)
    return sums * (len(names) / len(leads))


def _neighbours(
    names: tuple[str, ...], units: FloatArray, p: FloatArray, told: BoolArray, level: float, power: float
) -> tuple[Neighbours, ...]:
    pairs = len(names) * (len(names) - 1) // 2
    undecided = max(1, pairs - int(told.sum()))
    effect = _detectable_effect(len(units), 1 - level, power, undecided)
    found = []
    for place, (first, second) in enumerate(itertools.pairwise(names)):
        differences = units[:, place] - units[:, place + 1]
        found.append(
            Neighbours(
                first=first,
                second=second,
                difference=max(0.0, float(differences.mean())),
                p=float(p[place, place + 1]),
                told_apart=bool(told[place, place + 1]),
                needed=None if told[place, place + 1] else _needed(differences, 1 - level, power, undecided),
                detectable=None if effect is None else effect * float(differences.std(ddof=1)),
            )
        )
    return tuple(found)


def _needed(differences: FloatArray, alpha: float, power: float, comparisons: int) -> int | None:
    """Number of observations that tell a pair apart, each pair that is still undecided having its part of alpha."""
    if len(differences) < least_observations(alpha):  # too few to know the spread
        return None
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if mean <= _ROUNDING * np.abs(differences).max() or not deviation:
        return None
    try:
        planned = number_of_instances(mean / deviation, power, alpha, comparisons=comparisons)
    except InvalidInputError:  # more than can be computed
        return None
    return max(planned, len(differences) + 1, least_observations(alpha / comparisons))


def _detectable_effect(units: int, alpha: float, power: float, comparisons: int) -> float | None:
    if units < least_observations(alpha / comparisons):
        return None
    try:
        return detectable_effect(units, power, alpha, comparisons=comparisons)
    except InvalidInputError:  # too few for any effect
        return None


def _tie_groups(told: BoolArray) -> tuple[tuple[int, int], ...]:
    """Longest runs without a pair that is told apart."""
    groups: list[tuple[int, int]] = []
    for first in range(len(told)):
        last = first
        while last + 1 < len(told) and not told[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return tuple(groups)
