from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from builders import run_of

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures import Gate, gate

BASE = 10.0


def version(values: list[float], algorithm: str = "tpe", horizon: float = 100, **more: Any) -> list[Trajectory]:
    """Runs that find one value each, on as many instances, at time 10; before it they all have the same one."""
    return [
        run_of(algorithm, f"f{k}", [99.0, value], times=[1, 10], horizon=horizon, **more)
        for k, value in enumerate(values)
    ]


def compared(wins: int, losses: int, ties: int = 0, **options: Any) -> Gate:
    values = [BASE - 1] * wins + [BASE + 1] * losses + [BASE] * ties
    return gate(version([BASE] * len(values)), version(values), [10], **options)


def test_the_two_are_compared_whatever_their_names_if_each_has_one_algorithm() -> None:
    found = gate(version([BASE] * 10, "old"), version([BASE - 1] * 10, "new"), [10])
    [comparison] = found.comparisons
    assert (comparison.base, comparison.new) == ("old", "new")
    assert [each.verdict for each in found.verdicts] == ["better"]


def test_of_several_algorithms_those_in_common_share_the_error_level() -> None:
    base = version([BASE] * 9, "a") + version([BASE] * 9, "b") + version([BASE] * 9, "gone")
    new = version([BASE - 1] * 9, "b") + version([BASE + 1] * 9, "a") + version([BASE] * 9, "fresh")
    found = gate(base, new, [10], alpha=0.99)
    assert [(each.algorithm, each.verdict) for each in found.verdicts] == [("a", "worse"), ("b", "better")]
    assert found.level == pytest.approx(0.005)
    assert found.least_units == 9
    alone = gate(base, new, [10], algorithms=["b"])
    assert (alone.level, alone.passed) == (pytest.approx(0.01), True)


@pytest.mark.parametrize("wanted", [None, ["a"]])
def test_an_algorithm_that_one_of_the_two_lacks_is_an_error(wanted: list[str] | None) -> None:
    base = version([BASE], "a") + version([BASE], "b")
    with pytest.raises(InvalidInputError, match=r"gate: (base shares no algorithm|new has no run of 'a').*new has 'c'"):
        gate(base, version([BASE], "c"), [10], algorithms=wanted)


@pytest.mark.parametrize(
    ("outcome", "passes"),
    [  # by default, on open, and if better is required
        ((0, 10), (False, False, False)),
        ((10, 0), (True, True, True)),
        ((5, 5), (True, False, False)),
        ((0, 0, 150), (True, True, False)),
    ],
)
def test_what_fails_is_what_was_asked_for(outcome: tuple[int, ...], passes: tuple[bool, ...]) -> None:
    options: tuple[dict[str, Any], ...] = ({}, {"fail_on": "open"}, {"require_better": True})
    assert tuple(compared(*outcome, **each).passed for each in options) == passes


def test_worse_at_one_budget_fails_however_good_the_others_are() -> None:
    base = [run_of("a", f"f{k}", [5.0, 3.0], times=[1, 10]) for k in range(12)]
    new = [run_of("a", f"f{k}", [4.0, 3.5], times=[1, 10]) for k in range(12)]
    found = gate(base, new, [1, 10])
    assert [each.verdict for each in found.verdicts] == ["better", "worse"]
    assert [each.fails for each in found.verdicts] == [False, True]
    assert not found.passed


def test_a_budget_beyond_the_horizon_of_all_pairs_is_no_verdict() -> None:
    found = gate(version([BASE] * 12), version([BASE - 1] * 12, horizon=50), [10, 80], fail_on="open")
    first, last = found.verdicts
    assert first.verdict == "better"
    assert (last.verdict, last.p_better, last.win_share, last.low, last.p, last.pairs) == (
        None,
        None,
        None,
        None,
        None,
        0,
    )
    assert (last.fails, found.passed) == (True, False)
    assert gate(version([BASE] * 12), version([BASE - 1] * 12, horizon=50), [10, 80]).passed


def test_without_any_common_budget_there_is_an_error_and_no_pass() -> None:
    with pytest.raises(InvalidInputError, match="no pair of runs was watched until any of the budgets"):
        gate(version([BASE] * 12), version([BASE] * 12, horizon=50), [80])


def test_budgets_by_default_are_five_over_two_decades_that_both_have() -> None:
    assert gate(version([BASE] * 2, horizon=5000), version([BASE] * 2, horizon=1000)).budgets == (
        10,
        32,
        100,
        316,
        1000,
    )
    seconds = [run_of("a", f"f{k}", [5.0], times=[0.25], horizon=0.5) for k in range(2)]
    np.testing.assert_allclose(gate(seconds, seconds).budgets, np.geomspace(0.25, 0.5, 5))
    once = [run_of("a", f"f{k}", [5.0], times=[1], horizon=1) for k in range(2)]
    assert gate(once, once).budgets == (1,)


def test_everything_is_in_the_dict_and_in_the_table() -> None:
    found = compared(7, 3, 2)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    [each] = data["comparisons"][0]["verdicts"]
    assert (each["wins"], each["losses"], each["ties"], each["pairs"], each["verdict"]) == (7, 3, 2, 12, "open")
    assert each["win_share"] == pytest.approx(8 / 12)
    frame = found.to_pandas()
    assert frame.loc[0, "p_better"] == each["p_better"]
    assert frame.loc[0, "further"] == each["further"]["median"]
    assert set(frame.columns) == set(each)
    assert repr(found) == "Gate(passed: open at 10)"


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1},
        {"alpha": 0.5},
        {"epsilon": 0.5},
        {"epsilon": -1},
        {"fail_on": "better"},
        {"groups": "old"},
        {"repetitions": "all"},
        {"tolerance": -1},
        {"ended": "end"},
        {"seed": -1},
        {"budgets": [2, 1]},
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        gate(version([BASE] * 3), version([BASE] * 3), **{"budgets": [10], **options})


def test_no_runs_are_an_error() -> None:
    with pytest.raises(InvalidInputError, match="gate: new has no runs"):
        gate(version([BASE]), [])
