from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import PolarBearError, Trajectory, rank
from polarbear_plugins.adapters import bayesmark
from polarbear_plugins.adapters.bayesmark import polarbear_read_trajectories, read_database
from polarbear_plugins.errors import PolarBearWarning
from polarbear_plugins.measures.scores import score_studies
from polarbear_plugins.testing import check_adapter

WriteStudy = Callable[..., Path]
# What bayesmark 0.0.8 writes when an optimizer raises in suggest, in observe, and when an evaluation fails.
LOG = """running: {'--opt': 'PySOT'}
Failure in optimizer suggest. Falling back to random search.
no more points
Traceback (most recent call last):
  File "site-packages/bayesmark/experiment.py", line 115, in run_study
    logger.warning("Failure in optimizer suggest. Falling back to random search.")
RuntimeError: Failure in optimizer suggest. Falling back to random search.
suggestion time taken 0.064778 iter 0 next_points []
Failure in function eval. Setting to inf.
Failure in optimizer observe. Ignoring these observations.
Failure in optimizer suggest. Falling back to random search.
suggestion time taken 0.064778 iter 1 next_points []
"""


@pytest.fixture
def sample(shared: Path) -> Path:
    folder = shared / "bayesmark" / "sample"
    if not folder.is_dir():
        pytest.skip("no Bayesmark sample among the shared data")
    return folder


def read(source: object, **options: object) -> list[Trajectory]:
    found = polarbear_read_trajectories(source=source, options=options)
    assert found is not None
    return list(found)


def derived(
    sample: Path, name: str, variable: str, order: tuple[str, ...]
) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """An array that bayesmark-anal has saved, with its axes in an order, and their labels."""
    data = json.loads((sample / "derived" / f"{name}.json").read_text())["data"]
    found = data["data_vars"][variable]
    array = np.moveaxis(
        np.array(found["data"], dtype=float), [found["dims"].index(d) for d in order], range(len(order))
    )
    return array, {d: data["coords"][d]["data"] for d in order}


@pytest.mark.parametrize(("objective", "name"), [("visible", "_visible_to_opt"), ("generalization", "generalization")])
def test_scores_equal_all_that_bayesmark_anal_saved(sample: Path, objective: str, name: str) -> None:
    scores = score_studies(read_database(sample).arrays(objective))
    for variable, ours in (
        ("mean", scores.mean),
        ("mean LB", scores.mean - scores.error),
        ("mean UB", scores.mean + scores.error),
        ("mean normed", scores.normed_mean),
        ("median", scores.median),
    ):
        theirs, labels = derived(sample, "summary", variable, ("objective", "iter", "optimizer"))
        assert tuple(labels["optimizer"]) == scores.algorithms
        np.testing.assert_allclose(ours, theirs[labels["objective"].index(name)], rtol=0, atol=1e-9)
    theirs, labels = derived(sample, "perf", "mean normed", ("objective", "iter", "optimizer", "function"))
    places = [labels["function"].index(instance) for instance in scores.instances]
    np.testing.assert_allclose(
        scores.by_instance, theirs[labels["objective"].index(name)][..., places], rtol=0, atol=1e-9
    )
    for variable, found in (("clip", scores.baseline.clip), ("best", scores.baseline.best)):
        theirs, labels = derived(sample, "baseline", variable, ("objective", "function"))
        places = [labels["function"].index(instance) for instance in scores.instances]
        assert np.array_equal(theirs[labels["objective"].index(name)][places], found)
    for variable, found in (("mean", scores.baseline.mean), ("median", scores.baseline.median)):
        theirs, labels = derived(sample, "baseline", variable, ("objective", "iter", "function"))
        np.testing.assert_allclose(theirs[labels["objective"].index(name)][:, places], found, rtol=1e-12)


def test_scores_equal_all_that_bayesmark_anal_printed(sample: Path) -> None:
    text = (sample.parent / "expected-analysis.txt").read_text()
    printed = [json.loads(line) for line in text.splitlines() if line.startswith(('{"_visible', '{"general'))]
    tables = re.findall(r"^(median|mean|normed mean) score @ 15:\noptimizer\n((?:\S+ +[\d.]+\n)+)", text, re.MULTILINE)
    [final] = re.findall(r"for leaderboard:\noptimizer\n((?:\S+ +[\d.]+\n?)+)", text)
    assert (len(printed), len(tables)) == (4, 6)
    database = read_database(sample)
    for k, objective in enumerate(("visible", "generalization")):
        scores = score_studies(database.arrays(objective))
        by_problem, overall = (next(iter(found.values())) for found in printed[2 * k : 2 * k + 2])
        for row, name in enumerate(scores.algorithms):
            assert overall[name] == pytest.approx(scores.mean[-1, row], abs=1e-9)
            for column, instance in enumerate(scores.instances):
                assert by_problem[name][instance] == pytest.approx(scores.by_instance[-1, row, column], abs=1e-9)
        ours = {"median": scores.median, "mean": scores.mean, "normed mean": scores.normed_mean}
        for kind, rows in tables[3 * k : 3 * k + 3]:
            shown = dict(row.split() for row in rows.splitlines())
            assert shown == {n: f"{x:.6f}" for n, x in zip(scores.algorithms, ours[kind][-1], strict=True)}
        if objective == "visible":
            shown = dict(row.split() for row in final.splitlines())
            assert shown == {n: f"{x:.6f}" for n, x in zip(scores.algorithms, scores.leaderboard, strict=True)}
            assert scores.baseline.doubtful == ("kNN_diabetes_mse",)  # about which bayesmark-anal warned


def test_the_sample_is_read_as_an_adapter_promises(sample: Path) -> None:
    runs = check_adapter(bayesmark, sample)
    assert len(runs) == 120
    assert {run.horizon for run in runs} == {15}
    assert rank(runs, [1, 15]).values.shape == (30, 2, 4)


def test_the_last_values_of_trajectories_are_those_that_are_scored(sample: Path) -> None:
    for objective in ("visible", "generalization"):
        scores = score_studies(read_database(sample).arrays(objective))
        for run in read(sample, objective=objective):
            place = scores.instances.index(run.instance)
            best, clip = scores.baseline.best[place], scores.baseline.clip[place]
            loss = scores.losses[run.algorithm, run.instance][run.seed, -1]
            assert np.clip((run.best[-1] - best) / (clip - best), -1, 1) == pytest.approx(loss, abs=1e-12)


def test_the_sample_is_read_over_seconds(sample: Path) -> None:
    serial, parallel = read(sample, time="seconds"), read(sample, time="seconds", parallel="yes")
    for one, other in zip(serial, parallel, strict=True):
        assert 0 < other.horizon < one.horizon
        assert one.best[-1] == other.best[-1]


def test_iterations_evaluations_and_seconds_tell_when_a_value_was_known(write_study: WriteStudy) -> None:
    times = ([1.0, 2.0, 3.0], [[0.25, 0.5], [0.25, 0.5], [0.25, 0.5]], [0.125, 0.125, 0.125])
    db = write_study("TPE", "DT_wine_nll", [[3, 4], [5, 2], [9, 9]], seconds=times).parent.parent
    for options, expected, horizon in (
        ({}, [1, 2, 3], 3),
        ({"time": "evaluations"}, [2, 4, 6], 6),
        ({"time": "seconds"}, [1.75, 4.625, 8.5], 8.625),
        ({"time": "seconds", "parallel": True}, [1.5, 4.125, 7.75], 7.875),
    ):
        [run] = read(db, **options)
        assert (run.algorithm, run.instance, run.seed) == ("TPE_1.0_abc", "DT_wine_nll", 0)
        assert (run.times.tolist(), run.best.tolist(), run.horizon) == (expected, [3, 2, 2], horizon)


def test_generalization_is_that_of_the_best_visible_and_may_get_worse(write_study: WriteStudy) -> None:
    db = write_study("TPE", "DT_wine_nll", [[3, 4], [5, 2]], [[0.1, 0.2], [0.3, 0.4]]).parent.parent
    [run] = read(db, objective="generalization")
    assert run.best.tolist() == [0.1, 0.4]


def test_an_evaluation_that_failed_is_infinitely_bad(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[np.inf, np.inf], [np.inf, 2]])
    assert "Infinity" in path.read_text()
    [run] = read(path.parent.parent)
    assert run.best.tolist() == [np.inf, 2]
    [run] = read(path.parent.parent, objective="generalization")
    assert run.best.tolist() == [np.inf, 2]


def test_a_clock_that_stands_still_shows_the_later_value(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [2]], seconds=([1, 0], [[0], [0]], [0, 0]))
    [run] = read(path.parent.parent, time="seconds")
    assert (run.times.tolist(), run.best.tolist()) == ([1], [2])


def test_repeated_studies_are_repetitions_of_one_instance_and_may_be_uneven(write_study: WriteStudy) -> None:
    for optimizer, studies in (("TPE", 3), ("RandomSearch", 2)):
        for k in range(studies):
            db = write_study(optimizer, "DT_wine_nll", [[3 + k, 4], [5, 2 - k]]).parent.parent
    runs = read(db)
    assert [(run.algorithm, run.seed) for run in runs] == [
        *(("TPE_1.0_abc", seed) for seed in range(3)),
        *(("RandomSearch_1.0_abc", seed) for seed in range(2)),
    ]
    table = rank(runs, [1, 2])
    assert (len(table.instances), table.weights.sum()) == (1, 1)
    assert score_studies(read_database(db).arrays()).mean.shape == (2, 2)


def test_only_eval_is_needed(write_study: WriteStudy) -> None:
    db = write_study("TPE", "DT_wine_nll", [[3, 4], [5, 2]]).parent.parent
    for name in ("derived", "log", "suggest_log", "time"):
        shutil.rmtree(db / name)
    assert len(read(db)) == 1


def test_failures_that_random_search_hides_are_counted_from_the_logs(write_study: WriteStudy) -> None:
    write_study("PySOT", "DT_wine_nll", [[3], [5]], log=LOG)
    write_study("PySOT", "DT_wine_nll", [[3], [5]], log="running: {}\ndone\n")
    write_study("PySOT", "DT_wine_nll", [[3], [5]])
    db = write_study("TPE", "DT_wine_nll", [[3], [5]], log="done\n").parent.parent
    found = read_database(db).fallbacks()
    pysot, tpe = found["PySOT_1.0_abc"], found["TPE_1.0_abc"]
    assert (pysot.studies, pysot.logs, pysot.iterations) == (3, 2, 4)
    assert (pysot.random, pysot.ignored, pysot.failed) == (2, 1, 1)
    assert (tpe.logs, tpe.random) == (1, 0)
    with pytest.warns(
        PolarBearWarning, match="PySOT_1.0_abc failed to suggest in 2 of 4 iterations.* of 2 of 3 studies"
    ):
        read(db)


def test_logs_without_failures_are_not_worth_a_word(sample: Path) -> None:
    found = read_database(sample).fallbacks()
    assert sum(each.logs for each in found.values()) == 4
    assert sum(each.random + each.ignored + each.failed for each in found.values()) == 0


def test_json_cut_in_half_is_refused_with_file_and_place(write_study: WriteStudy) -> None:
    write_study("TPE", "DT_wine_nll", [[3], [5]])
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(PolarBearError, match=rf"eval/{path.name}, line 1, column \d+: the JSON is damaged or cut off"):
        read(path.parent.parent)


def test_studies_of_different_lengths_are_refused_unless_asked_for(write_study: WriteStudy) -> None:
    first = write_study("TPE", "DT_wine_nll", [[3], [5]])
    second = write_study("CMA", "DT_wine_nll", [[3], [5], [2]])
    message = rf"eval/{second.name} has 3 iterations of 1 suggestions, but eval/{first.name} 2 of 1"
    with pytest.raises(PolarBearError, match=message):
        read(first.parent.parent)
    assert [run.horizon for run in read(first.parent.parent, uneven="true")] == [2, 3]


def _edit(path: Path, change: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def _values(data: Any, name: str = "generalization") -> Any:
    return data["data"]["data_vars"][name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: _values(d)["data"].pop(),
            "_visible_to_opt has 2 iterations .*, but generalization has 1 iterations",
        ),
        (lambda d: _values(d)["data"][1].pop(), "generalization: expected numbers"),
        (lambda d: _values(d).update(data=[]), r"generalization: expected a number for each iteration and suggestion"),
        (lambda d: _values(d).update(data=[["1"], ["2"]]), "generalization: expected numbers"),
        (
            lambda d: _values(d)["data"].__setitem__(1, [float("nan")]),
            "generalization is nan at iteration 1, suggestion 0",
        ),
        (lambda d: _values(d)["data"].__setitem__(0, [None]), "generalization is nan at iteration 0, suggestion 0"),
        (lambda d: d["data"]["data_vars"].pop("generalization"), "there is no 'data.data_vars.generalization'"),
        (lambda d: d.pop("meta"), "there is no 'meta'"),
        (lambda d: d["meta"]["args"].pop("--opt"), "meta.args: there is no '--opt'"),
        (lambda d: d["meta"]["args"].update({"--data": None}), "meta.args: expected text for '--data', got None"),
    ],
)
def test_damaged_studies_are_refused_with_their_file(
    write_study: WriteStudy, change: Callable[[Any], object], message: str
) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    _edit(path, change)
    with pytest.raises(PolarBearError, match=rf"eval/{path.name}.*{message}"):
        read(path.parent.parent)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_files_that_are_something_else_are_refused(write_study: WriteStudy, content: bytes) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    path.write_bytes(content)
    with pytest.raises(PolarBearError, match=f"eval/{path.name}"):
        read(path.parent.parent)


def test_a_copied_study_does_not_count_twice(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    shutil.copy(path, path.with_name("f" * 32 + ".json"))
    with pytest.raises(PolarBearError, match=f"eval/{path.name} and eval/f+.json are both the study 0+"):
        read(path.parent.parent)


def test_seconds_need_the_times(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    with pytest.raises(PolarBearError, match=rf"has no time/{path.name}.*use time=iterations or time=evaluations"):
        read(path.parent.parent, time="seconds")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (([1.0], [[1.0]], [1.0]), "suggest has 1 iterations, but eval/.* 2 iterations of 1 suggestions"),
        (([1.0, -1.0], [[1.0], [1.0]], [0, 0]), "suggest has seconds that are negative or not finite"),
        (([1.0, 1.0], [[1.0], [np.inf]], [0, 0]), "eval has seconds that are negative or not finite"),
    ],
)
def test_times_that_do_not_go_with_the_study_are_refused(write_study: WriteStudy, seconds: Any, message: str) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]], seconds=seconds)
    with pytest.raises(PolarBearError, match=f"time/{path.name}: {message}"):
        read(path.parent.parent, time="seconds")


def test_other_folders_are_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "notes.json").write_text("{}")
    for source in (tmp_path, tmp_path / "eval", str(tmp_path / "none"), "a\0b", "x" * 5000, 3, [tmp_path]):
        assert polarbear_read_trajectories(source=source, options={}) is None


def test_the_wrong_folder_is_met_with_what_to_do(write_study: WriteStudy, tmp_path: Path) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    (tmp_path / "other").mkdir()
    for wrong, message in (
        (tmp_path / "none", "there is no such folder"),
        (path, "is a file"),
        (path.parent, "is part of a database. Give the whole folder: .*db"),
        (tmp_path, "is not a database, but contains some: db. Give one of them"),
        (tmp_path / "other", "has no eval/ with studies in it. Expected the folder of a Bayesmark database"),
    ):
        with pytest.raises(PolarBearError, match=message):
            read_database(wrong)


def test_an_empty_database_holds_no_study(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    path.unlink()
    with pytest.raises(PolarBearError, match="eval/ holds no study"):
        read(path.parent.parent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "test"}, 'objective: expected "visible" or "generalization", got'),
        ({"time": "trials"}, 'time: expected "iterations", "evaluations" or "seconds", got'),
        ({"parallel": "maybe"}, "parallel: expected true or false"),
        ({"suite": 1}, "A Bayesmark database has no option 'suite'. It takes objective, time, parallel, uneven"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    write_study: WriteStudy, options: dict[str, object], message: str
) -> None:
    db = write_study("TPE", "DT_wine_nll", [[3], [5]]).parent.parent
    with pytest.raises(PolarBearError, match=message):
        read(db, **options)


def test_a_function_that_is_not_the_same_in_all_studies_is_named(write_study: WriteStudy) -> None:
    first = write_study("TPE", "DT_wine_nll", [[3], [5]], signature=(1.0, 2.0))
    write_study("TPE", "kNN_wine_nll", [[3], [5]], signature=(7.0,))
    write_study("CMA", "DT_wine_nll", [[3], [5]], signature=(1.0, 2.0 + 1e-9))
    assert len(read(first.parent.parent)) == 3
    last = write_study("CMA", "DT_wine_nll", [[3], [5]], signature=(1.0, 2.1))
    with pytest.warns(
        PolarBearWarning, match=f"DT_wine_nll is not the same function in eval/{first.name} and eval/{last.name}"
    ):
        read(first.parent.parent)


def test_studies_may_have_other_names_than_bayesmark_gives(write_study: WriteStudy) -> None:
    path = write_study("TPE", "DT_wine_nll", [[3], [5]])
    path.rename(path.with_name("first.json"))
    assert len(read(path.parent.parent)) == 1
