"""``polarbear race --dry-run``."""

from __future__ import annotations

from rich.text import Text

from polarbear_plugins.cli.output import console, print_json, text_table
from polarbear_plugins.display.text import amount, format_duration
from polarbear_plugins.errors import foreign_text
from polarbear_plugins.experiments.dry_runs import MOST_COUNTED, DryRun, Timing

_MOST_RUNS = 4  # of the first round that are named
_MEASURABLE = 0.01  # seconds of a run; two much shorter ones may differ by chance alone


def show_dry_run(found: DryRun, title: str, as_json: bool) -> None:
    """Print what a race would do."""
    if as_json:
        print_json(found.to_dict())
        return
    out, grid = console(), found.timepoints
    instances = f"{found.instances:,} instances" if found.instances is not None else f"over {MOST_COUNTED:,} instances"
    out.print(
        f"dry run: {title} · {len(found.algorithms)} algorithms{_rivals(found)} · {instances} · "
        f"{grid.size} timepoints {grid[0]:g}..{grid[-1]:g} · seed {found.settings.seed}",
        soft_wrap=True,
    )
    failed = any(timing.failure for timing in found.timings)
    view = text_table("algorithm", ">a run takes", *(["because"] if failed else []))
    for timing in found.timings:
        why = [Text(foreign_text(timing.failure or ""))] if failed else []
        view.add_row(Text(timing.algorithm), _time_of(timing), *why)
    out.print(view)
    for sentence in (_spread(found), first_round_text(found), full_text(found)):
        if sentence:
            out.print(sentence, soft_wrap=True)
    out.print(
        "Starting processes, sending runs and inference come on top. Nothing was raced, and nothing was written.",
        soft_wrap=True,
    )


def first_round_text(found: DryRun) -> str:
    """What would run first, for how long, and whether workers would wait."""
    runs = found.first_round
    named = ", ".join(f"{run.algorithm} on {run.instance}" for run in runs[:_MOST_RUNS])
    instances = len({run.instance for run in runs})
    text = (
        f"First come {len(runs):,} runs on {instances:,} instance{'s' * (instances > 1)}, which cost "
        f"{amount(found.first_cost)}: {named}{' and so on' if len(runs) > _MOST_RUNS else ''}."
    )
    seconds, busy = found.first_seconds, found.utilisation
    if seconds is not None and busy is not None:
        text += f" They take {_about(found)} {_duration(seconds)} with {_workers(found)}, busy for {busy:.0%} of it."
    if found.would_wait:
        text += " With --schedule continuous, workers go on with later runs instead of waiting, at a higher cost."
    return text


def full_text(found: DryRun) -> str:
    """What it would cost to run everything."""
    text = (
        f"Everything until {found.timepoints[-1]:g} on {found.full_instances:,} instances costs "
        f"{amount(found.full_cost)}"
    )
    if found.full_seconds is not None:
        text += f" and takes {_about(found)} {_duration(found.full_seconds)} with {_workers(found)}"
    return f"{text}; a race stops earlier where it can, and goes on where it must."


def _spread(found: DryRun) -> str:
    """How much longer the slowest takes than the quickest, if it does."""
    seconds = [timing.seconds for timing in found.timings if timing.seconds is not None]
    if len(seconds) < 2 or max(seconds) < _MEASURABLE or not 0 < 1.5 * min(seconds) < max(seconds):
        return ""
    least = "at least " if any(timing.ended for timing in found.timings) else ""
    ratio = max(seconds) / min(seconds)
    return (
        f"The slowest takes {least}{f'{ratio:.2g}' if ratio < 10 else f'{ratio:,.0f}'} times as long as the quickest."
    )


def _rivals(found: DryRun) -> str:
    return f" against {len(found.stored)} stored ones" if found.stored else ""


def _time_of(timing: Timing) -> str:
    if timing.seconds is None:
        return "failed"
    return f"{'more than ' if timing.ended else ''}{_duration(timing.seconds)}"


def _about(found: DryRun) -> str:
    return "at least" if found.at_least else "about"


def _workers(found: DryRun) -> str:
    return f"{found.workers:,} worker{'s' * (found.workers != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else format_duration(seconds)
