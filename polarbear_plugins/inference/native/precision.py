"""The posterior precision of latent functions, its factor, and draws with it, part by part.

Where only neighbouring coordinates interact, as with splines and Markov processes, the Cholesky factor has blocks on
and just below its diagonal, and the cost grows linearly with the number of blocks instead of with its cube.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from polarbear_plugins.arrays import FloatArray

_PART = 64  # coordinates of all latent functions in a part, at least


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Coordinates ``v`` of a latent function ``loadings @ v``, in parts; only neighbouring parts interact.

    Attributes
    ----------
    precision, log_scale
        Prior precision of ``v``, and half the logarithm of its determinant.
    parts, places
        Slices of ``v``, and of the timepoints that depend on them.
    factor, inverse
        Map from independent standard normal coefficients to ``v`` and its inverse; ``None`` where ``v`` are these
        coefficients.
    """

    loadings: FloatArray
    precision: FloatArray
    log_scale: float
    parts: list[slice]
    places: list[slice]
    factor: FloatArray | None = None
    inverse: FloatArray | None = None

    def coefficients(self, v: FloatArray) -> FloatArray:
        """Standard normal coefficients of ``v[..., coordinate, function]``, which mean the same for every prior."""
        return v if self.inverse is None else self.inverse @ v

    def from_coefficients(self, coefficients: FloatArray) -> FloatArray:
        """Undo :meth:`coefficients`."""
        return coefficients if self.factor is None else self.factor @ coefficients


def find_coordinates(factor: FloatArray, functions: int) -> Coordinates:
    """Coordinates with few interactions: the coefficients of local functions, or the values of a Markov process.

    Without such coordinates, all coefficients are one part.
    """
    timepoints, size = factor.shape
    identity = np.eye(size)
    least = -(-_PART // functions)
    reach = _reach(factor)
    if size >= 3 * max(reach, least):
        return _parted(factor, identity, 0.0, max(reach, least))
    diagonal = np.abs(np.diag(factor))
    if timepoints == size >= 3 * least and not np.triu(factor, 1).any() and diagonal.min() > 1e-8 * diagonal.max():
        inverse = solve_triangular(factor, identity, lower=True, check_finite=False)
        inverse[np.abs(inverse) < 1e-10 * np.abs(inverse).max()] = 0.0  # rounding
        reach = _reach(inverse)
        if size >= 3 * max(reach, least):
            values = _parted(identity, inverse.T @ inverse, -float(np.log(diagonal).sum()), max(reach, least))
            return replace(values, factor=factor, inverse=inverse)
    return _parted(factor, identity, 0.0, size)


def _reach(matrix: FloatArray) -> int:
    """Largest distance between two columns that are nonzero in the same row."""
    there = matrix != 0
    first, last = there.argmax(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    return int(np.max((last - first)[there.any(axis=1)], initial=0))


def _parted(loadings: FloatArray, precision: FloatArray, log_scale: float, step: int) -> Coordinates:
    parts = [slice(start, min(start + step, len(precision))) for start in range(0, len(precision), step)]
    places = []
    for part in parts:
        used = np.flatnonzero(loadings[:, part].any(axis=1))
        places.append(slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 0))
    return Coordinates(loadings, precision, log_scale, parts, places)


class Root:
    """Cholesky factor of the posterior precision: lower triangular blocks, and the blocks below them."""

    def __init__(self, coordinates: Coordinates, information: FloatArray) -> None:
        self._coordinates = coordinates
        self._diagonal: list[FloatArray] = []
        self._below: list[FloatArray] = []
        self._functions = information.shape[1]
        for number in range(len(coordinates.parts)):
            block = self._block(number, number, information)
            if number:
                across = self._block(number - 1, number, information)
                self._below.append(_solve(self._diagonal[-1], across).T)
                block -= self._below[-1] @ self._below[-1].T
            self._diagonal.append(cholesky(block.T, lower=True, overwrite_a=True, check_finite=False))
        self.log_determinant = sum(float(np.log(np.diag(root)).sum()) for root in self._diagonal)
        self.size = sum(block.size for block in (*self._diagonal, *self._below))

    def _block(self, one: int, other: int, information: FloatArray) -> FloatArray:
        """Precision between parts, ``[function, coordinate]`` flattened; of a part and itself the upper triangle."""
        q, here = self._functions, self._coordinates
        rows, columns = here.parts[one], here.parts[other]
        start = max(here.places[one].start, here.places[other].start)
        place = slice(start, max(start, min(here.places[one].stop, here.places[other].stop)))
        left, right = here.loadings[place, rows], here.loadings[place, columns]
        (height, width), block = (left.shape[1], right.shape[1]), np.zeros((q * left.shape[1], q * right.shape[1]))
        for function in range(q):
            first = function if one == other else 0
            weights = information[place, function, first:, None]
            weighted = np.multiply(weights, right[:, None, :], order="C").reshape(len(right), (q - first) * width)
            inside = block[function * height : (function + 1) * height]
            inside[:, first * width :] = left.T @ weighted
            inside[:, function * width : (function + 1) * width] += here.precision[rows, columns]
        return block

    def half(self, slope: FloatArray) -> FloatArray:
        """Solve with the factor, for ``slope[coordinate, function]``."""
        solved: list[FloatArray] = []
        for number, part in enumerate(self._coordinates.parts):
            here = slope[part].T.ravel()
            solved.append(
                _solve(self._diagonal[number], here - self._below[number - 1] @ solved[-1] if number else here)
            )
        return np.concatenate(solved)

    def back(self, half: FloatArray) -> FloatArray:
        """Solve with the transposed factor; returns ``[coordinate, function]``."""
        return self.steps(half[None])[0]

    def steps(self, z: FloatArray) -> FloatArray:
        """Steps ``[draw, coordinate, function]`` of the coordinates for each standard normal ``z[draw]``."""
        steps = np.empty((len(z), len(self._coordinates.precision), self._functions))
        rest = z
        after: FloatArray | None = None
        for number in reversed(range(len(self._diagonal))):
            rest, here = np.split(rest, [-len(self._diagonal[number])], axis=1)
            here = here if after is None else here - after @ self._below[number]
            after = solve_triangular(self._diagonal[number], here.T, lower=True, trans=1, check_finite=False).T
            inside = after.reshape(len(z), self._functions, -1)
            steps[:, self._coordinates.parts[number]] = inside.transpose(0, 2, 1)
        return steps

    def whitened(self, steps: FloatArray) -> FloatArray:
        """Undo :meth:`steps`."""
        parts = [steps[:, part].transpose(0, 2, 1).reshape(len(steps), -1) for part in self._coordinates.parts]
        z = [part @ root for part, root in zip(parts, self._diagonal, strict=True)]
        for here, after, below in zip(z, parts[1:], self._below, strict=False):
            here += after @ below
        return np.concatenate(z, axis=1)

    def whitener(self, basis: FloatArray) -> BlockWhitener:
        """Map from standard normal ``z`` to utilities with this precision."""
        here = self._coordinates
        loadings = [here.loadings[place, part].T for place, part in zip(here.places, here.parts, strict=True)]
        inverses = [_solve(root, np.eye(len(root))) for root in self._diagonal]
        return BlockWhitener(basis, here.places, loadings, inverses, self._below)


def _solve(root: FloatArray, right: FloatArray) -> FloatArray:
    return solve_triangular(root, right, lower=True, check_finite=False)


class BlockWhitener:
    """Linear map from standard normal ``z`` to steps of all utilities, part by part.

    Applies the inverse of a triangular matrix with blocks on and below its diagonal, then maps to latent functions and
    to utilities.  Long series of timepoints have many parts, and the cost grows linearly with their number.

    Parameters
    ----------
    basis
        ``[algorithm, function]``.
    places, loadings
        For each part, the slice of timepoints that depend on it, and their loadings ``[coordinate, timepoint]``.
    inverses, below
        Inverse blocks on the diagonal, ``[function * coordinate, function * coordinate]`` of each part, and the blocks
        below the diagonal.
    """

    def __init__(
        self,
        basis: NDArray[Any],
        places: Sequence[slice],
        loadings: Sequence[NDArray[Any]],
        inverses: Sequence[NDArray[Any]],
        below: Sequence[NDArray[Any]],
    ) -> None:
        self.basis, self.places, self.loadings, self.inverses, self.below = basis, places, loadings, inverses, below
        ends = np.cumsum([0, *map(len, inverses)]).tolist()
        self.parts = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        self.dimension: int = ends[-1]
        self.timepoints = max(place.stop for place in places)

    def single(self) -> BlockWhitener:
        """The same map in single precision."""
        lists = ([one.astype(np.float32) for one in many] for many in (self.loadings, self.inverses, self.below))
        return BlockWhitener(self.basis.astype(np.float32), self.places, *lists)

    def step(self, z: NDArray[Any]) -> NDArray[Any]:
        """Step ``[timepoint, algorithm]`` of the utilities for each ``z``."""
        functions = self.basis.shape[1]
        eta = np.zeros((len(z), functions, self.timepoints), dtype=z.dtype)
        here = z[:, self.parts[-1]]
        for number in reversed(range(len(self.parts))):
            solved = here @ self.inverses[number]
            values = solved.reshape(len(z) * functions, -1) @ self.loadings[number]
            eta[:, :, self.places[number]] += values.reshape(len(z), functions, -1)
            if number:
                here = z[:, self.parts[number - 1]] - solved @ self.below[number - 1]
        step: NDArray[Any] = eta.transpose(0, 2, 1).reshape(-1, functions) @ self.basis.T  # one large product
        return step.reshape(len(z), self.timepoints, -1)

    def back(self, pull: NDArray[Any]) -> NDArray[Any]:
        """Transposed map, from gradients in terms of utilities to those in terms of ``z``."""
        eta = pull.reshape(-1, pull.shape[2]) @ self.basis
        eta = eta.reshape(len(pull), self.timepoints, -1).transpose(0, 2, 1)
        back = np.empty((len(pull), self.dimension), dtype=pull.dtype)
        for number, part in enumerate(self.parts):
            values = eta[:, :, self.places[number]].reshape(len(pull) * eta.shape[1], -1) @ self.loadings[number].T
            here = values.reshape(len(pull), -1)
            if number:
                here -= back[:, self.parts[number - 1]] @ self.below[number - 1].T
            back[:, part] = here @ self.inverses[number].T
        return back
