"""Stored rivals in words: what was run, what came from an archive, and what of it could be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarbear_plugins.display.text import amount
from polarbear_plugins.report.observations import unused_text

if TYPE_CHECKING:
    from polarbear_plugins.racing.result import RaceResult


def run_and_stored_text(result: RaceResult) -> str:
    """What was run on how many instances at what cost, and what was stored."""
    state = result.state
    run = [name for name in result.algorithms if name not in state.stored]
    share = result.cost / result.full_cost if result.full_cost else 1.0
    return (
        f"Run: {', '.join(run)}, in {len(result.rounds)} rounds on {state.instances_run:,} of "
        f"{len(state.table.instances):,} instances of the archive, for {amount(result.cost)}, {share:.0%} of the cost "
        f"of all of them in full{unused_text(result)}. Stored, at no cost: {', '.join(state.stored)}."
    )


def matching_text(result: RaceResult) -> str:
    """How the instances of the archive and those of the suite match."""
    about = result.about.get("against") or {}
    text = f"{len(result.state.table.instances):,} instances are both in the archive and in the suite"
    beside = about.get("not_in_suite")
    if beside:
        some = ", ".join(map(str, about.get("not_in_suite_examples") or []))
        text += f"; {beside:,} of the archive are not in the suite" + (f", such as {some}" if some else "")
    missing = about.get("not_in_archive")
    if missing:
        text += f"; {missing:,} of the suite are not in the archive"
    return f"{text}."


def open_pairs(result: RaceResult, *, stored: bool) -> list[tuple[str, str, tuple[float, ...]]]:
    """Open pairs of two stored rivals, which the archive alone could settle; or those that the race is about."""
    known = set(result.state.stored)
    return [pair for pair in result.open_pairs if (pair[0] in known and pair[1] in known) == stored]


def settled_text(result: RaceResult) -> str:
    """Sentence about a race whose pairs are settled, and pairs of stored rivals, if any are not."""
    rest = len(open_pairs(result, stored=True))
    if not result.state.stored:
        return "Every pair is settled."
    more = f"; {rest} of stored rivals {'are' if rest > 1 else 'is'} not, by the data of the archive" if rest else ""
    return f"Every pair that involves a newcomer is settled{more}."
