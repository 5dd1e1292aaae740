from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Command, run_example

from polarbear_plugins import RaceSettings, Trajectory, race, read_trajectories
from polarbear_plugins.measures.ecdf_and_aocc import ecdf, mean_area_over_curve
from polarbear_plugins.measures.tables import expected_running_time, fixed_budget
from polarbear_plugins.trajectories import relative_to_range

# early is good at once and stays there, late overtakes it at 10.
CURVES = {"early": [(1, 1.0), (5, 0.5)], "late": [(1, 50.0), (10, 1e-9)]}


@pytest.fixture
def source(tmp_path: Path) -> str:
    rows = [
        f"{name},f{k},{time},{value},20" for k in range(30) for name, steps in CURVES.items() for time, value in steps
    ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["algorithm,instance,time,value,horizon", *rows]) + "\n")
    return str(path)


COMMAND = Command("measures")
succeed, measured, fail = COMMAND.succeed, COMMAND.data, COMMAND.fail


def test_the_json_has_what_the_functions_give(source: str) -> None:
    data = measured(source, "--budget", "4,20", "--targets", "1,1e-3,1e-12", "--timepoints", "1,5,20", "--seed", "1")
    runs = list(read_trajectories(source))
    areas = mean_area_over_curve(runs, 20)
    assert data["measures"]["AOCC"] == {name: pytest.approx(areas[name][0]) for name in CURVES}
    medians = fixed_budget(runs, [4, 20])["median"]
    assert {(row["algorithm"], row["budget"]): row["median"] for row in data["fixed_budget"]} == medians.to_dict()
    times = {(row["algorithm"], row["target"]): row["ert"] for row in data["fixed_target"]}
    assert times["late", 1e-3] == expected_running_time(runs, 1e-3)["late"] == 10
    assert times["late", 1e-12] is None  # never
    shares = ecdf(runs, [1, 5, 20], [1, 1e-3, 1e-12])
    assert data["ecdf"]["shares"] == {name: pytest.approx(shares[name].tolist()) for name in CURVES}
    assert (data["runs"], data["left_out"], len(data["instances"])) == (60, 0, 30)


def test_the_bounds_are_those_of_the_areas(source: str) -> None:
    data = measured(source, "--lower", "1e-3", "--upper", "10", "--no-posterior")
    assert (data["lower"], data["upper"]) == (1e-3, 10)
    areas = mean_area_over_curve(read_trajectories(source), 20, 1e-3, 10)
    assert data["measures"]["AOCC"]["late"] == pytest.approx(areas["late"][0])
    assert data["posterior"] is None
    assert data["contradictions"] == []


def test_contradictions_are_in_the_text_and_in_json(source: str) -> None:
    text, data = succeed(source, "--seed", "1"), measured(source, "--seed", "1")
    kinds = {(pair["ahead"], pair["kind"]) for pair in data["contradictions"]}
    assert ("late", "crossing") in kinds
    for pair in data["contradictions"]:
        assert f"- {pair['text']}" in text
    assert data["orders"]["AOCC"] == ["late", "early"]
    assert data["posterior"]["pareto_set"] == ["early", "late"]
    assert "60 runs of 2 algorithms on 30 instances · budget 20 · log scale 1e-08..100" in text
    assert "never" in text


def test_a_confirmed_order_is_reported_as_confirmed(source: str) -> None:
    assert "Rankings confirm the order of the measures for every pair." in succeed(
        source, "--budget", "5", "--seed", "1"
    )


def test_the_posterior_ends_at_the_budget(source: str) -> None:
    data = measured(source, "--budget", "5", "--timepoints", "1,5,10,20", "--seed", "1")
    assert data["posterior"]["timepoints"] == data["ecdf"]["timepoints"] == [1, 5]
    assert data["budget"] == 5


def test_runs_that_ended_early_are_left_out_or_held(source: str) -> None:
    path = Path(source)
    text = path.read_text()
    for row in ("late,f0,1,50.0", "late,f0,10,1e-09"):
        assert f"{row},20" in text
        text = text.replace(f"{row},20", f"{row},12")
    path.write_text(text)
    text = succeed(source, "--budget", "20", "--no-posterior")
    assert "58 runs of 2 algorithms on 29 instances" in text
    assert "2 runs are left out" in text
    held = measured(source, "--budget", "20", "--no-posterior", "--hold")
    assert (held["runs"], held["left_out"]) == (60, 0)
    assert measured(source, "--hold", "--no-posterior")["budget"] == 20


def test_a_race_is_measured_from_its_journal_or_its_result(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    settings = RaceSettings(seed=1, max_rounds=1)

    def level(value: float) -> Callable[[object, float, int], Trajectory]:
        def run(_: object, horizon: float, seed: int) -> Trajectory:
            noise = 1 + seed % 7 / 10
            return Trajectory(algorithm="?", instance="?", times=[1, 3], best=[9, value * noise], horizon=horizon)

        return run

    portfolio, suite = {"near": level(0.1), "far": level(1)}, [f"p{number}" for number in range(8)]
    raced = race(portfolio, suite, timepoints=[1, 5], settings=settings, workers=0, journal=journal)
    saved = raced.save(tmp_path / "race.npz")
    areas = mean_area_over_curve(raced.trajectories(), 5)
    for path in (journal, saved):
        data = measured(str(path), "--budget", "5", "--no-posterior")
        assert data["measures"]["AOCC"] == {name: pytest.approx(areas[name][0]) for name in ("near", "far")}
        assert measured(str(path), "--no-posterior")["ecdf"]["timepoints"] == [1, 5]  # nothing is known between them
        assert len(measured(str(path), "--no-posterior", "--timepoints", "5")["ecdf"]["timepoints"]) == 5


def test_bad_input_is_one_line(source: str, tmp_path: Path) -> None:
    assert "no run of 'early' was watched until 21" in fail(source, "--budget", "21")
    assert "--budget: expected numbers separated by commas, got 'much'" in fail(source, "--budget", "much")
    assert "--targets: expected numbers separated by commas" in fail(source, "--targets", "1;2")
    assert "targets: expected distinct finite numbers" in fail(source, "--targets", "1,1")
    assert "expected 0 < lower < upper, got 5 and 2" in fail(source, "--lower", "5", "--upper", "2")
    assert "--budget 0.5 lies before the first of the timepoints" in fail(source, "--budget", "0.5")
    below = tmp_path / "below.csv"
    below.write_text("algorithm,instance,time,value\na,f,1,-3\na,f,9,-5\nb,f,1,-3\nb,f,9,-5\n")
    assert "values below 0 are not on a log scale" in fail(str(below), "--scale", "log")
    assert "--scale linear needs both bounds" in fail(str(below), "--scale", "linear", "--lower", "-9")
    assert "leave out --lower and --upper" in fail(str(below), "--lower", "-9")
    empty = tmp_path / "empty.csv"
    empty.write_text("algorithm,instance,time,value\n")
    assert fail(str(empty))


@pytest.fixture
def accuracies(tmp_path: Path) -> str:
    """Accuracies on datasets of very different difficulty, negated; tpe is ahead of random from time 10 on."""
    rng = np.random.default_rng(1)
    rows = []
    for k, easy in enumerate(np.linspace(0.2, 0.9, 12)):
        for name, gain in (("random", 0.01), ("tpe", 0.06), ("worse", 0.0)):
            for seed in (0, 1):
                first = -easy + 0.02 * rng.random()
                rows += [f"{name},d{k},{seed},1,{first},100", f"{name},d{k},{seed},10,{first - gain},100"]
    path = tmp_path / "accuracies.csv"
    path.write_text("\n".join(["algorithm,instance,seed,time,value,horizon", *rows]) + "\n")
    return str(path)


def test_values_below_zero_are_scaled_by_the_range_of_each_instance(accuracies: str) -> None:
    data = measured(accuracies, "--budget", "100", "--no-posterior")
    runs = relative_to_range(read_trajectories(accuracies))
    areas = mean_area_over_curve(runs, 100, 0, 1, scale="linear")
    assert (data["scale"], data["lower"], data["upper"]) == ("relative", 0, 1)
    assert data["measures"]["AOCC"] == {name: pytest.approx(area) for name, (area, _) in areas.items()}
    assert data["orders"]["AOCC"] == ["tpe", "random", "worse"]
    assert sorted({row["target"] for row in data["fixed_target"]}) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert "scale from the worst to the best value found on each instance" in succeed(accuracies, "--no-posterior")


def test_bounds_and_targets_may_have_any_sign(accuracies: str) -> None:
    options = ("--budget", "100", "--lower", "-1", "--upper", "0", "--targets", "-0.5,0.5", "--no-posterior")
    data = measured(accuracies, *options)
    runs = list(read_trajectories(accuracies))
    assert data["scale"] == "linear"
    areas = mean_area_over_curve(runs, 100, -1, 0, scale="linear")
    assert data["measures"]["AOCC"]["tpe"] == pytest.approx(areas["tpe"][0])
    shares = {name: values[-1] for name, values in data["ecdf"]["shares"].items()}
    reached = [run.best[-1] <= -0.5 for run in runs if run.algorithm == "tpe"]
    assert shares["tpe"] == pytest.approx((1 + np.mean(reached)) / 2)  # 0.5 is reached by all
    assert "linear scale -1..0" in succeed(accuracies, *options)


def test_mean_ranks_are_tested_where_the_budgets_are(accuracies: str) -> None:
    data = measured(accuracies, "--budget", "1,100", "--no-posterior")
    first, last = data["friedman"]
    assert (first["timepoint"], last["timepoint"], last["count"]) == (1, 100, 12)
    assert first["p"] > 0.05 > 0.001 > last["p"]
    assert list(last["mean_ranks"]) == ["tpe", "random", "worse"]
    assert data["consensus"][1]["order"] == ["tpe", "random", "worse"]
    assert {row["count"] for row in data["mean_ranks"]} == {12}
    text = succeed(accuracies, "--budget", "1,100", "--no-posterior")
    assert f"At 1: Friedman's test on 12 instances: p = {first['p']:.3f}, so no mean ranks are told apart" in text
    assert "At 100: Friedman's test on 12 instances: p < 0.001. Mean ranks must differ by more than 0.96" in text
    # No order is given where the test finds no difference.
    assert text.count("Consensus, the order with the fewest rank reversals: tpe > random > worse.") == 1
    assert text.count("Consensus") == 1


def test_a_single_run_is_not_tested(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("algorithm,instance,time,value\na,f,1,3\na,f,9,2\nb,f,1,3\nb,f,9,1\n")
    assert "With a single ranking mean ranks cannot be tested." in succeed(str(path), "--no-posterior")
    assert measured(str(path), "--no-posterior")["friedman"] == []


def test_runs_of_a_single_instance_are_called_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"{name},f,{seed},1,{seed + shift}" for seed in range(8) for name, shift in (("a", 0), ("b", 1), ("c", 2))]
    path.write_text("\n".join(["algorithm,instance,seed,time,value", *rows]) + "\n")
    text = succeed(str(path), "--no-posterior")
    assert "Friedman's test on 8 runs (runs of an instance count as independent" in text
    assert measured(str(path), "--no-posterior")["friedman"][0]["unit"] == "runs"


def test_figures_are_written_into_a_folder(accuracies: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "made" / "here"
    data = measured(accuracies, "--budget", "25,100", "--no-posterior", "--figures", str(folder))
    names = ["mean_ranks", "mean_regret", "critical_difference_25", "critical_difference_100"]
    assert data["figures"] == [str(folder / f"{name}.png") for name in names]
    assert all(Path(path).stat().st_size > 10_000 for path in data["figures"])
    (tmp_path / "file").write_text("")
    assert "is not a folder" in fail(accuracies, "--no-posterior", "--figures", str(tmp_path / "file" / "below"))


@pytest.mark.slow
def test_the_example_shows_which_algorithm_is_best_early() -> None:
    text = run_example("compare_with_aocc.py", "--quick")
    assert "the budget decides" in text
    assert "Anytime Pareto set: " in text
