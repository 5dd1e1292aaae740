"""How figures look: on a screen, on a page that fits a phone, and in the columns of a paper."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from polarbear_plugins.checks import as_number
from polarbear_plugins.extras import require

_PHONE = 4.8  # inches
_USUAL = 10.0  # points, of the labels of axes on a screen
_SMALLEST = 6.0  # points, that can be read on paper
_ASPECT = 0.6  # of a figure in a paper
_ROOM = 5.5  # inches, from which on a legend fits beside the axes
_WIDEST = 30.0

# TrueType fonts, since many publishers refuse the Type 3 fonts that matplotlib would embed; the font that comes with
# matplotlib, so that the same result gives the same bytes everywhere; texts of SVG files as outlines, since nobody
# knows which fonts a reader has.
_PAPER: dict[str, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "polarbear",
    "font.family": "DejaVu Sans",
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "lines.markersize": 4.0,
    **{f"{axis}tick.major.{part}": value for axis in "xy" for part, value in (("width", 0.6), ("size", 2.5))},
    **{f"{axis}tick.minor.{part}": value for axis in "xy" for part, value in (("width", 0.4), ("size", 1.5))},
}


@dataclass(frozen=True, slots=True)
class Look:
    """How new figures look.

    Attributes
    ----------
    width
        Inches: the most of a page, exactly that of a paper; ``None`` for what a figure needs.
    font
        Points, of the labels of axes; other texts in proportion.
    legend_below
        Whether legends are below the axes instead of beside them.
    paper
        Whether it is for a paper: no titles, which captions replace; lines and areas that differ also without colours;
        no text below 6 points.
    """

    width: float | None = None
    font: float = _USUAL
    legend_below: bool = False
    paper: bool = False

    def points(self, usual: float) -> float:
        """Size of a text that usually has ``usual`` points; nearer to the others where fonts are small."""
        if not self.paper:
            return usual
        return max(_SMALLEST, _SMALLEST + (usual - _SMALLEST) * (self.font - _SMALLEST) / (_USUAL - _SMALLEST))

    def scaled(self, usual: float) -> float:
        """Width of a line or size of a marker that usually has ``usual`` points."""
        return usual * self.font / _USUAL

    @property
    def smallest(self) -> float:
        """Points of the smallest numbers inside a figure; on a screen one can zoom."""
        return _SMALLEST if self.paper else 4.0

    @property
    def line(self) -> int:
        """Characters of a name, before it is broken."""
        return 22 if not self.paper or self.width is None else max(12, min(22, round(4.8 * self.width)))

    def width_of(self, width: float, narrow: float) -> float:
        """Inches of a figure that would be ``width`` wide, and on a phone at least ``narrow``."""
        if self.width is None:
            return width
        return self.width if self.paper else min(width, max(narrow, self.width))

    def height_of(self, height: float) -> float:
        """Inches of a figure that would be that high."""
        return min(height, _ASPECT * self.width) if self.paper and self.width is not None else height


_look: ContextVar[Look] = ContextVar("look")
_SCREEN = Look()


def look() -> Look:
    """How figures look here."""
    return _look.get(_SCREEN)


@contextlib.contextmanager
def _looking(wanted: Look) -> Iterator[None]:
    token = _look.set(wanted)
    try:
        yield
    finally:
        _look.reset(token)


@contextlib.contextmanager
def narrow_figures() -> Iterator[None]:
    """Within this context, figures are narrow enough for a phone, with the legend below the axes."""
    with _looking(Look(width=_PHONE, legend_below=True)):
        yield


@contextlib.contextmanager
def paper_figures(width: float = 3.33, font: float = 8.0) -> Iterator[None]:
    """Within this context, figures are made for a paper: draw *and save* them inside it.

    They are exactly ``width`` wide, have no title, since a paper has captions, embed TrueType fonts, and stay readable
    in grey: lines, markers and hatching differ, too.

    Parameters
    ----------
    width
        Inches: that of a column.
    font
        Points, of the labels of axes, at least 6; no text is smaller than 6.
    """
    width = as_number(width, "width", at_least=2, at_most=_WIDEST)
    wanted = Look(width, as_number(font, "font", at_least=_SMALLEST, at_most=24), width < _ROOM, paper=True)
    matplotlib = require("matplotlib", extra="plots", who="paper_figures")
    styles = require("matplotlib.style", extra="plots", who="paper_figures")
    sizes = {
        "font.size": wanted.font,
        "axes.labelsize": wanted.font,
        "xtick.labelsize": wanted.points(9),
        "ytick.labelsize": wanted.points(9),
        "lines.linewidth": wanted.scaled(1.5),
    }
    # Not as a user's own settings of matplotlib say: the same result gives the same bytes.
    with styles.context("default"), matplotlib.rc_context({**_PAPER, **sizes}), _looking(wanted):
        yield
