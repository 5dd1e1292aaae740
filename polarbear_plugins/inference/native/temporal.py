"""The native engine for temporal priors: a grid over the hyperparameters, a Gaussian approximation at each grid point.

A grid along the main axes of the evidence replaces the continuous hyperparameters.  Where importance sampling from the
expansions at the modes suffices, that is all.  Otherwise tempering leads from better approximations to the posterior,
with jumps between grid points and more of these wherever the draws go.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.importance import antithetic_normals
from polarbear_plugins.inference.native.mixture import Component, Mixture, sample_by_importance
from polarbear_plugins.inference.native.modes import GridPoint, Modes, WarmStart, find_centre
from polarbear_plugins.inference.native.tempering import Particles, sample_tempered
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.posterior.posterior import Diagnostics

_DROP = 6.0  # grid points whose log-evidence is this far below the best are left out
_MAX_GRID = 150
# A first look at the remainder: beyond this standard deviation, importance sampling is not tried.
_LOOKS, _HOPELESS = 200, 3.0
# Grid points to begin tempering with: fewer, since more are added where needed.
_FIRST_DROP, _FIRST_GRID = 5.0, 60
_LONGEST_AXIS = 0.7  # step between grid points
_AVERAGED = 64  # draws over which the approximations are averaged
_NUMBERS_KEPT = 8e7  # in all matrices of the grid points
_POPULATED = 0.0005  # share of the draws at a grid point that asks for its neighbours
_TOO_MANY_AT_THE_EDGE = 0.02
# Numbers to process for all draws after which tempering gives up: half a minute or so.
_MOST_WORK = 7.5e10

Place: TypeAlias = tuple[int, ...]


def sample_temporal(task: Task, *, temper: bool = False) -> Draws:
    """Draws from the posterior under a temporal prior.

    Parameters
    ----------
    temper
        Whether to temper even where importance sampling suffices.
    """
    start = task.start if isinstance(task.start, WarmStart) else None
    rng = np.random.default_rng(task.seed)
    modes = Modes(task, start)
    if start is not None and start.phi.shape != np.shape(modes.prior.start):
        start = None
    centre, axes = find_centre(modes, start)
    state = WarmStart(centre.phi, centre.mode.eta)
    done = None if temper or _hopeless(modes, centre, rng) else _by_importance(modes, centre, axes, task.draws, rng)
    phis, utilities, diagnostics = done or _by_tempering(modes, centre, axes, task.draws, rng)
    return Draws(
        utilities=utilities,
        hyperparameters={name: phis[:, i] for i, name in enumerate(modes.prior.hyperparameters)},
        diagnostics=diagnostics,
        state=state,
    )


def _hopeless(modes: Modes, centre: GridPoint, rng: np.random.Generator) -> bool:
    target = modes.target(centre)
    looks = target.remainder(antithetic_normals(_LOOKS, target.whitener.dimension, rng))
    return not float(looks.std()) < _HOPELESS


def _by_importance(
    modes: Modes, centre: GridPoint, axes: FloatArray, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, Diagnostics] | None:
    """Importance sampling from the expansions at the modes, ``None`` if that does not suffice."""
    points = _grid(modes, centre, axes)
    if points is None:
        return None
    mixture = Mixture([Component(modes.target(point), point.log_evidence, point.log_evidence) for point in points])
    drawn = sample_by_importance(mixture, draws, rng)
    if not drawn.suffices:
        return None
    phis = spread_over_cells(np.array([point.phi for point in points])[drawn.which], axes, rng)
    route = f"{len(points)} grid points, importance sampling"
    diagnostics = Diagnostics(
        engine="native", route=route, good=True, k_hat=drawn.k_hat, effective_draws=drawn.effective
    )
    return phis, mixture.utilities(drawn.which, drawn.z), diagnostics


def _by_tempering(
    modes: Modes, centre: GridPoint, axes: FloatArray, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, Diagnostics]:
    family = _GridFamily(modes, centre, axes, rng)
    done = sample_tempered(family, draws, rng, family.most_leaps(draws))
    problems = done.problems + family.problems(done.which)
    diagnostics = Diagnostics(
        engine="native",
        route=f"{len(family.points)} grid points, {done.temperatures} temperatures, {done.moves} moves",
        good=not problems,
        problems=problems,
        effective_draws=done.effective,
        moves=done.moves,
        acceptance=done.acceptance,
        memory=done.memory,
    )
    phis = spread_over_cells(family.hyperparameters(done.which), family.axes, rng)
    return phis, done.utilities, diagnostics


def spread_over_cells(phis: FloatArray, axes: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Move hyperparameters ``[draw, hyperparameter]`` from grid points to anywhere in the cells of these.

    They are then scaled towards their mean, so that they vary as much as before, but not less than within one cell.
    """
    inside = np.linalg.solve(axes, phis.T).T  # in units of cells
    mean, variance = inside.mean(axis=0), inside.var(axis=0)
    cell = 1 / 12
    inside += rng.uniform(-0.5, 0.5, phis.shape)
    return (mean + (inside - mean) * np.sqrt(np.maximum(variance, cell) / (variance + cell))) @ axes.T


def _grid(modes: Modes, centre: GridPoint, axes: FloatArray) -> list[GridPoint] | None:
    """Points around the centre up to where the evidence is negligible; ``None`` if they would be too many."""
    origin = (0,) * centre.phi.size
    points = {origin: centre}
    best = centre.log_evidence
    todo = [(place, origin) for place in neighbours(origin)]
    while todo:
        place, near = todo.pop(0)
        if place in points:
            continue
        if len(points) == _MAX_GRID:
            return None
        point = modes.at(centre.phi + axes @ np.array(place, dtype=np.float64), points[near])
        points[place] = point
        best = max(best, point.log_evidence)
        if point.log_evidence > best - _DROP:
            todo += [(beyond, place) for beyond in neighbours(place)]
    return [point for point in points.values() if point.log_evidence > best - _DROP]


def neighbours(place: Place) -> Iterator[Place]:
    """Yield the places one step along each axis.

    >>> list(neighbours((3,)))
    [(4,), (2,)]
    """
    for axis, by in itertools.product(range(len(place)), (1, -1)):
        yield (*place[:axis], place[axis] + by, *place[axis + 1 :])


class _GridFamily(Mixture):
    """A grid of averaged approximations that grows where draws go, with jumps between its points.

    There are two kinds of jumps.  Those at the same ``z`` suit data that say much: they keep a draw where it is
    relative to the approximation.  Those at the same coefficients of the prior suit data that say little, such as an
    algorithm that always wins, which any larger scale explains as well.
    """

    def __init__(self, modes: Modes, centre: GridPoint, axes: FloatArray, rng: np.random.Generator) -> None:
        super().__init__([])
        self._modes = modes
        # The same for all grid points: then their differences are those of the posterior.
        self._averaged = antithetic_normals(_AVERAGED, centre.residual.size, rng)
        self.points: list[GridPoint] = []
        self._places: dict[Place, int] = {}
        self._same_coefficients = False
        origin = (0,) * centre.phi.size
        self._origin, self.axes = centre.phi, axes
        self._add(origin, centre)
        # The worse the approximation, the wider is the posterior of the hyperparameters than it suggests.
        spread = self.components[0].target.remainder(self._averaged).std()
        self.axes = axes * np.clip(_LONGEST_AXIS / np.linalg.norm(axes, axis=0), 1.0, min(1 + float(spread) / 3, 3.0))
        self._most_points = int(min(max(_NUMBERS_KEPT / (3 * self.points[0].root.size), 9), _MAX_GRID))
        todo = [(place, origin) for place in neighbours(origin)]
        while todo and len(self.points) < min(_FIRST_GRID, self._most_points):
            place, near = todo.pop(0)
            if place in self._places:
                continue
            self._add(place, self.points[self._places[near]])
            best = max(component.log_weight for component in self.components)
            if self.components[-1].log_weight > best - _FIRST_DROP:
                todo += [(beyond, place) for beyond in neighbours(place)]

    def _add(self, place: Place, near: GridPoint) -> None:
        phi = self._origin + self.axes @ np.array(place, dtype=np.float64)
        point = self._modes.averaged(phi, near, self._averaged)
        target = self._modes.target(point)
        log_weight = point.log_evidence + float(target.remainder(self._averaged).mean())
        self._places[place] = len(self.points)
        self.points.append(point)
        self.components.append(Component(target, log_weight, point.log_evidence))

    def most_leaps(self, draws: int) -> int:
        """Evaluations of the gradient after which to give up."""
        likelihood = self._modes.likelihood
        sets = sum(block.counts.size for block in likelihood.blocks) * self._modes.basis.shape[0]
        return int(max(_MOST_WORK / (draws * (sets + self.points[0].root.size)), 100))

    def hyperparameters(self, which: NDArray[np.intp]) -> FloatArray:
        """Hyperparameters ``[draw, hyperparameter]``."""
        return np.array([point.phi for point in self.points])[which]

    def jump(self, particles: Particles, temperature: float, rng: np.random.Generator) -> Particles:
        """Jump at the same ``z`` and at the same coefficients by turns; add the neighbours of populated grid points."""
        if len(self.points) == 1:
            return particles
        self._same_coefficients = not self._same_coefficients
        particles = self._jump(particles, temperature, rng, self._same_coefficients)
        for k in self._populated(particles.which):
            for place in neighbours(self._place(k)):
                if place not in self._places and len(self.points) < self._most_points:
                    self._add(place, self.points[k])
        return particles

    def _jump(
        self, particles: Particles, temperature: float, rng: np.random.Generator, same_coefficients: bool
    ) -> Particles:
        which, z = particles.which, particles.z
        chances = self._chances(which)
        other = rng.choice(len(chances), len(which), p=chances)
        there, gain = z, np.zeros(len(z))
        if same_coefficients:
            there = self._moved(which, other, z)
            # The density of coefficients instead of ``z``.
            scale = np.array([point.root.log_determinant - _log_scale(point) for point in self.points])
            squares = np.einsum("zk,zk->z", there, there) - np.einsum("zk,zk->z", z, z)
            gain = scale[other] - scale[which] - 0.5 * squares
        remainder = self.remainder(other, there)
        logs = np.array([component.log_weight for component in self.components]) - np.log(chances)
        gain += logs[other] - logs[which] + temperature * (remainder - particles.remainder)
        taken = np.log(rng.random(len(z))) < gain
        return Particles(
            np.where(taken, other, which),
            np.where(taken[:, None], there, z),
            np.where(taken, remainder, particles.remainder),
        )

    def _moved(self, which: NDArray[np.intp], other: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """``z`` of the same coefficients at other grid points."""
        coefficients = np.empty((len(z), *self.points[0].v.shape))
        for k in np.unique(which):
            here, rows = self.points[k], np.flatnonzero(which == k)
            coefficients[rows] = here.coordinates.coefficients(here.v + here.root.steps(z[rows]))
        there = np.empty_like(z)
        for k in np.unique(other):
            here, rows = self.points[k], np.flatnonzero(other == k)
            there[rows] = here.root.whitened(here.coordinates.from_coefficients(coefficients[rows]) - here.v)
        return there

    def _chances(self, which: NDArray[np.intp]) -> FloatArray:
        """Probability of proposing each grid point: high where draws are and next to them, nowhere 0."""
        counts = np.bincount(which, minlength=len(self.points))
        chances = counts + 0.05 * counts.mean()
        for place, k in self._places.items():
            beside = [self._places[near] for near in neighbours(place) if near in self._places]
            chances[beside] += counts[k] / len(beside)
        return chances / chances.sum()

    def _place(self, k: int) -> Place:
        return list(self._places)[k]

    def _populated(self, which: NDArray[np.intp]) -> list[int]:
        counts = np.bincount(which, minlength=len(self.points))
        return np.flatnonzero(counts > _POPULATED * len(which)).tolist()

    def problems(self, which: NDArray[np.intp]) -> tuple[str, ...]:
        """Whether the grid ends where draws are."""
        counts = np.bincount(which, minlength=len(self.points))
        at_the_edge = sum(
            int(counts[k])
            for k in self._populated(which)
            if any(place not in self._places for place in neighbours(self._place(k)))
        )
        if at_the_edge <= _TOO_MANY_AT_THE_EDGE * len(which):
            return ()
        return (f"{at_the_edge / len(which):.0%} of the draws are at the edge of the grid of hyperparameters",)


def _log_scale(point: GridPoint) -> float:
    return point.v.shape[1] * point.coordinates.log_scale
