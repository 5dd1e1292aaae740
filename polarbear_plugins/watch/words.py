"""A race that is running, in words: what the workers do, who is in, who is out and why, how long it still takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polarbear_plugins.display.text import amount, format_duration, probability_text
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Elimination, Failure, RaceState

_FEW = 0.2  # share of the runs of a round that are missing when it is told which
_QUIET = 5.0  # seconds without news after which it is told, too
_MOST_NAMES = 3
_MOST_INSIDE = 20
_MOST_OUT = 5
_MOST_FAILURES = 3


def activity_text(progress: Progress, quiet: float, *, wide: bool = True) -> str:
    """What the workers of a race are doing, and whom its round waits for if that is few runs, or for long.

    Parameters
    ----------
    quiet
        Seconds since the last run of the round finished.
    wide
        Whether there is room for all of it.
    """
    parts = []
    if progress.utilisation is not None:
        parts.append(f"workers {progress.utilisation:.0%} busy")
    if progress.under_way:
        ahead = f", {progress.ahead} of them ahead" if progress.ahead and wide else ""
        parts.append(f"{progress.under_way} under way{ahead}")
    missing = progress.planned - progress.done
    # At first a round waits for everything, which says nothing.
    if 0 < missing <= _FEW * progress.planned or (0 < missing < progress.planned and quiet >= _QUIET):
        parts.append(f"waiting for {_waited_for_text(progress.waited_for, _MOST_NAMES if wide else 1)}")
    return " · ".join(parts)


def _waited_for_text(waited_for: Mapping[str, int], most: int) -> str:
    most_first = sorted(waited_for.items(), key=lambda entry: -entry[1])
    named = [name if count == 1 else f"{name} x{count}" for name, count in most_first[:most]]
    rest = len(waited_for) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def inside_text(state: RaceState) -> str:
    """Which algorithms are in the race."""
    names = state.pareto_set
    return f"{len(names)} of {len(state.algorithms)} algorithms: {_list(names, _MOST_INSIDE)}"


def out_text(eliminations: Sequence[Elimination]) -> str:
    """Which algorithms are out and why, the last one first.

    >>> out_text([Elimination("a", "b", 0.9981, 2)])
    'a in round 2: b is better at every timepoint, P = 0.998'
    """
    if not eliminations:
        return "none"
    parts = [
        f"{out.algorithm} in round {out.round}: {out.by} is better at every timepoint, "
        f"{probability_text(out.probability)}"
        for out in reversed(eliminations)
    ]
    return _list(parts, _MOST_OUT, "; ")


def cost_text(state: RaceState) -> str:
    """Cost of the finished rounds, and how much that is of a full comparison."""
    rounds = len(state.rounds)
    if not rounds:
        return "0 in finished rounds"
    share = f", {state.cost / state.full_cost:.0%} of running everything on as many instances" * bool(state.full_cost)
    return f"{amount(state.cost)} in {rounds} finished round{'s' * (rounds > 1)}{share}"


def settled_text(state: RaceState) -> str:
    """How many pairs are settled, and on how many instances that rests."""
    count = len(state.table.instances)
    return f"{state.resolved_share:.0%} of the pairs, on {count:,} instance{'s' * (count != 1)}"


def failures_text(count: int, recent: Sequence[Failure]) -> str:
    """How many runs failed, and why the last ones did.

    >>> failures_text(1, [Failure("a", "f1", "it broke")])
    '1 run failed and counts as having found nothing. a on f1: it broke'
    """
    if not count:
        return "none"
    what = "1 run failed and counts" if count == 1 else f"{count:,} runs failed and count"
    # One of each kind: an algorithm often fails for the same reason.
    kinds = {(one.algorithm, one.reason): one for one in recent}
    last = [f"{one.algorithm} on {one.instance}: {one.reason}" for one in list(kinds.values())[::-1][:_MOST_FAILURES]]
    which = "Of the last ones: " if count > len(last) else ""
    return f"{what} as having found nothing. {which}{'; '.join(last)}".rstrip()


def time_left_text(seconds: Mapping[str, float | None], settings: RaceSettings, rounds: int) -> str:
    """How long a race still takes at its speed so far, given the low end, median and high end of a forecast.

    Parameters
    ----------
    rounds
        Number of rounds that the forecast rests on.

    Examples
    --------
    >>> time_left_text({"low": 60, "median": 600, "high": None}, RaceSettings(), 3)
    'about 10 min until every pair is settled (80 % interval 60 s to no end in sight), at the speed so far; forecast \
after round 3'
    """
    low, median, high = (seconds[name] for name in ("low", "median", "high"))
    ends = [f"after round {settings.max_rounds:,}"] if settings.max_rounds is not None else []
    ends += [f"when {amount(settings.max_cost)} is spent"] if settings.max_cost is not None else []
    limits = f"; forecast after round {rounds:,}"
    limits += f"; it ends earlier {' or '.join(ends)}, its limit{'s' * (len(ends) > 1)}" if ends else ""
    if median is None:
        least = "" if low is None else f" (in one of ten simulations within {format_duration(low)})"
        return f"no end in sight: a hundred times as many instances would probably leave pairs open{least}{limits}"
    most = "no end in sight" if high is None else format_duration(high)
    interval = f"{format_duration(low or 0.0)} to {most}"
    about = f"about {format_duration(median)} until every pair is settled (80 % interval {interval})"
    return f"{about}, at the speed so far{limits}"


def _list(names: Sequence[str], most: int, between: str = ", ") -> str:
    rest = len(names) - most
    return between.join(names[:most]) + (f"{between}and {rest:,} more" if rest > 0 else "")
