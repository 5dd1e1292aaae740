"""The classical measures are those of iohinspector, where its conventions are the same.

It differs in three ways, which are avoided here.  It counts the time until the first evaluation as if its value had
been there from the start (AOCC).  It takes a run for watched on after its end, with the last value, and lets a failed
run cost as much as the longest of all (ERT).  It takes a run without a value at a timepoint out of the group of its
algorithm (ECDF).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import Trajectory, read_trajectories
from polarbear_plugins.integrations.ioh_writer import Scenario, write_ioh
from polarbear_plugins.measures.attainment import attained, attainment_differences, attainment_surfaces
from polarbear_plugins.measures.ecdf_and_aocc import ecdf, mean_area_over_curve
from polarbear_plugins.measures.tables import fixed_budget, fixed_target
from polarbear_plugins.measures.targets import log_targets

pl: Any = pytest.importorskip("polars")
metrics: Any = pytest.importorskip("iohinspector.metrics")

BUDGET = 1000


def some_runs() -> list[Trajectory]:
    """Runs of two algorithms that pass the bounds on both sides; some never reach the hard targets."""
    rng = np.random.default_rng(8)
    runs = []
    for name, speed in (("fast", 0.6), ("slow", 0.2)):
        for seed in range(12):
            times = np.concatenate(([1], 1 + np.sort(rng.choice(BUDGET - 1, 25, replace=False) + 1)))
            best = 10 ** (3 - np.cumsum(rng.exponential(speed, times.size)))
            run = Trajectory(algorithm=name, instance="f", seed=seed, times=times, best=best, horizon=BUDGET)
            runs.append(run)
    return runs


def frame_of(runs: list[Trajectory]) -> Any:
    rows = [
        {
            "data_id": number,
            "algorithm_name": run.algorithm,
            "function_name": "f",
            "evaluations": int(time),
            "raw_y": float(value),
        }
        for number, run in enumerate(runs)
        for time, value in zip(run.times, run.best, strict=True)
    ]
    return pl.DataFrame(rows)


@pytest.fixture
def runs() -> list[Trajectory]:
    return some_runs()


@pytest.fixture
def frame(runs: list[Trajectory]) -> Any:
    return frame_of(runs)


def check_areas(runs: list[Trajectory], frame: Any) -> None:
    scaled = metrics.transform_fval(frame, lb=1e-8, ub=1e2)
    theirs = metrics.get_aocc(scaled, eval_max=BUDGET, free_vars=["algorithm_name"]).set_index("algorithm_name")
    # Theirs gives the first value already from time 0 on.
    early = [
        Trajectory(
            algorithm=run.algorithm,
            instance=run.instance,
            seed=run.seed,
            times=[0, *run.times[1:]],
            best=run.best,
            horizon=run.horizon,
        )
        for run in runs
    ]
    ours = mean_area_over_curve(early, BUDGET)
    assert len(ours) == 2
    for name, (area, _) in ours.items():
        assert area == pytest.approx(theirs.loc[name, "AOCC"], abs=1e-9)


def check_shares(runs: list[Trajectory], frame: Any) -> None:
    numbers = frame.select("data_id", "algorithm_name", "evaluations", "raw_y")  # it averages all columns, text or not
    theirs = metrics.get_data_ecdf(numbers, f_min=1e-8, f_max=1e2, eval_min=1, eval_max=BUDGET)
    wide = theirs.pivot_table(index="evaluations", columns="algorithm_name", values="eaf")
    ours = ecdf(runs, wide.index)
    assert ours.shape[1] == 2
    assert ours.to_numpy().std() > 0.05
    np.testing.assert_allclose(ours, wide[ours.columns], atol=1e-9)


def test_areas_over_the_curve(runs: list[Trajectory], frame: Any) -> None:
    check_areas(runs, frame)


def test_shares_of_targets_over_time(runs: list[Trajectory], frame: Any) -> None:
    check_shares(runs, frame)


def test_values_at_budgets(runs: list[Trajectory], frame: Any) -> None:
    theirs = metrics.aggregate_convergence(frame, eval_min=1, eval_max=BUDGET)
    ours = fixed_budget(runs, np.unique(theirs["evaluations"]))
    assert len(ours) == len(theirs) > 60
    for row in theirs.itertuples():
        mine = ours.loc[row.algorithm_name, row.evaluations]
        for column in ("mean", "std", "geometric_mean", "min", "median", "max"):
            assert mine[column] == pytest.approx(getattr(row, column), rel=1e-9)


def test_times_to_targets(runs: list[Trajectory], frame: Any) -> None:
    theirs = metrics.aggregate_running_time(frame, f_min=1e-8, f_max=1e2, eval_max=BUDGET)
    ours = fixed_target(runs, np.unique(theirs["raw_y"]))
    assert len(ours) == len(theirs) == 100
    rates = []
    for row in theirs.to_dict("records"):
        mine = ours.loc[row["algorithm_name"], row["raw_y"]]
        assert mine["successes"] == row["success_count"]
        assert mine["success_rate"] == pytest.approx(row["success_ratio"])
        assert mine["ert"] == pytest.approx(row["ERT"], rel=1e-9)
        for column in ("min", "median", "max"):
            assert mine[column] == row[column]
        rates.append(mine["success_rate"])
    assert {0.0, 1.0} < set(rates)


def test_shares_of_runs(runs: list[Trajectory], frame: Any) -> None:
    fast = [run for run in runs if run.algorithm == "fast"]
    part = frame.filter(pl.col("algorithm_name") == "fast")
    theirs = metrics.get_discritized_eaf_single_objective(part, eval_values=[1, 10, 100, 500, 1000], f_targets=41)
    # Its first target is reached by everything, even by what lies above the upper bound.
    ours = attained(fast, [1, 10, 100, 500, 1000], log_targets(count=41))
    np.testing.assert_allclose(ours.T[1:], theirs.to_numpy()[1:])


def test_surfaces_and_differences_of_attainment(runs: list[Trajectory], frame: Any) -> None:
    groups = {name: [run for run in runs if run.algorithm == name] for name in ("fast", "slow")}
    frames = {name: frame.filter(pl.col("algorithm_name") == name) for name in groups}
    theirs = metrics.get_eaf_pareto_data(frames["fast"], "evaluations", "raw_y").to_numpy()
    ours = attainment_surfaces(groups["fast"], BUDGET, 1e-99, 1e99)[["time", "value", "percentile"]]
    ours = ours.to_numpy() / [1, 1, 100]
    np.testing.assert_allclose(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])

    rectangles = metrics.get_eaf_diff_data(frames["fast"], frames["slow"], "evaluations", "raw_y")
    rectangles = rectangles[(rectangles["eaf_diff"] != 0) & (rectangles["x_min"] < BUDGET)]
    differences = attainment_differences(groups["fast"], groups["slow"], BUDGET, 1e-99, 1e99)
    assert len(differences) == len(rectangles) > 100
    known = {(each.x_min, each.y_min): each.eaf_diff / 12 for each in rectangles.itertuples()}
    for each in differences.itertuples():
        assert math.isclose(known[each.time_from, each.value_from], each.difference)


def test_real_data_that_both_read_from_files(shared: Path) -> None:
    iohinspector = pytest.importorskip("iohinspector")
    folder = shared / "ioh" / "examples" / "SO_Data"
    if not folder.is_dir():
        pytest.skip("no IOHprofiler data among the shared data")
    manager = iohinspector.DataManager()
    manager.add_folder(str(folder))
    frame = manager.load(monotonic=True, include_meta_data=True)
    runs = list(read_trajectories(folder))
    assert len(runs) == frame["data_id"].n_unique() == 60
    check_areas(runs, frame)
    check_shares(runs, frame)


def test_its_objects_are_read_as_the_files_they_came_from(tmp_path: Path) -> None:
    inspector: Any = pytest.importorskip("iohinspector")
    made = [
        Trajectory(algorithm=name, instance=f"f{k}_d2_i1", times=[1, 3 + k], best=[4.0, 0.5 * k], horizon=50)
        for name in ("one", "other")
        for k in (1, 2)
    ]
    scenarios = {f"f{k}_d2_i1": Scenario(k, f"Function{k}", dimension=2, instance=1) for k in (1, 2)}
    write_ioh(made, tmp_path / "data", scenarios=scenarios)
    manager = inspector.DataManager()
    manager.add_folder(str(tmp_path / "data"))
    table = manager.load(monotonic=True, include_meta_data=True)
    expected = sorted(map(repr, read_trajectories(tmp_path / "data")))
    assert len(expected) == 4
    for source in (manager, table, table.to_pandas()):
        assert sorted(map(repr, read_trajectories(source))) == expected
