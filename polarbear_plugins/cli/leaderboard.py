"""``polarbear leaderboard``: Bayesmark's scores and the posterior beside them, and audits of any table of results.

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

from polarbear_plugins.adapters.bayesmark.database import AXES, OBJECTIVES, PARTS, Database, read_database
from polarbear_plugins.adapters.bayesmark.files import Fallbacks
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.leaderboard_audit import (
    AuditOptions,
    audit_database,
    audit_json,
    show_audit,
    show_table,
)
from polarbear_plugins.cli.leaderboard_figures import save_database_figures
from polarbear_plugins.cli.leaderboard_view import (
    show_doubtful,
    show_fallbacks,
    show_instances,
    show_parts,
    show_posterior,
    show_rankings,
    show_scores,
)
from polarbear_plugins.cli.options import parse_timepoints, settings_from, settings_options
from polarbear_plugins.cli.output import console, json_option, print_json, show_saved
from polarbear_plugins.cli.outputs import FigureFolder, InputPath, Saving
from polarbear_plugins.cli.progress import compute_unless_interrupted, inference_spinner, spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.audit import Better
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.disagreements import Disagreement, find_disagreements
from polarbear_plugins.measures.results_table import is_results_table
from polarbear_plugins.measures.score_parts import split_scores
from polarbear_plugins.measures.scores import Scores, score_studies
from polarbear_plugins.racing.analysis import analyze as analyze_table
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.rankings.stream import default_timepoints, rank


@click.command(short_help="Scores, and which places can be told apart.")
@click.argument("source", metavar="DB|TABLE", type=InputPath())
@click.option("--audit", is_flag=True, help="Which places can be told apart: always for a TABLE, on request for a DB.")
@click.option(
    "--better", type=click.Choice(["higher", "lower"]), help="Which scores of a TABLE are better; always needed there."
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Column of the algorithm, instance, score or group in a TABLE, if it has another name.",
)
@click.option("--common", is_flag=True, help="Use the instances of a TABLE on which every algorithm has a score.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability with which all statements of an audit hold together.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Probability of telling two algorithms apart, for the number of instances that an audit says is needed.",
)
@click.option(
    "--by",
    type=click.Choice([*PARTS, "group"]),
    help="Also show the scores split by the model, data or metric of a DB, or by the group of a TABLE.",
)
@click.option(
    "--figures",
    type=FigureFolder(),
    help="Draw figures into this folder (needs the extra plots).",
)
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
    source: Path,
    audit: bool,
    better: Better | None,
    columns: Sequence[str],
    common: bool,
    level: float,
    power: float,
    by: str | None,
    figures: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Score algorithms, and say which places of a leaderboard can be told apart.

    DB is the folder that Bayesmark's experiments wrote, with eval/ in it. Scores are those of bayesmark-anal and of the
    Black-Box Optimization Challenge 2020. They need random search in the database; the posterior of the rankings, which
    is shown beside them, does not.

    TABLE is a CSV or TSV file with the columns algorithm, instance, score and optionally group, a row for each score,
    such as any public leaderboard has behind it. It needs --better.
    """
    wanted = AuditOptions(
        better=better,
        columns=columns,
        common=common,
        level=level,
        power=power,
        by_groups=options["groups"] in ("auto", "new"),
        seed=options["seed"] or 0,
    )
    if is_results_table(source):
        _refuse_given(_FOR_DATABASES, f"is for a Bayesmark database, and {source.name} is a table of results")
        _refuse_given((*_FOR_POSTERIORS, "draws"), "is for the posterior, and an audit has --level instead")
        show_table(source, wanted, by, figures, as_json)
        return
    _refuse_given(_FOR_TABLES, "is for a table of results, a CSV or TSV file")
    if by == "group":
        raise InvalidInputError(f"--by group: a Bayesmark database is split by {', '.join(PARTS)}.")
    _show_database(source, wanted if audit else None, by, figures, as_json, **options)


_FOR_TABLES = ("better", "columns", "common")
_FOR_DATABASES = ("objective", "random", "resamples", "top", "instances", "time", "timepoints", "studies")
_FOR_POSTERIORS = ("alpha", "epsilon", "prior", "prior_options", "engine", "elimination", "resolution", "rule", "guard")


def _refuse_given(names: Sequence[str], why: str) -> None:
    """Refuse options that were given but would have no effect."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name in names:
            raise InvalidInputError(f"{parameter.opts[0]} {why}. Leave it out.")


def _show_database(
    database: Path,
    wanted_audit: AuditOptions | None,
    by: str | None,
    figures: Path | None,
    as_json: bool,
    *,
    objective: str,
    random: Sequence[str],
    resamples: int,
    top: int,
    instances: bool,
    time: str,
    timepoints: str,
    studies: int,
    no_posterior: bool,
    **settings: Any,
) -> None:
    wanted = parse_timepoints(timepoints)
    chosen = settings_from(**settings)
    with spinner("reading"):
        found = read_database(database)
    with spinner(f"scoring {len(found.studies):,} studies"):
        scored = _score(found, objective, random or None, resamples, chosen.seed or 0)
    scores = scored.scores[objective] if scored.scores else None
    audit = audit_database(found, scores, wanted_audit) if scores and wanted_audit else None
    parts = split_scores(scores, found.part_of(by)) if scores and by else None

    def infer() -> tuple[RaceResult, int]:
        return _infer(found, objective, time, wanted, studies, chosen)

    result, ranked = (None if no_posterior else compute_unless_interrupted(infer, "the posterior")) or (None, 0)
    pairs: list[Disagreement] = []
    if scores and scored.bootstrap and result:
        end = _result_at_end(found, result, objective, time, studies)
        pairs = find_disagreements(scores, scored.bootstrap, end.state.table, end.posterior, chosen.alpha)
    fallbacks = found.fallbacks()
    with Saving() as saving:
        if scores is not None:
            saving.save(
                figures, lambda folder: save_database_figures(folder, scores, scored.bootstrap, parts, by, audit)
            )
        if as_json:
            print_json(
                {
                    **_contents(found),
                    "objective": objective,
                    **scored.to_json(objective, top),
                    "by": None if parts is None else {"what": by, "parts": [part.to_json() for part in parts]},
                    "audit": None if audit is None else audit_json(audit),
                    "fallbacks": {name: asdict(failures) for name, failures in fallbacks.items()},
                    "posterior": None if result is None else result.to_dict(),
                    "ranked_studies": ranked,
                    "disagreements": [{**asdict(pair), "text": str(pair)} for pair in pairs],
                    "figures": [str(path) for path in saving.saved],
                }
            )
            return
        _show(found, scored, objective, top, instances, fallbacks)
        out = console()
        if parts is not None and scores is not None:
            show_parts(out, parts, scores, by or "")
        if audit is not None:
            out.print()
            show_audit(out, audit)
        if result is not None:
            out.print()
            if ranked < len(found.studies):
                out.print(
                    f"{ranked} of {len(found.studies)} studies are ranked, at most {studies} of each algorithm on each "
                    "instance (--studies)."
                )
            show_posterior(out, result, time, pairs if scored.bootstrap else None)
        show_saved(out, saving.saved)


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
                "random_as_scored": visible.random_as_scored,
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
        show_doubtful(out, scored.scores)
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
