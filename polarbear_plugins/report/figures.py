"""The figures of a report, as SVG inside the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from polarbear_plugins import plots
from polarbear_plugins.display.html import Markup, text
from polarbear_plugins.display.text import visible
from polarbear_plugins.errors import MissingExtraError, ModelWarning
from polarbear_plugins.extras import require
from polarbear_plugins.plots.style import narrow_figures
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.chart_words import band_text
from polarbear_plugins.report.explorer import MOST_NAMES
from polarbear_plugins.report.figure_tables import (
    allocation_table,
    dominance_table,
    model_check_table,
    ratings_table,
    timeline_table,
    wins_table,
    with_table,
)
from polarbear_plugins.report.words import misfits
from polarbear_plugins.selection.preferences import PreferenceLike

# No date and no creator; ids depend on the content alone, so the same result gives the same page.
_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_REPLACED = ("ratings", "timeline", "dominance")  # by charts, where the script runs
_LONG = re.compile(r"-?\d+\.\d{3,}(?!\d|e)")  # numbers with more digits than can be seen
_LOOK = {"svg.fonttype": "none", "svg.hashsalt": "polarbear", "font.family": "sans-serif"}


class Figures:
    """Figures of a result; without matplotlib each is empty, and a note says how to get them."""

    def __init__(self, result: RaceResult, unit: str = "", robust: Posterior | None = None) -> None:
        self.colours: Mapping[str, str] = plots.colours(result.algorithms)
        self._result, self._unit = result, unit
        self._robust = robust or result.posterior  # to choose from
        self._by_model = ", by the model, which does not fit" if misfits(result) else ""
        self._out = [out.algorithm for out in result.eliminations]
        self._missing = ""
        try:
            require("matplotlib", extra="plots", who="A figure")
        except MissingExtraError as missing:
            self._missing = str(missing)
        self._few = len(result.algorithms) <= MOST_NAMES

    def note(self) -> Markup:
        """How to get the figures, if they are missing."""
        if self._missing:
            return Markup(
                '<p class="warning">There are no figures in this report for print and for browsers without scripts. '
                f"{text(self._missing)}</p>"
            )
        if not self._few:
            return Markup(f"<p>No figures: they are drawn for up to {MOST_NAMES} algorithms.</p>")
        return Markup("")

    def ratings(self) -> Markup:
        """Ratings over time."""
        figure = self._draw(
            "ratings",
            f"The probability of being the best of all on a new instance, over time{self._by_model}: posterior means, "
            f"and bands that {band_text(self._result)}. Eliminated algorithms are grey.",
            lambda: plots.plot_ratings(self._result.posterior, eliminated=self._out, colour=self.colours),
        )
        return with_table(figure, *ratings_table(self._result.posterior))

    def timeline(self) -> Markup:
        """Which algorithm is best when; empty if only one is left."""
        if len(self._result.pareto_set) == 1:
            return Markup("")
        figure = self._draw(
            "timeline",
            "The probability of having the highest rating among the algorithms that are left, over time.",
            lambda: plots.plot_timeline(self._robust, among=self._result.pareto_set, colour=self.colours),
        )
        return with_table(figure, *timeline_table(self._robust, self._result.pareto_set))

    def dominance(self) -> Markup:
        """Probability of being dominated, round by round."""
        if len(self._result.rounds) < 2:
            return Markup("")
        figure = self._draw(
            "dominance",
            "For each algorithm and round the probability that its strongest rival dominates it. A cross is an "
            "elimination, a diamond an algorithm all of whose pairs are settled.",
            lambda: plots.plot_dominance(self._result, colour=self.colours),
        )
        return with_table(figure, *dominance_table(self._result))

    def allocation(self) -> Markup:
        """Where the budget went."""
        figure = self._draw(
            "allocation",
            "How many instances each algorithm was run on, up to which time. The race spends where something is open.",
            lambda: plots.plot_allocation(self._result),
        )
        return with_table(figure, *allocation_table(self._result))

    def wins(self) -> Markup:
        """Win probabilities at the last timepoint."""
        last = float(self._result.timepoints[-1])
        figure = self._draw(
            "wins",
            f"The probability that the row's algorithm beats the column's at the last timepoint, {last:,.5g}"
            f"{self._by_model}.",
            lambda: plots.plot_wins(self._result.posterior, timepoint=last),
        )
        return with_table(figure, *wins_table(self._result.posterior))

    def model_check(self) -> Markup:
        """Observed and modelled shares of first places."""
        check = self._result.check
        if check is None:
            return Markup("")
        figure = self._draw(
            "check",
            "The share of the instances on which each algorithm is first, over time: points as observed, lines by the "
            "model.",
            lambda: plots.plot_model_check(check, colour=self.colours),
        )
        return with_table(figure, *model_check_table(check))

    def values(self, preferences: Mapping[str, tuple[str, PreferenceLike]]) -> Markup:
        """Posterior of the values, a figure for each preference; without the script only the first is shown."""
        found = ""
        if len(self._result.pareto_set) == 1:  # the value of the only candidate is 1
            return Markup(found)
        for place, (key, (says, preference)) in enumerate(preferences.items()):
            figure = self._draw(
                f"values-{place}",
                f"The posterior of the value of each algorithm that is left; preference {says}.",
                lambda preference=preference: plots.plot_values(  # type: ignore[misc]
                    self._robust,
                    preference=preference,
                    among=self._result.pareto_set,
                    colour=self.colours,
                ),
            )
            hidden = " hidden" if place else ""
            found += figure.replace("<figure>", f'<figure data-preference="{text(key)}"{hidden}>')
        return Markup(found)

    def _draw(self, name: str, says: str, draw: Callable[[], Any]) -> Markup:
        """Figure with the caption ``says``, which is also its text for screen readers."""
        if self._missing or not self._few:
            return Markup("")
        matplotlib = require("matplotlib", extra="plots", who="A figure")
        file = io.StringIO()
        with matplotlib.rc_context(_LOOK), narrow_figures(), warnings.catch_warnings():
            # A glyph missing from matplotlib's font may be in one of the reader's.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            warnings.simplefilter("ignore", ModelWarning)  # the page says it in its own words
            ax = draw()
            if self._unit and "time" in ax.get_xlabel():
                ax.set_xlabel(f"time ({self._unit})", parse_math=False)
            ax.figure.savefig(file, format="svg", metadata=_METADATA)
        kind = ' class="static"' if name in _REPLACED else ""
        return Markup(
            f'<figure{kind}><div class="wide">{_inline(visible(file.getvalue()), name, says)}</div>'
            f"<figcaption>{text(says)}</figcaption></figure>\n"
        )


def _inline(svg: str, name: str, says: str) -> str:
    """SVG for use inside a page: ids of its own, as wide as the page allows, and a text for screen readers."""
    body = svg[svg.index("<svg") :]
    opening, _, rest = body.partition(">")
    [box] = re.findall(r'viewBox="([-\d. ]+)"', opening)

    def shorten(tag: re.Match[str]) -> str:
        """Tag with ids that differ from those of other figures, and paths to a hundredth of a point."""
        named = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])
        return re.sub(r'(?<= )[dxy]="[^"]*"', lambda path: _LONG.sub(lambda x: f"{float(x[0]):.2f}", path[0]), named)

    rest = re.sub(r"<[^>]+>", shorten, rest)  # tags only: a text may look like anything
    width = float(box.split()[2])
    return f'<svg viewBox="{box}" style="--width:{width:.0f}" role="img" aria-label="{text(says)}">{rest.strip()}'
