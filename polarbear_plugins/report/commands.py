"""How to repeat a result: a command, or a call in Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import short
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.trajectories.timepoints import log_timepoints, uniform_timepoints

_DECIDING = ("alpha", "epsilon", "prior", "engine", "elimination", "resolution", "rule", "guard", "groups")
_OPTIONS = (*_DECIDING, "draws", "seed")
_RACE_OPTIONS = ("replications", "batch_size", "batch_min", "batch_max", "schedule", "max_rounds", "max_cost")


def how_to_repeat(result: RaceResult) -> tuple[str, str]:
    """Sentence that says how to repeat the result, and the command or the call for it."""
    about, settings = result.about, result.settings
    portfolio, suite, sources = (about.get(key) for key in ("portfolio", "suite", "sources"))
    # The command line has no option for these.
    as_command = not settings.engine_options and settings.dependence == "auto" and not callable(settings.engine)
    as_command &= isinstance(settings.prior, str)
    against = about.get("against") if result.state.stored else None
    grid = _grid_options(result.timepoints, "d" if settings.per_dimension else "")
    as_command &= not settings.per_dimension or "--budget" in grid  # only a budget can say that it is in multiples of d
    if as_command and portfolio and suite and (against is None or against.get("sources")):
        words = ["race", portfolio["name"], suite["name"], *grid]
        for flag, source in (("-P", portfolio), ("-S", suite)):
            words += [word for option in _option_texts(json.loads(source["options"])) for word in (flag, option)]
        words += ["--tolerance", _number(result.state.table.tolerance)] if result.state.table.tolerance else []
        words += _options(settings, _OPTIONS + _RACE_OPTIONS)
        return "This command repeats the race:", _command([*words, *_against_options(against)])
    # A single number for --timepoints is their count.
    if as_command and sources and all(isinstance(source, str) for source in sources) and result.timepoints.size > 1:
        table = result.state.table
        words = ["analyze", *sources, "--timepoints"]
        if "budget" in about:
            words += [str(about["timepoints"]), "--budget", str(about["budget"])]
        else:
            words.append(",".join(map(_number, result.timepoints)))
        words += [word for option in _option_texts(about.get("options") or {}) for word in ("-o", option)]
        if table.repetitions != "weight":
            words += ["--repetitions", table.repetitions]
        if about.get("ended", "hold") != "hold":
            words += ["--ended", str(about["ended"])]
        if about.get("target") is not None:
            words += ["--target", _number(about["target"])]
        if table.tolerance:
            words += ["--tolerance", _number(table.tolerance)]
        return "This command repeats the analysis:", _command([*words, *_options(settings, _OPTIONS)])
    if "study" in about:
        says = f"The race was run inside the Optuna study {about['study']!r}. This call repeats the result:"
        return says, "race_result(study)"
    if result.stopped == "analyzed":
        says = "The data were given in Python. With the same table this call repeats the analysis:"
        return says, f"analyze(table, {_settings_text(settings)})"
    missing = " and ".join(what for what in ("portfolio", "suite") if not about.get(what))
    if against is not None and not against.get("sources"):
        missing = f"{missing} and archive" if missing else "archive"
    says = f"The {missing or 'engine'} was given in Python. With the same one this call repeats the race:"
    named = [_arguments(about.get(what), what) for what in ("portfolio", "suite")]
    words = [name for name, _ in named] + [_list_text(result.timepoints), _settings_text(settings)]
    words += [options for _, options in named if options]
    if result.state.table.tolerance:
        words.append(f"tolerance={_number(result.state.table.tolerance)}")
    if against is not None:
        options = against.get("options")
        words.append(f"against={against.get('sources') or 'archive'}")
        words += [f"against_options={options}"] if options else []
    return says, f"race({', '.join(words)})"


def _against_options(against: Mapping[str, Any] | None) -> list[str]:
    """Options of ``polarbear race`` that name the archive."""
    if against is None:
        return []
    words = [word for source in against["sources"] for word in ("--against", str(source))]
    return words + [word for option in _option_texts(against.get("options") or {}) for word in ("-A", option)]


def _arguments(source: Mapping[str, str] | None, what: str) -> tuple[str, str]:
    """Arguments for the name and the options of a portfolio or a suite, as far as they are known."""
    if source is None:
        return what, ""
    options = json.loads(source["options"])
    return repr(source["name"]), f"{what}_options={options!r}" if options else ""


def _command(words: list[str]) -> str:
    """Command line with all words quoted as the shell needs."""
    return shlex.join(["polarbear", *words])


def _option_texts(options: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in options.items()]


def _options(settings: RaceSettings, names: tuple[str, ...]) -> list[str]:
    """Options of the command line for all settings that differ from the default."""
    usual = RaceSettings()
    words = []
    for name in names:
        value = getattr(settings, name)
        if value != getattr(usual, name):
            words += [f"--{name.replace('_', '-')}", _number(value) if isinstance(value, float) else str(value)]
    return words + [word for option in _option_texts(settings.prior_options) for word in ("--prior-option", option)]


def _grid_options(grid: FloatArray, unit: str) -> list[str]:
    """Options of ``polarbear race`` that give these timepoints; ``unit`` follows the budget."""
    if grid.size > 2 and grid[0] > 0:
        whole = bool((grid == np.rint(grid)).all())
        for name, make in (("log", log_timepoints), ("uniform", uniform_timepoints)):
            if np.array_equal(make(grid[0], grid[-1], grid.size, integer=whole), grid):
                words = [
                    "--budget",
                    _number(grid[-1]) + unit,
                    "--first",
                    _number(grid[0]),
                    "--timepoints",
                    str(grid.size),
                ]
                return words if name == "log" else [*words, "--spacing", name]
    if grid.size == 1:
        return ["--budget", _number(grid[0]) + unit, "--timepoints", "1"]
    return ["--timepoints", ",".join(map(_number, grid))]


def _number(value: float) -> str:
    """Shortest text from which the number can be read back."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else repr(float(value))


def _list_text(grid: FloatArray) -> str:
    return "[" + ", ".join(map(_number, grid)) + "]"


def _settings_text(settings: RaceSettings) -> str:
    usual = RaceSettings()
    given = []
    for name in (field.name for field in fields(settings)):
        value = getattr(settings, name)
        if value != getattr(usual, name):
            given.append(f"{name}={short(dict(value) if isinstance(value, Mapping) else value)}")
    return f"RaceSettings({', '.join(given)})"
