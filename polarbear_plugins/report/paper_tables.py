"""Tables of a result for a paper: algorithms, ratings, pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from polarbear_plugins.checks import as_choice
from polarbear_plugins.display.tables import TextFormat, csv_table, latex_table, markdown_table
from polarbear_plugins.display.text import amount, few_places, spans_text, timepoint_texts
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.basis import basis
from polarbear_plugins.report.words import error_text, misfits
from polarbear_plugins.trajectories.timepoints import timepoint_index

PaperTableKind: TypeAlias = Literal["algorithms", "ratings", "pairs"]
PAPER_TABLES: tuple[PaperTableKind, ...] = get_args(PaperTableKind)
_LEVEL = 0.9
_DASH = "-"  # for what was not observed
_YES_NO = ("no", "yes")
_UNSURE = 3  # what none of N draws shows may have a probability of up to this, divided by N


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of a result.

    Attributes
    ----------
    titles, cells
        For people: titles of the columns, ``>`` aligns one to the right, and texts.
    columns, rows
        For programs: names of the columns, and values; ``None`` for what is missing.
    notes
        What the numbers are, and what they rest on.
    """

    what: PaperTableKind
    titles: tuple[str, ...]
    cells: list[list[str]]
    columns: tuple[str, ...]
    rows: list[list[Any]]
    notes: list[str]

    def text(self, kind: TextFormat) -> str:
        """Text in a format; in CSV without the notes, which programs would read as rows."""
        as_choice(kind, TextFormat, "format")
        if kind == "csv":
            return csv_table(self.columns, self.rows)
        return (latex_table if kind == "latex" else markdown_table)(self.titles, self.cells, self.notes)


def paper_table(
    result: RaceResult,
    what: PaperTableKind = "algorithms",
    *,
    timepoints: Sequence[float] | None = None,
    unit: str = "",
    robust: Posterior | None = None,
) -> PaperTable:
    """Table of a result: its algorithms, their ratings or their pairs.

    Parameters
    ----------
    what
        ``"algorithms"``
            In or out, the rival that eliminated it, with what probability, in which round, whether that is also
            certain without the model, on how many instances it ran, at what cost.
        ``"ratings"``
            Mean and 90 % interval of each rating at some timepoints; a dash where nothing was observed.
        ``"pairs"``
            Probabilities that one has the higher rating and that the two are equivalent, and where it is open.
    timepoints
        The last timepoint up to each is shown; by default four for ratings, the last for pairs.
    unit
        Unit of time, such as ``evaluations``.
    robust
        Posterior to choose from, if known: ``result.robust_posterior(result.pareto_set)``.
    """
    as_choice(what, PaperTableKind, "what")
    if not result.rounds:
        raise InvalidInputError("There is no table: the race ended before its first round was over.")
    if timepoints is not None and what == "algorithms":
        raise InvalidInputError("timepoints: the table of algorithms has none; use the ratings or the pairs.")
    grid = result.timepoints
    places = few_places(grid.size) if what == "ratings" else [grid.size - 1]
    if timepoints is not None:
        places = sorted({timepoint_index(grid, time) for time in timepoints})
        if not places:
            raise InvalidInputError("timepoints: expected at least one, got none.")
    if what == "algorithms":
        return _algorithms(result, unit)
    if what == "ratings":
        return _ratings(result, places, unit, robust or result.robust_posterior(result.pareto_set))
    return _pairs(result, places, unit)


def _algorithms(result: RaceResult, unit: str) -> PaperTable:
    summary, certain = result.summary(), result.certain_without_model
    failed, stored = bool(summary["failed"].any()), result.state.stored
    cells: list[list[str]] = []
    rows: list[list[Any]] = []
    draws = result.posterior.draws
    by_name: dict[str, dict[str, Any]] = summary.to_dict("index")  # type: ignore[assignment]
    for name, row in by_name.items():
        out = row["status"] == "out"
        values: list[Any] = [None] * 4
        texts = [_DASH] * 4
        if out:
            values = [row["by"], float(row["probability"]), int(row["round"]), name in certain]
            texts = [
                str(row["by"]),
                _probability(row["probability"], draws),
                str(row["round"]),
                _YES_NO[name in certain],
            ]
        cost = "stored" if name in stored else amount(row["cost"])
        cells.append([name, str(row["status"]), *texts, f"{row['instances']:,}", cost])
        rows.append([name, row["status"], *values, int(row["instances"]), float(row["cost"]), int(row["failed"])])
        cells[-1] += [str(row["failed"])] if failed else []
    of_cost = f" in {unit}" if unit else ""
    least = "at all timepoints at once" if result.settings.elimination == "joint" else "at the least sure timepoint"
    meaning = (
        f"P: posterior probability of the rival's higher rating {least}, when it was eliminated. Without the model: "
        f"whether direct wins alone are as sure, with probability {result.settings.alpha:g}."
    )
    notes = [
        "Algorithms of a race or an analysis: in, or out because of a rival that is better at every timepoint.",
        meaning,
        f"Instances: on how many it ran; cost: time of all its runs together{of_cost}.",
        *([error_text(result)] if result.eliminations else []),
        *basis(result, unit),
    ]
    titles = ("algorithm", "status", "by", ">P", ">round", "without the model", ">instances", ">cost")
    columns = ("algorithm", "status", "by", "probability", "round", "without_model", "instances", "cost", "failed")
    return PaperTable("algorithms", (*titles, *([">failed"] if failed else [])), cells, columns, rows, notes)


def _ratings(result: RaceResult, places: Sequence[int], unit: str, posterior: Posterior) -> PaperTable:
    times = timepoint_texts(result.timepoints)
    ratings = posterior.ratings[:, places]
    low, high = np.quantile(ratings, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    mean = ratings.mean(axis=0)
    cells, rows = [], []
    for name in result.algorithms:
        column = posterior.algorithms.index(name) if name in posterior.algorithms else None
        cells.append([name])
        for row, place in enumerate(places):
            known = column is not None and bool(posterior.observed[place, column])
            found = [float(part[row, column]) for part in (mean, low, high)] if known else [None] * 3
            cells[-1].append(_interval(*found) if known else _DASH)
            rows.append([name, float(result.timepoints[place]), *found])
    of_whom = "of those that are left, by first places, since the model does not fit" if misfits(result) else "of all"
    missing = "; a dash where it was never observed" + (" or is out" if misfits(result) else "")
    meaning = (
        f"Rating: probability of being the best {of_whom} on a new instance. Mean of the posterior and, in brackets, "
        f"the interval that holds {_LEVEL:.0%} of it{missing}."
    )
    notes = [meaning, *basis(result, unit)]
    titles = ("algorithm", *(f">at {times[place]}{f' {unit}' if unit else ''}" for place in places))
    return PaperTable("ratings", titles, cells, ("algorithm", "timepoint", "mean", "low", "high"), rows, notes)


def _pairs(result: RaceResult, places: Sequence[int], unit: str) -> PaperTable:
    relations, observed = result.relations, result.posterior.observed
    grid, times, draws = result.timepoints, timepoint_texts(result.timepoints), result.posterior.draws
    resolved = result.state.resolved
    cells, rows = [], []
    for i, j in itertools.combinations(range(len(result.algorithms)), 2):
        one, other = result.algorithms[i], result.algorithms[j]
        open_at = ~resolved[:, i, j]
        cells.append([one, other])
        for place in places:
            known = bool(observed[place, i] and observed[place, j])
            found = [float(part[place, i, j]) for part in (relations.p_better, relations.p_equivalent)]
            cells[-1] += [_probability(p, draws) if known else _DASH for p in found]
            rows.append([one, other, float(grid[place]), *(found if known else [None] * 2), bool(open_at[place])])
        cells[-1].append(spans_text(grid, open_at) if open_at.any() else "settled")
    model = ", by the model, which does not fit" if misfits(result) else ""
    settings = result.settings
    crossing = ", or once it was sure that neither dominates the other" if settings.resolution == "crossing" else ""
    better = (
        f"P(better): posterior probability that the first has the higher rating than the second{model}. P(equivalent): "
        f"that each beats the other with a probability within {settings.epsilon:g} of 1/2. A dash where one of the two "
        "was never observed."
    )
    still_open = (
        f"Open: timepoints{f' in {unit}' if unit else ''} at which the pair is not settled. It is settled once one of "
        f"the two is certain with probability {settings.alpha:g}{crossing}; so is a pair with an eliminated algorithm."
    )
    notes = [better, still_open, *basis(result, unit)]
    titles = ["algorithm", "other"]
    for place in places:
        at = f" at {times[place]}" if len(places) > 1 else ""
        titles += [f">P(better){at}", f">P(equivalent){at}"]
    if len(places) == 1:
        notes.insert(0, f"Pairs of algorithms at {times[places[0]]}{f' {unit}' if unit else ''}.")
    columns = ("algorithm", "other", "timepoint", "p_better", "p_equivalent", "open")
    return PaperTable("pairs", (*titles, "open"), cells, columns, rows, notes)


def _interval(mean: float, low: float, high: float) -> str:
    """Text of a rating, which is never written as 0.

    >>> _interval(0.2561, 0.0004, 0.5)
    '0.256 [< 0.001, 0.500]'
    """
    middle, least, most = ("< 0.001" if part < 0.0005 else f"{part:.3f}" for part in (mean, low, high))
    return f"{middle} [{least}, {most}]"


def _probability(p: float, draws: int) -> str:
    """Text of a probability, no surer than draws can tell.

    >>> _probability(0.9981, 4000), _probability(1.0, 4000), _probability(0.0, 400)
    ('0.998', '> 0.999', '< 0.008')
    """
    least = _UNSURE / draws
    if p > 1 - least:
        return f"> {np.floor(1000 * (1 - least)) / 1000:.3f}"
    return f"< {np.ceil(1000 * least) / 1000:.3f}" if p < least else f"{p:.3f}"
