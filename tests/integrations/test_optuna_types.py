"""What a type checker says about a user's script with the sampler and the pruner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import polarbear_plugins

pytest.importorskip("optuna")
pytest.importorskip("mypy")

SCRIPT = """
import optuna

from polarbear_plugins import RaceResult, RaceSettings
from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner, report
from polarbear_plugins.integrations.optuna_sampler import LikelyBest, PolarBearSampler, likely_best, race_result


def objective(trial: optuna.Trial) -> float:
    instance = trial.suggest_int("instance", 0, 9)
    x = trial.suggest_float("x", 0.0, 1.0)
    report(trial, x, instance=instance)
    return x


base = optuna.samplers.RandomSampler(seed=1)
sampler = PolarBearSampler([{"x": 0.1}, {"x": 0.9}], base=base, settings=RaceSettings(seed=1))
study = optuna.create_study(sampler=sampler, pruner=PolarBearPruner(alpha=0.99))
study.optimize(objective, n_trials=10)
result: RaceResult = race_result(study)
best: LikelyBest = likely_best(study)
"""

MISTAKES = """
import optuna

from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler, race_result

PolarBearSampler(base="tpe")
race_result(3)
PolarBearSampler().sample_relative("study", "trial", {})
"""


def check(script: str, folder: Path) -> list[str]:
    """Errors that ``mypy --strict`` finds in a user's script."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    package = Path(polarbear_plugins.__file__).resolve().parent
    # An editable installation is found by a hook that mypy does not run.
    path = {} if package.parent.name == "site-packages" else {"MYPYPATH": str(package.parent)}
    done = subprocess.run(
        # The package has its own check; silent leaves its messages out.
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-pretty", "script.py"],
        cwd=folder,
        env=os.environ | path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


@pytest.mark.slow
def test_mypy_strict_takes_the_sampler_and_the_pruner_as_those_of_optuna(tmp_path: Path) -> None:
    assert check(SCRIPT, tmp_path) == []
    # And it does look at them.
    found = check(MISTAKES, tmp_path)
    assert ["base" in found[0], "race_result" in found[1], "sample_relative" in found[2]] == [True] * 3
