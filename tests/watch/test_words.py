"""A race that is running, in words; and how long it still takes."""

from __future__ import annotations

from builders import race_by_hand

from polarbear_plugins import RaceSettings
from polarbear_plugins.racing.state import Elimination, Failure
from polarbear_plugins.watch import words
from polarbear_plugins.watch.status import Pace, Status, TimeLeft

STATE = race_by_hand().state


def test_a_status_says_who_is_in_who_is_out_and_why_and_what_that_rests_on() -> None:
    said = dict(Status(phase="running", says="Round 4 is running.", state=STATE).lines())
    assert said["In"] == "2 of 5 algorithms: a, b"
    assert said["Out"].startswith("c in round 3: a is better at every timepoint, P = 0.910; e in round 3: b is better")
    assert said["Settled"] == "90% of the pairs, on 6 instances"
    assert said["Cost"] == "4,500 in 3 finished rounds, 8% of running everything on as many instances"
    assert said["Failed"] == "none"


def test_long_lists_are_cut_and_say_by_how_much() -> None:
    out = [Elimination(f"a{number}", "b", 0.99, number) for number in range(1, 9)]
    assert words.out_text(out).startswith("a8 in round 8")
    assert words.out_text(out).endswith("; and 3 more")


def test_failures_are_counted_and_one_of_each_kind_is_named_the_last_first() -> None:
    failed = [Failure("a", f"f{number}", "it broke") for number in range(4)] + [Failure("b", "f9", "too slow")]
    said = words.failures_text(7, failed)
    assert said == (
        "7 runs failed and count as having found nothing. Of the last ones: b on f9: too slow; a on f3: it broke"
    )


def test_the_time_left_has_an_interval_and_what_it_rests_on() -> None:
    said = words.time_left_text({"low": 30.0, "median": 60.0, "high": 6000.0}, RaceSettings(), 4)
    assert said == (
        "about 60 s until every pair is settled (80 % interval 30 s to 1.7 h), at the speed so far; forecast after "
        "round 4"
    )


def test_a_forecast_without_an_end_says_so_and_names_the_limits_that_end_the_race() -> None:
    settings = RaceSettings(max_rounds=7, max_cost=1234.0)
    said = words.time_left_text({"low": 20.0, "median": None, "high": None}, settings, 1)
    assert said.startswith("no end in sight: ")
    assert "(in one of ten simulations within 20 s)" in said
    assert said.endswith("it ends earlier after round 7 or when 1,234 is spent, its limits")


def test_the_speed_is_that_of_whole_rounds_and_unknown_before_one_has_ended() -> None:
    pace, forecast = Pace(), {"low": 500.0, "median": 1000.0, "high": None}
    assert pace.time_left(forecast, 3, 4500.0, STATE, 100.0) is None
    pace.note(100.0, 3500.0)
    pace.note(105.0, 3500.0)
    assert pace.time_left(forecast, 3, 4500.0, STATE, 105.0) is None
    pace.note(110.0, 4500.0)  # 100 a second
    left = pace.time_left(forecast, 3, 4500.0, STATE, 113.0)
    assert left is not None
    assert (left.low, left.median, left.high) == (2.0, 7.0, None)
    assert "after round 3" in left.says


def test_what_was_spent_since_the_forecast_is_not_left_any_more_and_no_time_is_negative() -> None:
    pace = Pace()
    pace.note(0.0, 3500.0)
    pace.note(10.0, 4500.0)
    left = pace.time_left({"low": 500.0, "median": 3000.0, "high": 4000.0}, 2, 2500.0, STATE, 10.0)
    assert left is not None
    assert (left.low, left.median, left.high) == (0.0, 10.0, 20.0)


def test_a_status_is_ready_for_json_and_unknown_is_none() -> None:
    assert Status(phase="waiting", says="?", left=TimeLeft("-")).to_dict()["pareto_set"] is None
    data = Status(phase="running", says="?", state=STATE, stop_says="no").to_dict()
    assert data["pareto_set"] == ["a", "b"]
    assert data["eliminations"][0] == {"algorithm": "d", "by": "a", "probability": 0.93, "round": 2}
    assert (data["can_stop"], data["stop_says"]) == (False, "no")
