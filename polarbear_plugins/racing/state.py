"""What a race is made of: its state between two steps, the record of a round, orders for runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.files import parse_json
from polarbear_plugins.names import as_name
from polarbear_plugins.options import flag
from polarbear_plugins.racing.settings import MOST_INSTANCES, RaceSettings
from polarbear_plugins.rankings.table import RankingTable

if TYPE_CHECKING:
    pass

StopReason = Literal["resolved", "max_rounds", "max_cost", "instances", "inference", "interrupted"]


@dataclass(frozen=True, slots=True)
class Elimination:
    """Who was eliminated in which round, by whom, and with what probability the rival dominates."""

    algorithm: str
    by: str
    probability: float
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What happened in a round.

    Attributes
    ----------
    batch
        Instances that the round aimed at.
    instances, cost
        How many instances were drawn and how much was spent, up to the end of this round.
    resolved
        Pairs that were settled in this round, eliminations not counted.
    resolved_share
        Share of all pairs that are settled.
    rivals
        For each algorithm that was in the race: its strongest rival, and the probability that this one dominates it.
    good
        Whether the posterior was good enough to decide on.
    next_batch
        Instances that the next round aims at.
    newcomers
        Algorithms that entered late and have not caught up yet.
    """

    number: int
    batch: int
    instances: int
    cost: float
    eliminations: tuple[Elimination, ...]
    resolved: tuple[tuple[str, str], ...]
    resolved_share: float
    rivals: Mapping[str, tuple[str, float]]
    good: bool
    next_batch: int
    newcomers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """One run: which algorithm, on the instance at which place, until which timepoint."""

    algorithm: str
    instance: int
    until: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of the next round; none, and a reason, if the race is over."""

    orders: tuple[Order, ...]
    over: StopReason | None = None

    @property
    def cost(self) -> float:
        """What the runs cost in units of the time axis."""
        return sum(order.until for order in self.orders)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RaceState:
    """A race between two steps.

    Attributes
    ----------
    table
        All rankings so far; those of eliminated algorithms stay in the model.
    resolved
        ``resolved[t, i, j]``: whether the pair is settled at that timepoint.  What is settled stays settled.
    newcomers
        Algorithms that entered late and have not caught up yet.
    """

    settings: RaceSettings
    table: RankingTable
    resolved: BoolArray
    rounds: tuple[Round, ...] = ()
    batch: int
    cost: float = 0.0
    newcomers: tuple[str, ...] = ()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """All algorithms, in the order of their entry."""
        return self.table.algorithms

    @property
    def timepoints(self) -> FloatArray:
        """The grid."""
        return self.table.timepoints

    @property
    def eliminations(self) -> tuple[Elimination, ...]:
        """All eliminations so far."""
        return tuple(out for finished in self.rounds for out in finished.eliminations)

    @property
    def pareto_set(self) -> tuple[str, ...]:
        """Algorithms that are not eliminated."""
        out = {elimination.algorithm for elimination in self.eliminations}
        return tuple(name for name in self.algorithms if name not in out)

    @property
    def resolved_share(self) -> float:
        """Share of the pairs that are settled at every timepoint; pairs of eliminated algorithms are."""
        pairs = np.triu_indices(len(self.algorithms), 1)
        return float(np.asarray(self.resolved.all(axis=0))[pairs].mean())

    @property
    def full_cost(self) -> float:
        """What it costs to run every algorithm until the last timepoint on as many instances."""
        return float(len(self.table) * len(self.algorithms) * self.timepoints[-1])


def start_race(algorithms: Iterable[str], timepoints: ArrayLike, settings: RaceSettings) -> RaceState:
    """State in which nothing has run yet."""
    table = RankingTable(tuple(algorithms), timepoints)
    n = len(table.algorithms)
    resolved = np.broadcast_to(np.eye(n, dtype=bool), (table.timepoints.size, n, n))
    return RaceState(settings=settings, table=table, resolved=resolved, batch=settings.batch_size)


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed for good and counts as having found nothing."""

    algorithm: str
    instance: str
    reason: str


def round_from_json(data: Mapping[str, Any]) -> Round:
    """Round from the data that ``dataclasses.asdict`` made of it; numbers that are none are refused."""
    whole = {name: as_whole_number(data[name], name, at_least=0) for name in ("number", "batch", "instances")}
    batch = as_whole_number(data["next_batch"], "next_batch", at_least=0)
    if batch > MOST_INSTANCES:  # the plan of the next round makes room for it
        raise InvalidInputError(f"next_batch: expected at most {MOST_INSTANCES:,}, got {short(batch)}.")
    return Round(
        **{
            **data,
            **whole,
            "cost": as_number(data["cost"], "cost"),
            "eliminations": tuple(_elimination(**elimination) for elimination in data["eliminations"]),
            "resolved": tuple((str(one), str(other)) for one, other in data["resolved"]),
            "resolved_share": as_number(data["resolved_share"], "resolved_share"),
            "good": flag(data["good"], "good"),
            "next_batch": batch,
            "newcomers": tuple(map(str, data["newcomers"])),
            "rivals": {name: (str(rival), as_number(p, "rivals")) for name, (rival, p) in data["rivals"].items()},
        }
    )


def _elimination(*, algorithm: str, by: str, probability: float, round: int) -> Elimination:  # noqa: A002 - its name
    return Elimination(
        as_name(algorithm, "algorithm"),
        as_name(by, "by"),
        as_number(probability, "probability"),
        as_whole_number(round, "round"),
    )


def check_about(about: object) -> None:
    """Refuse what does not tell where a race came from.

    :raises ValueError: something is of another kind than a race writes.
    """
    if not isinstance(about, dict):
        raise ValueError(f"about: expected an object, got {short(about)}")
    for what in ("portfolio", "suite"):
        source = about.get(what)
        if source is not None:
            texts = [source.get(key) for key in ("name", "options")] if isinstance(source, dict) else [None]
            if not all(isinstance(text, str) for text in texts) or not isinstance(parse_json(source["options"]), dict):
                raise ValueError(f"about: expected name and options of the {what}, got {short(source)}")
    for what, kind in (("sources", list), ("options", dict)):
        if not isinstance(about.get(what), kind | None):
            raise ValueError(f"about: expected other {what}, got {short(about[what])}")


def check_rounds(rounds: Sequence[Round], algorithms: Sequence[str]) -> None:
    """Refuse rounds of other algorithms than these, and such that leave none.

    :raises ValueError: they do not belong together.
    """
    out = {elimination.algorithm for finished in rounds for elimination in finished.eliminations}
    named = {elimination.by for finished in rounds for elimination in finished.eliminations} | out
    named |= {name for finished in rounds for name, (rival, _) in finished.rivals.items() for name in (name, rival)}
    named |= {name for finished in rounds for name in finished.newcomers}
    strangers = sorted(named - set(algorithms))
    if strangers:
        raise ValueError(f"a round has {short(strangers[0])}, which is none of the algorithms")
    if out >= set(algorithms):
        raise ValueError("every algorithm was eliminated")
