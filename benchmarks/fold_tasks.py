"""Tasks for pruners: tune two to seven parameters by the mean loss over folds, seeds or problem instances.

A study sees the losses on folds that are drawn for its seed.  What counts is the truth of the configuration that it
picks: the expected loss on folds that it has not seen.

noisy, quiet, disagreeing
    A bowl with ripples over three parameters, plus an effect of the fold, slopes that differ between folds, and noise.
    The truth is known.
svm-digits, logistic-cancer, ridge-diabetes
    Cross-validation on data of scikit-learn, looked up (benchmarks/fold_tables.py).
annealing
    Simulated annealing on travelling-salesman instances (yardsticks/pruners/annealing_table.npz), with three
    continuous parameters: looked up at the nearest of the 64 configurations that were run.
gauss
    The 64 configurations of the yardstick's task of that name, with a new arrangement on a grid of 8 x 8: the further
    from a point, the worse.
yahpo-rpart, yahpo-lcbench
    Surrogates of YAHPO Gym, with data sets as folds.

Equal parameters give equal losses in all studies of a seed, so that methods are compared on common random numbers.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import fold_tables
import numpy as np
from fold_tables import TABLES, Axes, cached, cross_validate
from numpy.typing import NDArray

from polarbear_plugins.adapters.yahpo import Surrogate, load_surrogate
from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace, Float, Integer, Value

YARDSTICK = Path(__file__).parents[1] / "yardsticks" / "pruners"
sys.path.append(str(YARDSTICK))
from pruners import losses as yardstick_losses  # noqa: E402

FloatArray: TypeAlias = NDArray[np.float64]
Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Drawn:
    """The part of a task that belongs to one seed.

    Parameters
    ----------
    losses
        Loss of a configuration on each of the folds that were drawn.
    regret
        Truth of a configuration minus that of the best one, in units of the task's scale: a configuration in the middle
        of a random sample has about 1.
    """

    losses: Callable[[Parameters], FloatArray]
    regret: Callable[[Parameters], float]


class Task(Protocol):
    """A search space, and losses on folds that are drawn for each seed."""

    name: str
    space: ConfigurationSpace
    n_folds: int

    def draw(self, seed: int) -> Drawn:
        """Draw the folds of a study."""
        ...


def generator_of(*keys: object) -> np.random.Generator:
    """Generator of random numbers that depend on the keys alone.

    >>> generator_of(1, "quiet", {"x": 0.5}).random() == generator_of(1, "quiet", {"x": 0.5}).random()
    True
    """
    return np.random.default_rng([zlib.crc32(repr(key).encode()) for key in keys])


class BowlTask:
    """Bowl with ripples, whose lowest point is drawn for each seed, observed on folds that differ.

    Parameters
    ----------
    name
        Name of the task.
    noise
        Standard deviation of the noise of a single loss.
    disagreement
        Standard deviation between folds of the slope along each parameter.  Slopes are zero on average, so that the
        lowest point of the truth stays where it is, while each fold has its own.
    """

    n_folds = 15
    _curvatures = np.array([4.0, 2.0, 1.0])
    _ripple = 0.1

    def __init__(self, name: str, noise: float, disagreement: float) -> None:
        self.name, self._noise, self._disagreement = name, noise, disagreement
        self.space = ConfigurationSpace({f"x{k}": Float(0.0, 1.0) for k in range(self._curvatures.size)})

    def draw(self, seed: int) -> Drawn:
        """Draw the lowest point, and level and slopes of each fold."""
        rng = generator_of(seed, self.name)
        lowest = self._draw_lowest(rng)
        levels = rng.standard_normal(self.n_folds)
        slopes = self._disagreement * rng.standard_normal((self.n_folds, lowest.size))

        def away(parameters: Parameters) -> FloatArray:
            return np.array([parameters[name] for name in self.space.parameters]) - lowest

        def losses(parameters: Parameters) -> FloatArray:
            noise = generator_of(seed, self.name, dict(parameters)).standard_normal(self.n_folds)
            step = away(parameters)
            return self._height(step) + levels + slopes @ step + self._noise * noise

        return Drawn(losses, lambda parameters: float(self._height(away(parameters)) / self._scale))

    @functools.cached_property
    def _scale(self) -> float:
        rng = np.random.default_rng(0)
        return float(np.median([self._height(rng.random(3) - self._draw_lowest(rng)) for _ in range(10_000)]))

    def _draw_lowest(self, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(0.2, 0.8, self._curvatures.size)

    def _height(self, away: FloatArray) -> float:
        """Truth, which is zero at the lowest point and positive elsewhere."""
        return float(self._curvatures @ away**2 + self._ripple * (1 - np.cos(6 * np.pi * away)).mean())


class TableTask:
    """Losses that are looked up.  The truth is the mean over the instances that the study does not see.

    Parameters
    ----------
    name
        Name of the task.
    space
        The parameters.
    table
        Losses of shape (configuration, instance, repetition).
    place_of
        The configuration that parameters mean.
    n_folds
        How many of the instances a study sees, one repetition of each.
    """

    def __init__(
        self,
        name: str,
        space: ConfigurationSpace,
        table: FloatArray,
        place_of: Callable[[Parameters], int],
        n_folds: int = 15,
    ) -> None:
        self.name, self.space, self.n_folds = name, space, n_folds
        self._table, self._place_of = table, place_of
        means = table.mean(axis=(1, 2))
        self._scale = float(np.median(means) - means.min())

    def draw(self, seed: int) -> Drawn:
        """Draw the instances that the study sees."""
        instances = generator_of(seed, self.name).permutation(self._table.shape[1])
        seen, unseen = instances[: self.n_folds], instances[self.n_folds :]
        truth = self._table[:, unseen].mean(axis=(1, 2))

        def losses(parameters: Parameters) -> FloatArray:
            rng = generator_of(seed, self.name, dict(parameters))
            repetitions = rng.integers(self._table.shape[2], size=self.n_folds)
            return self._table[self._place_of(parameters), seen, repetitions]

        return Drawn(losses, lambda parameters: float((truth[self._place_of(parameters)] - truth.min()) / self._scale))


def grid_task(name: str, axes: Axes, table: FloatArray, n_folds: int = 15) -> TableTask:
    """Task on a grid: parameters are positions on its axes, ``table[first, second, instance, repetition]``."""
    space = ConfigurationSpace({axis: Integer(0, len(values) - 1) for axis, values in axes.items()})
    first, second = axes

    def place_of(parameters: Parameters) -> int:
        return int(np.ravel_multi_index((parameters[first], parameters[second]), table.shape[:2]))

    return TableTask(name, space, table.reshape(-1, *table.shape[2:]), place_of, n_folds)


def annealing_task() -> TableTask:
    """Simulated annealing.  The columns are not named; by their values the first two are temperatures."""
    with np.load(YARDSTICK / "annealing_table.npz") as file:
        configurations = file["configurations"]
    ranges = {
        "t_start": Float(0.01, 10.0, log=True),
        "t_end": Float(1e-4, 0.2, log=True),
        "moves": Float(0.2, 1.0),
    }

    def scaled(values: FloatArray) -> FloatArray:
        columns = [
            np.log(column / bounds.lower) / np.log(bounds.upper / bounds.lower)
            if bounds.log
            else (column - bounds.lower) / (bounds.upper - bounds.lower)
            for column, bounds in zip(values.T, ranges.values(), strict=True)
        ]
        return np.stack(columns, axis=-1)

    known = scaled(configurations)

    def place_of(parameters: Parameters) -> int:
        point = scaled(np.array([parameters[name] for name in ranges]))
        return int(((known - point) ** 2).sum(axis=1).argmin())

    return TableTask("annealing", ConfigurationSpace(ranges), yardstick_losses("annealing"), place_of, n_folds=20)


def gauss_task() -> TableTask:
    """The yardstick's configurations: the nearer a cell is to a point off the middle, the better."""
    table = yardstick_losses("gauss")
    side = 8
    cells = np.indices((side, side)).reshape(2, -1)
    nearest = ((cells[0] - 5.3) ** 2 + 0.6 * (cells[1] - 2.4) ** 2).argsort()
    arranged = np.empty_like(table)
    arranged[nearest] = table[table.mean(axis=(1, 2)).argsort()]
    axes = {"row": range(side), "column": range(side)}
    return grid_task("gauss", axes, arranged.reshape(side, side, *table.shape[1:]))


class YahpoTask:
    """A surrogate of YAHPO Gym with data sets as folds.  The truth is the mean over those that a study does not see.

    The best truth is that of configurations that an evolutionary search has found; a study may find a better one, whose
    regret is then negative.
    """

    n_folds = 15
    _sample_size, _generations, _children = 1000, 16, 250

    def __init__(self, name: str, surrogate: Surrogate, target: str, cache: Path) -> None:
        self.name, self.space = name, surrogate.space
        self._surrogate, self._column = surrogate, surrogate.targets.index(target)
        self._sign = -1.0 if target in surrogate.description.maximized else 1.0
        self._fidelities: dict[str, Value] = {key: bounds.upper for key, bounds in surrogate.fidelities.items()}
        definition = Path(__file__).read_text(), str(surrogate.folder)
        self._known = cached(cache, name, definition, self._search)
        means = self._known.mean(axis=1)
        self._scale = float(np.median(means[: self._sample_size]) - means.min())

    def draw(self, seed: int) -> Drawn:
        """Draw the data sets that the study sees."""
        order = generator_of(seed, self.name).permutation(len(self._surrogate.instances))
        seen, unseen = order[: self.n_folds], order[self.n_folds :]
        lowest = self._known[:, unseen].mean(axis=1).min()
        return Drawn(
            lambda parameters: self._losses([parameters], seen)[0],
            lambda parameters: float((self._losses([parameters], unseen).mean() - lowest) / self._scale),
        )

    def _losses(self, configurations: list[Any], instances: NDArray[np.intp]) -> FloatArray:
        names = [self._surrogate.instances[place] for place in instances]
        found = [
            self._surrogate.predict(configurations, name, self._fidelities)[:, self._column].astype(float)
            for name in names
        ]
        return self._sign * np.stack(found, axis=-1)

    def _search(self) -> FloatArray:
        """Losses on all data sets of a random sample, followed by those of the descendants of good configurations."""
        rng = np.random.default_rng(0)
        everywhere = np.arange(len(self._surrogate.instances))
        known = [self.space.sample(rng) for _ in range(self._sample_size)]
        losses = self._losses(known, everywhere)
        for _ in range(self._generations):
            # By the mean over some of the data sets, since that over the others of a study has its own lowest point.
            some = rng.permutation(everywhere)[: everywhere.size // 2]
            parents = losses[:, some].mean(axis=1).argsort()[:10]
            children = [mutated(known[rng.choice(parents)], self.space, rng) for _ in range(self._children)]
            known += children
            losses = np.concatenate([losses, self._losses(children, everywhere)])
        return losses


def mutated(parent: Parameters, space: ConfigurationSpace, rng: np.random.Generator) -> dict[str, Value]:
    """A configuration near another: about half of the parameters differ, by a tenth of their range."""
    child: dict[str, Value] = dict(parent)
    for name, parameter in space.parameters.items():
        if rng.random() < 0.5:
            continue
        if isinstance(parameter, Categorical):
            child[name] = parameter.sample(rng)
            continue
        to, back = (np.log, np.exp) if parameter.log else (float, float)
        lower, upper = to(parameter.lower), to(parameter.upper)
        moved = float(
            np.clip(back(rng.normal(to(parent[name]), (upper - lower) / 10)), parameter.lower, parameter.upper)
        )
        child[name] = round(moved) if isinstance(parameter, Integer) else moved
    return child


BOWLS = {
    "noisy": {"noise": 0.6, "disagreement": 0.1},
    "quiet": {"noise": 0.05, "disagreement": 0.1},
    "disagreeing": {"noise": 0.15, "disagreement": 0.8},
}
YAHPO = {"yahpo-rpart": ("rbv2_rpart", "acc"), "yahpo-lcbench": ("lcbench", "val_cross_entropy")}
NAMES = (*BOWLS, *TABLES, "annealing", "gauss", *YAHPO)


@dataclass(frozen=True)
class Sources:
    """Where tasks find and keep their data.

    Parameters
    ----------
    cache
        Folder for tables that take minutes to compute.
    grid
        Positions on each axis of the tables of cross-validation.
    yahpo
        A copy of yahpo_data.
    """

    cache: Path
    grid: int
    yahpo: Path | None


def fingerprint(sources: Sources) -> str:
    """Changes with the definition of the tasks: results with different ones must not be compared."""
    texts = [Path(module).read_text() for module in (__file__, fold_tables.__file__)]
    return f"{zlib.crc32(repr((texts, sources.grid)).encode()):08x}"


@functools.cache
def load_task(name: str, sources: Sources, workers: int = 1) -> Task:
    """The task of that name."""
    if name in BOWLS:
        return BowlTask(name, **BOWLS[name])
    if name in TABLES:
        kind = TABLES[name]
        table = cross_validate(name, sources.cache, sources.grid, workers)
        return grid_task(name, kind.axes(sources.grid), table[..., None], kind.n_folds)
    if name in YAHPO:
        scenario, target = YAHPO[name]
        return YahpoTask(name, load_surrogate(scenario, sources.yahpo), target, sources.cache)
    return {"annealing": annealing_task, "gauss": gauss_task}[name]()
