"""Algorithms that cannot run on a suite are left out of a race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polarbear_plugins import RaceSettings, Trajectory, race, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning
from polarbear_plugins.experiments.campaigns import CampaignSettings, campaign
from polarbear_plugins.planning.repetitions import RepetitionSettings
from polarbear_plugins.problems.given import FunctionAlgorithm
from polarbear_plugins.problems.protocols import Identity

SETTINGS = RaceSettings(seed=1, draws=200, max_rounds=1)


class Choosy(FunctionAlgorithm):
    """Refuses every problem, and would fail on it."""

    def refuses(self, problem: Any, /) -> str | None:
        return f"it takes cats, and {problem.identity.name!r} is a dog"


def run(_: Any, horizon: float, seed: int) -> Trajectory:
    return Trajectory(algorithm="?", instance="?", times=[1], best=[seed % 97], horizon=horizon)


def fail(*_: Any) -> Trajectory:
    raise AssertionError("was raced")


ACCEPTING = [FunctionAlgorithm(name, run) for name in ("a", "b")]


def test_an_algorithm_that_refuses_the_problems_is_named_with_its_reason_and_not_raced() -> None:
    with pytest.warns(PolarBearWarning, match=r"Left out, .*'given': 'choosy': it takes cats, and 'd\d' is a dog"):
        result = race([*ACCEPTING, Choosy("choosy", fail)], ["d1", "d2"], [1, 2], SETTINGS, workers=0)
    assert result.algorithms == ("a", "b")
    assert not result.failures


def test_a_campaign_leaves_it_out_as_well() -> None:
    repetitions = RepetitionSettings(error=50.0, first=3, most=20)
    settings = CampaignSettings(repetitions=repetitions, instances=4, seed=1)
    with pytest.warns(PolarBearWarning, match="'choosy': it takes cats"):
        found = campaign([*ACCEPTING, Choosy("choosy", fail)], ["d1", "d2", "d3", "d4"], 2, settings, workers=0)
    assert found.algorithms == ("a", "b")


def test_a_race_of_fewer_than_two_is_an_error_that_says_why() -> None:
    with pytest.raises(InvalidInputError, match=r"and 'a' remains, where two are needed\. 'choosy': it takes cats"):
        race([ACCEPTING[0], Choosy("choosy", fail)], ["d1"], [1], SETTINGS, workers=0)


def test_against_an_archive_one_newcomer_is_enough_and_none_is_an_error() -> None:
    stored = list(race(ACCEPTING, ["d1", "d2"], [1, 2], SETTINGS, workers=0).trajectories())
    newcomers = [FunctionAlgorithm("c", run), Choosy("choosy", fail)]
    with pytest.warns(PolarBearWarning, match="'choosy': it takes cats"):
        result = race(newcomers, ["d1", "d2"], [1, 2], SETTINGS, workers=0, against=stored)
    assert set(result.algorithms) == {"a", "b", "c"}
    with pytest.raises(InvalidInputError, match="and nothing remains, where one is needed"):
        race(newcomers[1:], ["d1", "d2"], [1, 2], SETTINGS, workers=0, against=stored)


def test_a_race_that_left_something_out_resumes_without_it(tmp_path: Path) -> None:
    portfolio = [*ACCEPTING, Choosy("choosy", fail)]
    problems = [f"d{place}" for place in range(20)]
    with pytest.warns(PolarBearWarning, match="Left out"):
        race(portfolio, problems, [1, 2], SETTINGS, workers=0, journal=tmp_path / "race.db")
    result = resume(tmp_path / "race.db", portfolio, problems, workers=0, max_rounds=2)
    assert result.algorithms == ("a", "b")
    assert len(result.rounds) == 2


class Unbuildable:
    """A suite whose problems cannot be built in this process."""

    name = "elsewhere"

    def identities(self, _: int, /) -> Any:
        yield Identity("d1")

    def build(self, _: Identity, /) -> Any:
        raise OSError("only on the other machine")


@pytest.mark.filterwarnings("ignore::polarbear_plugins.errors.RunWarning")
def test_a_problem_that_cannot_be_built_here_is_left_to_the_workers() -> None:
    with pytest.raises(PolarBearError, match="only on the other machine"):
        race([*ACCEPTING, Choosy("choosy", run)], Unbuildable(), [1], SETTINGS, workers=0)
