"""Tempered sequential Monte Carlo: from a Gaussian approximation to the posterior in steps that are small enough.

Particles begin as draws of the approximation.  Its error enters step by step, each step as large as weights that are
worth half of the particles allow; after each the particles are resampled and moved.  Once the error has entered in
full, they are moved until they have forgotten where they began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import Float32Array, FloatArray
from polarbear_plugins.inference.native.importance import resample
from polarbear_plugins.inference.native.quality import (
    correlations,
    distinct_share,
    has_forgotten,
    parallel_chains,
    shortcomings,
    worth_of_rounds,
)

_GAPS = 6  # rounds are apart by this part of the moves that it took to forget
_SURVIVING = 0.5  # share of the particles that the weights of a step must be worth
_MOST_TEMPERATURES = 60
_MOST_MOVES = 200
# Trajectories are a quarter of a turn, after which a Gaussian has forgotten where it began.
_TURN = math.pi / 2
_LONGEST_STEP, _SHORTEST_STEP = 0.8, 0.04
_WANTED_ACCEPTANCE = 0.75


@dataclass(frozen=True, slots=True)
class Particles:
    """Coordinates ``z`` around the centre of the component ``which``, and the remainder there."""

    which: NDArray[np.intp]
    z: FloatArray
    remainder: FloatArray

    def take(self, rows: NDArray[np.intp]) -> Particles:
        """Some of them, perhaps repeatedly."""
        return Particles(self.which[rows], self.z[rows], self.remainder[rows])


class Family(Protocol):
    """A mixture of Gaussian approximations, one for each value of the hyperparameters, and what they leave out."""

    def start(self, count: int, rng: np.random.Generator) -> Particles:
        """Draws of the approximation."""
        ...

    def remainder(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Logarithm of the ratio of the posterior to the approximation."""
        ...

    def gradient(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Gradient of the remainder in terms of ``z``."""
        ...

    def jump(self, particles: Particles, temperature: float, rng: np.random.Generator) -> Particles:
        """Move to other components, leaving the tempered posterior invariant."""
        ...

    def utilities(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Utilities ``[draw, timepoint, algorithm]``."""
        ...

    def rough_utilities(self, which: NDArray[np.intp], z: FloatArray) -> Float32Array:
        """Utilities in single precision."""
        ...

    def hyperparameters(self, which: NDArray[np.intp]) -> FloatArray:
        """Hyperparameters ``[draw, hyperparameter]``; of no columns where there is only one component."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempered:
    """Draws from a posterior, and how they were made."""

    which: NDArray[np.intp]
    utilities: FloatArray
    temperatures: int
    moves: int
    acceptance: float
    memory: float
    effective: float
    distinct: float
    chains: int

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons not to trust the draws."""
        return shortcomings(
            len(self.utilities),
            distinct=self.distinct,
            effective=self.effective,
            acceptance=self.acceptance,
            left=self.memory,
            chains=self.chains,
            moves=self.moves,
        )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a trajectory that is no longer a number is rejected
def sample_tempered(family: Family, draws: int, rng: np.random.Generator, most_leaps: int = 10_000) -> Tempered:
    """Draws from the posterior.

    Parameters
    ----------
    most_leaps
        Evaluations of the gradient after which to give up; the draws are then not good.
    """
    chains = parallel_chains(draws)
    particles = family.start(chains, rng)
    watch = _Watch(family, particles)
    mover = _Mover(family, rng)
    temperature, temperatures = 0.0, 0
    while temperature < 1 and temperatures < _MOST_TEMPERATURES and mover.leaps < most_leaps:
        new = next_temperature(particles.remainder, temperature)
        weights = np.exp((new - temperature) * (particles.remainder - particles.remainder.max()))
        particles = particles.take(resample(weights / weights.sum(), chains, rng))
        temperature, temperatures = new, temperatures + 1
        particles = mover.move(particles, temperature)
    mover.shares.clear()
    watch.begin(particles)
    left = 1.0
    while len(mover.shares) < _MOST_MOVES and mover.leaps < most_leaps:
        particles = mover.moves(particles, 2)
        left = watch.left(particles)
        if has_forgotten(left, chains):
            break
    left = left if temperature == 1 else 1.0  # otherwise they are draws of something else
    forgetting = len(mover.shares)
    if has_forgotten(left, chains):
        # As many again: what is left of a start that was far from the posterior is then negligible, too.
        particles = mover.moves(particles, forgetting)
    rounds = [particles]
    while chains * len(rounds) < draws and has_forgotten(left, chains):
        rounds.append(mover.moves(rounds[-1], -(-forgetting // _GAPS)))
    which, z = (np.concatenate(parts) for parts in zip(*((p.which, p.z) for p in rounds), strict=True))
    chosen = np.resize(np.arange(len(which)), draws)  # without forgetting there is only one round
    return Tempered(
        which=which[chosen],
        utilities=family.utilities(which[chosen], z[chosen]),
        temperatures=temperatures,
        moves=len(mover.shares),
        acceptance=float(np.mean(mover.shares)) if mover.shares else 0.0,
        memory=left,
        effective=min(float(draws), watch.worth(rounds)),
        distinct=distinct_share(z[chosen]),
        chains=chains,
    )


def next_temperature(remainder: FloatArray, temperature: float) -> float:
    """Largest temperature, at most 1, whose weights are worth the wanted share of the particles."""
    centred = remainder - remainder.max()

    def worth(there: float) -> float:
        weights = np.exp((there - temperature) * centred)
        return float(weights.sum() ** 2 / (weights @ weights)) / len(weights)

    if worth(1.0) >= _SURVIVING:
        return 1.0
    low, high = temperature, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) > _SURVIVING else (low, middle)
    return high  # above the temperature, however steep the weights


class _Watch:
    """What particles must forget: utilities and hyperparameters."""

    def __init__(self, family: Family, particles: Particles) -> None:
        self._family = family
        # A prior may fix some utilities.
        self._free = np.ones(0, dtype=bool)
        self._free = np.ptp(self._utilities(particles), axis=0) > 0
        self.begin(particles)

    def begin(self, particles: Particles) -> None:
        """Remember where the particles are."""
        self._utilities_then = self._utilities(particles)
        self._hyperparameters_then = self._family.hyperparameters(particles.which)

    def left(self, particles: Particles) -> float:
        """Largest correlation with where the particles began.

        Hyperparameters whose mean has moved by several standard deviations must have forgotten in proportion.
        """
        utilities = correlations(self._utilities_then, self._utilities(particles))
        then, now = self._hyperparameters_then, self._family.hyperparameters(particles.which)
        shift = np.abs(now.mean(axis=0) - then.mean(axis=0)) / np.maximum(now.std(axis=0), 1e-300)
        hyperparameters = np.minimum(1.0, correlations(then, now) * np.maximum(1.0, shift))
        return float(max(utilities.max(initial=0.0), hyperparameters.max(initial=0.0)))

    def worth(self, rounds: list[Particles]) -> float:
        """Number of independent draws that the rounds are worth, for the quantity for which it is lowest."""
        seen = [
            np.hstack([self._utilities(particles), self._family.hyperparameters(particles.which)])
            for particles in rounds
        ]
        return worth_of_rounds(seen)

    def _utilities(self, particles: Particles) -> FloatArray:
        rough = self._family.rough_utilities(particles.which, particles.z).reshape(len(particles.z), -1)
        return (rough[:, self._free] if self._free.size else rough).astype(np.float64)


class _Mover:
    """Hamiltonian moves of ``z``, whose length adapts to how many are accepted, and jumps between components."""

    def __init__(self, family: Family, rng: np.random.Generator) -> None:
        self._family, self._rng = family, rng
        self._step = _LONGEST_STEP
        self.shares: list[float] = []
        self.leaps = 0

    def moves(self, particles: Particles, count: int) -> Particles:
        """Move every particle several times."""
        for _ in range(count):
            particles = self.move(particles, 1.0)
        return particles

    def move(self, particles: Particles, temperature: float) -> Particles:
        """Move every particle; the Gaussian part rotates exactly, the remainder changes the momentum."""
        rng, which, z = self._rng, particles.which, particles.z
        angle = self._step * rng.uniform(0.85, 1.15)
        steps = max(1, round(_TURN / self._step))
        cos, sin = math.cos(angle), math.sin(angle)
        momentum = rng.standard_normal(z.shape)
        before = temperature * particles.remainder - 0.5 * (_squares(momentum) + _squares(z))
        new = z
        momentum += 0.5 * angle * temperature * self._family.gradient(which, new)
        for number in range(steps):
            new, momentum = new * cos + momentum * sin, momentum * cos - new * sin
            kick = angle if number < steps - 1 else 0.5 * angle
            momentum += kick * temperature * self._family.gradient(which, new)
        remainder = self._family.remainder(which, new)
        after = temperature * remainder - 0.5 * (_squares(momentum) + _squares(new))
        accepted = np.log(rng.random(len(z))) < after - before  # never where the trajectory is no longer a number
        share = float(accepted.mean())
        self.shares.append(share)
        self.leaps += steps + 1
        self._step = min(max(self._step * math.exp(0.6 * (share - _WANTED_ACCEPTANCE)), _SHORTEST_STEP), _LONGEST_STEP)
        moved = Particles(
            which, np.where(accepted[:, None], new, z), np.where(accepted, remainder, particles.remainder)
        )
        return self._family.jump(moved, temperature, rng)


def _squares(z: FloatArray) -> FloatArray:
    return np.einsum("zk,zk->z", z, z)
