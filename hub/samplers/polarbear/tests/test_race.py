from __future__ import annotations

from collections import Counter

import numpy as np
import optuna
import optunahub
import pytest


module = optunahub.load_local_module(package="samplers/polarbear", registry_root="package/")
CANDIDATES = {"good": {"x": 0.0}, "fair": {"x": 1.0}, "poor": {"x": 2.0}}


def objective(trial: optuna.Trial) -> float:
    instance = trial.suggest_int("instance", 0, 29)
    x = trial.suggest_float("x", -5, 5)
    return x**2 + instance + float(np.random.default_rng([instance, int(x)]).normal(scale=0.1))


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    study = optuna.create_study(sampler=module.PolarBearSampler(CANDIDATES, seed=1))
    study.optimize(objective, n_trials=90)
    return study


def test_the_race_ends_with_the_best_candidate(study: optuna.Study) -> None:
    assert module.race_result(study).pareto_set == ("good",)


def test_the_study_stops_when_the_race_is_settled(study: optuna.Study) -> None:
    assert len(study.trials) < 90


def test_no_candidate_meets_an_instance_twice(study: optuna.Study) -> None:
    met = Counter((trial.params["x"], trial.params["instance"]) for trial in study.trials)
    assert max(met.values()) == 1


def test_the_likely_best_is_the_one_that_the_race_keeps(study: optuna.Study) -> None:
    assert module.likely_best(study).parameters == CANDIDATES["good"]
