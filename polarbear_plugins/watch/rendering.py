"""Renders the report of a race in a process of its own, with low priority.

Drawing takes seconds, and changes settings of matplotlib and filters of warnings that belong to a whole process, as
the driver of a race does; neither may wait for the other or change what the other set.  The process reads a saved
result or a journal and writes a file of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearError, describe_exception
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.racing.posteriors import checked
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.verdicts import about_new_groups
from polarbear_plugins.report import render
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.words import misfits

_LOWER = 5  # priority: a quarter of a core that workers keep busy; with less a report would take minutes


def main(source: str, target: str, options: str) -> None:
    """Render what is in the file ``source`` and write the file ``target``; ``options`` is JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the race, which ends this process
    given = json.loads(options)
    if given["running"]:  # it is the race that needs the cores
        with contextlib.suppress(AttributeError, OSError):  # not on Windows
            os.nice(_LOWER)
    try:
        data = _rendered(Path(source), **given)
    except PolarBearError as problem:
        data = {"problem": str(problem)}
    except Exception as problem:  # a plugin's section, for example
        data = {"problem": f"The report could not be made: {describe_exception(problem)}."}
    Path(target).write_text(json.dumps(data))


def _rendered(source: Path, *, unit: str, title: str | None, running: bool) -> dict[str, Any]:
    result = load_result(source)
    # What is saved between two rounds has not been checked.
    result = replace(result, _posterior=checked(result.state, result._posterior))
    if running:
        result = replace(result, stopped="running")
    known = compute(result)
    forecast, why = _forecast(result, known)
    return {
        "html": render(result, title=title, unit=unit, known=known),
        "rounds": len(result.rounds),
        "cost": result.cost,
        "forecast": forecast,
        "why": why,
        "processor": time.process_time(),
    }


def _forecast(result: RaceResult, known: Computed) -> tuple[dict[str, Any] | None, str]:
    """Quantiles of the cost still to come, or why there are none."""
    if known.forecast is not None:
        return known.forecast.to_dict()["cost"], ""
    if not result.rounds:
        why = "no round has finished yet"
    elif result.resolved:
        why = "every pair is settled"
    elif misfits(result):
        why = "a forecast would rest on the model, which does not fit"
    elif about_new_groups(result.posterior):
        why = "how much new groups differ does not shrink with more instances, so there is no forecast"
    else:
        why = "something was never observed, so there is no forecast"
    return None, why


if __name__ == "__main__":
    main(*sys.argv[1:])
