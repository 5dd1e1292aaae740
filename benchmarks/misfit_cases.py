"""Data that do not follow the Plackett-Luce model, with their truth."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["gaussian", "ties", "heavy tails", "two kinds", "plackett-luce"]
KINDS: tuple[Kind, ...] = ("gaussian", "ties", "heavy tails", "two kinds")
ALGORITHMS, TIMEPOINTS = 5, 6
_CORRELATION = 0.9  # of the noise of a run from one timepoint to the next
_BLOCK = 20_000


@dataclass(frozen=True)
class Truth:
    """Long-run shares of first places ``[t, i]`` and of wins ``[t, i, j]``, and which algorithms nobody dominates."""

    first: np.ndarray
    wins: np.ndarray

    @property
    def members(self) -> np.ndarray:
        """Which algorithms no rival beats in first places at every timepoint: those that may be right for a budget."""
        return ~(self.first[:, :, None] > self.first[:, None, :]).all(axis=0).any(axis=0)

    @property
    def majority_members(self) -> np.ndarray:
        """Which algorithms no rival beats on most instances at every timepoint."""
        return ~(self.wins > 0.5).all(axis=0).any(axis=0)


class Generator:
    """Values of five algorithms at six timepoints, to be minimised.

    ``gaussian``: smooth curves and Gaussian noise that correlates over time.  ``ties``: the same, rounded to steps of
    half a standard deviation.  ``heavy tails``: noise with two degrees of freedom, whose scale differs between
    algorithms by up to a factor of ten.  ``two kinds``: each algorithm is good on one half of the instances to the
    degree that it is bad on the other half.  ``plackett-luce``: Gumbel noise.
    """

    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind = kind
        rng = np.random.default_rng([seed, ["plackett-luce", *KINDS].index(kind)])
        time = np.linspace(0, 1, TIMEPOINTS)
        distance = math.sqrt(3) * np.abs(time[:, None] - time) * rng.gamma(5) / 3
        kernel = (1 + distance) * np.exp(-distance) + 1e-9 * np.eye(TIMEPOINTS)
        self.curves = np.linalg.cholesky(kernel) @ rng.standard_normal((TIMEPOINTS, ALGORITHMS))
        self.scales = np.exp(rng.uniform(math.log(0.3), math.log(3), ALGORITHMS))
        self.tastes = 2 * rng.standard_normal(ALGORITHMS)

    def sample(self, instances: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ``values[instance, timepoint, algorithm]``."""
        shape = (instances, TIMEPOINTS, ALGORITHMS)
        if self.kind == "plackett-luce":
            return -self.curves - rng.gumbel(size=shape)
        noise = rng.standard_normal(shape)
        for t in range(1, TIMEPOINTS):
            noise[:, t] = _CORRELATION * noise[:, t - 1] + math.sqrt(1 - _CORRELATION**2) * noise[:, t]
        if self.kind == "heavy tails":
            return self.scales * noise / np.sqrt(rng.chisquare(2, (instances, 1, ALGORITHMS)) / 2) - self.curves
        if self.kind == "two kinds":
            kind = np.where(rng.random(instances) < 0.5, 1.0, -1.0)[:, None, None]
            return 0.5 * noise - 0.5 * self.curves - kind * self.tastes
        values = noise - self.curves
        return np.round(2 * values) / 2 if self.kind == "ties" else values

    def truth(self, instances: int = 100_000) -> Truth:
        """Shares in a long simulation."""
        rng = np.random.default_rng(1)
        blocks = max(1, instances // _BLOCK)
        first, wins = np.zeros((TIMEPOINTS, ALGORITHMS)), np.zeros((TIMEPOINTS, ALGORITHMS, ALGORITHMS))
        for _ in range(blocks):
            values = self.sample(_BLOCK, rng)
            best = values == values.min(axis=2, keepdims=True)
            first += (best / best.sum(axis=2, keepdims=True)).mean(axis=0)
            for j in range(ALGORITHMS):
                other = values[:, :, [j]]
                wins[:, :, j] += ((values < other) + (values == other) / 2).mean(axis=0)
        return Truth(first / blocks, wins / blocks)
