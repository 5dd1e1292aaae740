"""What seeded work gave when it was recorded, and the surface that users and other programs rely on.

``python tests/laws/fingerprints.py`` writes the fingerprints anew, for a change that is meant to change them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    analyze,
    compare,
    fit,
    load_plugins,
    race,
    resume,
    select,
    select_portfolio,
)
from polarbear_plugins.cli import main
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.measures.scores import Studies, score_studies
from polarbear_plugins.partial_orders.depth import measure_depth, ufg_depth
from polarbear_plugins.partial_orders.order import from_criteria
from polarbear_plugins.seeds import derived_seed

RECORDED = Path(__file__).parent / "recorded"
FILES = ("finished.db", "interrupted.db", "result.npz", "study.db")

#: Three rounds: one algorithm is eliminated, and at the end some pairs are open.
RACE: dict[str, Any] = {
    "portfolio": "synthetic",
    "suite": "synthetic",
    "timepoints": [1, 2, 3],
    "portfolio_options": {"log_ratings": [[2.0, 0.0, 1.0, -9.0], [1.0, 1.0, 1.0, -9.0], [0.0, 2.0, 6.0, -9.0]]},
    "workers": 0,
}
SETTINGS = RaceSettings(seed=4, draws=200, max_rounds=3, batch_size=6, batch_min=2, guard="none", groups="none")
JOINT = RaceSettings(
    seed=5,
    draws=400,
    max_rounds=2,
    batch_size=8,
    prior="bspline",
    elimination="joint",
    resolution="crossing",
    guard="none",
)
PRIORS = ("dirichlet", "hierarchical-dirichlet", "gp", "sparse-gp", "hsgp", "random-walk", "bspline")


def rankings() -> RankingTable:
    """Four algorithms at five timepoints on twelve instances, with ties and gaps."""
    rng = np.random.default_rng(7)
    values = np.round(rng.normal(size=(12, 5, 4)) + np.linspace(0, 1, 4), 1)
    values = np.minimum.accumulate(values, axis=1)
    values[3, 2:, 1] = np.nan
    return RankingTable.from_values(values, algorithms=list("abcd"), timepoints=[1, 2, 4, 8, 16])


def fingerprint_of_result(result: RaceResult) -> dict[str, Any]:
    """Everything that a result says, with the versions that wrote it left out."""
    found = json.loads(result.to_json())
    del found["about"]
    return dict(found)


def seeded_work() -> dict[str, Any]:
    """Races, fits, choices, leaderboards, depths and seeds, as JSON data."""
    table = rankings()
    found: dict[str, Any] = {
        "derived_seed": [
            derived_seed(3, "instances"),
            derived_seed(3, "run", "csa", "f1 i2"),
            derived_seed(3, "inference", 4),
            derived_seed(3, "bootstrap"),
            derived_seed(3, "normality", "a", "b"),
        ],
        "race": fingerprint_of_result(race(settings=SETTINGS, **RACE)),
        "joint race": fingerprint_of_result(race(settings=JOINT, **RACE)),
        "guarded race": fingerprint_of_result(race(settings=replace(SETTINGS, guard="counts"), **RACE)),
    }
    for prior in PRIORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            posterior = fit(table, prior, draws=400, seed=11)
        relations = compare(posterior, 0.05)
        found[f"fit {prior}"] = {
            "ratings": posterior.ratings.mean(axis=0).tolist(),
            "first draw": posterior.ratings[0].tolist(),
            "p_better": relations.p_better.tolist(),
            "p_anytime": relations.p_anytime.tolist() if posterior.joint else None,
        }
    analysis = analyze(table, RaceSettings(seed=2, draws=400, guard="none"))
    found["analyze"] = fingerprint_of_result(analysis)
    found["outlook"] = str(analysis.forecast(simulations=20))
    found["select"] = {
        f"{preference} {risk}": str(select(analysis.posterior, preference=preference, risk=risk))
        for preference in ("uniform", "log-uniform", "final", "worst")
        for risk in ("best", "expected", "quantile:0.05")
    }
    found["select_portfolio"] = str(select_portfolio(analysis.posterior, size=2))
    found["leaderboard"] = leaderboard()
    found["depth"] = depths()
    return found


def leaderboard() -> dict[str, Any]:
    """Scores of Bayesmark and their bootstrap."""
    rng = np.random.default_rng(9)
    cells = {
        (optimizer, function): rng.gamma(shape, size=(3, 4, 2))
        for optimizer, shape in (("RandomSearch", 2.0), ("a", 1.5), ("b", 1.0))
        for function in ("f", "g")
    }
    scores = score_studies(Studies(visible=cells, random=["RandomSearch"]))
    again = scores.bootstrap(resamples=50, seed=3)
    return {"scores": scores.to_pandas().to_dict("list"), "bootstrap": again.to_pandas().to_dict("list")}


def depths() -> dict[str, Any]:
    """Union-free generic depths of six partial orders of four items."""
    import pandas as pd

    rng = np.random.default_rng(1)
    frames = [pd.DataFrame(rng.normal(size=(4, 2)), index=list("wxyz"), columns=["error", "time"]) for _ in range(6)]
    orders = [from_criteria(frame) for frame in frames]
    suite = measure_depth({f"f{place}": order for place, order in enumerate(orders)})
    return {"ufg_depth": [float(depth) for depth in ufg_depth(orders)], "suite": suite.to_pandas().to_dict("list")}


def surface() -> dict[str, Any]:
    """Names that other programs rely on: hooks, entry points, commands with their options."""
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    specifications = load_plugins(entry_points=[]).manager.hook
    names = [name for name in vars(specifications) if name.startswith("polarbear_")]
    return {
        "entry points": sorted(project["entry-points"]["polarbear"]),
        "scripts": project["scripts"],
        "hooks": {name: sorted(getattr(specifications, name).spec.argnames) for name in sorted(names)},
        "commands": dict(_options_of(main, "polarbear")),
    }


def _options_of(command: click.Command, name: str) -> Mapping[str, list[str]]:
    found = {name: sorted(option for given in command.params for option in given.opts + given.secondary_opts)}
    if isinstance(command, click.Group):
        for inner in sorted(command.commands):
            found.update(_options_of(command.commands[inner], f"{name} {inner}"))
    return found


def optuna_race(storage: str) -> Any:
    """Run a race of three candidates in a study of that storage, seeded."""
    import optuna

    from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler

    settings = RaceSettings(
        draws=200, alpha=0.95, epsilon=0.2, batch_size=3, batch_min=3, max_rounds=2, seed=1, guard="none"
    )
    candidates = {"good": {"x": 0.3}, "fair": {"x": 0.6}, "poor": {"x": 0.9}}
    sampler = PolarBearSampler(candidates=candidates, settings=settings)
    study = optuna.create_study(sampler=sampler, storage=storage, study_name="race")

    def objective(trial: Any) -> float:
        instance, x = trial.suggest_int("instance", 0, 9), trial.suggest_float("x", 0, 1)
        return float((x - 0.3) ** 2 + 0.04 * np.random.default_rng([instance, int(1e6 * x)]).normal())

    study.optimize(objective, n_trials=60)
    return study


def write() -> None:
    """Write the fingerprints anew; files that were recorded stay, since later versions must still read them."""
    import optuna

    from polarbear_plugins.integrations.optuna_sampler import race_result

    RECORDED.mkdir(exist_ok=True)
    if not (RECORDED / "finished.db").exists():
        result = race(settings=SETTINGS, journal=RECORDED / "finished.db", **RACE)
        result.save(RECORDED / "result.npz")
        result.posterior.save(RECORDED / "posterior.npz")
        _write_interrupted(RECORDED / "interrupted.db")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        optuna_race(f"sqlite:///{RECORDED / 'study.db'}")
    with tempfile.TemporaryDirectory() as folder:
        copies = {name: Path(shutil.copy(RECORDED / name, folder)) for name in FILES}
        study = optuna.load_study(study_name="race", storage=f"sqlite:///{copies['study.db']}")
        results = {
            "finished.db": load_result(copies["finished.db"]),
            "interrupted.db": load_result(copies["interrupted.db"]),
            "interrupted.db resumed": resumed(copies["interrupted.db"]),
            "result.npz": RaceResult.load(copies["result.npz"]),
            "study.db": race_result(study),
        }
        files = {name: fingerprint_of_result(result) for name, result in results.items()}
    found = {"work": seeded_work(), "surface": surface(), "files": files}
    (RECORDED / "fingerprints.json").write_text(json.dumps(found, indent=1) + "\n")


def _write_interrupted(path: Path) -> None:
    """Keep the journal of a race that is interrupted in its second round, between two runs."""

    def interrupt(progress: Any) -> None:
        if len(progress.state.rounds) == 1 and progress.done == 5:
            raise KeyboardInterrupt

    race(settings=SETTINGS, journal=path, progress=interrupt, **RACE)


def resumed(journal: Path) -> RaceResult:
    """Go on with a recorded journal to the end."""
    return resume(journal, workers=0)


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {RECORDED}\n")
