from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builders import column_kinds
from command_line import run_example

from polarbear_plugins import PolarBearError, Trajectory, race, resume
from polarbear_plugins.errors import PolarBearWarning
from polarbear_plugins.experiments.campaigns import CampaignResult, CampaignSettings, campaign
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.planning.repetitions import RepetitionSettings
from polarbear_plugins.racing.settings import RaceSettings

# For what goes on with other functions, or with objects that have run meanwhile.
other_code = pytest.mark.filterwarnings(
    "ignore:.*not everything is as it was:polarbear_plugins.errors.PolarBearWarning"
)
REPETITIONS = RepetitionSettings(error=0.3, first=4, most=100)
SETTINGS = CampaignSettings(repetitions=REPETITIONS, effect=1.0, seed=3)

RunFunction = Callable[[Any, float, int], Trajectory]


def noisy(shift: float, deviation: float = 1.0) -> RunFunction:
    """A run whose final value is the level of the instance, plus a shift that varies over instances, plus noise."""

    def run(level: Any, horizon: float, seed: int) -> Trajectory:
        rng = np.random.default_rng([1, int(level)])
        value = 10 + float(level) + shift * (1 + 0.3 * rng.normal()) + np.random.default_rng(seed).normal(0, deviation)
        return Trajectory(algorithm="?", instance="?", times=[1, horizon / 2], best=[value + 5, value], horizon=horizon)

    return run


PORTFOLIO = {"one": noisy(0.0, 0.5), "other": noisy(-2.0, 1.5)}
INSTANCES = list(range(40))


def found_by(result: CampaignResult) -> Any:
    data = result.to_dict()
    json.dumps(data, allow_nan=False)
    return data


def test_a_clear_difference_is_found_with_as_many_instances_as_planned() -> None:
    result = campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0)
    [comparison] = result.comparisons
    assert result.needed == len(result.instances) == 10
    assert result.power >= 0.8
    assert comparison.significant
    assert comparison.low < -2 < comparison.high
    assert not result.short_of
    frame = result.repetitions()
    assert (frame["other - one", "error"] <= 0.3).all()
    assert frame["runs", "other"].mean() > frame["runs", "one"].mean()
    assert result.summary().loc[("one", "other"), "significant"]


def test_the_values_are_those_of_the_runs_and_the_differences_theirs() -> None:
    result = campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0)
    for place, instance in enumerate(result.instances):
        samples = result.values[instance]
        difference = samples["other"].mean() - samples["one"].mean()
        assert result.estimates["one", "other"][place].difference == pytest.approx(difference)
        assert len(set(samples["one"])) == len(samples["one"])  # each repetition has a seed of its own


def test_the_same_seed_gives_the_same_campaign_wherever_it_runs(
    worker_module: Callable[[str, str], ModuleType],
) -> None:
    module = worker_module(
        "campaign_worker",
        "import numpy as np\n"
        "from polarbear_plugins import Trajectory\n"
        "def run(level, horizon, seed):\n"
        "    value = float(level) + np.random.default_rng(seed).normal()\n"
        "    return Trajectory(algorithm='?', instance='?', times=[1], best=[value], horizon=horizon)\n"
        "def other(level, horizon, seed):\n"
        "    return run(level + 1, horizon, seed)\n",
    )
    portfolio = {"run": module.run, "other": module.other}
    settings = replace(SETTINGS, instances=5, repetitions=replace(REPETITIONS, error=0.5))
    here = found_by(campaign(portfolio, INSTANCES, 10, settings, workers=0))
    assert found_by(campaign(portfolio, INSTANCES, 10, settings, workers=2)) == here
    with ThreadPoolExecutor(3) as executor:
        assert found_by(campaign(portfolio, INSTANCES, 10, settings, executor=executor)) == here
    assert found_by(campaign(portfolio, INSTANCES, 10, replace(settings, seed=4), workers=0)) != here


@other_code
@pytest.mark.slow
def test_an_interrupted_campaign_goes_on_from_its_journal(tmp_path: Path) -> None:
    whole = found_by(campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0))
    runs = sum(len(sample) for samples in whole["values"].values() for sample in samples.values())
    for stop in (3, 50, runs - 1):
        path = tmp_path / f"{stop}.db"
        with pytest.raises(KeyboardInterrupt):
            campaign(counted([], stop), INSTANCES, 10, SETTINGS, 0, journal=path)
        made: list[int] = []
        assert found_by(campaign(counted(made), INSTANCES, 10, SETTINGS, 0, journal=path)) == whole
        assert len(made) == runs - stop


def counted(made: list[int], most: int | None = None) -> dict[str, RunFunction]:
    """The portfolio, noting its runs; the user interrupts it after ``most`` of them."""

    def noting(function: RunFunction) -> RunFunction:
        def run(level: Any, horizon: float, seed: int) -> Trajectory:
            if len(made) == most:
                raise KeyboardInterrupt
            made.append(seed)
            return function(level, horizon, seed)

        return run

    return {name: noting(function) for name, function in PORTFOLIO.items()}


@other_code
def test_a_journal_answers_other_questions_without_new_runs(tmp_path: Path) -> None:
    path = tmp_path / "campaign.db"
    campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, 0, journal=path)

    other = replace(SETTINGS, test="sign", instances=8, seed=None, repetitions=replace(REPETITIONS, error=0.5))
    result = campaign(counted([], 0), INSTANCES, 10, other, 0, journal=path)  # the first run would interrupt it
    assert result.comparisons[0].test == "sign"
    assert result.settings.seed == 3
    assert len(result.instances) == 8


@other_code
def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    path, raced = tmp_path / "campaign.db", tmp_path / "race.db"
    campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, 0, journal=path)
    before = path.read_bytes()
    for options, message in (
        ({"settings": replace(SETTINGS, seed=4)}, "another campaign: seed is 3 there and 4 here"),
        ({"horizon": 20}, "another campaign: horizon is 10.0 there and 20.0 here"),
        ({"portfolio": {"one": noisy(0.0), "new": noisy(1.0)}}, "another campaign: algorithms is"),
        ({"suite": [f"f{k}" for k in range(40)]}, "no longer gives the instance"),
    ):
        given: Any = {"portfolio": PORTFOLIO, "suite": INSTANCES, "horizon": 10, "settings": SETTINGS, **options}
        with pytest.raises(PolarBearError, match=message):
            campaign(**given, workers=0, journal=path)
    assert path.read_bytes() == before
    for reader in (load_result, resume):
        with pytest.raises(PolarBearError, match="is the journal of a campaign, not of a race"):
            reader(path, PORTFOLIO, INSTANCES) if reader is resume else reader(path)  # type: ignore[call-arg]
    race(PORTFOLIO, INSTANCES, [5], RaceSettings(seed=1, max_rounds=1), workers=0, journal=raced)
    with pytest.raises(PolarBearError, match="is the journal of a race, not of a campaign"):
        campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, 0, journal=raced)


def test_more_than_two_algorithms_are_compared_with_a_correction() -> None:
    portfolio = {"a": noisy(0.0), "b": noisy(-2.0), "c": noisy(-2.0)}
    result = campaign(portfolio, INSTANCES, 10, SETTINGS, workers=0)
    assert [(found.one, found.other) for found in result.comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert result.needed == SETTINGS.needed(3) > SETTINGS.needed(1)
    p = sorted(found.p for found in result.comparisons if found.p is not None)
    assert min(found.p_corrected or 1 for found in result.comparisons) == pytest.approx(3 * p[0])
    with_b = campaign(portfolio, INSTANCES, 10, replace(SETTINGS, reference="b"), workers=0)
    assert [(found.one, found.other) for found in with_b.comparisons] == [("b", "a"), ("b", "c")]


def test_too_few_instances_are_used_and_a_warning_gives_the_power() -> None:
    with pytest.warns(PolarBearWarning, match="has 6 instances, and power 0.8 for an effect of 1 needs 10; .* 0.51"):
        result = campaign(PORTFOLIO, INSTANCES[:6], 10, SETTINGS, workers=0)
    assert (len(result.instances), result.needed) == (6, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        campaign(PORTFOLIO, INSTANCES[:6], 10, replace(SETTINGS, instances=6), workers=0)


def test_instances_that_run_out_of_repetitions_are_named() -> None:
    settings = replace(SETTINGS, repetitions=replace(REPETITIONS, error=0.01, most=9))
    result = campaign(PORTFOLIO, INSTANCES, 10, settings, workers=0)
    assert result.short_of == result.instances
    assert all(sum(map(len, samples.values())) == 9 for samples in result.values.values())


def test_a_measure_sees_the_trajectory_at_the_timepoints() -> None:
    result = campaign(
        PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0, timepoints=[1, 10], measure=lambda run: float(run.best[0])
    )
    final = campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0)
    name = result.instances[0]
    assert result.values[name]["one"][0] == pytest.approx(final.values[name]["one"][0] + 5)


def test_percent_differences_and_the_bootstrap_work_too() -> None:
    repetitions = RepetitionSettings(error=0.05, first=4, difference="percent", method="bootstrap", resamples=100)
    result = campaign(PORTFOLIO, INSTANCES, 10, replace(SETTINGS, repetitions=repetitions), workers=0)
    assert -0.25 < result.comparisons[0].estimate < 0
    below = {"one": noisy(-90.0), "other": noisy(0.0)}
    with pytest.raises(PolarBearError, match="Percent differences need positive means, and that of 'one' is -"):
        campaign(below, INSTANCES, 10, replace(SETTINGS, repetitions=repetitions), workers=0)


def test_percent_of_the_grand_mean_is_of_all_algorithms() -> None:
    portfolio = {"a": noisy(0.0), "b": noisy(-2.0), "c": noisy(30.0)}
    repetitions = RepetitionSettings(error=0.05, first=4, difference="percent-of-grand-mean")
    result = campaign(portfolio, INSTANCES, 10, replace(SETTINGS, repetitions=repetitions, instances=4), workers=0)
    for place, samples in enumerate(result.values.values()):
        means = {name: sample.mean() for name, sample in samples.items()}
        expected = (means["b"] - means["a"]) / np.mean(list(means.values()))
        assert result.estimates["a", "b"][place].difference == pytest.approx(expected)


def test_several_comparisons_need_fewer_instances_for_mean_power() -> None:
    mean = replace(SETTINGS, power_target="mean")
    assert mean.needed(6) < SETTINGS.needed(6)
    assert mean.power_with(12, 6) > SETTINGS.power_with(12, 6)
    assert mean.needed(1) == SETTINGS.needed(1)


def test_algorithms_without_any_difference_are_not_tested() -> None:
    def same(level: Any, horizon: float, _: int) -> Trajectory:
        return Trajectory(algorithm="?", instance="?", times=[1], best=[float(level)], horizon=horizon)

    result = campaign({"one": same, "other": same}, INSTANCES, 10, SETTINGS, workers=0)
    assert result.comparisons[0].p is None
    assert "no difference on any instance" in result.comparisons[0].note
    assert all(len(sample) == 4 for samples in result.values.values() for sample in samples.values())


def test_progress_is_reported() -> None:
    reports: list[tuple[int, int]] = []
    result = campaign(PORTFOLIO, INSTANCES, 10, SETTINGS, workers=0, progress=lambda *each: reports.append(each))
    assert reports == sorted(reports, key=lambda report: (report[0], -report[1]))
    assert reports[0] == (1, 10)  # after the first of the first runs
    assert (2 * 4 * 10, 10) in reports
    assert reports[-1] == (sum(len(s) for samples in result.values.values() for s in samples.values()), 0)


@other_code
def test_a_failed_run_ends_the_campaign_and_is_repeated_after_it_is_fixed(tmp_path: Path) -> None:
    def broken(level: Any, horizon: float, seed: int) -> Trajectory:
        if int(level) == 7:
            raise RuntimeError("disk on fire")
        return noisy(0.0)(level, horizon, seed)

    path = tmp_path / "campaign.db"
    settings = replace(SETTINGS, instances=40)
    with pytest.raises(PolarBearError, match=r"A run of 'one' on '7' failed, and means need every run: .*disk on fire"):
        campaign({"one": broken, "other": noisy(1.0)}, INSTANCES, 10, settings, 0, journal=path)
    mended = {"one": noisy(0.0), "other": noisy(1.0)}
    assert found_by(campaign(mended, INSTANCES, 10, settings, 0, journal=path)) == found_by(
        campaign(mended, INSTANCES, 10, settings, 0)
    )

    def nothing(_: Any, horizon: float, __: int) -> Trajectory:
        return Trajectory(algorithm="?", instance="?", times=[], best=[], horizon=horizon)

    with pytest.raises(
        PolarBearError, match=r"'one' on .*, repetition 0, has the value inf, and means need finite values"
    ):
        campaign({"one": nothing, "other": nothing}, INSTANCES, 10, SETTINGS, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": 0.0}, "no number of instances can detect an effect of 0"),
        ({"power": 1.0}, "power: expected a number between 0 and 1, both excluded, got 1"),
        ({"instances": 1}, "instances must be a whole number of at least 2"),
        ({"alternative": "one-sided"}, 'alternative: expected "two-sided", "less" or "greater"'),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_bad_settings_are_refused(options: Any, message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        CampaignSettings(repetitions=REPETITIONS, **options)


def test_bad_calls_are_refused() -> None:
    for options, message in (
        ({"portfolio": {"one": noisy(0.0)}}, "at least two algorithms, got 1"),
        ({"suite": [1]}, "has 1 instance; a test needs at least two"),
        ({"horizon": float("nan")}, "horizon: expected a finite number"),
        ({"timepoints": [5, 20]}, "timepoints: 20 lies past the horizon, 10"),
        ({"settings": replace(SETTINGS, reference="two")}, "reference: there is no algorithm 'two'"),
    ):
        given: Any = {"portfolio": PORTFOLIO, "suite": INSTANCES, "horizon": 10, "settings": SETTINGS, **options}
        with pytest.raises(PolarBearError, match=message):
            campaign(**given, workers=0)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [40, pytest.param(200, marks=pytest.mark.long)])
def test_alpha_is_kept_and_the_power_reached_in_whole_campaigns(rounds: int) -> None:
    settings = CampaignSettings(
        repetitions=RepetitionSettings(error=0.3, first=2, most=4), effect=1.0, power=0.8, alpha=0.05
    )

    def level(shift: float) -> RunFunction:
        def run(problem: Any, horizon: float, _: int) -> Trajectory:
            value = shift * float(problem)
            return Trajectory(algorithm="?", instance="?", times=[1], best=[value], horizon=horizon)

        return run

    found = {0.0: 0, 1.0: 0}
    for mean in found:
        for seed in range(rounds):
            # The difference on an instance is the instance itself, drawn from a normal distribution.
            result = campaign(
                {"one": level(0.0), "other": level(1.0)},
                _Normal(mean),
                1,
                replace(settings, seed=seed),
                workers=0,
            )
            found[mean] += result.comparisons[0].significant
    assert found[0.0] / rounds < 0.05 + 4 * np.sqrt(0.05 * 0.95 / rounds)
    assert abs(found[1.0] / rounds - settings.power_with(10, 1)) < 4 * np.sqrt(0.16 / rounds)


class _Normal:
    """Instances that are numbers from a normal distribution."""

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def __call__(self, rng: np.random.Generator) -> float:
        return float(rng.normal(self.mean))


@pytest.mark.slow
def test_the_example_runs() -> None:
    assert "instances" in run_example("plan_experiment.py", "--quick")


def test_the_runs_of_a_campaign_are_listed() -> None:
    settings = CampaignSettings(repetitions=RepetitionSettings(error=10.0, first=3), instances=2, seed=1)
    found = campaign("synthetic", "synthetic", 5, settings, workers=0)
    frame = found.to_pandas()
    assert column_kinds(frame) == {"instance": "names", "algorithm": "names", "repetition": "int", "value": "float"}
    runs = sum(
        sample.size for samples in found.to_dict()["values"].values() for sample in map(np.array, samples.values())
    )
    assert len(frame) == runs
