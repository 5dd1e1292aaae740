"""MA-BBOB: affine combinations of the BBOB functions (Vermetten et al. 2023), with the values of ioh's ``ManyAffine``.

ioh evaluates all 24 functions, also those with weight 0; a problem here evaluates only the others.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError, SourceError, reason, short
from polarbear_plugins.extras import require
from polarbear_plugins.options import read_options, whole_number
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.given import cube
from polarbear_plugins.problems.protocols import Identity, Problem, Suite
from polarbear_plugins.regular_files import open_regular_text

#: Divisors of the logarithms of the 24 functions in ioh, which give them about the same range.
SCALES = (
    *(11.0, 17.5, 12.3, 12.6, 11.5, 15.3, 12.1, 15.3, 15.2, 17.4, 13.4, 20.4),
    *(12.9, 10.4, 12.3, 10.3, 9.8, 10.6, 10.0, 14.7, 10.7, 10.8, 9.0, 12.1),
)
_WHO = "The suite 'ma-bbob'"
_FILES = ("weights.csv", "iids.csv", "opt_locs.csv")
_MOST_DIMENSIONS = 10_000
_log10 = math.log10


class MaBbobProblem:
    """A weighted combination of BBOB functions, all shifted to the same optimum, on [-5, 5]^d.

    Parameters
    ----------
    weights, instances
        Of the 24 functions.
    xopt
        Location of the optimum; its value is about 1e-11, because ioh raises values below 1e-12 to 1e-12.
    """

    def __init__(
        self, identity: Identity, *, weights: Sequence[float], instances: Sequence[int], xopt: Sequence[float]
    ) -> None:
        ioh = require("ioh", extra="ioh", who=_WHO)
        self.identity = identity
        self.lower, self.upper = cube(len(xopt), -5, 5)
        self._xopt = as_vector(xopt, f"{identity.name}: xopt")
        active = [place for place, weight in enumerate(weights) if weight > 0]
        parts = [
            ioh.get_problem(place + 1, int(instances[place]), len(xopt), ioh.ProblemClass.BBOB) for place in active
        ]
        self._optima = np.array([part.optimum.x for part in parts])
        # The value is 10 to the power of 10 times the sum of weight * (log10(f - f_opt) + 8) / scale, minus 8.
        factors = [10 * float(weights[place]) / SCALES[place] for place in active]
        self._constant = 8 * sum(factors) - 8
        self._parts = [(part, float(part.optimum.y), factor) for part, factor in zip(parts, factors, strict=True)]

    def evaluate(self, x: ArrayLike, /) -> float:
        """Value at ``x``, also outside the bounds; ``nan`` if ``x`` is not finite."""
        point = np.asarray(x, dtype=np.float64)
        if point.shape != self._xopt.shape:
            raise InvalidInputError(
                f"{self.identity.name}: expected {self._xopt.size} numbers, got an array of shape {point.shape}."
            )
        # In the same order of operations as ioh: near the optimum the value depends on the rounding.
        places = (point + self._optima - self._xopt).tolist()
        exponent = self._constant
        for (part, least, factor), place in zip(self._parts, places, strict=True):
            above = part(place) - least
            if above < 1e-12:
                above = 1e-12
            elif above > 1e20:
                above = 1e20
            exponent += factor * _log10(above)
        try:
            return math.pow(10, exponent)
        except OverflowError:  # weights far above 1
            return math.inf


class MaBbobSuite:
    """Problems drawn like those of the authors of MA-BBOB, or the published ones.

    Parameters
    ----------
    csv
        A folder with the published files ``weights.csv``, ``iids.csv`` and ``opt_locs.csv``; without it an
        endless sequence of problems is drawn.
    """

    name = "ma-bbob"

    def __init__(self, dimension: int = 5, csv: str | None = None) -> None:
        self.dimension = dimension
        self.csv = csv

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw problems; those from files once each."""
        seed = as_whole_number(seed, "seed", at_least=0)
        if self.csv is not None:
            # Read here and not earlier: a worker on another machine builds from identities and needs no files.
            rows = read_csv_folder(Path(self.csv), self.dimension)
            labels = list(rows)
            for place in np.random.default_rng(seed).permutation(len(labels)):
                yield Identity(f"d{self.dimension}-row{labels[place]}", rows[labels[place]])
            return
        for index in itertools.count():
            drawn = draw_parameters(np.random.default_rng([seed, index]), self.dimension)
            yield Identity(f"d{self.dimension}-{seed}-{index}", drawn)

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem from its weights, instances and optimum."""
        return MaBbobProblem(identity, **_check_parameters(identity.parameters, f"identity {identity.name!r}"))


def draw_parameters(rng: np.random.Generator, dimension: int) -> dict[str, Any]:
    """Weights, instances and optimum as the published sampler draws them.

    Each function draws a uniform number.  Those above 0.85, but at least the two largest, get weights in proportion to
    the excess; instances are 1 to 99; the optimum is uniform in the box.

    >>> drawn = draw_parameters(np.random.default_rng(1), 2)
    >>> [place + 1 for place, weight in enumerate(drawn["weights"]) if weight > 0]
    [2, 4, 24]
    """
    uniform = rng.uniform(size=24)
    threshold = min(0.85, float(np.sort(uniform)[-3]))
    weights = np.maximum(uniform - threshold, 0)
    weights /= weights.sum()
    instances = rng.integers(1, 100, size=24)
    xopt = rng.uniform(-5, 5, size=dimension)
    return {"weights": weights.tolist(), "instances": instances.tolist(), "xopt": xopt.tolist()}


def read_csv_folder(folder: Path, dimension: int) -> dict[str, dict[str, Any]]:
    """Parameters of the problems in a folder with the published files, by the label of their row.

    Each file has a header and begins each row with its label, as pandas writes it.  ``weights.csv`` and ``iids.csv``
    have 24 columns, ``opt_locs.csv`` at least as many as there are dimensions.

    :raises SourceError: a file is missing or damaged; names it and the line.
    """
    tables = [_read_rows(folder / name, exactly) for name, exactly in zip(_FILES, (24, 24, None), strict=True)]
    for name, table in zip(_FILES[1:], tables[1:], strict=True):
        if list(table) != list(tables[0]):
            raise SourceError(
                f"{folder / name}: its rows are not those of {_FILES[0]}. Give files that belong together."
            )
    problems = {}
    for label, (line, weights) in tables[0].items():
        instances, xopt = tables[1][label][1], tables[2][label][1]
        if len(xopt) < dimension:
            raise SourceError(
                f"{folder / _FILES[2]}, line {line}: expected an optimum in {dimension} dimensions, got {len(xopt)}."
            )
        parameters = {"weights": weights, "instances": instances, "xopt": xopt[:dimension]}
        try:
            problems[label] = _check_parameters(parameters, "problem")
        except InvalidInputError as problem:
            raise SourceError(f"{folder}, line {line} of the files: {problem}") from None
    return problems


def _read_rows(path: Path, exactly: int | None) -> dict[str, tuple[int, list[float]]]:
    """Line and numbers of each row of a file, by its label."""
    rows: dict[str, tuple[int, list[float]]] = {}
    try:
        with open_regular_text(path, newline="") as file:
            lines = csv.reader(file)
            width = len(next(lines, []))
            for fields in lines:
                if not fields:
                    continue
                where = f"{path}, line {lines.line_num}"
                try:
                    numbers = [float(field) for field in fields[1:]]
                except ValueError as problem:
                    raise SourceError(f"{where}: expected numbers ({reason(problem)}).") from None
                if not numbers or (exactly is not None and len(numbers) != exactly):
                    raise SourceError(f"{where}: expected a label and {exactly or 'some'} numbers, got {len(numbers)}.")
                if len(fields) != width:  # as a comma for the decimal point makes it
                    raise SourceError(f"{where}: expected {width} columns as in the header, got {len(fields)}.")
                if fields[0] in rows:
                    raise SourceError(f"{where}: there are two rows {short(fields[0])}.")
                rows[fields[0]] = lines.line_num, numbers
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise SourceError(
            f"{path} cannot be read ({reason(problem)}). The option csv is the folder with {', '.join(_FILES)}."
        ) from None
    if not rows:
        raise SourceError(f"{path}: expected rows below the header, got none.")
    return rows


def _check_parameters(parameters: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Checked weights, instances and optimum."""
    try:
        weights, instances, xopt = (
            as_vector(parameters[key], f"{who}: {key}") for key in ("weights", "instances", "xopt")
        )
    except KeyError as missing:
        raise InvalidInputError(f"{who} has no {missing}; it was not drawn by 'ma-bbob'.") from None
    if weights.size != 24 or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise InvalidInputError(f"{who}: weights must be 24 numbers of at least 0, and not all 0.")
    if instances.size != 24 or not (np.isfinite(instances).all() and (instances == np.floor(instances)).all()):
        raise InvalidInputError(f"{who}: instances must be 24 whole numbers.")
    if instances.min() < 1 or instances.max() > 200_000:
        raise InvalidInputError(f"{who}: instances must lie between 1 and 200000.")
    if xopt.size < 2 or not np.isfinite(xopt).all():
        raise InvalidInputError(f"{who}: xopt must be at least 2 finite numbers.")
    return {"weights": weights.tolist(), "instances": instances.astype(int).tolist(), "xopt": xopt.tolist()}


def _read_folder(value: object, what: str) -> str:
    if not isinstance(value, str | Path) or not str(value):
        raise InvalidInputError(f"{what} must be the folder with {', '.join(_FILES)}, got {value!r}.")
    return str(value)


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """ma-bbob: affine combinations of BBOB functions; options dimension, csv (folder of published problems)."""
    if name != MaBbobSuite.name:
        return None
    suite = MaBbobSuite(
        **read_options(options, {"dimension": whole_number(2, _MOST_DIMENSIONS), "csv": _read_folder}, _WHO)
    )
    require("ioh", extra="ioh", who=_WHO)
    return suite
