"""Time a trial of a race on Optuna's storages, against Optuna's own samplers on the same storage.

    python benchmarks/speed/optuna_storages.py
    python benchmarks/speed/optuna_storages.py --postgresql postgresql+psycopg://me@host/database

The objective takes no time: what is measured is the storage and the sampler. GridSampler goes through the same cells
and claims them too; RandomSampler claims nothing. The race is kept from ending early. A ratio of 2: twice as long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from polarbear_plugins import RaceSettings
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

VALUES = (0.3, 0.35, 0.4, 0.45)


def objective(trial: optuna.Trial) -> float:
    """Noise about a parabola, the same for the same candidate and instance."""
    instance, x = trial.suggest_int("instance", 0, 29), trial.suggest_float("x", 0, 1)
    return float((x - 0.3) ** 2 + np.random.default_rng([instance, int(1e6 * x)]).normal())


def samplers() -> dict[str, optuna.samplers.BaseSampler]:
    """Samplers under the names in the table, the race first."""
    never = RaceSettings(alpha=0.9999, batch_size=4, batch_min=4, batch_max=4, draws=500, seed=1)
    return {
        "race": PolarBearSampler([{"x": x} for x in VALUES], settings=never),
        "random": optuna.samplers.RandomSampler(seed=1),
        "grid": optuna.samplers.GridSampler({"x": VALUES, "instance": range(30)}, seed=1),
    }


def storage_of(kind: str, folder: Path, url: str | None) -> Any:
    """Open a storage that nobody else uses."""
    if kind == "memory":
        return None
    if kind == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "study.log")))
    return f"sqlite:///{folder}/study.db" if kind == "sqlite" else url


def main() -> None:
    """Print a row for each storage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--postgresql", metavar="URL", help="of a database that may be written to")
    arguments = parse_arguments(parser, {"trials": 8})
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = ["memory", "journal", "sqlite", *(["postgresql"] if arguments.postgresql else [])]
    print("storage     race ms/trial  RandomSampler  ratio  GridSampler  ratio")
    for kind in kinds:
        took = {}
        for name, sampler in samplers().items():
            with tempfile.TemporaryDirectory() as folder:
                storage = storage_of(kind, Path(folder), arguments.postgresql)
                study = optuna.create_study(storage=storage, sampler=sampler)
                start = time.perf_counter()
                study.optimize(objective, n_trials=arguments.trials)
                took[name] = 1000 * (time.perf_counter() - start) / len(study.trials)
                if kind == "postgresql":
                    optuna.delete_study(study_name=study.study_name, storage=storage)
        race, random, grid = took["race"], took["random"], took["grid"]
        name = f"time of a trial, {kind}"
        report_figure(
            f"{kind:<11} {race:13.1f}  {random:13.1f}  {race / random:5.1f}  ",
            name,
            race / random,
            "RandomSampler",
            "lower",
            end="",
        )
        report_figure(f"{grid:11.1f}  {race / grid:5.1f}", name, race / grid, "GridSampler", "lower")


if __name__ == "__main__":
    main()
