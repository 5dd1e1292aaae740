"""The command or the call with which a report says its result can be repeated."""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins import RaceResult, log_timepoints, uniform_timepoints
from polarbear_plugins.report.commands import how_to_repeat

RACED = {
    "portfolio": {"name": "mine", "options": json.dumps({"size": 3, "kind": "fast one"})},
    "suite": {"name": "bbob", "options": json.dumps({"dimension": [2, 5]})},
}


def asked(
    told: RaceResult, about: dict[str, Any], grid: Any = None, stored: tuple[str, ...] = (), **settings: Any
) -> Any:
    """What is said for a result with these settings and timepoints, and the words of the command."""
    state = replace(told.state, settings=replace(told.settings, **settings), stored=stored)
    if grid is not None:
        state = replace(state, table=table_of(np.ones((1, len(grid), 5)), algorithms=told.algorithms, timepoints=grid))
    says, command = how_to_repeat(replace(told, state=state, about=about))
    return says, shlex.split(command) if command.startswith("polarbear") else command


def after(words: list[str], option: str) -> list[str]:
    """The values of an option."""
    return [value for name, value in itertools.pairwise(words) if name == option]


def test_the_command_of_a_race_has_every_option_that_is_not_usual(told: RaceResult) -> None:
    says, words = asked(told, RACED)
    assert says == "This command repeats the race:"
    assert words == [
        *("polarbear", "race", "mine", "bbob", "--timepoints", "10,100,2000"),
        *("-P", "size=3", "-P", "kind=fast one", "-S", "dimension=[2, 5]"),
        *("--alpha", "0.9", "--seed", "3", "--max-rounds", "3"),
    ]


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("alpha", 0.95, "0.95"),
        ("epsilon", 0.01, "0.01"),
        ("prior", "bspline", "bspline"),
        ("resolution", "crossing", "crossing"),
        ("rule", "anytime-valid", "anytime-valid"),
        ("guard", "none", "none"),
        ("draws", 123, "123"),
        ("seed", 7, "7"),
        ("replications", 2, "2"),
        ("batch_size", 9, "9"),
        ("batch_min", 3, "3"),
        ("batch_max", 77, "77"),
        ("schedule", "continuous", "continuous"),
        ("max_rounds", 8, "8"),
        ("max_cost", 1e6, "1000000"),
    ],
)
def test_a_setting_that_is_not_usual_is_an_option_of_a_race(
    told: RaceResult, setting: str, value: Any, text: str
) -> None:
    assert after(asked(told, RACED, **{setting: value})[1], f"--{setting.replace('_', '-')}") == [text]


def test_options_of_a_prior_and_a_tolerance_are_repeated(told: RaceResult) -> None:
    words = asked(told, RACED, prior="bspline", prior_options={"df": 5})[1]
    assert after(words, "--prior-option") == ["df=5"]
    assert "--tolerance" not in words
    table = table_of(np.ones((1, 3, 5)), algorithms=told.algorithms, timepoints=told.timepoints, tolerance=0.125)
    exact = replace(told, state=replace(told.state, table=table), about=RACED)
    assert after(shlex.split(how_to_repeat(exact)[1]), "--tolerance") == ["0.125"]
    data = replace(exact, about={"sources": ["x.csv"]}, stopped="analyzed")
    assert after(shlex.split(how_to_repeat(data)[1]), "--tolerance") == ["0.125"]
    assert how_to_repeat(replace(exact, about={}))[1].endswith(", tolerance=0.125)")


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (log_timepoints(10, 1000, 7), ["--budget", "1000", "--first", "10", "--timepoints", "7"]),
        (
            uniform_timepoints(10, 1000, 7),
            ["--budget", "1000", "--first", "10", "--timepoints", "7", "--spacing", "uniform"],
        ),
        ([0.5], ["--budget", "0.5", "--timepoints", "1"]),
        ([10, 1000], ["--timepoints", "10,1000"]),
        ([0, 500, 1000], ["--timepoints", "0,500,1000"]),
        ([1, 2, 50], ["--timepoints", "1,2,50"]),
        ([1.5, 2e15], ["--timepoints", "1.5,2000000000000000.0"]),
    ],
)
def test_timepoints_are_a_budget_where_that_gives_the_same_ones(
    told: RaceResult, grid: list[float], expected: list[str]
) -> None:
    words = asked(told, RACED, grid)[1]
    assert words[4 : words.index("-P")] == expected


def test_a_budget_in_multiples_of_the_dimension_says_so(told: RaceResult) -> None:
    words = asked(told, RACED, log_timepoints(10, 1000, 7), per_dimension=True)[1]
    assert after(words, "--budget") == ["1000d"]
    assert after(asked(told, RACED, [20.0], per_dimension=True)[1], "--budget") == ["20d"]
    # Timepoints cannot, so that there is no command.
    assert asked(told, RACED, [1, 2, 50], per_dimension=True)[1].startswith("race('mine', 'bbob', [1, 2, 50], Race")


@pytest.mark.parametrize("settings", [{"dependence": "none"}, {"engine_options": {"steps": 3}}])
def test_what_the_command_line_cannot_say_is_a_call(told: RaceResult, settings: dict[str, Any]) -> None:
    says, call = asked(told, RACED, **settings)
    assert says == "The engine was given in Python. With the same one this call repeats the race:"
    [(name, value)] = settings.items()
    assert f"{name}={value!r}" in call
    assert call.startswith("race('mine', 'bbob', [10, 100, 2000], RaceSettings(alpha=0.9, ")
    assert call.endswith(", portfolio_options={'size': 3, 'kind': 'fast one'}, suite_options={'dimension': [2, 5]})")


@pytest.mark.parametrize(
    ("missing", "said"),
    [(("portfolio",), "portfolio"), (("suite",), "suite"), (("portfolio", "suite"), "portfolio and suite")],
)
def test_what_was_given_in_python_is_named(told: RaceResult, missing: tuple[str, ...], said: str) -> None:
    says, call = asked(told, {what: None if what in missing else source for what, source in RACED.items()})
    assert says == f"The {said} was given in Python. With the same one this call repeats the race:"
    portfolio, suite = (
        "portfolio" if "portfolio" in missing else "'mine'",
        "suite" if "suite" in missing else "'bbob'",
    )
    options = "" if "portfolio" in missing else ", portfolio_options={'size': 3, 'kind': 'fast one'}"
    options += "" if "suite" in missing else ", suite_options={'dimension': [2, 5]}"
    settings = "RaceSettings(alpha=0.9, max_rounds=3, seed=3)"
    assert call == f"race({portfolio}, {suite}, [10, 100, 2000], {settings}{options})"


def test_a_portfolio_and_a_suite_without_options_are_called_without_any(told: RaceResult) -> None:
    plain = {what: {**source, "options": "{}"} for what, source in RACED.items()}
    call = asked(told, plain, dependence="none")[1]
    assert call.endswith("RaceSettings(alpha=0.9, dependence='none', max_rounds=3, seed=3))")


def test_an_archive_is_named_if_there_are_stored_rivals(told: RaceResult) -> None:
    about = {**RACED, "against": {"sources": ["one.csv", "two.csv"], "options": {"maximize": True}}}
    words = asked(told, about, stored=("d",))[1]
    assert after(words, "--against") == ["one.csv", "two.csv"]
    assert after(words, "-A") == ["maximize=true"]
    assert "--against" not in asked(told, about)[1]
    without = {**RACED, "against": {"sources": None}}
    says, call = asked(told, without, stored=("d",))
    assert says.startswith("The archive was given in Python.")
    assert call.endswith(", against=archive)")
    says, _ = asked(told, {**without, "suite": None}, stored=("d",))
    assert says.startswith("The suite and archive was given in Python.")
    call = asked(told, about, stored=("d",), dependence="none")[1]
    assert call.endswith(", against=['one.csv', 'two.csv'], against_options={'maximize': True})")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"ended": "hold"}, []),
        ({"ended": "cut"}, ["--ended", "cut"]),
        ({"target": 0.5}, ["--target", "0.5"]),
        ({"target": 0.0}, ["--target", "0"]),
        ({"options": {"maximize": "true"}}, ["-o", "maximize=true"]),
    ],
)
def test_the_command_of_an_analysis_has_what_was_said_about_the_data(
    told: RaceResult, more: dict[str, Any], expected: list[str]
) -> None:
    says, words = asked(replace(told, stopped="analyzed"), {"sources": ["a.csv", "b c.csv"], **more})
    assert says == "This command repeats the analysis:"
    start = ["polarbear", "analyze", "a.csv", "b c.csv", "--timepoints", "10,100,2000"]
    assert words == [*start, *expected, "--alpha", "0.9", "--seed", "3"]  # rounds are no matter of an analysis


def test_an_analysis_repeats_its_budget_and_how_it_took_repetitions(told: RaceResult) -> None:
    analyzed = replace(told, stopped="analyzed")
    about = {"sources": ["a.csv"], "budget": "2000", "timepoints": 3}
    words = asked(analyzed, about)[1]
    assert words[3:7] == ["--timepoints", "3", "--budget", "2000"]
    assert "--repetitions" not in words
    table = table_of(
        np.ones((2, 3, 5)), algorithms=told.algorithms, timepoints=told.timepoints, repetitions="independent"
    )
    repeated = replace(analyzed, state=replace(told.state, table=table), about=about)
    assert after(shlex.split(how_to_repeat(repeated)[1]), "--repetitions") == ["independent"]


@pytest.mark.parametrize("sources", [["a.csv", 3], []])
def test_data_that_no_command_can_name_are_given_in_python(told: RaceResult, sources: list[object]) -> None:
    says, call = asked(replace(told, stopped="analyzed"), {"sources": sources})
    assert says == "The data were given in Python. With the same table this call repeats the analysis:"
    assert call == "analyze(table, RaceSettings(alpha=0.9, max_rounds=3, seed=3))"
    # A single number for --timepoints is their count.
    assert asked(replace(told, stopped="analyzed"), {"sources": ["a.csv"]}, [5.0])[1].startswith("analyze(table, ")


def test_a_study_is_named(told: RaceResult) -> None:
    says, call = asked(told, {"study": "s"})
    assert says == "The race was run inside the Optuna study 's'. This call repeats the result:"
    assert call == "race_result(study)"
