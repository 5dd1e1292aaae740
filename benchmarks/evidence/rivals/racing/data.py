"""The contests of rival_races.py: recorded runs, of which all are known, and generators with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from misfit_cases import TIMEPOINTS, Generator, Kind
from recorded_races import Truth as RatedTruth

from rivals.contest import Contest, Truth
from rivals.recorded_runs import RunTable, hpob, ma_bbob

#: Instances of a contest: as many as the largest fixed sample takes.
INSTANCES = 1000
_SYNTHETIC_ALGORITHMS = 7


def contest_of(data: str, seed: int, *, recorded: Path, recorded_instances: int, hpob_csv: Path | None) -> Contest:
    """Contest on some data, of which the seed draws the instances and, for generators, the truth.

    :raises FileNotFoundError: the data are not there.
    """
    if data == "ma-bbob":
        table = _ma_bbob(recorded, recorded_instances)
    elif data == "hpo-b":
        if hpob_csv is None:
            raise FileNotFoundError("hpo-b needs --hpob with the results of the public benchmark")
        table = _hpob(hpob_csv)
    else:
        return _generated(data, seed)
    return Contest.drawn(table.values, table.timepoints, table.algorithms, INSTANCES, seed)


def prepare(data: list[str], recorded: Path, recorded_instances: int) -> None:
    """Record what is missing, before several processes ask for it."""
    if "ma-bbob" in data:
        ma_bbob(recorded, recorded_instances)


@cache
def _ma_bbob(path: Path, instances: int) -> RunTable:
    """Logarithms of the distance to the optimum, as they are usually averaged; ranks are the same."""
    table = ma_bbob(path, instances)
    return RunTable(table.algorithms, table.timepoints, np.log10(table.values))


@lru_cache(maxsize=1)  # all rivals meet on a contest before the next one is drawn
def _generated(data: str, seed: int) -> Contest:
    return _GENERATED[data](seed)


@cache
def _hpob(path: Path) -> RunTable:
    return hpob(path)


def _plackett_luce(seed: int) -> Contest:
    """The paper's synthetic examples: ratings from a Gaussian process, rankings from the Plackett-Luce model."""
    drawn = RatedTruth.drawn(seed, _SYNTHETIC_ALGORITHMS, TIMEPOINTS, INSTANCES)
    ratings = np.exp(drawn.log_ratings)
    wins = ratings[:, :, None] / (ratings[:, :, None] + ratings[:, None, :])
    return Contest(drawn.names, _grid(), drawn.values, Truth(ratings, wins))


def _misfit(kind: Kind) -> Callable[[int], Contest]:
    def contest(seed: int) -> Contest:
        generator = Generator(kind, seed)
        values = generator.sample(INSTANCES, np.random.default_rng([seed, 7]))
        truth = generator.truth()
        names = tuple(f"a{place}" for place in range(values.shape[2]))
        return Contest(names, _grid(), values, Truth(truth.first, truth.wins))

    return contest


def _grid() -> np.ndarray:
    return np.arange(1.0, TIMEPOINTS + 1)


_GENERATED: dict[str, Callable[[int], Contest]] = {
    "plackett-luce": _plackett_luce,
    "heavy tails": _misfit("heavy tails"),
    "two kinds": _misfit("two kinds"),
}
