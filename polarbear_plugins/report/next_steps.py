"""What to do next: the data that would settle what is open, and the commands for it and for choosing."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polarbear_plugins.display.html import Markup, text
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.verdicts import about_new_groups
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.report.stored_words import open_pairs
from polarbear_plugins.report.words import misfits

_FEW_INSTANCES = 10  # below that the prior matters: docs/why/wrong.md
_MOST_NAMES = 4
_BY_HAND = ("interrupted", "requested")  # by ctrl-C, or from the page on which the race is watched
_NEW_JOURNAL, _NEW_RESULT = Path("race.db"), Path("result.npz")


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do, and the command or the call in Python for it; without one, an empty text."""

    says: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Files that hold a result: the journal of its race, and what was saved of it."""

    journal: Path | None = None
    saved: Path | None = None


NOWHERE = Kept()


def next_steps(result: RaceResult, forecast: Forecast | None = None, kept: Kept = NOWHERE) -> list[Step]:
    """What would help, the most urgent first; ``forecast`` of the instances that would settle the open pairs."""
    if not result.rounds:
        return [_go_on(result, kept, "Let the race go on: nothing is known before its first round is over")]
    steps = [*_doubts(result)]
    pairs = open_pairs(result, stored=False)
    if pairs and not result.resolved:
        steps += _settle(result, pairs, forecast, kept)
    return [*steps, *_choose(result, kept)]


def _doubts(result: RaceResult) -> list[Step]:
    """What to check or add before the answer is relied on."""
    found = []
    if not result.posterior.diagnostics.good:
        found.append(
            Step(
                f"Rely on nothing yet: the draws are not good enough to decide on. Repeat it with more draws than "
                f"{result.posterior.draws:,} or another prior."
            )
        )
    if misfits(result):
        groups = " (--by group shows each group by itself)" if result.state.table.groups else ""
        found.append(
            Step(
                "Check the instances, since the model does not fit: more of the same do not mend that. They may be of "
                f"different kinds, which are better analyzed one by one{groups}, or algorithms may beat each other in "
                "a circle."
            )
        )
    instances = len(result.state.table.instances)
    if instances < _FEW_INSTANCES:
        only = "instance is" if instances == 1 else "instances are"
        found.append(
            Step(
                f"Add instances, not more runs on the same ones: {instances} {only} so few that the prior influences "
                "the result, and that a model that does not fit would hardly be noticed."
            )
        )
    return found


def why_no_forecast(result: RaceResult) -> str:
    """Why it cannot be said how many instances would settle the open pairs; for a sentence that goes on after it."""
    if misfits(result):
        return "the model does not fit"
    if about_new_groups(result.posterior):
        return "more of them do not make groups differ less"
    if not result.posterior.observed.all():
        return "some algorithms were never observed at some timepoints"
    return "nothing was simulated"


def _settle(
    result: RaceResult, pairs: Sequence[tuple[str, str, tuple[float, ...]]], forecast: Forecast | None, kept: Kept
) -> list[Step]:
    """Steps towards settling the open pairs."""
    count = len(pairs)
    what = "the open pair" if count == 1 else f"the {count:,} open pairs"
    them = "it" if count == 1 else "them"
    who = _names_text(list(dict.fromkeys(name for pair in pairs for name in pair[:2])))
    if result.stopped == "running":
        return [
            Step(f"Let the race go on, which is still running, to settle {what}: {_instances_text(result, forecast)}.")
        ]
    if result.stopped in _BY_HAND and "study" not in result.about:
        return [_go_on(result, kept, f"Let the race go on, to settle {what}: {_instances_text(result, forecast)}")]
    if forecast is None and about_new_groups(result.posterior) and not misfits(result):
        return [_more_groups(result, what)]
    easier = _easier_text(result, them)
    if forecast is not None and forecast.median is None:
        return [Step(f"Leave {what} open, or ask for less: settling {them} would take {forecast}. {easier}")]
    if result.stopped == "instances":
        where = "archive" if result.state.stored else "suite"
        return [Step(f"Add instances to the {where}, or ask for less: it has none left to settle {what}. {easier}")]
    needed = _instances_text(result, forecast)
    if result.stopped == "analyzed":
        source = "the data" if not result.about.get("sources") else _names_text(list(map(str, result.about["sources"])))
        says = f"To settle {what}, add runs of {who} to {source} and repeat the analysis: {needed}. {easier}"
        return [Step(says)]
    if "study" in result.about:
        return [_go_on_with_study(result, f"To settle {what}, let the study go on: {needed}", forecast)]
    if result.stopped == "inference":
        return []  # what to do about the draws was said
    return [_go_on(result, kept, f"To settle {what}, go on with {who}: {needed}", forecast)]


def _instances_text(result: RaceResult, forecast: Forecast | None) -> str:
    if forecast is None:
        return f"how many more instances it takes is not forecast, since {why_no_forecast(result)}"
    return f"it likely takes {forecast}"


def _easier_text(result: RaceResult, them: str) -> str:
    settings = result.settings
    crossing = ' or resolution "crossing"' if settings.resolution == "strict" else ""
    return (
        f"A larger epsilon than {settings.epsilon:g}, a smaller alpha than {settings.alpha:g}{crossing} would settle "
        f"{them} with fewer; fix that before you look at the new data."
    )


def _more_groups(result: RaceResult, what: str) -> Step:
    groups = result.posterior.groups
    known = "" if groups is None else f" than the {groups.groups} there are"
    says = (
        f"To settle {what}, add instances of more groups{known}: the certainty is about a new group, and more "
        "instances of the same groups do not make groups differ less."
    )
    if result.stopped != "analyzed" or not result.about.get("sources"):
        return Step(says)
    settings = replace(result.settings, groups="same")
    same = replace(result, state=replace(result.state, settings=settings))
    return Step(
        f"{says} If later instances come from the same groups, ask about these instead:", how_to_repeat(same)[1]
    )


def _go_on(result: RaceResult, kept: Kept, says: str, forecast: Forecast | None = None) -> Step:
    """Resume the race, or repeat it from the start where no journal is known; with limits that let it go on."""
    limits = _limits(result, forecast)
    missing = [what for what in ("portfolio", "suite") if not result.about.get(what)]
    if forecast is not None and limits:
        simulations = "9 of 10" if forecast.high is not None else "half of the"
        says += f". This limit is enough in {simulations} simulations"
    if kept.journal is not None:
        if not missing:
            options = [word for name, limit in limits.items() for word in (f"--{name.replace('_', '-')}", str(limit))]
            return Step(f"{says}:", _shell("resume", kept.journal, *options))
        words = [*(f"{what}={what}" for what in missing), *(f"{name}={limit}" for name, limit in limits.items())]
        same = " and ".join(missing)
        return Step(
            f"{says}. In Python, with the same {same}:", f"resume({', '.join([repr(str(kept.journal)), *words])})"
        )
    settings = replace(result.settings, **limits)
    _, command = how_to_repeat(replace(result, state=replace(result.state, settings=settings)))
    again = "Without its journal the race begins anew, this time with one, and repeats what it did"
    if command.startswith("polarbear"):
        return Step(f"{says}. {again}:", f"{command} {shlex.join(['--journal', str(_NEW_JOURNAL)])}")
    return Step(f"{says}. {again}:", f"{command.removesuffix(')')}, journal={str(_NEW_JOURNAL)!r})")


def _limits(result: RaceResult, forecast: Forecast | None) -> dict[str, Any]:
    """Limits of the race that would stop it before every pair is settled, raised; twice as high where nothing is known.

    A race that was stopped by hand goes on within its limits.
    """
    settings = result.settings
    found: dict[str, Any] = {}
    if result.stopped in _BY_HAND or not result.rounds:
        return {}
    share = 0.9 if forecast is not None and forecast.high is not None else 0.5
    if settings.max_rounds is not None:
        more = len(result.rounds) if forecast is None else forecast.quantile_of_rounds(share)
        needed = len(result.rounds) + (more or len(result.rounds))
        if result.stopped == "max_rounds" or needed > settings.max_rounds:
            found["max_rounds"] = max(needed, settings.max_rounds + 1)
    if settings.max_cost is not None:
        cost = result.cost + result.unused_cost
        extra = cost if forecast is None else forecast.quantile(share, cost=True)
        enough = cost + (extra or cost)
        if result.stopped == "max_cost" or enough > settings.max_cost:
            found["max_cost"] = _rounded_up(max(enough, 1.01 * settings.max_cost))
    return found


def _rounded_up(value: float) -> int | float:
    """Two digits of a limit, rounded up, are enough.

    >>> _rounded_up(3_612_000.5), _rounded_up(12.0), _rounded_up(0.0123)
    (3700000, 12, 0.013)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    rounded = math.ceil(value / unit - 1e-9) * unit
    return round(rounded) if unit >= 1 else float(f"{rounded:.2g}")


def _go_on_with_study(result: RaceResult, says: str, forecast: Forecast | None) -> Step:
    limits = _limits(result, forecast)
    if limits:
        wanted = " and ".join(f"{name}={limit}" for name, limit in limits.items())
        says += f"; give its PolarBearSampler settings with {wanted}, else the same"
    if forecast is None or forecast.high is None:
        return Step(f"{says}:", "study.optimize(objective)")
    trials = forecast.high * len(result.pareto_set) * result.settings.replications
    says += ". So many trials are enough in 9 of 10 simulations, if no new candidates enter:"
    return Step(says, f"study.optimize(objective, n_trials={trials})")


def _choose(result: RaceResult, kept: Kept) -> list[Step]:
    """How to choose among those that are left."""
    left = result.pareto_set
    if len(left) < 2:
        return [Step(f"There is nothing to choose: {left[0]} is the only algorithm left.")]
    grid = result.timepoints
    preference = "uniform" if grid.size == 1 or grid[0] <= 0 else "log-uniform"
    options = [] if grid.size == 1 else ["--preference", preference]
    says = f"To choose one of the {len(left)} that are left, say what is known about the later budget"
    if grid.size == 1:
        says = f"To choose one of the {len(left)} that are left"
    path = kept.journal or kept.saved
    if path is not None:
        return [Step(f"{says}:", _shell("select", path, *options))]
    if result.stopped == "analyzed" and result.about.get("sources"):
        again = f"repeat the analysis with --output {_NEW_RESULT}"
        return [Step(f"{says}; first {again}, then:", _shell("select", _NEW_RESULT, *options))]
    if result.about.get("portfolio") and result.about.get("suite"):
        return []  # the race was not kept; a command would have to repeat it
    posterior = "result.robust_posterior(result.pareto_set)" if misfits(result) else "result.posterior"
    wanted = "" if grid.size == 1 else f", preference={preference!r}"
    return [Step(f"{says}; in Python:", f"select({posterior}, among=result.pareto_set{wanted})")]


def _names_text(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    if rest > 1:
        return f"{', '.join(names[:_MOST_NAMES])} and {rest} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _shell(command: str, path: Path, *options: str) -> str:
    # A name that begins with a dash would be read as an option.
    name = f"./{path}" if str(path).startswith("-") else str(path)
    return shlex.join(["polarbear", command, name, *options])


def next_section(result: RaceResult, forecast: Forecast | None, kept: Kept) -> Markup:
    """Section of a report."""
    items = (
        f"<li>{text(step.says)}{f'<pre>{text(step.command)}</pre>' if step.command else ''}</li>"
        for step in next_steps(result, forecast, kept)
    )
    return Markup(f"<ul>{''.join(items)}</ul>")
