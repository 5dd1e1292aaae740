"""``polarbear leaderboard``: Bayesmark's scores, their uncertainty, and the posterior of the rankings beside them.

It imports the adapter of Bayesmark by name: the scores need both losses of every study and its log, and
``polarbear_read_trajectories`` gives trajectories only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from polarbear_plugins.adapters.bayesmark.database import AXES, OBJECTIVES, Database, read_database
from polarbear_plugins.adapters.bayesmark.files import Fallbacks
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.leaderboard_view import (
    show_fallbacks,
    show_instances,
    show_posterior,
    show_rankings,
    show_scores,
)
from polarbear_plugins.cli.options import parse_timepoints, settings_from, settings_options
from polarbear_plugins.cli.output import console, json_option, print_json
from polarbear_plugins.cli.progress import compute_unless_interrupted, inference_spinner, spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.disagreements import Disagreement, find_disagreements
from polarbear_plugins.measures.scores import Scores, score_studies
from polarbear_plugins.racing.analysis import analyze as analyze_table
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.rankings.stream import default_timepoints, rank


@click.command(short_help="Bayesmark's scores beside the posterior.")
@click.argument("database", metavar="DB", type=click.Path(path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    default="visible",
    show_default=True,
    help="Loss that the leaderboard, its bootstrap and the posterior use; scores by the others are shown beside it.",
)
@click.option("--random", multiple=True, metavar="NAME", help="Random search, if it is not Bayesmark's RandomSearch.")
@click.option(
    "--bootstrap",
    "resamples",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="How often to resample the studies; 0 for no bootstrap.",
)
@click.option(
    "--top", type=click.IntRange(1), default=5, show_default=True, help="Number of places that make up a ranking."
)
@click.option("--instances", is_flag=True, help="Also show the scores on each instance.")
@click.option(
    "--time", type=click.Choice(AXES), default="iterations", show_default=True, help="The time axis of the posterior."
)
@click.option(
    "--timepoints", default="50", show_default=True, metavar="N or A,B,...", help="Timepoints of the posterior."
)
@click.option(
    "--studies",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Rank at most this many studies of each algorithm on an instance, since many take long; 0 for all.",
)
@click.option("--no-posterior", is_flag=True, help="Only the scores; the posterior takes longer.")
@settings_options
@json_option
def leaderboard(
    database: Path,
    objective: str,
    random: Sequence[str],
    resamples: int,
    top: int,
    instances: bool,
    time: str,
    timepoints: str,
    studies: int,
    no_posterior: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Score the optimizers of a Bayesmark database, and show the posterior of their rankings beside the scores.

    DB is the folder that Bayesmark's experiments wrote, with eval/ in it. Scores are those of bayesmark-anal and of the
    Black-Box Optimization Challenge 2020. They need random search in the database; the posterior does not.
    """
    wanted = parse_timepoints(timepoints)
    chosen = settings_from(**settings)
    with spinner("reading"):
        found = read_database(database)
    with spinner(f"scoring {len(found.studies):,} studies"):
        scored = _score(found, objective, random or None, resamples, chosen.seed or 0)

    def infer() -> tuple[RaceResult, int]:
        return _infer(found, objective, time, wanted, studies, chosen)

    result, ranked = (None if no_posterior else compute_unless_interrupted(infer, "the posterior")) or (None, 0)
    pairs: list[Disagreement] = []
    if scored.scores and scored.bootstrap and result:
        end = _result_at_end(found, result, objective, time, studies)
        pairs = find_disagreements(
            scored.scores[objective], scored.bootstrap, end.state.table, end.posterior, chosen.alpha
        )
    fallbacks = found.fallbacks()
    if as_json:
        print_json(
            {
                **_contents(found),
                "objective": objective,
                **scored.to_json(objective, top),
                "fallbacks": {name: asdict(failures) for name, failures in fallbacks.items()},
                "posterior": None if result is None else result.to_dict(),
                "ranked_studies": ranked,
                "disagreements": [{**asdict(pair), "text": str(pair)} for pair in pairs],
            }
        )
        return
    _show(found, scored, objective, top, instances, fallbacks)
    if result is not None:
        out = console()
        out.print()
        if ranked < len(found.studies):
            out.print(
                f"{ranked} of {len(found.studies)} studies are ranked, at most {studies} of each algorithm on each "
                "instance (--studies)."
            )
        show_posterior(out, result, time, pairs if scored.bootstrap else None)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Scores by each objective; ``refused`` is the reason if there are none."""

    scores: dict[str, Scores] | None
    bootstrap: Bootstrap | None
    seed: int
    refused: str | None = None

    def to_json(self, objective: str, top: int) -> dict[str, Any]:
        if self.scores is None:
            return {"scores": None, "refused": self.refused, "random_equivalents": None, "bootstrap": None}
        visible = self.scores["visible"]
        equivalents = zip(visible.algorithms, visible.equivalents, visible.efficiencies, strict=True)
        return {
            "scores": {name: _scores_json(scores) for name, scores in self.scores.items()},
            "refused": None,
            "random_equivalents": {
                "of": visible.baseline.evaluations,
                "pooled": visible.baseline.limit,
                "algorithms": {name: {"evaluations": m, "efficiency": factor} for name, m, factor in equivalents},
            },
            "bootstrap": _bootstrap_json(self.bootstrap, objective, self.seed, top) if self.bootstrap else None,
        }


def _score(found: Database, objective: str, random: Sequence[str] | None, resamples: int, seed: int) -> _Scored:
    try:
        scores = {name: score_studies(found.arrays(name, random)) for name in OBJECTIVES}
    except InvalidInputError as problem:
        if random is not None:
            raise
        return _Scored(None, None, seed, str(problem))
    return _Scored(scores, scores[objective].bootstrap(resamples, seed) if resamples else None, seed)


def _infer(
    found: Database, objective: str, time: str, timepoints: int | list[float], studies: int, settings: RaceSettings
) -> tuple[RaceResult, int]:
    runs = [run for run in found.trajectories(objective, time) if not studies or run.seed < studies]
    grid = default_timepoints(runs, timepoints) if isinstance(timepoints, int) else timepoints
    table = rank(runs, grid)
    with inference_spinner(table, settings):
        return analyze_table(table, settings, {"sources": [str(found.folder)]}), len(runs)


def _result_at_end(found: Database, result: RaceResult, objective: str, time: str, studies: int) -> RaceResult:
    """Result at the end of the studies, where scores are taken; a new one if the timepoints do not reach the end."""
    iterations, suggestions = found.studies[0].shape
    last = {"iterations": iterations, "evaluations": iterations * suggestions}.get(time)
    if result.timepoints[-1] == last:
        return result
    settings = RaceSettings(draws=result.settings.draws, seed=result.settings.seed)
    return _infer(found, objective, "iterations", [float(iterations)], studies, settings)[0]


def _show(
    found: Database, scored: _Scored, objective: str, top: int, instances: bool, fallbacks: dict[str, Fallbacks]
) -> None:
    out = console()
    contents = _contents(found)
    out.print(
        f"{contents['studies']} studies of {len(contents['algorithms'])} algorithms on {len(contents['instances'])} "
        f"instances · {contents['iterations']} iterations of {contents['suggestions']} suggestions"
    )
    if scored.scores is None:
        out.print(f"No scores. {scored.refused}", soft_wrap=True)
    else:
        show_scores(out, scored.scores, objective, scored.bootstrap)
        if instances:
            show_instances(out, scored.scores[objective])
        if scored.bootstrap is not None:
            show_rankings(out, scored.bootstrap, top)
    show_fallbacks(out, fallbacks)


def _contents(found: Database) -> dict[str, Any]:
    iterations, suggestions = found.studies[0].shape
    return {
        "database": str(found.folder),
        "studies": len(found.studies),
        "algorithms": list(found.optimizers),
        "instances": list(found.functions),
        "iterations": iterations,
        "suggestions": suggestions,
    }


def _scores_json(scores: Scores) -> dict[str, Any]:
    def named(values: FloatArray) -> dict[str, float | None]:
        pairs = zip(scores.algorithms, values.tolist(), strict=True)
        return {name: value if np.isfinite(value) else None for name, value in pairs}

    return {
        "by_instance": {
            name: dict(zip(scores.instances, row.tolist(), strict=True))
            for name, row in zip(scores.algorithms, scores.by_instance[-1], strict=True)
        },
        "mean": named(scores.mean[-1]),
        "error": named(scores.error[-1]),
        "normed_mean": named(scores.normed_mean[-1]),
        "median": named(scores.median[-1]),
        "leaderboard": named(scores.leaderboard),
        "leaderboard_median": named(scores.leaderboard_median),
        "doubtful": list(scores.baseline.doubtful),
    }


def _bootstrap_json(bootstrap: Bootstrap, objective: str, seed: int, top: int) -> dict[str, Any]:
    low, high = 100 * (1 - bootstrap.interval()[::-1])
    mean, deviation = 100 * (1 - bootstrap.losses.mean(axis=0)), 100 * bootstrap.losses.std(axis=0)
    return {
        "objective": objective,
        "resamples": len(bootstrap.losses),
        "seed": seed,
        "scores": {
            name: {"mean": mean[k], "deviation": deviation[k], "low": low[k], "high": high[k]}
            for k, name in enumerate(bootstrap.algorithms)
        },
        "places": dict(zip(bootstrap.algorithms, bootstrap.places.tolist(), strict=True)),
        "rankings": [asdict(ranking) for ranking in bootstrap.rankings()[:100]],
        "top": {"places": top, "rankings": [asdict(ranking) for ranking in bootstrap.rankings(top)[:100]]},
    }
