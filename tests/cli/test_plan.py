from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, race
from polarbear_plugins.planning.sample_size import power_curve
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio

COMMAND = Command("plan")
succeed, answer, fail = COMMAND.succeed, COMMAND.data, COMMAND.fail


@pytest.fixture
def raced(tmp_path: Path) -> tuple[RaceResult, Path, Path]:
    """A race that is not over, its journal and its saved result."""
    journal = tmp_path / "race.db"
    settings = RaceSettings(seed=1, max_rounds=2, draws=500, alpha=0.95, epsilon=0.1)
    result = race(synthetic_portfolio(4, 5, 0), SyntheticSuite(), range(1, 6), settings, workers=0, journal=journal)
    return result, journal, result.save(tmp_path / "race.npz")


def test_what_is_left_out_is_the_answer() -> None:
    assert answer("--effect", "0.5", "--power", "0.8", "--alpha", "0.05", "--test", "t")["instances"] == 34
    assert answer("--effect", "0.5", "--test", "wilcoxon")["instances"] == 35
    assert answer("--effect", "0.5", "--instances", "34")["power"] == pytest.approx(0.8078, abs=1e-4)
    data = answer("--instances", "200", "--one-sided", "--power", "0.9")
    assert (data["answer"], data["alternative"]) == ("effect", "one-sided")
    assert data["effect"] == pytest.approx(0.2, abs=0.02)
    assert answer("--effect", "0.5", "--comparisons", "3")["instances"] > 34


def test_a_difference_and_its_deviation_make_an_effect() -> None:
    assert answer("--difference", "0.05", "--deviation", "0.1") == answer("--effect", "0.5")
    assert answer("--difference", "3", "--deviation", "3", "--error", "4")["effect"] == pytest.approx(0.6)


def test_people_get_a_sentence() -> None:
    assert succeed("--effect", "0.5") == (
        "34 instances: effect 0.5, power 0.8 (0.808 with 34), two-sided paired t test, alpha 0.05.\n"
        "Supposed: differences over instances are independent and normal.\n"
    )
    assert "better on 0.8 of them; no ties" in succeed("--share", "0.8", "--test", "sign")
    assert succeed("--effect", "0.5", "--instances", "20", "--test", "sign", "--comparisons", "3").startswith(
        "Power 0.213: 20 instances"
    )
    assert "An effect of 0.176 standard deviations: 200 instances" in succeed("--instances", "200", "--one-sided")


def test_plans_that_cannot_reject_are_not_made() -> None:
    """Five instances have no two-sided p value below 0.0625."""
    assert answer("--effect", "3", "--test", "wilcoxon")["instances"] == 6
    assert answer("--effect", "5", "--test", "sign")["instances"] == 6
    assert answer("--effect", "5", "--test", "sign", "--instances", "5")["power"] == 0
    assert answer("--effect", "5", "--test", "sign", "--comparisons", "10")["instances"] == 9
    assert "no p value of that test is below 0.0625" in fail("--instances", "5", "--test", "wilcoxon")


def test_a_power_target_and_a_share_of_wins_are_accepted() -> None:
    several = ("--effect", "0.5", "--comparisons", "6")
    found = [answer(*several, "--power-target", target)["instances"] for target in ("worst-case", "median", "mean")]
    assert found == [52, 47, 46]
    assert "mean power of Holm's steps" in succeed(*several, "--power-target", "mean")
    data = answer("--share", "0.8", "--test", "sign")
    assert (data["instances"], data["effect"]) == (20, pytest.approx(0.8416, abs=1e-4))


def test_a_power_curve_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "power.png"
    succeed("--instances", "30", "--curve", "--figure", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_power_curve_is_printed() -> None:
    data = answer("--instances", "30", "--curve", "--test", "sign")
    effects, powers = power_curve(30, test="sign")
    assert (data["effects"], data["powers"]) == (effects.tolist(), powers.tolist())
    assert len(succeed("--instances", "30", "--curve").splitlines()) > 10


def test_a_result_and_its_journal_have_the_same_forecast(raced: tuple[RaceResult, Path, Path]) -> None:
    result, journal, saved = raced
    found = result.forecast()
    for path in (journal, saved):
        data = answer(str(path))
        assert data["instances"] == {"mean": found.mean, "low": found.low, "median": found.median, "high": found.high}
        assert (data["observed"], data["resolved"]) == (len(result.state.table), False)
        assert len(data["open_pairs"]) == len(result.open_pairs)
        text = succeed(str(path))
        assert f"{found} would likely settle" in text
        assert f"{found.quantile(0.5, cost=True):,}" in text
    assert answer(str(saved), "--seed", "2")["instances"] != data["instances"]
    assert answer(str(saved), "--simulations", "10")["simulations"] == 10


def test_a_settled_race_needs_no_more(tmp_path: Path) -> None:
    portfolio = synthetic_portfolio(log_ratings=[[2.0, -2.0]])
    saved = race(portfolio, SyntheticSuite(), [1], RaceSettings(seed=1), workers=0).save(tmp_path / "race.npz")
    assert "Every pair is settled after" in succeed(str(saved))
    assert answer(str(saved))["instances"]["high"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --effect or --instances"),
        (["--power", "0.9"], "Give --effect or --instances"),
        (["--effect", "0"], "no number of instances can detect an effect of 0"),
        (["--effect", "0.5", "--power", "1"], "power: expected a number between 0 and 1, both excluded, got 1"),
        (["--effect", "0.5", "--alpha", "0"], "alpha: expected a number"),
        (["--effect", "nan"], "effect: expected a finite number"),
        (["--effect", "0.5", "--instances", "9", "--power", "0.8"], "leave out the one to compute"),
        (["--instances", "1"], "instances must be a whole number of at least 2"),
        (["--effect", "0.5", "--difference", "1", "--deviation", "1"], "not both"),
        (["--difference", "1"], "--difference and --deviation (and --error) belong together"),
        (["--difference", "1", "--deviation", "0"], "Without any variation one instance is enough"),
        (["--curve"], "--curve needs --instances"),
        (["--effect", "1", "--figure", "power.png"], "--figure draws a power curve: give it with --curve"),
        (["--share", "0.8"], "--share is the effect of the sign test: give it with --test sign"),
        (["--effect", "1", "--power-target", "mean"], "give their number with --comparisons"),
        (["--effect", "0.5", "--seed", "1"], "--simulations and --seed are for a race"),
        (["nothing.npz"], "nothing.npz: there is no such file"),
        (["nothing.npz", "--effect", "0"], "--effect is for planning without RESULT"),
        (["nothing.npz", "--one-sided"], "--one-sided is for planning without RESULT"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str) -> None:
    if "--figure" in arguments:
        pytest.importorskip("matplotlib")  # asked for first
    assert message in fail(*arguments)
