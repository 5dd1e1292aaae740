from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, run_example

from polarbear_plugins.adapters.bayesmark import read_database
from polarbear_plugins.measures.scores import score_studies

WriteStudy = Callable[..., Path]
FUNCTIONS = ("DT_wine_nll", "kNN_wine_nll", "SVM_iris_acc")


COMMAND = Command("leaderboard")
run, succeed, board, fail = COMMAND.run, COMMAND.succeed, COMMAND.data, COMMAND.fail


def write(write_study: WriteStudy, optimizers: tuple[str, ...] = ("RandomSearch", "TPE"), **more: Any) -> str:
    rng = np.random.default_rng(0)
    for k, optimizer in enumerate(optimizers):
        for function in FUNCTIONS:
            for _ in range(3):
                values = rng.lognormal(-k, size=(2, 5, 2))
                path = write_study(optimizer, function, *values, **(more if optimizer == "TPE" else {}))
    return str(path.parent.parent)


def test_the_json_has_the_scores_of_the_arrays(write_study: WriteStudy) -> None:
    db = write(write_study)
    data = board(db)
    for objective in ("visible", "generalization"):
        scores, found = score_studies(read_database(db).arrays(objective)), data["scores"][objective]
        for row, name in enumerate(scores.algorithms):
            assert list(found["by_instance"][name].values()) == scores.by_instance[-1, row].tolist()
            for key in ("mean", "error", "normed_mean", "median"):
                assert found[key][name] == getattr(scores, key)[-1, row]
            assert found["leaderboard"][name] == scores.leaderboard[row]
            assert found["leaderboard_median"][name] == scores.leaderboard_median[row]
    scores = score_studies(read_database(db).arrays())
    worth = data["random_equivalents"]
    assert (worth["of"], worth["pooled"]) == (10, 30)
    assert [each["evaluations"] for each in worth["algorithms"].values()] == list(scores.equivalents)
    assert data["bootstrap"]["resamples"] == 10_000
    assert sum(ranking["share"] for ranking in data["bootstrap"]["rankings"]) == pytest.approx(1)
    assert data["posterior"]["algorithms"] == ["RandomSearch_1.0_abc", "TPE_1.0_abc"]
    assert data["posterior"]["timepoints"] == [1, 2, 3, 4, 5]
    assert data["refused"] is None


def test_the_same_seed_shows_the_same_leaderboard(write_study: WriteStudy) -> None:
    db = write(write_study)
    assert board(db, "--seed", "3") == board(db, "--seed", "3")
    assert board(db, "--seed", "3")["bootstrap"]["scores"] != board(db, "--seed", "4")["bootstrap"]["scores"]


def test_people_get_tables_and_words(write_study: WriteStudy) -> None:
    text = succeed(write(write_study), "--instances", "--top", "1")
    lines = [line.split() for line in text.splitlines()]
    first, second = [line for line in lines if line and line[0].endswith("_abc")][:2]
    assert (first[0], second[0]) == ("TPE_1.0_abc", "RandomSearch_1.0_abc")
    assert float(first[1]) > float(second[1])
    assert "18 studies of 2 algorithms on 3 instances · 5 iterations of 2 suggestions" in text
    assert "rankings of the first 1 places by their frequency" in text
    assert "Mean loss on each instance" in text
    assert "0 of 18 studies have a log" in text
    assert "Rankings of the same data at 5 timepoints, 1 to 5 iterations" in text
    assert "Where score and rankings disagree" in text
    assert "TPE_1.0_abc scores above RandomSearch_1.0_abc" in text


def test_without_random_search_scores_are_refused_and_the_posterior_is_there(write_study: WriteStudy) -> None:
    db = write(write_study, ("CMA", "TPE"))
    text = succeed(db)
    assert "No scores. There is no random search among the algorithms (CMA_1.0_abc, TPE_1.0_abc)" in text
    assert "Ratings: the share of new instances on which each would be the best of all" in text
    data = board(db)
    assert (data["scores"], data["bootstrap"], data["random_equivalents"]) == (None, None, None)
    assert data["refused"].startswith("There is no random search")
    assert data["posterior"]["pareto_set"]


def test_another_algorithm_can_be_random_search(write_study: WriteStudy) -> None:
    db = write(write_study, ("CMA", "TPE"))
    assert board(db, "--random", "CMA_1.0_abc")["scores"]["visible"]["leaderboard"]
    assert "random: there is no algorithm 'CMA'. There are CMA_1.0_abc, TPE_1.0_abc." in fail(db, "--random", "CMA")


def test_an_optimizer_that_random_search_replaced_is_named(write_study: WriteStudy) -> None:
    log = "Failure in optimizer suggest. Falling back to random search.\n"
    db = write(write_study, log=log)
    assert "TPE_1.0_abc failed to suggest in 9 of 45 iterations" in succeed(db, "--no-posterior")
    assert board(db, "--no-posterior")["fallbacks"]["TPE_1.0_abc"]["random"] == 9


def test_generalization_has_a_board_of_its_own(write_study: WriteStudy) -> None:
    db = write(write_study)
    data = board(db, "--objective", "generalization")
    assert (data["objective"], data["bootstrap"]["objective"]) == ("generalization", "generalization")
    resampled = data["bootstrap"]["scores"]["TPE_1.0_abc"]["mean"]
    assert resampled == pytest.approx(data["scores"]["generalization"]["leaderboard"]["TPE_1.0_abc"], abs=1)
    assert data["random_equivalents"] == board(db, "--no-posterior")["random_equivalents"]


def test_what_is_not_wanted_is_left_out(write_study: WriteStudy) -> None:
    data = board(write(write_study), "--no-posterior", "--bootstrap", "0")
    assert (data["posterior"], data["bootstrap"], data["disagreements"]) == (None, None, [])


def test_many_studies_are_ranked_in_part_and_the_output_says_so(write_study: WriteStudy) -> None:
    db = write(write_study)
    assert "12 of 18 studies are ranked, at most 2 of each algorithm on each instance (--studies)." in succeed(
        db, "--studies", "2"
    )
    assert board(db, "--studies", "2")["ranked_studies"] == 12
    assert board(db, "--studies", "0")["ranked_studies"] == 18


def test_scores_are_compared_with_rankings_at_the_end_whatever_the_time_axis(write_study: WriteStudy) -> None:
    rng = np.random.default_rng(2)
    for k in range(18):  # all take different times, so that few reach the last second
        values = 1 + rng.random((5, 2))
        if k % 2:
            values += [[1], [1], [1], [0], [-1]]  # behind until the end
        seconds = ([0.1 + 0.01 * k] * 5, [[0.1, 0.1]] * 5, [0.0] * 5)
        path = write_study(("RandomSearch", "TPE")[k % 2], FUNCTIONS[k // 6], values, seconds=seconds)
    db = str(path.parent.parent)
    plain = board(db)["disagreements"]
    assert [(pair["ahead"], pair["wins"]) for pair in plain] == [("TPE_1.0_abc", 1.0)]
    for options in (["--time", "seconds"], ["--time", "evaluations"], ["--timepoints", "1,2"]):
        found = board(db, *options)["disagreements"]
        assert [(pair["ahead"], pair["kind"], pair["wins"]) for pair in found] == [
            (pair["ahead"], pair["kind"], pair["wins"]) for pair in plain
        ]


def test_bad_databases_are_one_line(write_study: WriteStudy, tmp_path: Path) -> None:
    assert "there is no such folder" in fail(str(tmp_path / "none"))
    db = write(write_study)
    assert "has no time/" in fail(db, "--time", "seconds")
    assert "--timepoints: expected" in fail(db, "--timepoints", "few")
    path = write_study("TPE", FUNCTIONS[0], [[1.0, 2.0]])
    assert f"eval/{path.name} has 1 iterations of 2 suggestions" in fail(db)
    path.write_text(path.read_text()[:-30])
    assert f"eval/{path.name}, line 1, column" in fail(db)


def test_an_algorithm_that_was_not_run_everywhere_is_not_scored_but_ranked(write_study: WriteStudy) -> None:
    db = write(write_study)
    write_study("CMA", FUNCTIONS[0], np.ones((5, 2)))
    data = board(db)
    assert "CMA_1.0_abc on SVM_iris_acc" in data["refused"]
    assert "CMA_1.0_abc" in data["posterior"]["algorithms"]


def test_the_sample_shows_its_published_leaderboard(shared: Path) -> None:
    folder = shared / "bayesmark" / "sample"
    if not folder.is_dir():
        pytest.skip("no Bayesmark sample among the shared data")
    text = succeed(str(folder), "--no-posterior")
    assert "97.269" in text
    assert "Doubtful: random search also found the best known value (visible loss) on kNN_diabetes_mse" in text
    assert (
        "RandomSearch_0.0.8_a376313        93.142   90.89 to 95.24   98.911                   60        1.000" in text
    )
    assert (
        "RandomSearch_0.0.8_a376313 is the measure: its efficiency is 1. By its own studies alone it would be 1.100"
        in text
    )
    assert "4 of 120 studies have a log" in text


def test_random_search_is_worth_exactly_itself(write_study: WriteStudy) -> None:
    worth = board(write(write_study), "--no-posterior")["random_equivalents"]
    assert worth["algorithms"]["RandomSearch_1.0_abc"] == {"evaluations": 10, "efficiency": 1.0}
    assert worth["random_as_scored"]["RandomSearch_1.0_abc"] in range(1, 31)


def test_the_text_names_every_doubtful_instance_of_the_json(write_study: WriteStudy) -> None:
    for optimizer in ("RandomSearch", "TPE"):
        for function in FUNCTIONS:
            # Random search always finds the best visible value of the first, and best generalization of the second.
            values = np.arange(1.0, 5.0)[:, None] * [[1.0, 1.0]]
            easy = np.array([[1.0, 1.0], [2.0, 2.0], [2.0, 2.0], [2.0, 2.0]])
            hard = values + (0 if optimizer == "RandomSearch" else -0.5)
            for _ in range(3):
                visible = easy if function == FUNCTIONS[0] else hard
                path = write_study(optimizer, function, visible, easy if function == FUNCTIONS[1] else hard)
    db = str(path.parent.parent)
    data = board(db, "--no-posterior")["scores"]
    assert (data["visible"]["doubtful"], data["generalization"]["doubtful"]) == ([FUNCTIONS[0]], [FUNCTIONS[1]])
    for objective in ("visible", "generalization"):
        text = succeed(db, "--no-posterior", "--instances", "--by", "metric", "--objective", objective)
        assert f"best known value (visible loss) on {FUNCTIONS[0]}: scores mean little there." in text
        assert f"best known value (generalization loss) on {FUNCTIONS[1]}: scores mean little there." in text
        doubtful = data[objective]["doubtful"][0]
        assert f"{doubtful} *" in text
        assert text.count(" *") == text.count("; * has doubtful ones") + 2
        assert "nll (2) *" in text


def test_scores_are_split_by_a_part_of_the_function(write_study: WriteStudy) -> None:
    db = write(write_study)
    for by, names in (("model", ["DT", "SVM", "kNN"]), ("data", ["iris", "wine"]), ("metric", ["acc", "nll"])):
        found = board(db, "--no-posterior", "--by", by)
        assert found["by"]["what"] == by
        assert [part["name"] for part in found["by"]["parts"]] == names
        assert f"Score by {by} (number of instances):" in succeed(db, "--no-posterior", "--by", by)
    assert "--by group: a Bayesmark database is split by model, data, metric." in fail(db, "--by", "group")


def test_an_audit_counts_the_datasets_of_a_database_unless_told_otherwise(write_study: WriteStudy) -> None:
    db = write(write_study)
    found = board(db, "--no-posterior", "--audit")["audit"]
    assert (found["instances"], found["groups"], found["neighbours_told_apart"]) == (3, 2, 0)
    text = succeed(db, "--no-posterior", "--audit")
    assert "Nothing can be told apart with 2 groups, whatever the scores" in text
    assert "The 3 instances count as 2 independent groups" in text
    assert "with 3 instances, whatever" in succeed(db, "--no-posterior", "--audit", "--groups", "none")
    assert board(db, "--no-posterior")["audit"] is None


def test_figures_are_saved_and_named(write_study: WriteStudy, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    db, folder = write(write_study), tmp_path / "new" / "figures"
    options = ("--no-posterior", "--figures", str(folder), "--by", "model", "--audit")
    text = succeed(db, *options)
    names = ["random_search", "random_search_zoom", "places", "scores_by_model", "rank_intervals"]
    assert [(folder / f"{name}.png").read_bytes()[:4] for name in names] == [b"\x89PNG"] * 5
    assert f"saved {folder / 'random_search.png'}" in text
    assert board(db, *options)["figures"] == [str(folder / f"{name}.png") for name in names]
    assert "is not a folder" in fail(db, "--no-posterior", "--figures", str(folder / "places.png" / "x"))


@pytest.mark.slow
def test_the_example_makes_up_a_database_or_reads_one(write_study: WriteStudy) -> None:
    made_up = run_example("bayesmark_leaderboard.py", "--quick")
    assert "steady_0.1_example scores above daring_0.1_example" in made_up
    assert "but daring_0.1_example has the higher rating" in made_up
    read = run_example("bayesmark_leaderboard.py", "--quick", write(write_study))
    assert read.splitlines()[1].startswith("TPE_1.0_abc")
    assert "made-up" not in read
