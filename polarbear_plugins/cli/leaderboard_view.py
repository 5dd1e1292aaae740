"""Tables and sentences of ``polarbear leaderboard``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from polarbear_plugins.adapters.bayesmark.files import Fallbacks
from polarbear_plugins.cli.output import show_result, text_table
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.disagreements import Disagreement
from polarbear_plugins.measures.score_parts import Part
from polarbear_plugins.measures.scores import Scores
from polarbear_plugins.racing.result import RaceResult

_MOST_RANKINGS = 3
_MOST_PAIRS = 10
_MARK_TEXT = "; * has doubtful ones"


def show_scores(out: Console, scores: Mapping[str, Scores], objective: str, bootstrap: Bootstrap | None) -> None:
    """Print the scores, their equivalents in random search, and the losses that bayesmark-anal prints."""
    chosen = scores[objective]
    points, medians = chosen.leaderboard, chosen.leaderboard_median
    interval = None if bootstrap is None else 100 * (1 - bootstrap.interval()[::-1])
    view = text_table(
        "algorithm",
        ">score",
        *([] if interval is None else [">95 %"]),
        ">median",
        *([">random evaluations", ">efficiency"] if chosen.by_visible else []),
    )
    order = np.argsort(-points, kind="stable")
    equivalents = _equivalents(chosen) if chosen.by_visible else [[]] * len(order)
    for row in order:
        view.add_row(
            Text(chosen.algorithms[row]),
            f"{points[row]:.3f}",
            *([] if interval is None else [f"{interval[0, row]:.2f} to {interval[1, row]:.2f}"]),
            f"{medians[row]:.3f}",
            *equivalents[row],
        )
    out.print(
        f"Score by the {objective} loss: 100 for the best known values, 0 for a random evaluation"
        + (
            "; random evaluations: how many score as well as the algorithm with "
            f"{chosen.baseline.evaluations} evaluations:"
            if chosen.by_visible
            else ":"
        ),
        soft_wrap=True,
    )
    out.print(view)
    losses = text_table("algorithm", *(f">{name} {what}" for name in scores for what in ("mean", "normed", "median")))
    for row in order:
        kinds = [kind for each in scores.values() for kind in (each.mean, each.normed_mean, each.median)]
        losses.add_row(Text(chosen.algorithms[row]), *(f"{values[-1, row]:.6f}" for values in kinds))
    out.print("Losses as bayesmark-anal gives them; normed and median: 1 is random search at the same iteration:")
    out.print(losses)
    if chosen.by_visible:
        for name, worth in chosen.random_as_scored.items():
            out.print(_own_worth(name, worth, chosen), soft_wrap=True)


def _own_worth(name: str, worth: int | None, scores: Scores) -> str:
    pooled, made = scores.baseline.limit, scores.baseline.evaluations
    factor = f"more than {pooled / made:.3f}" if worth is None else f"{worth / made:.3f}"
    return (
        f"{name} is the measure: its efficiency is 1. By its own studies alone it would be {factor}, which is chance; "
        "other efficiencies are no more precise."
    )


def show_doubtful(out: Console, scores: Mapping[str, Scores]) -> None:
    """Print on which instances scores mean little, by each objective."""
    by_instances: dict[tuple[str, ...], list[str]] = {}
    for objective, found in scores.items():
        by_instances.setdefault(found.baseline.doubtful, []).append(objective)
    for instances, objectives in by_instances.items():
        if instances:
            out.print(
                f"Doubtful: random search also found the best known value ({' and '.join(objectives)} loss) on "
                f"{', '.join(instances)}: scores mean little there.",
                soft_wrap=True,
            )


def show_parts(out: Console, parts: Sequence[Part], scores: Scores, by: str) -> None:
    """Print the scores split by the kind of instance, algorithms in the order of the leaderboard."""
    doubtful = set(scores.baseline.doubtful)
    view = text_table(
        "algorithm", *(f">{part.name} ({len(part.instances)}){_mark(part.instances, doubtful)}" for part in parts)
    )
    for row in np.argsort(-scores.leaderboard, kind="stable"):
        cells = [f"{part.scores[row].score:.3f} (median {part.scores[row].quartiles[1]:.3f})" for part in parts]
        view.add_row(Text(scores.algorithms[row]), *cells)
    out.print(f"Score by {by} (number of instances{_MARK_TEXT if doubtful else ''}):")
    out.print(view)


def _mark(instances: Sequence[str], doubtful: set[str]) -> str:
    return " *" if doubtful.intersection(instances) else ""


def _equivalents(scores: Scores) -> list[list[str]]:
    """Equivalent random evaluations and efficiency of each algorithm, as text."""
    pooled, evaluations = scores.baseline.limit, scores.baseline.evaluations
    return [
        [f"> {pooled:,}", f"> {pooled / evaluations:.3f}"] if m is None else [f"{m:,}", f"{m / evaluations:.3f}"]
        for m in scores.equivalents
    ]


def show_fallbacks(out: Console, fallbacks: Mapping[str, Fallbacks]) -> None:
    """Print which algorithms were replaced by random search, as far as the logs show."""
    for name, found in fallbacks.items():
        if found.random:
            out.print(
                f"{name} failed to suggest in {found.random} of {found.iterations} iterations, where random search "
                "replaced it: its results are partly those of random search.",
                soft_wrap=True,
            )
    studies, logs = (sum(getattr(found, what) for found in fallbacks.values()) for what in ("studies", "logs"))
    if logs < studies:
        out.print(
            f"{logs} of {studies} studies have a log; for the others it is not known whether random search replaced "
            "an optimizer.",
            soft_wrap=True,
        )


def show_instances(out: Console, scores: Scores) -> None:
    """Print the mean loss of each algorithm on each instance."""
    doubtful = set(scores.baseline.doubtful)
    view = text_table("instance", *(f">{name}" for name in scores.algorithms))
    for place, instance in enumerate(scores.instances):
        name = f"{instance}{_mark([instance], doubtful)}"
        view.add_row(Text(name), *(f"{loss:.6f}" for loss in scores.by_instance[-1, :, place]))
    marked = _MARK_TEXT if doubtful else ""
    out.print(
        f"Mean loss on each instance, 0 for the best known value and 1 for a random evaluation{marked}:", soft_wrap=True
    )
    out.print(view)


def show_rankings(out: Console, bootstrap: Bootstrap, top: int) -> None:
    """Print how frequent the rankings are when the studies are resampled."""
    rankings = bootstrap.rankings(top)
    first = min(top, len(bootstrap.algorithms))
    out.print(
        f"Other repetitions on the same instances, {len(bootstrap.losses):,} resamples: rankings of the first {first} "
        "places by their frequency"
    )
    for ranking in rankings[:_MOST_RANKINGS]:
        out.print(f"  {ranking.share:6.1%}  {ranking}", soft_wrap=True)
    if len(rankings) > _MOST_RANKINGS:
        rest = sum(ranking.share for ranking in rankings[_MOST_RANKINGS:])
        out.print(f"  {rest:6.1%}  {len(rankings) - _MOST_RANKINGS} others")


def show_posterior(out: Console, result: RaceResult, time: str, pairs: Sequence[Disagreement] | None) -> None:
    """Print the posterior of the rankings, and the pairs where the scores disagree with it."""
    grid = result.timepoints
    out.print(
        f"Rankings of the same data at {grid.size} timepoints, {grid[0]:g} to {grid[-1]:g} {time} · alpha "
        f"{result.settings.alpha:g} · prior {result.settings.prior}"
    )
    show_result(out, result)
    if pairs is None:
        return
    if not pairs:
        out.print("Scores and rankings agree about every pair at the end.")
        return
    out.print(
        "\nWhere score and rankings disagree at the end. The score averages differences of values on these instances; "
        "the rating counts which algorithm is better, and is about other instances of the same kind:",
        soft_wrap=True,
    )
    for pair in pairs[:_MOST_PAIRS]:
        out.print(f"- {pair}", soft_wrap=True)
    if len(pairs) > _MOST_PAIRS:
        out.print(f"- and {len(pairs) - _MOST_PAIRS} more pairs, all with --json.")
