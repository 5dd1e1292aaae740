"""The settings of a race."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from polarbear_plugins.checks import Check, as_choice, as_number, as_whole_number, check_fields, optional
from polarbear_plugins.errors import InvalidInputError, reason
from polarbear_plugins.inference.task import Groups

EliminationMode = Literal["pointwise", "joint"]
ResolutionMode = Literal["strict", "crossing"]
Guard = Literal["counts", "none"]
Rule = Literal["posterior", "anytime-valid"]
Schedule = Literal["rounds", "continuous"]

# Upper bounds, so that a damaged file cannot ask for more than fits into memory.
MOST_INSTANCES = 1_000_000
_MOST_REPLICATIONS = 10_000
_MOST_DRAWS = 1_000_000

_CONSTRAINTS: dict[str, Check] = {
    "alpha": partial(as_number, above=0.5, at_most=1),
    "epsilon": partial(as_number, at_least=0, below=0.5),
    "elimination": lambda value, what: as_choice(value, EliminationMode, what),
    "resolution": lambda value, what: as_choice(value, ResolutionMode, what),
    "guard": lambda value, what: as_choice(value, Guard, what),
    "rule": lambda value, what: as_choice(value, Rule, what),
    "groups": lambda value, what: as_choice(value, Groups, what),
    "draws": partial(as_whole_number, at_least=100, at_most=_MOST_DRAWS),
    "batch_size": partial(as_whole_number, at_least=1, at_most=MOST_INSTANCES),
    "batch_min": partial(as_whole_number, at_least=1, at_most=MOST_INSTANCES),
    "batch_max": partial(as_whole_number, at_least=1, at_most=MOST_INSTANCES),
    "schedule": lambda value, what: as_choice(value, Schedule, what),
    "max_rounds": optional(partial(as_whole_number, at_least=1)),
    "max_cost": optional(partial(as_number, above=0)),
    "seed": optional(partial(as_whole_number, at_least=0)),
    "replications": partial(as_whole_number, at_least=1, at_most=_MOST_REPLICATIONS),
    "per_dimension": lambda value, what: as_choice(value, (False, True), what),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSettings:
    """When a race eliminates, when it stops, and how it infers.

    Parameters
    ----------
    alpha
        Posterior probability of dominance or equivalence that a decision needs.
    epsilon
        Two algorithms are equivalent if each beats the other with a probability within ``epsilon`` of 1/2.
    elimination
        ``"pointwise"``: an algorithm is eliminated once the same rival dominates it at each timepoint by itself.
        ``"joint"``: at all timepoints at once, which needs a temporal prior.
    resolution
        ``"strict"``: the race continues until each pair is settled at each timepoint.  ``"crossing"``: a pair is
        also settled once it is sure that neither can dominate the other.
    rule
        What eliminates.  ``"posterior"``: the probability of dominance under the model.  ``"anytime-valid"``: direct
        wins alone, without a model, such that P(any wrong elimination, ever) is at most ``1 - alpha``; it needs two
        to three times the instances, and every run in full.
    guard
        ``"counts"``: a relation that the model sees counts only if it is not contradicted by who is first and by direct
        wins, which can be counted whatever the model.  ``"none"``: the model alone decides.
    prior, prior_options, engine, engine_options, draws, dependence, groups
        As for :func:`polarbear_plugins.fit`.
    batch_size, batch_min, batch_max
        Instances in the first round, and bounds on the batches of later rounds, which have at least a fiftieth of the
        instances so far.
    schedule
        ``"rounds"``: a worker that is done waits for the end of the round.  ``"continuous"``: it goes on with a run
        that a later round will probably ask for.  Both decide on the same runs and give the same answer; without
        waiting, a race takes less time and costs more, since some of these runs turn out not to be needed.
    max_rounds, max_cost
        Largest number of rounds, and largest cost in units of the time axis, summed over all runs.
    seed
        Seed of all random numbers.  Without one the race draws a seed and keeps it in its result.
    per_dimension
        Timepoints are multiples of the dimension of an instance, for suites of several dimensions.
    replications
        How often each algorithm runs on an instance, with other seeds.  These runs share the weight of the instance:
        they make known better how an algorithm does there, and count as one instance, however many they are.  With 1,
        the default, it is what the suite says, if it says something.

    Examples
    --------
    >>> RaceSettings(alpha=0.95, elimination="joint", prior="bspline").batch_max
    128
    """

    alpha: float = 0.99
    epsilon: float = 0.05
    elimination: EliminationMode = "pointwise"
    resolution: ResolutionMode = "strict"
    rule: Rule = "posterior"
    guard: Guard = "counts"
    prior: Any = "dirichlet"
    prior_options: Mapping[str, Any] = field(default_factory=dict)
    engine: str | Callable[..., Any] = "native"
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 4000
    dependence: Literal["auto", "none"] = "auto"
    groups: Groups = "auto"
    batch_size: int = 8
    batch_min: int = 8
    batch_max: int = 128
    schedule: Schedule = "rounds"
    max_rounds: int | None = None
    max_cost: float | None = None
    seed: int | None = None
    per_dimension: bool = False
    replications: int = 1

    def __post_init__(self) -> None:
        check_fields(self, _CONSTRAINTS)
        if self.batch_min > self.batch_max:
            raise InvalidInputError(f"batch_min ({self.batch_min}) must not exceed batch_max ({self.batch_max}).")
        for name in ("prior_options", "engine_options"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def needs_full_runs(self) -> bool:
        """Whether an elimination needs evidence at all timepoints, also at those that are settled already."""
        return self.elimination == "joint" or self.rule == "anytime-valid"

    def run_names(self, instance: str) -> tuple[str, ...]:
        """Names of the runs of an algorithm on an instance, by which they are told apart until they are ranked.

        >>> RaceSettings().run_names("f1"), RaceSettings(replications=2).run_names("f1")
        (('f1',), ('f1#0', 'f1#1'))
        """
        if self.replications == 1:
            return (instance,)
        return tuple(f"{instance}#{replication}" for replication in range(self.replications))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict, from which :meth:`from_json` makes the same settings.

        :raises InvalidInputError: the prior or the engine is an object, which cannot be stored; pass it by name.
        """
        data = {name: getattr(self, name) for name in (field.name for field in fields(self))}
        data |= {name: dict(data[name]) for name in ("prior_options", "engine_options")}
        for name, usual in (("replications", 1), ("schedule", "rounds")):
            if data[name] == usual:  # so that earlier versions, which do not know it, read the file
                del data[name]
        for name in ("prior", "engine"):
            if not isinstance(data[name], str):
                raise InvalidInputError(
                    f"{name}: {data[name]!r} cannot be written to a file. Provide it under a name through the hook "
                    f"polarbear_{name}s, or race without a journal."
                )
        try:
            json.dumps(data, allow_nan=False)
        except (TypeError, ValueError) as problem:
            raise InvalidInputError(f"The settings cannot be written as JSON: {reason(problem)}.") from None
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RaceSettings:
        """Settings from the data of :meth:`to_json`.

        Earlier versions had neither a guard nor groups, and a race goes on by the rules it started with.
        """
        try:
            return cls(**{"guard": "none", "groups": "none", **data})
        except (TypeError, ValueError) as problem:
            raise InvalidInputError(f"Not the settings of a race: {reason(problem)}") from None

    def __reduce__(self) -> tuple[Callable[..., RaceSettings], tuple[dict[str, Any]]]:
        data = {name: getattr(self, name) for name in (field.name for field in fields(self))}
        return _rebuild, (data | {name: dict(data[name]) for name in ("prior_options", "engine_options")},)


def _rebuild(data: dict[str, Any]) -> RaceSettings:
    return RaceSettings(**data)
