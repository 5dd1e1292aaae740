"""A view of a race in a notebook, which is updated while the race runs."""

from __future__ import annotations

import importlib
import time
from typing import Any

from polarbear_plugins.display.html import Markup, html_table, text
from polarbear_plugins.display.text import few_places, probability_text, share_text, timepoint_texts
from polarbear_plugins.errors import MissingExtraError
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.watch import words

_PAUSE = 1.0  # seconds between two updates inside a round


class NotebookView:
    """Shows a race below the cell that runs it: who is in, ratings, eliminations, and how far the round is.

    Pass it to :func:`polarbear_plugins.race` as ``progress``.  It can be registered as a plugin instead, which is told
    of finished rounds only, and not of ratings.

    Examples
    --------
    In a notebook: ``race(..., progress=NotebookView())``; or, for all races, ``plugins = load_plugins();
    plugins.register(NotebookView(), "notebook")`` and ``race(..., plugins=plugins)``.
    """

    def __init__(self) -> None:
        try:
            self._display: Any = importlib.import_module("IPython.display")
        except ModuleNotFoundError:
            raise MissingExtraError(
                "NotebookView needs 'IPython', which is not installed. It is for notebooks, which have it; elsewhere "
                "use RacePage.",
                name="IPython",
            ) from None
        self._handle: Any = None
        self._shown = -_PAUSE

    def __call__(self, progress: Progress) -> None:
        """Show a step of the race; inside a round once a second."""
        now = time.monotonic()
        if progress.result is None and now - self._shown < _PAUSE:
            return
        self._shown = now
        number = len(progress.state.rounds) + 1
        runs = f"Round {number:,}: {progress.done:,} of {progress.planned:,} runs." if progress.planned else ""
        activity = words.activity_text(progress, 0.0)
        failed = words.failures_text(progress.failed, progress.recent_failures) if progress.failed else ""
        self._show(progress.state, progress.posterior, [runs, activity, failed])

    @hookimpl
    def polarbear_round_finished(self, state: RaceState) -> None:
        """Show the race in the notebook after each round."""
        self._show(state, None, [])

    def _show(self, state: RaceState, posterior: Posterior | None, sentences: list[str]) -> None:
        shown = self._display.HTML(view_of(state, posterior, sentences))
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


def view_of(state: RaceState, posterior: Posterior | None, sentences: list[str]) -> Markup:
    """HTML of a race: sentences, and a table of its algorithms with their ratings if there is a posterior."""
    places = few_places(state.timepoints.size)
    out = {elimination.algorithm: elimination for elimination in state.eliminations}
    times = timepoint_texts(state.timepoints)
    rows: list[list[str]] = []
    for name in state.algorithms:
        row = [name, "in", ""]
        if name in out:
            row = [name, f"out (round {out[name].round})", f"{out[name].by} is better at every timepoint, "]
            row[2] += probability_text(out[name].probability)
        if posterior is not None and name in posterior.algorithms:
            column = posterior.algorithms.index(name)
            seen = posterior.observed[places, column]
            means = posterior.mean_ratings[places, column]
            row += [share_text(mean if there else float("nan")) for mean, there in zip(means, seen, strict=True)]
        elif posterior is not None:
            row += ["-"] * len(places)
        rows.append(row)
    ratings = [] if posterior is None else [f">at {times[place]}" for place in places]
    rounds = f"{len(state.rounds):,} round{'s' * (len(state.rounds) != 1)} finished"
    head = f"{rounds}, {words.settled_text(state)} settled. Cost {words.cost_text(state)}."
    if not state.rounds:
        head = "No round has finished yet."
    caption = "Ratings: probability of being the best of all on a new instance, by the mean of the posterior; whether "
    caption += "the model fits is checked at the end."
    table = html_table(("algorithm", "status", "because", *ratings), rows, caption if ratings else "")
    return Markup("".join(f"<p>{text(says)}</p>" for says in [head, *filter(None, sentences)]) + table)
