"""Every figure of a result as a file of its own, for a paper."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from polarbear_plugins import plots
from polarbear_plugins.checks import as_choice
from polarbear_plugins.display.text import visible
from polarbear_plugins.errors import InvalidInputError, ModelWarning
from polarbear_plugins.plots.look import paper_figures
from polarbear_plugins.plots.style import save_figure
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.regular_files import naming_output, write_whole
from polarbear_plugins.report.basis import basis
from polarbear_plugins.report.words import misfits
from polarbear_plugins.selection.support import SUPPORTED

FigureFormat: TypeAlias = Literal["pdf", "svg", "png"]
FIGURE_FORMATS: tuple[FigureFormat, ...] = get_args(FigureFormat)
FIGURE_NAMES = ("ribbon", "ratings", "timeline", "dominance", "allocation", "wins", "values", "check")
CAPTIONS = "captions.txt"
_MOST_NAMES = 40  # a figure of more algorithms is unreadable


class Style(NamedTuple):
    """Widths of one and of two columns in inches, and the size of labels in points."""

    widths: tuple[float, ...]
    font: float


STYLES = {
    # acmart.cls, sigconf: \columnwidth 241.1 pt, \textwidth 506.3 pt of 72.27 to the inch.
    "acm": Style((3.33, 7.0), 8.0),
    # IEEE Author Center, "Resolution and Size": one column 3.5 inches (88.9 mm), two columns 7.16 inches (181.9 mm).
    "ieee": Style((3.5, 7.16), 8.0),
    # llncs.cls: \textwidth 12.2 cm, the only column.
    "springer": Style((4.8,), 8.0),
}


class WrittenFigure(NamedTuple):
    """A figure that was saved: its name, file, size in inches and caption."""

    name: str
    path: Path
    width: float
    height: float
    caption: str


@dataclass(frozen=True, slots=True)
class WrittenFigures:
    """What :func:`write_figures` has written.

    Attributes
    ----------
    figures
        The figures, each with its caption.
    left_out
        Why a result has no figure of a name, by that name.
    notes
        What all of them rest on.
    captions
        The file with the captions and the notes.
    """

    figures: tuple[WrittenFigure, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]
    captions: Path


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure to draw, or why there is none."""

    caption: str = ""
    draw: Callable[[], Any] | None = None
    missing: str = ""


def style_width(style: str, columns: int) -> float:
    """Width in inches of a figure over one or two columns of a style.

    >>> style_width("acm", 2)
    7.0
    """
    widths = STYLES[as_choice(style, STYLES, "style")].widths
    if columns not in range(1, len(widths) + 1):
        known = "one column" if len(widths) == 1 else "one or two columns"
        raise InvalidInputError(f"columns: the style {style} has {known}, got {columns}.")
    return widths[columns - 1]


def write_figures(
    result: RaceResult,
    folder: str | Path,
    *,
    kind: FigureFormat = "pdf",
    style: str = "acm",
    columns: int = 1,
    width: float | None = None,
    only: Sequence[str] | None = None,
    unit: str = "",
    force: bool = False,
    robust: Posterior | None = None,
) -> WrittenFigures:
    """Write the figures of a result into a folder, a file each, and their captions.

    The same result gives the same bytes.  Fonts are embedded as TrueType, no text is smaller than 6 points, and lines
    and areas differ also in grey.  Figures have no title: what they show is in ``captions.txt``.

    Parameters
    ----------
    folder
        Made if need be.
    kind
        ``pdf``, ``svg`` or ``png`` (600 pixels in an inch).
    style, columns
        ``acm``, ``ieee`` or ``springer``: width of a column, or of two, and the size of labels.
    width
        Inches, instead of that of the style.
    only
        Names of the figures to write: ribbon, ratings, timeline, dominance, allocation, wins, values, check.
    unit
        Unit of time, such as ``evaluations``.
    force
        Replace files that are there.
    robust
        Posterior to choose from, if known: ``result.robust_posterior(result.pareto_set)``.
    """
    as_choice(kind, FigureFormat, "format")
    wide = style_width(style, columns) if width is None else width
    if not result.rounds:
        raise InvalidInputError("There is nothing to draw: the race ended before its first round was over.")
    if len(result.algorithms) > _MOST_NAMES:
        raise InvalidInputError(
            f"Figures are drawn for up to {_MOST_NAMES} algorithms, and there are {len(result.algorithms)}."
        )
    planned = _planned(result, robust or result.robust_posterior(result.pareto_set), unit)
    wanted = {name: planned[name] for name in _wanted(only, planned)}
    folder = Path(folder)
    paths = {name: folder / f"{name}.{kind}" for name, figure in wanted.items() if figure.draw is not None}
    if not force:
        _check_new([*paths.values(), folder / CAPTIONS])
    with naming_output(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written, notes = [], basis(result, unit)
    with paper_figures(wide, STYLES[style].font), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for name, path in paths.items():
            ax = wanted[name].draw()  # type: ignore[misc]
            if unit and "time" in ax.get_xlabel():
                ax.set_xlabel(f"time ({unit})", parse_math=False)
            inches = ax.figure.get_size_inches()
            save_figure(ax.figure, path)
            written.append(WrittenFigure(name, path, float(inches[0]), float(inches[1]), wanted[name].caption))
    notes += _missing_glyphs([each.message for each in told if not issubclass(each.category, ModelWarning)])
    left_out = {name: figure.missing for name, figure in wanted.items() if figure.draw is None}
    captions = write_whole(folder / CAPTIONS, lambda file: file.write(_captions(written, left_out, notes).encode()))
    return WrittenFigures(tuple(written), left_out, tuple(notes), captions)


def _wanted(only: Sequence[str] | None, planned: dict[str, _Figure]) -> Sequence[str]:
    """Names of the figures to write, checked."""
    if only is None:
        return FIGURE_NAMES
    for name in only:
        if name not in FIGURE_NAMES:
            raise InvalidInputError(f"only: there is no figure {name!r}; there are {', '.join(FIGURE_NAMES)}.")
        if planned[name].draw is None:
            raise InvalidInputError(f"only: this result has no figure {name!r}: {planned[name].missing}")
    if not only:
        raise InvalidInputError(f"only: expected names of figures, got none; there are {', '.join(FIGURE_NAMES)}.")
    return [name for name in FIGURE_NAMES if name in only]


def _check_new(paths: Sequence[Path]) -> None:
    there = [path for path in paths if path.exists()]
    if there:
        raise InvalidInputError(f"{there[0]}: the file exists. Use another folder, or force it.")


def _planned(result: RaceResult, robust: Posterior, unit: str) -> dict[str, _Figure]:
    """All figures by their names."""
    return dict(_figures(result, robust, f" {unit}" if unit else ""))


def _figures(result: RaceResult, robust: Posterior, unit: str) -> Iterator[tuple[str, _Figure]]:
    posterior, left, tones = result.posterior, result.pareto_set, plots.colours(result.algorithms)
    out = [each.algorithm for each in result.eliminations]
    model = " Under the model, which does not fit." if misfits(result) else ""
    places = " By first places among them, since the model does not fit." if misfits(result) else ""
    alone = _Figure(missing=f"only {left[0]} is left.")
    one_round = _Figure(missing="there was a single round.")
    last = float(result.timepoints[-1])
    yield (
        "ribbon",
        alone
        if len(left) == 1
        else _Figure(
            "Which algorithm to choose for which budget, among those that are left. Its height is the support: the "
            "probability that nothing else is noticeably better (the choice would beat none of the others in less "
            f"than 45 of 100 instances). Hatched: no choice is supported with {SUPPORTED:.0%} (dashed) on average over "
            f"the stretch, and any of the names may be best.{places}",
            lambda: plots.plot_ribbon(robust, among=left, colour=tones),
        ),
    )
    eliminated = " Eliminated algorithms are grey and without a band." if out else ""
    yield (
        "ratings",
        _Figure(
            "Rating over time: the probability of being the best of all algorithms on a new instance. Lines are "
            f"posterior means, bands hold 90 % of the posterior.{eliminated}{model}",
            lambda: plots.plot_ratings(posterior, eliminated=out, colour=tones),
        ),
    )
    yield (
        "timeline",
        alone
        if len(left) == 1
        else _Figure(
            f"Probability of having the highest rating over time, among the algorithms that are left.{places}",
            lambda: plots.plot_timeline(robust, among=left, colour=tones),
        ),
    )
    where = "at all timepoints at once" if result.settings.elimination == "joint" else "at the least sure timepoint"
    yield (
        "dominance",
        one_round
        if len(result.rounds) < 2
        else _Figure(
            f"For each algorithm and round the probability ({where}) that its strongest rival dominates it, on a scale "
            "that is stretched above 0.9. A cross is an elimination, a diamond an algorithm all of whose pairs are "
            f"settled; the black line is the share of settled pairs.{model}",
            lambda: plots.plot_dominance(result, colour=tones),
        ),
    )
    share = result.cost / result.full_cost if result.full_cost else 1.0
    yield (
        "allocation",
        one_round
        if len(result.rounds) < 2
        else _Figure(
            "Number of instances on which each algorithm was run until which time, eliminated algorithms in grey: "
            f"{share:.0%} of the cost of running everything on as many.",
            lambda: plots.plot_allocation(result),
        ),
    )
    yield (
        "wins",
        _Figure(
            f"Posterior mean of the probability that the row's algorithm beats the column's on a new instance at "
            f"{last:,.5g}{unit}, darker if higher; columns have the numbers of the rows. Where there are numbers, bold "
            f"ones say that which of the two wins more often is known with a probability of at least 0.95.{model}",
            lambda: plots.plot_wins(posterior, timepoint=last),
        ),
    )
    yield (
        "values",
        alone
        if len(left) == 1
        else _Figure(
            "Posterior of the value of each algorithm that is left: its mean rating among them over any budget alike "
            "(preference uniform). Dot: mean; line: interval that holds 90 %; P(best): probability of the highest "
            f"value.{places}{_independent(robust)}",
            lambda: plots.plot_values(robust, among=left, colour=tones),
        ),
    )
    check = result.check
    yield (
        "check",
        _Figure(missing="the model was not checked.")
        if check is None
        else _Figure(
            "Share of the instances on which each algorithm is first: markers as observed, lines by the model. "
            f"{visible(str(check))}",
            lambda: plots.plot_model_check(check, colour=tones),
        ),
    )


def _independent(posterior: Posterior) -> str:
    if posterior.joint or posterior.timepoints.size == 1:
        return ""
    return " The prior treats timepoints as independent: spreads and P(best) are surer than they may be."


def _missing_glyphs(told: Sequence[Warning | str]) -> list[str]:
    """Note about characters that the font does not have; boxes stand for them."""
    found = sorted({code for each in told for code in re.findall(r"^Glyph (\d+) ", str(each))}, key=int)
    if not found:
        return []
    signs = ", ".join(f"U+{int(code):04X}" for code in found[:5]) + (" ..." if len(found) > 5 else "")
    return [f"Names have characters that the font does not have ({signs}): figures show boxes instead."]


def _captions(written: Sequence[WrittenFigure], left_out: dict[str, str], notes: Sequence[str]) -> str:
    parts = [f"{figure.path.name}: {figure.caption}" for figure in written]
    parts += [f"No figure {name}: {why}" for name, why in left_out.items()]
    return visible("\n\n".join([*parts, "All of them: " + " ".join(notes)])) + "\n"
