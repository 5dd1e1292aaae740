"""The benchmark of pruners at equal budget: tasks hide the truth, studies keep to the budget, picks are as they say."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
pytest.importorskip("sklearn")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "evidence")]

import equal_budget  # noqa: E402
import fold_tables  # noqa: E402
import fold_tasks  # noqa: E402
import paired_regrets  # noqa: E402
import pruning_methods  # noqa: E402
from scipy import stats  # noqa: E402

from polarbear_plugins.problems.spaces import ConfigurationSpace, Integer  # noqa: E402

SOURCES = fold_tasks.Sources(cache=Path(), grid=3, yahpo=None)
SMALL = ("noisy", "disagreeing", "annealing", "gauss")


@pytest.fixture(autouse=True)
def silence() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def job(**changes: Any) -> equal_budget.Job:
    return dataclasses.replace(equal_budget.Job("gauss", "random", "halving-2", 3, 4, SOURCES), **changes)


def study_of(reports: list[dict[int, float]], values: list[float]) -> optuna.Study:
    """Complete trials with losses by fold and values that may differ from their means; x is the number of the trial."""
    study = optuna.create_study()
    for x, (steps, value) in enumerate(zip(reports, values, strict=True)):
        distribution = optuna.distributions.IntDistribution(0, 9)
        study.add_trial(
            optuna.trial.create_trial(
                params={"x": x}, distributions={"x": distribution}, value=value, intermediate_values=steps
            )
        )
    return study


@pytest.mark.parametrize("name", SMALL)
def test_equal_parameters_have_equal_losses_in_all_studies_of_a_seed(name: str) -> None:
    task = fold_tasks.load_task(name, SOURCES)
    parameters = task.space.sample(np.random.default_rng(1))
    losses = task.draw(5).losses(parameters)
    assert losses.shape == (task.n_folds,)
    np.testing.assert_array_equal(task.draw(5).losses(dict(parameters)), losses)
    assert (task.draw(6).losses(parameters) != losses).any()


def test_the_truth_of_a_table_is_the_mean_over_the_instances_that_a_study_does_not_see() -> None:
    table = np.random.default_rng(0).random((4, 12, 2))
    task = fold_tasks.TableTask("t", ConfigurationSpace({"x": Integer(0, 3)}), table, lambda p: p["x"], n_folds=5)
    drawn = task.draw(0)
    losses = np.array([drawn.losses({"x": x}) for x in range(4)])
    seen = [bool(np.isin(table[:, instance], losses).any()) for instance in range(12)]
    assert sum(seen) == 5
    truth = table[:, ~np.array(seen)].mean(axis=(1, 2))
    middle = table.mean(axis=(1, 2))
    scale = np.median(middle) - middle.min()
    np.testing.assert_allclose([drawn.regret({"x": x}) for x in range(4)], (truth - truth.min()) / scale)


def test_the_folds_of_a_bowl_differ_from_the_truth_by_nothing_on_average() -> None:
    task = fold_tasks.BowlTask("b", noise=0.2, disagreement=1.0)
    task.n_folds = 200_000
    drawn = task.draw(0)
    near, far = ({f"x{k}": x for k in range(3)} for x in (0.5, 0.9))
    difference = drawn.losses(far).mean() - drawn.losses(near).mean()
    assert difference / task._scale == pytest.approx(drawn.regret(far) - drawn.regret(near), abs=0.01)


def test_the_best_point_of_a_bowl_has_no_regret_and_others_have() -> None:
    task = fold_tasks.BowlTask("b", noise=0.0, disagreement=1.0)
    lowest = task._draw_lowest(fold_tasks.generator_of(0, "b"))
    drawn = task.draw(0)
    assert drawn.regret({f"x{k}": x for k, x in enumerate(lowest)}) == 0
    points = np.random.default_rng(0).random((2000, 3))
    regrets = [drawn.regret({f"x{k}": x for k, x in enumerate(point)}) for point in points]
    assert min(regrets) > 0
    assert 0.5 < np.median(regrets) < 2


def test_a_table_is_computed_once_for_a_definition(tmp_path: Path) -> None:
    computed: list[float] = []

    def compute() -> np.ndarray:
        computed.append(len(computed))
        return np.array(computed)

    first = fold_tables.cached(tmp_path / "new", "t", "one", compute)
    np.testing.assert_array_equal(fold_tables.cached(tmp_path / "new", "t", "one", compute), first)
    assert fold_tables.cached(tmp_path / "new", "t", "two", compute).size == 2


@pytest.mark.parametrize("name", fold_tables.TABLES)
def test_cross_validation_trains_and_tests_on_different_data(name: str) -> None:
    kind = fold_tables.TABLES[name]
    used: dict[str, set[bytes]] = {}

    class Model:
        def fit(self, features: np.ndarray, _: object) -> Model:
            used["train"] = {row.tobytes() for row in features}
            return self

    def loss(_: object, features: np.ndarray, __: object) -> float:
        used["test"] = {row.tobytes() for row in features}
        return 0.0

    features, targets = kind.load()
    distinct = dataclasses.replace(
        kind, load=lambda: (np.arange(len(features))[:, None], targets), make_model=lambda *_: Model(), loss=loss
    )
    assert distinct.losses(2, 0).shape == (2, 2)
    assert len(used["train"]) == kind.train
    assert len(used["test"]) == kind.test
    assert used["train"].isdisjoint(used["test"])


@pytest.mark.parametrize("method", pruning_methods.METHODS)
def test_a_study_spends_exactly_its_budget(method: str) -> None:
    found = equal_budget.run_study(job(method=method))
    assert found["evaluations"] == 4 * 15
    assert found["complete"] >= 1
    assert all(np.isfinite(regret) and regret >= 0 for regret in found["regret"].values())


def test_a_trial_that_the_end_of_the_budget_cuts_off_does_not_count() -> None:
    objective = equal_budget.FoldObjective(job(method="none"), fold_tasks.load_task("gauss", SOURCES))
    objective.plan = dataclasses.replace(objective.plan, budget=20)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, catch=equal_budget.BudgetSpentError, callbacks=[objective.stop])
    assert [len(trial.intermediate_values) for trial in study.trials] == [15, 5]
    assert study.trials[1].state == optuna.trial.TrialState.FAIL


@pytest.mark.parametrize("method", ["polarbear-keep", "halving-2"])
def test_what_is_reported_is_what_the_pruner_expects(method: str) -> None:
    task = fold_tasks.load_task("gauss", SOURCES)
    objective = equal_budget.FoldObjective(job(method=method), task)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=2)
    for trial in study.trials:
        losses = objective.drawn.losses(trial.params)
        by_fold, means = dict(enumerate(losses)), dict(enumerate(np.cumsum(losses) / np.arange(1, 16), 1))
        assert trial.intermediate_values == pytest.approx(by_fold if method == "polarbear-keep" else means)
        assert trial.value == pytest.approx(losses.mean())
    orders = [list(trial.intermediate_values) for trial in study.trials]
    assert (orders[0] == orders[1]) == (method == "halving-2")


@pytest.mark.slow
def test_the_truth_of_a_surrogate_is_the_mean_over_data_sets_that_a_study_does_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    monkeypatch.syspath_prepend(BENCHMARKS.parent / "examples")
    from make_surrogate import build

    from polarbear_plugins.adapters.yahpo import load_surrogate

    monkeypatch.setattr(fold_tasks.YahpoTask, "n_folds", 2)
    surrogate = load_surrogate("lcbench", build(tmp_path / "data"))
    task = fold_tasks.YahpoTask("y", surrogate, "val_accuracy", tmp_path)
    drawn = task.draw(0)
    rng = np.random.default_rng(0)
    parameters = [task.space.sample(rng) for _ in range(50)]
    # Accuracies by data set; they are maximised, so that losses are their negatives.
    values = -np.stack([surrogate.predict(parameters, one, {"epoch": 52})[:, 1] for one in surrogate.instances], axis=1)
    seen = drawn.losses(parameters[0])
    np.testing.assert_allclose([np.abs(values[0] - loss).min() for loss in seen], 0, atol=1e-5)
    [unseen] = [place for place in range(3) if not np.isclose(values[0, place], seen).any()]
    regrets = np.array([drawn.regret(one) for one in parameters])
    differences = (values[:, unseen] - values[0, unseen]) / task._scale
    np.testing.assert_allclose(regrets - regrets[0], differences, atol=1e-4)
    assert (regrets > 0).all()


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers() -> None:
    jobs = [
        job(method=method, seed=seed, sampler="tpe")
        for seed in (0, 1)
        for method in ("none", "hyperband", "polarbear-keep")
    ]
    found = []
    for workers in (1, 2):
        with ProcessPoolExecutor(workers, initializer=equal_budget.prepare_worker) as pool:
            found.append(equal_budget.run_block(pool, jobs))
    for label, row in found[0].items():
        for key in ("regret", "trials", "complete"):
            np.testing.assert_array_equal(row[key], found[1][label][key])


def test_picks_differ_in_what_they_believe_about_pruned_trials() -> None:
    full = {fold: 5.0 + fold + 2 * (-1) ** fold for fold in range(8)}
    worse = {fold: 6.0 + fold - 2 * (-1) ** fold for fold in range(8)}
    lucky = {0: 6.5}
    study = study_of([worse, full, lucky], [9.5, 8.5, 6.5])
    assert pruning_methods.best_trial(study) == {"x": 2}
    assert pruning_methods.most_likely_best(study) == {"x": 1}


@pytest.mark.parametrize("values", [[1, 1, -1], [2, 0, -1, 1, 1], [0, 0, 0], [3, 3, 3, 0, -1, 2], [-1, -1, -2, 1]])
def test_counted_signs_give_the_p_value_that_scipy_enumerates(values: list[float]) -> None:
    differences = np.array(values, dtype=float)
    arguments: dict[str, Any] = {"alternative": "greater", "zero_method": "zsplit"}
    expected = stats.wilcoxon(differences, method=stats.PermutationMethod(), **arguments).pvalue
    counted = pruning_methods.count_signs((differences,), None, alternative="greater").pvalue
    assert counted == pytest.approx(expected, abs=1e-12)


def test_the_quick_wilcoxon_pruner_decides_as_optunas() -> None:
    rng = np.random.default_rng(0)
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        quick = pruning_methods.QuickWilcoxonPruner(p_threshold=0.1)
        slow = optuna.pruners.WilcoxonPruner(p_threshold=0.1)
    for _ in range(20):
        best, other = rng.integers(0, 3, (2, 6)).astype(float)
        other += rng.integers(0, 2, 6)
        study = study_of([dict(enumerate(best))], [best.mean()])
        trial = study.ask()
        for step, value in enumerate(other):
            trial.report(value, step)
        frozen = study.trials[1]
        answers.append(quick.prune(study, frozen))
        assert answers[-1] == slow.prune(study, frozen)
    assert len(set(answers)) == 2


def test_the_best_is_compared_with_on_the_same_seeds() -> None:
    common = np.array([0.0, 10.0, 20.0, 30.0])
    behind, level = np.array([1.0, 1.1, 0.9, 1.0]), np.array([1.0, -1.0, 1.0, -0.9])
    compared = paired_regrets.compare_with_best({"best": common, "behind": common + behind, "level": common + level})
    assert {label: paired_regrets.mark(one) for label, one in compared.items()} == {
        "best": "=",
        "behind": " ",
        "level": "~",
    }
    assert compared["behind"]["behind"] == pytest.approx(1)
    assert compared["behind"]["error"] > 5


def test_methods_of_an_earlier_output_are_taken_over_only_from_the_same_studies(tmp_path: Path) -> None:
    row = {"task": "noisy", "sampler": "tpe", "method": "none", "seeds": {"regret": [1.0, 2.0]}}
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps({"seeds": 2, "tasks": "a", "rows": [row]}))
    earlier = equal_budget.read_earlier(path, {"seeds": 2, "tasks": "a"})
    np.testing.assert_array_equal(earlier["noisy", "tpe"]["none"]["regret"], [1, 2])
    with pytest.raises(SystemExit, match="other studies: tasks differ"):
        equal_budget.read_earlier(path, {"seeds": 2, "tasks": "b"})


def test_averages_are_over_tasks_and_relative_to_no_pruning(capsys: pytest.CaptureFixture[str]) -> None:
    regrets = {
        "a": {"none": [1.0, 3.0], "other": [1.0, 1.0]},
        "b": {"none": [0.1, 0.1], "other": [0.1, 0.3], "only here": [0.0, 0.0]},
    }
    tasks = {
        task: {label: {"regret": np.array(values)} for label, values in rows.items()} for task, rows in regrets.items()
    }
    found = paired_regrets.print_averages("tpe", tasks)
    assert {label: one["regret"] for label, one in found["mean"].items()} == pytest.approx({"none": 1.05, "other": 0.6})
    ratios = {label: one["regret"] for label, one in found["relative_to_none"].items()}
    assert ratios == pytest.approx({"none": 1, "other": (1 / 2 + 2) / 2})
    assert "only here" not in capsys.readouterr().out
    del tasks["a"]["none"]
    assert paired_regrets.print_averages("tpe", tasks)["relative_to_none"] == {}
