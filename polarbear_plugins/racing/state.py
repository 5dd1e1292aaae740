"""State of a race between two steps, records of its rounds, orders for runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

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

StopReason = Literal["resolved", "max_rounds", "max_cost", "instances", "inference", "requested", "interrupted"]


@dataclass(frozen=True, slots=True)
class Elimination:
    """An eliminated algorithm, the rival that dominates it, the probability of that dominance, and the round."""

    algorithm: str
    by: str
    probability: float
    round: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Elimination:
        """Elimination from the data that ``dataclasses.asdict`` made of it.

        :raises ValueError: a field is unknown or has a value that no race writes.
        """
        _check_fields_known(data, cls)
        return cls(
            algorithm=as_name(data["algorithm"], "algorithm"),
            by=as_name(data["by"], "by"),
            probability=as_number(data["probability"], "probability"),
            round=as_whole_number(data["round"], "round"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What happened in a round.

    Attributes
    ----------
    batch
        Number of instances that the round aimed at.
    instances, cost
        Number of instances drawn, and cost, up to the end of this round.
    resolved
        Pairs settled in this round, without those settled by an elimination.
    resolved_share
        Share of all pairs that are settled.
    rivals
        For each algorithm in the race: its strongest rival, and the probability that the rival dominates it.
    good
        Whether the posterior was good enough to decide on.
    next_batch
        Number of instances that the next round aims at.
    newcomers
        Algorithms that entered late and have not caught up yet.
    held
        Eliminations that the model alone would have made, and the guard did not let pass.
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
    held: tuple[Elimination, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Round:
        """Round from the data that ``dataclasses.asdict`` made of it.

        :raises ValueError: a field is unknown or has a value that no race writes.
        """
        _check_fields_known(data, cls)
        return cls(
            number=as_whole_number(data["number"], "number", at_least=0),
            batch=as_whole_number(data["batch"], "batch", at_least=0),
            instances=as_whole_number(data["instances"], "instances", at_least=0),
            cost=as_number(data["cost"], "cost"),
            eliminations=tuple(map(Elimination.from_json, data["eliminations"])),
            resolved=tuple((str(one), str(other)) for one, other in data["resolved"]),
            resolved_share=as_number(data["resolved_share"], "resolved_share"),
            rivals={name: (str(rival), as_number(p, "rivals")) for name, (rival, p) in data["rivals"].items()},
            good=flag(data["good"], "good"),
            # The plan of the next round allocates memory for it.
            next_batch=as_whole_number(data["next_batch"], "next_batch", at_least=0, at_most=MOST_INSTANCES),
            newcomers=tuple(map(str, data["newcomers"])),
            held=tuple(map(Elimination.from_json, data.get("held", ()))),
        )


@dataclass(frozen=True, slots=True)
class Order:
    """One run: the algorithm, the place of the instance, and the timepoint to run until."""

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
        """Cost of the runs in units of the time axis."""
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
    stored
        Rivals whose runs come from an archive: they cost nothing and cannot run again.
    targets
        By instance, the value with which a stored run was done: a newcomer that is as good is equal to it.
    """

    settings: RaceSettings
    table: RankingTable
    resolved: BoolArray
    rounds: tuple[Round, ...] = ()
    batch: int
    cost: float = 0.0
    newcomers: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    targets: Mapping[str, float] = field(default_factory=dict)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """All algorithms, in the order of their entry."""
        return self.table.algorithms

    @property
    def timepoints(self) -> FloatArray:
        """The timepoints."""
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
    def contested(self) -> BoolArray:
        """``contested[i, j]``: whether the race is about that pair, which it is unless both are stored."""
        stored = np.isin(self.algorithms, self.stored)
        return ~(stored[:, None] & stored[None, :])

    @property
    def settled(self) -> bool:
        """Whether every pair that the race is about is settled."""
        return bool((self.resolved | ~self.contested).all())

    @property
    def resolved_share(self) -> float:
        """Share of the pairs that are settled at every timepoint; those of eliminated algorithms count as settled.

        Of those that the race is about: pairs of stored rivals do not count.
        """
        everywhere = np.asarray(self.resolved.all(axis=0))
        return float(everywhere[np.triu(self.contested, 1)].mean())

    @property
    def instances_run(self) -> int:
        """Number of instances that something was run on; fewer than there are while newcomers meet stored rivals."""
        if not self.stored:
            return len(self.table.instances)
        ran = ~np.isnan(self.table.values[:, 0][:, ~np.isin(self.algorithms, self.stored)])
        return int(np.unique(self.table.instance_index[ran.any(axis=1)]).size)

    @property
    def full_cost(self) -> float:
        """Cost of running every algorithm until the last timepoint on as many instances; stored ones cost nothing."""
        runs = len(self.table.instances) if self.stored else len(self.table)  # repetitions are those of the archive
        return float(runs * (len(self.algorithms) - len(self.stored)) * self.timepoints[-1])


def unused_cost(state: RaceState, spent: float) -> float:
    """Cost of runs that the race does not rest on, given the cost of everything that was begun."""
    if state.settings.schedule == "rounds":  # only the runs of a round that was interrupted
        return 0.0
    unused = spent - state.cost
    return unused if unused > 1e-9 * spent else 0.0  # sums in another order differ by less


def start_race(
    algorithms: Iterable[str], timepoints: ArrayLike, settings: RaceSettings, tolerance: float = 0.0
) -> RaceState:
    """State of a race before its first run; values as close as ``tolerance`` tie."""
    table = RankingTable(tuple(algorithms), timepoints, tolerance=tolerance)
    n = len(table.algorithms)
    resolved = np.broadcast_to(np.eye(n, dtype=bool), (table.timepoints.size, n, n))
    return RaceState(settings=settings, table=table, resolved=resolved, batch=settings.batch_size)


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed for good and counts as having found nothing."""

    algorithm: str
    instance: str
    reason: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """Failure from the data that ``dataclasses.asdict`` made of it.

        :raises ValueError: a field is unknown.
        """
        _check_fields_known(data, cls)
        return cls(str(data["algorithm"]), str(data["instance"]), str(data["reason"]))


def _check_fields_known(data: Mapping[str, Any], kind: type[Any]) -> None:
    """Refuse fields that a record of this kind does not have."""
    unknown = sorted(set(data) - {known.name for known in fields(kind)})
    if unknown:
        raise InvalidInputError(f"{kind.__name__}: the field {short(unknown[0])} is unknown.")


def check_about(about: object) -> None:
    """Refuse a description of the origin of a race that no race writes.

    :raises ValueError: a part of it has the wrong type.
    """
    if not isinstance(about, dict):
        raise ValueError(f"about: expected an object, got {short(about)}")
    for what in ("portfolio", "suite"):
        source = about.get(what)
        if source is not None:
            texts = [source.get(key) for key in ("name", "options")] if isinstance(source, dict) else [None]
            if not all(isinstance(text, str) for text in texts) or not isinstance(parse_json(source["options"]), dict):
                raise ValueError(f"about: expected name and options of the {what}, got {short(source)}")
    given = about.get("against")
    against = given if isinstance(given, dict) else {}
    for part in (about, against):
        for what, kind in (("sources", list), ("options", dict), ("against", dict)):
            if not isinstance(part.get(what), kind | None):
                raise ValueError(f"about: expected {what} as a {kind.__name__}, got {short(part[what])}")
    interference = about.get("interference")
    if interference is not None and not (
        isinstance(interference, dict)
        and all(isinstance(interference.get(key), int | float) for key in ("alone", "beside", "slower", "measured"))
    ):
        raise ValueError(f"about: expected what was measured of interference, got {short(interference)}")
    for what in ("not_in_suite", "not_in_archive"):
        if against.get(what) is not None:
            as_whole_number(against[what], f"about: {what}", at_least=0)


def check_rounds(rounds: Sequence[Round], algorithms: Sequence[str]) -> None:
    """Refuse rounds that name other algorithms than these, or that eliminate all of them.

    :raises ValueError: the rounds and the algorithms do not belong together.
    """
    eliminated = {elimination.algorithm for finished in rounds for elimination in finished.eliminations}
    named = set(eliminated)
    for finished in rounds:
        named |= {elimination.by for elimination in finished.eliminations}
        named |= {name for one in finished.held for name in (one.algorithm, one.by)}
        named |= {*finished.rivals, *(rival for rival, _ in finished.rivals.values()), *finished.newcomers}
    strangers = sorted(named - set(algorithms))
    if strangers:
        raise ValueError(f"a round names {short(strangers[0])}, which is none of the algorithms")
    if eliminated >= set(algorithms):
        raise ValueError("every algorithm was eliminated")
