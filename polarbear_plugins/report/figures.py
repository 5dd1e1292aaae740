"""The figures of a report, as SVG that stands in the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from polarbear_plugins import plots
from polarbear_plugins.display.html import Markup, text
from polarbear_plugins.display.text import visible
from polarbear_plugins.errors import MissingExtraError
from polarbear_plugins.extras import require
from polarbear_plugins.plots.style import narrow_figures
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.selection.preferences import PreferenceLike

# No date and no creator; names of parts depend on their contents alone.
_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_LOOK = {"svg.fonttype": "none", "svg.hashsalt": "polarbear", "font.family": "sans-serif"}
_MOST_NAMES = 40  # a figure of more algorithms tells nothing


class Figures:
    """Draws the figures of a result; where matplotlib is missing each is empty, and a note says how to get them."""

    def __init__(self, result: RaceResult, unit: str = "") -> None:
        self.colours: Mapping[str, str] = plots.colours(result.algorithms)
        self._result, self._unit = result, unit
        self._out = [out.algorithm for out in result.eliminations]
        self._missing = ""
        try:
            require("matplotlib", extra="plots", who="A figure")
        except MissingExtraError as missing:
            self._missing = str(missing)
            self.colours = {}
        self._few = len(result.algorithms) <= _MOST_NAMES

    def note(self) -> Markup:
        """How to get the figures, if they are missing."""
        if self._missing:
            return Markup(f'<p class="warning">There are no figures in this report. {text(self._missing)}</p>')
        if not self._few:
            return Markup(f"<p>No figures: they are drawn for up to {_MOST_NAMES} algorithms.</p>")
        return Markup("")

    def ratings(self) -> Markup:
        """Ratings over time."""
        return self._drawn(
            "ratings",
            "The probability of being the best of all on a new instance, over time: posterior means, and bands that "
            "hold the truth with probability 90 %. Eliminated algorithms are grey.",
            lambda: plots.plot_ratings(self._result.posterior, eliminated=self._out, colour=self.colours),
        )

    def timeline(self) -> Markup:
        """Who is best when; nothing where one is left, who is."""
        if len(self._result.pareto_set) == 1:
            return Markup("")
        return self._drawn(
            "timeline",
            "The probability that nobody of those that are left has a higher rating, over time.",
            lambda: plots.plot_timeline(self._result.posterior, among=self._result.pareto_set, colour=self.colours),
        )

    def dominance(self) -> Markup:
        """How dominance became sure, round by round."""
        if len(self._result.rounds) < 2:
            return Markup("")
        return self._drawn(
            "dominance",
            "For each algorithm and round the probability that its strongest rival dominates it. A cross is an "
            "elimination, a diamond an algorithm all of whose pairs are settled.",
            lambda: plots.plot_dominance(self._result, colour=self.colours),
        )

    def allocation(self) -> Markup:
        """Where the budget went."""
        return self._drawn(
            "allocation",
            "How many instances each algorithm was run on, up to which time. The race spends where something is open.",
            lambda: plots.plot_allocation(self._result),
        )

    def wins(self) -> Markup:
        """Who beats whom at the end."""
        last = float(self._result.timepoints[-1])
        return self._drawn(
            "wins",
            f"How likely the algorithm of the row beats that of the column at the last timepoint, {last:,.5g}.",
            lambda: plots.plot_wins(self._result.posterior, timepoint=last),
        )

    def values(self, preferences: Mapping[str, tuple[str, PreferenceLike]]) -> Markup:
        """Posterior of the values, a figure for each preference; only the first is shown without the script."""
        found = ""
        if len(self._result.pareto_set) == 1:  # the value of the only candidate is 1
            return Markup(found)
        for place, (key, (says, preference)) in enumerate(preferences.items()):
            figure = self._drawn(
                f"values-{place}",
                f"The posterior of the value of each algorithm that is left; preference {says}.",
                lambda preference=preference: plots.plot_values(  # type: ignore[misc]
                    self._result.posterior,
                    preference=preference,
                    among=self._result.pareto_set,
                    colour=self.colours,
                ),
            )
            hidden = " hidden" if place else ""
            found += figure.replace("<figure>", f'<figure data-preference="{text(key)}"{hidden}>')
        return Markup(found)

    def _drawn(self, name: str, says: str, draw: Callable[[], Any]) -> Markup:
        """Draw a figure; ``says`` is its caption, and what is read to those who cannot see it."""
        if self._missing or not self._few:
            return Markup("")
        matplotlib = require("matplotlib", extra="plots", who="A figure")
        file = io.StringIO()
        with matplotlib.rc_context(_LOOK), narrow_figures(), warnings.catch_warnings():
            # A sign that is not in matplotlib's own font is in one of the reader's.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            ax = draw()
            if self._unit and "time" in ax.get_xlabel():
                ax.set_xlabel(f"time ({self._unit})", parse_math=False)
            ax.figure.savefig(file, format="svg", metadata=_METADATA)
        return Markup(
            f'<figure><div class="wide">{_inline(visible(file.getvalue()), name, says)}</div>'
            f"<figcaption>{text(says)}</figcaption></figure>\n"
        )


def _inline(svg: str, name: str, says: str) -> str:
    """Make a part of a page from an SVG file: names of its own, as wide as there is room, and a text to be read."""
    body = svg[svg.index("<svg") :]
    opening, _, rest = body.partition(">")
    [box] = re.findall(r'viewBox="([-\d. ]+)"', opening)

    def renamed(tag: re.Match[str]) -> str:
        """Tell the parts of two figures apart, which may be named alike."""
        return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])

    rest = re.sub(r"<[^>]+>", renamed, rest)  # tags only: a text may look like anything
    width = float(box.split()[2])
    return f'<svg viewBox="{box}" style="--width:{width:.0f}" role="img" aria-label="{text(says)}">{rest.strip()}'
