"""The result of a race, or of an analysis of existing data as if it were one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.display.html import text
from polarbear_plugins.errors import InvalidInputError, SourceError, short
from polarbear_plugins.files import parse_json, read_arrays, write_arrays
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.posterior.relations import Relations, compare
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.betting import SecondOpinion, second_opinion
from polarbear_plugins.racing.forecast import Forecast, forecast
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result_json import ARRAYS, FORMAT, dict_of_result, groups_from_json, stored_from_json
from polarbear_plugins.racing.result_tables import ResultTable, summary_of, table_of_result
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import (
    Elimination,
    Failure,
    RaceState,
    Round,
    StopReason,
    check_about,
    check_rounds,
)
from polarbear_plugins.racing.verdicts import about_new_groups, p_any_wrong
from polarbear_plugins.rankings.ends import EarlyEnds
from polarbear_plugins.rankings.summaries import table_among
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.views import trajectories_of
from polarbear_plugins.trajectories.given import End
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


class Continues(Protocol):
    """A race that can continue.  It is run by rooms above this one."""

    def enter(self, algorithm: Any, **options: Any) -> RaceResult:
        """Result after a newcomer has entered and the race has continued."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class RaceResult:
    """Result of a race.  Made by :func:`polarbear_plugins.race`, :func:`polarbear_plugins.resume` and ``analyze``.

    Attributes
    ----------
    state
        The race after its last round: the rankings, settled pairs, eliminations.
    stopped
        Why it ended: ``resolved``, ``max_rounds``, ``max_cost``, ``instances`` (none left), ``inference`` (no
        posterior was good enough to decide on), ``requested`` (after a round, by whoever watched it), ``interrupted``,
        or ``analyzed`` for existing data; ``running`` while it is watched.
    failures
        Runs that failed for good.
    about
        Where it came from: portfolio and suite, or sources; ``version`` of this package and ``versions`` of Python and
        the packages that were installed when it was made; ``resumed_with``, if it was resumed with other ones.
    identities
        What is needed to build the instances again, in the order of the table; empty for existing data.
    continuation
        The race, if it can continue in this process; ``None`` if loaded or analyzed.
    unused_cost
        Cost of runs that were begun ahead of time and not needed, which comes on top of ``cost``; 0 unless
        ``schedule="continuous"``.
    """

    state: RaceState
    stopped: StopReason | str
    _posterior: Posterior | None
    failures: tuple[Failure, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    identities: tuple[Identity, ...] = ()
    continuation: Continues | None = None
    unused_cost: float = 0.0

    @property
    def posterior(self) -> Posterior:
        """Posterior of the ratings after the last round."""
        if self._posterior is None:
            raise InvalidInputError("The race ended before its first round was over: there is no posterior yet.")
        return self._posterior

    @property
    def check(self) -> ModelCheck | None:
        """Whether the rankings look as the model says; ``None`` in results of earlier versions."""
        return self.posterior.check

    def robust_posterior(self, among: Sequence[str] | None = None) -> Posterior:
        """Posterior to choose from: that of the race, or that of first places alone if the model does not fit.

        Parameters
        ----------
        among
            Candidates, by default all algorithms.  First places are then those among the candidates: without the model
            they do not follow from those among all.
        """
        if self.check is None or self.check.fits or (among is not None and len(among) < 2):
            return self.posterior
        table = self.state.table if among is None else table_among(self.state.table, among)
        state = replace(self.state, table=table)
        return infer(state, max(1, len(self.rounds)), likelihood="first-places", check=True)

    def second_opinion(self) -> SecondOpinion:
        """Which eliminations are also certain without the model, from direct wins alone."""
        return second_opinion(self.state.table, self._posterior is not None and about_new_groups(self._posterior))

    @property
    def certain_without_model(self) -> tuple[str, ...]:
        """Eliminated algorithms whose elimination is also certain without the model, with probability alpha.

        A rival beats each of them on most instances at every timepoint; see :meth:`second_opinion`.
        """
        if not self.eliminations:
            return ()
        certain = dict(zip(self.algorithms, self.second_opinion().certain(self.settings.alpha), strict=True))
        return tuple(out.algorithm for out in self.eliminations if certain[out.algorithm])

    @property
    def p_any_wrong(self) -> float:
        """Probability under the model that at least one elimination is wrong: its rival is not the better one.

        At all timepoints at once if the posterior is joint; otherwise at the least sure timepoint.
        """
        return p_any_wrong(self.posterior, self.eliminations)

    @property
    def relations(self) -> Relations:
        """Probabilities of dominance and equivalence after the last round."""
        return compare(self.posterior, self.settings.epsilon)

    @property
    def settings(self) -> RaceSettings:
        """Settings of the race, its seed included."""
        return self.state.settings

    @property
    def algorithms(self) -> tuple[str, ...]:
        """All algorithms, in the order of their entry."""
        return self.state.algorithms

    @property
    def timepoints(self) -> FloatArray:
        """The timepoints."""
        return self.state.timepoints

    @property
    def pareto_set(self) -> tuple[str, ...]:
        """Algorithms that were not eliminated: each may be the right one for some preference over time."""
        return self.state.pareto_set

    @property
    def rounds(self) -> tuple[Round, ...]:
        """One record for each round."""
        return self.state.rounds

    @property
    def eliminations(self) -> tuple[Elimination, ...]:
        """Eliminated algorithms, with round, rival and probability."""
        return self.state.eliminations

    @property
    def resolved(self) -> bool:
        """Whether every pair is settled; against an archive, every pair that involves a newcomer."""
        return self.state.settled

    @property
    def open_pairs(self) -> tuple[tuple[str, str, tuple[float, ...]], ...]:
        """Open pairs, and the timepoints at which they are not settled."""
        names, grid = self.algorithms, self.timepoints
        return tuple(
            (names[i], names[j], tuple(grid[~self.state.resolved[:, i, j]].tolist()))
            for i, j in np.argwhere(np.triu(~self.state.resolved.all(axis=0), 1))
        )

    @property
    def cost(self) -> float:
        """Cost in units of the time axis, summed over all runs."""
        return self.state.cost

    @property
    def full_cost(self) -> float:
        """Cost of running every algorithm until the last timepoint on as many instances; stored ones cost nothing."""
        return self.state.full_cost

    def forecast(self, simulations: int | None = None, seed: int = 0) -> Forecast:
        """Forecast of the instances that would likely settle the open pairs, by simulating how the race continues."""
        return forecast(self.state, self.posterior, simulations, seed)

    def forecast_if_open(self) -> Forecast | None:
        """Forecast if pairs are open; ``None`` if there is nothing to forecast, or where something was never seen."""
        return self.forecast() if self.rounds and not self.resolved and self.posterior.observed.all() else None

    def enter(self, algorithm: Any, **options: Any) -> RaceResult:
        """Result after a newcomer has entered, caught up on the instances drawn so far, and the race has continued.

        Parameters
        ----------
        algorithm
            An Algorithm, or ``{name: run}`` with one function.
        options
            As for :func:`polarbear_plugins.race`: ``workers``, ``executor``, ``run_timeout``, ...
        """
        if self.continuation is None:
            raise InvalidInputError(
                "Only the result of a race can be entered: this one was loaded from a file or analyzed. "
                "resume() a journal first."
            )
        return self.continuation.enter(algorithm, **options)

    def trajectories(self) -> Iterator[Trajectory]:
        """The runs as far as they are known: their best values at the timepoints.

        Runs of a race were stopped where they end; what is past the end of existing data is not known.
        """
        dimensions = {identity.name: identity.dimension for identity in self.identities}
        end: End = "unknown" if self.stopped == "analyzed" else "stopped"
        for run in trajectories_of(self.state.table):
            yield run.described(dimension=dimensions.get(run.instance), end=end)

    def summary(self) -> pd.DataFrame:
        """Table of the algorithms: in or out, by which rival, on how many instances, at what cost.

        Against an archive also whether its runs were ``stored``, which cost nothing.
        """
        return summary_of(self)

    def to_pandas(self, what: ResultTable = "algorithms") -> pd.DataFrame:
        """Part of the result as a table in long form.

        The rankings, the draws and the relations are ``result.state.table.to_pandas()``,
        ``result.posterior.to_pandas()`` and ``result.relations.to_pandas()``.

        Parameters
        ----------
        what
            ``"algorithms"``
                ``algorithm``, ``status`` (in or out), ``round``, ``by``, ``probability``, ``instances``, ``cost``,
                ``failed``, and ``stored`` if there are stored rivals: as :meth:`summary`.
            ``"rounds"``
                ``round``, ``batch``, ``instances`` and ``cost`` so far, ``eliminated`` in the round, ``left``,
                ``settled_pairs``, ``resolved_share``, ``good``, ``next_batch``.
            ``"eliminations"``
                ``round``, ``algorithm``, ``by``, ``probability``, ``without_model`` (whether it is also certain without
                the model).
            ``"rivals"``
                ``round``, ``algorithm``, ``rival``, ``probability`` that this strongest rival dominates it.
            ``"open_pairs"``
                ``algorithm``, ``other``, ``timepoint`` at which they are not settled.
            ``"failures"``
                ``algorithm``, ``instance``, ``reason``.
        """
        return table_of_result(self, what)

    def to_json(self) -> str:
        """JSON text of everything but the draws."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of everything but the draws."""
        return dict_of_result(self)

    def save(self, path: str | Path) -> Path:
        """Write the result, draws included, to a file (numpy's ``.npz``, without pickle); returns its path."""
        parts = self.state.table.parts()
        algorithms, timepoints, repetitions, tolerance, values, instances, weights, groups, fixed_groups, ends = parts
        about = {
            "format": FORMAT,
            "about": dict(self.about),
            "settings": self.settings.to_json(),
            "stopped": self.stopped,
            "algorithms": algorithms,
            "repetitions": repetitions,
            "tolerance": tolerance,
            "instances": instances,
            **({"groups": groups, "fixed_groups": fixed_groups} if groups else {}),
            "early_ends": [each.to_json() for each in ends],
            "rounds": [asdict(finished) for finished in self.rounds],
            "failures": [asdict(failure) for failure in self.failures],
            "newcomers": self.state.newcomers,
            **({"stored": self.state.stored} if self.state.stored else {}),
            "cost": self.cost,
            "unused_cost": self.unused_cost,
            "identities": [identity.to_json() for identity in self.identities],
        }
        table = {"values": values, "weights": weights, "timepoints": timepoints, "resolved": self.state.resolved}
        posterior = {} if self._posterior is None else self._posterior.arrays()
        return write_arrays(
            path,
            {
                "result": np.array(json.dumps(about)),
                **table,
                **{f"posterior_{name}": array for name, array in posterior.items()},
            },
        )

    @classmethod
    def load(cls, path: str | Path) -> RaceResult:
        """Read a result that :meth:`save` wrote."""
        return read_arrays(path, "a saved result", _result_from_arrays, ARRAYS)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write a report of the result, one HTML file; ``options`` as for ``report.write_report``."""
        from polarbear_plugins.report import write_report

        return write_report(self, path, **options)

    def _repr_html_(self) -> str:
        from polarbear_plugins.report.computed import compute
        from polarbear_plugins.report.observations import assumptions
        from polarbear_plugins.report.words import conclusion, result_table

        known = compute(self)
        says = text(" ".join([conclusion(self, "", *known), *assumptions(self)]))
        return f"<p>{says}</p>" if not self.rounds else f"<p>{says}</p>{result_table(self, known.robust)}"

    def __repr__(self) -> str:
        rounds, instances = len(self.rounds), len(self.state.table.instances)
        return (
            f"RaceResult({len(self.pareto_set)} of {len(self.algorithms)} algorithms in the Pareto set "
            f"({', '.join(self.pareto_set)}), {rounds} round{'s' * (rounds != 1)}, "
            f"{instances} instance{'s' * (instances != 1)}, stopped: {self.stopped})"
        )


def _result_from_arrays(arrays: Mapping[str, Any]) -> RaceResult:
    data = parse_json(str(arrays["result"]))
    if data["format"] != FORMAT:
        raise SourceError(f"the result has the format {short(data['format'])}; this version reads {FORMAT}.")
    table = RankingTable.from_parts(
        data["algorithms"],
        arrays["timepoints"],
        data["repetitions"],
        data["tolerance"],
        arrays["values"],
        data["instances"],
        arrays["weights"],
        *groups_from_json(data),
        [EarlyEnds.from_json(each) for each in data.get("early_ends", ())],
    )
    rounds = tuple(map(Round.from_json, data["rounds"]))
    check_rounds(rounds, table.algorithms)
    if not ((table.weights >= 0) & (table.weights <= 1e100)).all():  # sums of larger ones overflow
        raise ValueError("weights: expected numbers from 0 to 1e100")
    resolved = np.asarray(arrays["resolved"])
    if resolved.dtype != bool or resolved.shape != (table.timepoints.size, *[len(table.algorithms)] * 2):
        raise ValueError(f"resolved: expected true or false for all pairs, got {resolved.dtype} {resolved.shape}")
    check_about(data["about"])
    settings = RaceSettings.from_json(data["settings"])
    prefix = "posterior_"
    stored = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
    return RaceResult(
        state=RaceState(
            settings=settings,
            table=table,
            resolved=resolved,
            rounds=rounds,
            batch=rounds[-1].next_batch if rounds else settings.batch_size,
            cost=as_number(data["cost"], "cost"),
            newcomers=tuple(map(str, data["newcomers"])),
            stored=stored_from_json(data, table.algorithms),
        ),
        stopped=str(data["stopped"]),
        _posterior=Posterior.from_arrays(stored) if stored else None,
        failures=tuple(map(Failure.from_json, data["failures"])),
        about=data["about"],
        identities=tuple(Identity.from_json(text) for text in data["identities"]),
        unused_cost=as_number(data.get("unused_cost", 0.0), "unused_cost", at_least=0),
    )
