"""The audit of ``polarbear leaderboard``: what it reads from a table of results, and how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from polarbear_plugins.adapters.bayesmark.database import Database
from polarbear_plugins.cli.leaderboard_figures import save_table_figures
from polarbear_plugins.cli.options import parse_key_values
from polarbear_plugins.cli.output import console, print_json, show_saved, text_table
from polarbear_plugins.cli.outputs import Saving
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.audit import Audit, Better, Neighbours, audit_scores
from polarbear_plugins.measures.results_table import Results, read_results
from polarbear_plugins.measures.scores import Scores

_MOST_GROUPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What the audit was asked for on the command line."""

    better: Better | None
    columns: Sequence[str]
    common: bool
    level: float
    power: float
    by_groups: bool
    seed: int


def show_table(path: Path, options: AuditOptions, by: str | None, figures: Path | None, as_json: bool) -> None:
    """Audit a table of results, and print it."""
    if by not in (None, "group"):
        raise InvalidInputError(f"--by {by}: a table of results is split by group.")
    with spinner("reading"):
        results = _read(path, options)
    with spinner(f"comparing {len(results.algorithms):,} algorithms"):
        audit = _audit_results(results, options)
    parts = None if by is None else _group_means(results)
    with Saving() as saving:
        saving.save(figures, lambda folder: save_table_figures(folder, audit))
        if as_json:
            data = audit_json(audit)
            read = {"repeated": results.repeated, "left_out": list(results.left_out)}
            print_json(
                {"table": str(path), **read, **data, "by_group": parts, "figures": [str(path) for path in saving.saved]}
            )
            return
        out = console()
        _show_results(out, path, results)
        show_audit(out, audit)
        if parts is not None:
            _show_groups(out, parts, results, audit)
        show_saved(out, saving.saved)


def _read(path: Path, options: AuditOptions) -> Results:
    if options.better is None:
        raise InvalidInputError(
            f"Which scores in {path.name} are better is not known: give --better higher or --better lower."
        )
    results = read_results(path, parse_key_values(options.columns, "--column"), common=options.common)
    if len(results.algorithms) < 2:
        raise InvalidInputError(
            f"{path.name}: expected scores of at least two algorithms, got those of {results.algorithms[0]!r} only."
        )
    return results


def _audit_results(results: Results, options: AuditOptions) -> Audit:
    return audit_scores(
        results.scores,
        results.algorithms,
        better=options.better or "higher",
        groups=results.groups if options.by_groups else None,
        level=options.level,
        power=options.power,
        seed=options.seed,
    )


def audit_database(found: Database, scores: Scores, options: AuditOptions) -> Audit:
    """Audit the scores of a Bayesmark database; its datasets are the groups."""
    data = found.part_of("data")
    return audit_scores(
        100.0 * (1.0 - scores.by_instance[-1].T),
        scores.algorithms,
        better="higher",
        groups=[data[instance] for instance in scores.instances] if options.by_groups else None,
        level=options.level,
        power=options.power,
        seed=options.seed,
    )


def _show_results(out: Console, path: Path, results: Results) -> None:
    """Print what was read, and what was done to it."""
    groups = "" if results.groups is None else f" in {len(set(results.groups))} groups"
    out.print(
        f"{path.name}: {len(results.algorithms)} algorithms on {len(results.instances)} instances{groups}",
        soft_wrap=True,
    )
    if results.left_out:
        out.print(
            f"{len(results.left_out)} instances are left out, on which some algorithm has no score (--common).",
            soft_wrap=True,
        )
    if results.repeated:
        out.print(
            f"{results.repeated} scores are means of several rows of the same algorithm and instance.", soft_wrap=True
        )


def _group_means(results: Results) -> dict[str, dict[str, float]]:
    """``[group][algorithm]``: mean score."""
    if results.groups is None:
        raise InvalidInputError("--by group: the table has no column for groups. Name it with --column group=NAME.")
    member_of = np.array(results.groups)
    return {
        group: dict(zip(results.algorithms, results.scores[member_of == group].mean(axis=0).tolist(), strict=True))
        for group in dict.fromkeys(results.groups)
    }


def _show_groups(out: Console, means: dict[str, dict[str, float]], results: Results, audit: Audit) -> None:
    sizes = Counter(results.groups)
    view = text_table("algorithm", *(f">{group} ({sizes[group]})" for group in means))
    for name in audit.algorithms:
        view.add_row(Text(name), *(f"{scores[name]:.5g}" for scores in means.values()))
    out.print("Mean score in each group (number of instances):")
    out.print(view)


def show_audit(out: Console, audit: Audit) -> None:
    """Print the leaderboard with rank intervals, which neighbours can be told apart, and what it rests on."""
    unit = "instances" if audit.groups is None else "groups"
    view = text_table(
        ">place", "algorithm", ">score", f">rank, {audit.level:.0%}", ">lead", "from the next", f">{unit} needed"
    )
    rows = zip(
        audit.places, audit.algorithms, audit.scores, audit.rank_intervals, [*audit.neighbours, None], strict=True
    )
    for place, name, score, (low, high), pair in rows:
        ranks = str(low) if low == high else f"{low} to {high}"
        view.add_row(str(place), Text(name), f"{score:.5g}", ranks, *_next_cells(pair))
    out.print(f"Mean scores, {audit.better} is better; each algorithm beside the one on the next place:")
    out.print(view)
    for sentence in findings(audit):
        out.print(sentence, soft_wrap=True)


def _next_cells(pair: Neighbours | None) -> tuple[str, str, str]:
    if pair is None:
        return "", "", ""
    if pair.told_apart:
        return f"{pair.difference:.3g}", f"told apart, p = {max(pair.p, 1e-4):.4f}", ""
    needed = "-" if pair.needed is None else round_number(pair.needed)
    return f"{pair.difference:.3g}", "not told apart", needed


def round_number(number: int) -> str:
    """Two significant digits: a plan from noisy differences has no more.

    >>> round_number(13), round_number(12_345), round_number(98_765_432)
    ('13', '12,000', '99,000,000')
    """
    return f"{int(float(f'{number:.2g}')):,}"


def findings(audit: Audit) -> list[str]:
    """What the audit found, and what it rests on, in sentences."""
    unit = "instances" if audit.groups is None else "groups"
    if audit.units < audit.least_units:
        return [_too_few(audit, unit), *_group_sentence(audit)]
    sentences = [_counts(audit)]
    if audit.tie_groups:
        shown = [f"{first + 1} to {last + 1}" for first, last in audit.tie_groups[:_MOST_GROUPS]]
        more = len(audit.tie_groups) - len(shown)
        rest = f" and {more} more (all with --json)" if more > 0 else ""
        sentences.append(f"Tie groups, in which no two can be told apart: rows {', '.join(shown)}{rest}.")
    sentences += _resolution(audit, unit)
    sentences.append(
        f"All ranks and all pairs told apart are right together with probability {audit.level:.0%}, if {unit} are a "
        "sample of what the leaderboard is about, and if equally good algorithms are as often ahead by an amount as "
        "behind by it; if differences are skewed, it holds only for many of them."
    )
    return sentences + _group_sentence(audit)


def _too_few(audit: Audit, unit: str) -> str:
    return (
        f"Nothing can be told apart with {audit.units} {unit}, whatever the scores: even if one algorithm is ahead on "
        f"all of them, chance does that with probability {2.0 ** (1 - audit.units):.3g}. At least {audit.least_units} "
        f"{unit} are needed, and more for many algorithms."
    )


def _counts(audit: Audit) -> str:
    pairs = len(audit.algorithms) * (len(audit.algorithms) - 1) // 2
    first, tied = audit.algorithms[0], audit.tied_with_first - 1
    top = f"{tied} {'others are' if tied > 1 else 'other is'} not told apart from {first}."
    return (
        f"{audit.separable} of {len(audit.neighbours)} neighbours can be told apart, and {audit.separated_pairs:,} of "
        f"all {pairs:,} pairs. {top if tied else f'{first} is told apart from all others.'}"
    )


def _resolution(audit: Audit, unit: str) -> list[str]:
    """The difference that the leaderboard can resolve, and under what condition its needs hold."""
    sizes = [pair.detectable for pair in audit.neighbours if pair.detectable]
    sentences = []
    if sizes:
        sentences.append(
            f"Neighbours need a true difference of about {np.median(sizes):.2g} to be told apart with probability "
            f"{audit.power:.0%} by {audit.units:,} {unit}."
        )
    if audit.separable < len(audit.neighbours):
        sentences.append(
            f"The number of {unit} needed is for telling neighbours apart with probability {audit.power:.0%} if their "
            "true difference is the lead observed here, which these data do not show; it may be far larger."
        )
    return sentences


def _group_sentence(audit: Audit) -> list[str]:
    if audit.groups is None:
        return []
    return [
        (
            f"The {audit.instances:,} instances count as {audit.groups} independent groups; --groups none counts every "
            "instance as independent, which is right only if instances of a group have no more in common than others."
        )
    ]


def audit_json(audit: Audit) -> dict[str, Any]:
    """The audit as JSON, with its sentences."""
    return {**audit.to_json(), "text": findings(audit)}
