"""Three hundred ranking tables that are hard for inference, each determined by its number.

The prior of a case is its number modulo 7, its kind its number modulo 9: every pair of them occurs.  Most tables are
small, so that long NUTS runs are affordable; every 23rd is large.
"""

import functools
import hashlib
import json
from dataclasses import dataclass

import numpy as np

from polarbear_plugins import RankingTable

COUNT = 300
PRIORS = ("dirichlet", "hierarchical-dirichlet", "gp", "sparse-gp", "hsgp", "random-walk", "bspline")
KINDS = (
    "always wins",  # one algorithm is first everywhere
    "same order",  # all rankings are the same
    "ties",  # rounded values, and rows in which all are equal
    "two instances",
    "absent",  # runs that are missing or ended early
    "weights",  # uneven weights, or repetitions that share one
    "alternating",  # the leader changes every few timepoints
    "noise",  # nothing special
    "strong",  # utilities up to 25 apart
)
#: Kinds of which the data bound some differences of utilities on one side only.
ONE_SIDED = ("always wins", "same order", "strong")
_ALGORITHMS, _INSTANCES, _TIMEPOINTS = (
    (2, 2, 3, 3, 3, 4, 4, 5, 6),
    (3, 5, 8, 10, 15, 20, 30, 50, 100),
    (1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24),
)
_EVERY, _LARGE = 23, ((8, 30, 20), (6, 30, 100), (5, 30, 150), (15, 30, 150), (6, 20, 60), (8, 30, 20), (15, 30, 20))
_LARGE += ((15, 2, 10), (8, 100, 50), (10, 20, 30), (10, 100, 30), (4, 50, 70), (15, 30, 100))
# A table of a tie has a set for each of its parts, and the PyMC engines compile one expression for all of them.
_LARGEST_TIE = 8


@dataclass(frozen=True)
class Case:
    """A table and a prior."""

    number: int
    prior: str
    kind: str
    n: int
    instances: int
    timepoints: int

    @functools.cached_property
    def table(self) -> RankingTable:
        """The rankings."""
        return _table(self)

    @functools.cached_property
    def digest(self) -> str:
        """Digest of everything that the posterior depends on."""
        table = self.table
        about = json.dumps([self.prior, table.ranks.shape, table.timepoints.tolist()])
        digest = hashlib.sha256(about.encode())
        digest.update(np.ascontiguousarray(table.ranks, dtype="<i2").tobytes())
        digest.update(np.ascontiguousarray(table.weights, dtype="<f8").tobytes())
        return digest.hexdigest()[:16]

    @property
    def size(self) -> int:
        """Number of unknown ratings."""
        return (self.n - 1) * self.timepoints

    def __str__(self) -> str:
        size = f"n={self.n} P={self.instances} T={self.timepoints}"
        return f"{self.number:3d} {self.prior:22s} {self.kind:13s} {size:18s}"


def case(number: int) -> Case:
    """The case of that number.

    >>> print(case(6))
      6 bspline                alternating   n=3 P=15 T=8
    """
    prior, kind = PRIORS[number % len(PRIORS)], KINDS[number % len(KINDS)]
    place, rest = divmod(number, _EVERY)
    if rest == _EVERY - 1:
        n, instances, timepoints = _LARGE[place]
    else:
        rng = np.random.default_rng([number, 0])
        n, instances, timepoints = (int(rng.choice(sizes)) for sizes in (_ALGORITHMS, _INSTANCES, _TIMEPOINTS))
    if kind == "two instances":
        instances = 2
    if kind == "ties":
        n = min(n, _LARGEST_TIE)
    if kind == "alternating":
        timepoints = max(timepoints, 3)
    return Case(number, prior, kind, n, instances, timepoints)


def _table(of: Case) -> RankingTable:
    """Values from utilities and Gumbel noise, rankings from the values."""
    rng = np.random.default_rng([of.number, 1])
    rows, timepoints, n = of.instances, of.timepoints, of.n
    values = -(_utilities(of, rng) + rng.gumbel(size=(rows, timepoints, n)))
    names, weights = list(range(rows)), None
    if of.kind == "always wins":
        values[:, :, rng.integers(n)] = values.min() - 1
    elif of.kind == "same order":
        values = np.broadcast_to(rng.permutation(n).astype(float), values.shape)
    elif of.kind == "ties":
        values = 2 * np.round(values / 2)
        values[rng.random(rows) < 0.2] = 0.0
    elif of.kind == "absent":
        values = _with_absent(values, rng)
    elif of.kind == "weights":
        weights = np.round(rng.lognormal(0.0, 1.0, rows), 3)
        if rng.random() < 0.5:
            names = [row // 2 for row in range(rows)]  # two rows are repetitions of one instance
    return RankingTable.from_values(
        values,
        algorithms=[f"a{i}" for i in range(n)],
        timepoints=np.arange(1, timepoints + 1),
        instances=names,
        weights=weights,
    )


def _utilities(of: Case, rng: np.random.Generator) -> np.ndarray:
    """Utilities ``[timepoint, algorithm]``."""
    timepoints, n = of.timepoints, of.n
    time = np.linspace(0.0, 1.0, timepoints)[:, None]
    smooth = 0.7 * (rng.normal(size=n) + rng.normal(size=n) * np.cos(2 * np.pi * (time + rng.random(n))))
    if of.kind == "alternating":
        period = max(1, timepoints // int(rng.integers(2, 6)))
        leader = np.arange(timepoints) // period % min(n, 3)
        return 0.3 * smooth + 2.0 * (leader[:, None] == np.arange(n))
    if of.kind == "strong":
        return smooth + rng.permutation(np.linspace(0.0, rng.choice([6.0, 12.0, 25.0]), n))
    return smooth


def _with_absent(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Leave out a fifth of the runs, end another fifth early, and one algorithm at half time."""
    values = values.copy()
    rows, timepoints, n = values.shape
    fate, ends = rng.random((rows, n)), rng.integers(0, timepoints, (rows, n)) + 1
    ended = np.arange(timepoints)[None, :, None] >= ends[:, None]
    gone = (fate < 0.2)[:, None] | ((fate < 0.4)[:, None] & ended)
    gone[0] = False  # something can be compared
    if n > 2:
        gone[:, (timepoints + 1) // 2 :, rng.integers(n)] = True
    values[gone] = np.nan
    return values
