"""The head-to-head benchmarks: answers get the score they deserve, rivals find what is plain, the page is fresh."""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "evidence")]

import rival_analyses  # noqa: E402
import rival_races  # noqa: E402
from rivals.analysing.answers import Answer, Population, Sample  # noqa: E402
from rivals.analysing.answers import score as score_analysis  # noqa: E402
from rivals.contest import Contest, Truth, Verdict, log_uniform, score  # noqa: E402

# Early a is first, then b; c is never first, and always last but on one instance; d is like c and a little worse.
VALUES = np.array([[[1, 2, 3, 4], [2, 1, 3, 4]]] * 9 + [[[3, 2, 1, 4], [3, 2, 1, 4]]], dtype=float)
NAMES = ("a", "b", "c", "d")


def contest(copies: int = 1) -> Contest:
    values = np.tile(VALUES, (copies, 1, 1))
    return Contest(NAMES, np.array([10.0, 100.0]), values, Truth.of(values))


def test_the_truth_of_a_table_is_counted() -> None:
    truth = contest().truth
    assert np.allclose(truth.first, [[0.9, 0, 0.1, 0], [0, 0.9, 0.1, 0]])
    assert np.allclose(truth.wins[0], [[0.5, 0.9, 0.9, 1], [0.1, 0.5, 0.9, 1], [0.1, 0.1, 0.5, 1], [0, 0, 0, 0.5]])
    # c is first more often than a late, and than b early; a and b each win against c on most instances.
    assert truth.members.tolist() == [True, True, True, False]
    assert truth.majority_members.tolist() == [True, True, False, False]


def test_ties_are_divided() -> None:
    truth = Truth.of(np.array([[[1.0, 1.0, 2.0]]]))
    assert truth.first.tolist() == [[0.5, 0.5, 0.0]]
    assert truth.wins[0].tolist() == [[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.5]]


def test_an_answer_is_scored_by_what_it_loses_and_keeps() -> None:
    one = contest()
    right = score(one, Verdict(one.truth.members, np.array([0, 1]), 400.0))
    assert right.pop("cost") == 400.0
    assert set(right) == {
        *("lost", "lost by majority", "family-wise", "family-wise by majority", "dominated kept", "regret"),
        "regret by wins",
    }
    assert not any(right.values())
    wrong = score(one, Verdict(np.array([True, False, False, True]), np.array([0, 0]), 400.0))
    assert wrong["lost"] == pytest.approx(2 / 3)
    assert wrong["lost by majority"] == 0.5
    assert wrong["family-wise"] == wrong["family-wise by majority"] == wrong["dominated kept"] == 1.0
    assert wrong["regret"] == pytest.approx(0.45)  # nothing early, 0.9 late; both as likely on a logarithmic scale
    assert wrong["regret by wins"] == pytest.approx(1 / 6)  # late, b wins all of its games against a


def test_a_budget_with_a_uniform_logarithm_weighs_equal_ratios_equally() -> None:
    assert np.allclose(log_uniform(np.array([1.0, 10.0, 100.0])), 1 / 3)
    assert np.allclose(log_uniform(np.array([1.0, 10.0, 1000.0])), [0.2, 0.4, 0.4])
    assert log_uniform(np.array([7.0])).tolist() == [1.0]


def installed(name: str) -> bool:
    module = rival_races.RIVALS[name][0]
    if module == "irace":
        return shutil.which("Rscript") is not None and bool(rival_races.installed([name]))
    try:
        importlib.import_module(f"rivals.racing.{module}")
    except ImportError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", rival_races.RIVALS)
def test_every_rival_chooses_what_is_plainly_best_at_the_end_and_pays_for_its_runs(name: str) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    module, function, options = rival_races.RIVALS[name]
    one = contest(copies=100)
    verdict = getattr(importlib.import_module(f"rivals.racing.{module}"), function)(one, 3, **options)
    # By the area under the curve a and b are equally good.
    assert NAMES[verdict.picks[-1]] in (("a", "b") if name.endswith(", anytime") else ("b",))
    assert verdict.kept[verdict.picks].all()
    assert 0 < verdict.cost <= one.full_cost
    again = getattr(importlib.import_module(f"rivals.racing.{module}"), function)(one, 3, **options)
    assert np.array_equal(again.kept, verdict.kept)
    assert again.cost == verdict.cost


def test_without_barriers_the_answer_is_the_same_and_the_cost_no_lower() -> None:
    from rivals.racing.polarbear import polarbear

    one = contest(copies=30)
    rounds, continuous = (polarbear(one, 3, most=60, workers=workers) for workers in (None, 8))
    assert np.array_equal(rounds.kept, continuous.kept)
    assert np.array_equal(rounds.picks, continuous.picks)
    assert rounds.cost < continuous.cost <= one.full_cost


def analysed(name: str) -> Answer:
    module, function, packages = rival_analyses.METHODS[name]
    for package in packages:
        pytest.importorskip(package)
    sample = Sample(NAMES, np.array([10.0, 100.0]), np.tile(VALUES, (3, 1, 1)))
    answer: Answer = getattr(importlib.import_module(f"rivals.analysing.{module}"), function)(sample, 1)
    return answer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in rival_analyses.METHODS if name != "coin"])
def test_every_analysis_picks_the_best_at_the_end_and_states_nothing_the_wrong_way_round(name: str) -> None:
    answer = analysed(name)
    assert NAMES[answer.picks[-1]] == "b"
    if answer.wins is not None:
        assert np.allclose(answer.wins + answer.wins.transpose(0, 2, 1), 1, atol=1e-6)
        assert answer.wins[-1, 1, 3] > 0.5
    if answer.first is not None:
        assert np.allclose(answer.first.sum(axis=1), 1, atol=1e-6)
    if answer.better is not None:
        assert not answer.better[-1, 3].any()
        assert not np.diagonal(answer.better, axis1=1, axis2=2).any()


def test_predictions_are_scored_against_held_out_instances_and_statements_against_all() -> None:
    truth = Truth.of(VALUES)
    population = Population(VALUES, -VALUES)
    timepoints = np.array([10.0, 100.0])
    sure = Answer(np.array([0, 1]), wins=truth.wins, first=truth.first, better=truth.wins > 0.5)
    coin = dataclasses.replace(sure, wins=np.full_like(truth.wins, 0.5), better=truth.wins < 0.5)
    good, bad = (score_analysis(one, truth, population, timepoints) for one in (sure, coin))
    assert good["regret"] == good["false"] == 0.0
    assert good["log_score"] > bad["log_score"] == pytest.approx(np.log(0.5))
    assert good["brier"] < bad["brier"] == pytest.approx(0.25)
    assert bad["false"] == bad["statements"] == 12.0


def test_a_statement_counts_in_its_own_sense_too() -> None:
    # The second is first more often, and loses against the first on most instances.
    values = np.array([[[1, 2, 3]], [[2, 3, 1]], [[2, 1, 3]], [[3, 1, 4]], [[2, 3, 1]]], dtype=float)
    better = np.zeros((1, 3, 3), dtype=bool)
    better[0, 1, 0] = True
    answer = Answer(np.array([1]), better=better, meaning="first places")
    found = score_analysis(answer, Truth.of(values), Population(values, -values), np.array([1.0]))
    assert (found["false"], found["false_own"]) == (1.0, 0.0)


def test_a_configurator_gets_no_more_evaluations_than_its_budget() -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    from fold_tasks import annealing_task
    from rivals.configuring.budget import Meter

    task = annealing_task()
    meter = Meter(task.draw(1), 2)
    parameters = task.space.sample(np.random.default_rng(1))
    assert meter.loss(parameters, 0) == meter.loss(parameters, 0)
    with pytest.raises(RuntimeError, match="more than its 2 evaluations"):
        meter.loss(parameters, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("smac", marks=pytest.mark.long),
        *("irace", "optuna", "optuna-polarbear", "polarbear", "polarbear-near", "random"),
    ],
)
def test_every_configurator_names_a_configuration_of_the_space_at_each_budget(name: str) -> None:
    optuna = pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    import rival_configurators
    from rivals.configuring.budget import RivalMissingError
    from rivals.configuring.tasks import Sources, load_configuring_task

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task: Any = load_configuring_task("annealing", Sources(Path()))
    try:
        picks = rival_configurators.find_rival(name)(task, 1, (50, 75))
    except (ImportError, RivalMissingError) as missing:
        pytest.skip(str(missing))
    ((_, by_budget),) = picks.items()
    assert set(by_budget) == {50, 75}
    for pick in by_budget.values():
        assert pick is None or 0 <= task.draw(1).regret(pick) < 10


def test_candidates_near_survivors_stay_in_the_space() -> None:
    optuna = pytest.importorskip("optuna")
    from rivals.configuring.neighbours import NeighbourSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 1e-3, 1.0, log=True)
        return float(x + trial.suggest_int("k", 0, 3) + (trial.suggest_categorical("c", ("u", "v")) == "v"))

    study = optuna.create_study(sampler=NeighbourSampler(1))
    study.optimize(objective, n_trials=60)
    late = [trial.value for trial in study.trials[30:]]
    assert all(1e-3 <= trial.params["x"] <= 1 and trial.params["k"] in range(4) for trial in study.trials)
    assert np.mean(late) < np.mean([trial.value for trial in study.trials[:8]])


def test_the_page_has_the_figures_of_the_files() -> None:
    from rivals import tables

    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.updated(page) == page, "python benchmarks/evidence/rivals/tables.py brings it up to date"
