"""Distributions of numbers that can be written as text: the priors of GP-BBOB."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import NormalDist

from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, short

_STANDARD = NormalDist()
_KINDS = ("normal", "lognormal", "cauchy", "uniform", "integers")
_PATTERN = re.compile(r"\s*(\w+)\s*\(([^(),]+),([^(),]+)\)\s*(?:\[([^][,]+),([^][,]+)\])?\s*")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of one number, possibly truncated (not clipped) to an interval.

    Parameters
    ----------
    kind
        ``normal`` (mean, standard deviation), ``lognormal`` (the same of the logarithm), ``cauchy`` (location, scale),
        ``uniform`` (from, to), ``integers`` (first, last, both included) or ``constant`` (the same number twice).
    first, second
        The two numbers of the kind.
    lower, upper
        Bounds of the truncation.

    Examples
    --------
    >>> distribution = Distribution("lognormal", 1.1, 0.5, 2, 24)
    >>> distribution
    lognormal(1.1, 0.5)[2, 24]
    >>> round(distribution.quantile(0.5), 6)
    3.427346
    >>> round(distribution.cdf(3.427346), 6)
    0.5
    """

    kind: str
    first: float
    second: float
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        for name in ("first", "second", "lower", "upper"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.kind in ("uniform", "integers", "constant"):
            if self.is_truncated:
                raise InvalidInputError(f"{self}: only normal, lognormal and cauchy can be truncated.")
            if self.first > self.second or (self.first == self.second) != (self.kind == "constant"):
                raise InvalidInputError(f"{self.kind}: the second number must be above the first.")
            if self.kind == "integers" and not (self.first.is_integer() and self.second.is_integer()):
                raise InvalidInputError(f"{self}: expected two whole numbers.")
            return
        if self.kind not in _KINDS:
            raise InvalidInputError(f"{self}: there is no such distribution; there are {', '.join(_KINDS)}.")
        if self.second <= 0:
            raise InvalidInputError(f"{self}: the second number must be positive.")
        if not self.lower < self.upper or self._cdf(self.upper) - self._cdf(self.lower) < 1e-9:
            raise InvalidInputError(
                f"{self}: there is almost no probability between {self.lower:g} and {self.upper:g}."
            )

    @property
    def is_truncated(self) -> bool:
        """Whether there is a lower or upper bound."""
        return self.lower > -math.inf or self.upper < math.inf

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible value, or bounds that are not attained."""
        if self.kind in ("uniform", "integers", "constant"):
            return self.first, self.second
        return max(self.lower, 0.0) if self.kind == "lognormal" else self.lower, self.upper

    def cdf(self, x: float) -> float:
        """Probability of at most ``x``."""
        below, above = self._cdf(self.lower), self._cdf(self.upper)
        return min(max((self._cdf(x) - below) / (above - below), 0.0), 1.0)

    def quantile(self, u: float) -> float:
        """Smallest number ``x`` with a probability of at least ``u`` of at most ``x``."""
        if self.kind == "constant":
            return self.first
        if self.kind == "uniform":
            return self.first + u * (self.second - self.first)
        if self.kind == "integers":
            count = self.second - self.first + 1
            return self.first + min(max(math.ceil(u * count) - 1, 0), count - 1)
        below, above = self._cdf(self.lower), self._cdf(self.upper)
        inside = min(max(below + u * (above - below), 1e-300), 1 - 2**-53)
        if self.kind == "cauchy":
            value = self.first + self.second * math.tan(math.pi * (inside - 0.5))
        else:
            value = self.first + self.second * _STANDARD.inv_cdf(inside)
            value = math.exp(value) if self.kind == "lognormal" else value
        return min(max(value, self.lower), self.upper)

    def _cdf(self, x: float) -> float:
        """Probability of at most ``x`` without truncation."""
        if self.kind == "constant":
            return float(x >= self.first)
        if self.kind == "uniform":
            return min(max((x - self.first) / (self.second - self.first), 0.0), 1.0)
        if self.kind == "integers":
            within = min(max(x, self.first - 1), self.second)
            return (math.floor(within) - self.first + 1) / (self.second - self.first + 1)
        if self.kind == "cauchy":
            return 0.5 + math.atan((x - self.first) / self.second) / math.pi
        if self.kind == "lognormal":
            x = math.log(x) if x > 0 else -math.inf
        return _STANDARD.cdf((x - self.first) / self.second)

    def __repr__(self) -> str:
        if self.kind == "constant":
            return _text(self.first)
        limits = f"[{_text(self.lower)}, {_text(self.upper)}]" if self.is_truncated else ""
        return f"{self.kind}({_text(self.first)}, {_text(self.second)}){limits}"


def as_distribution(value: object, what: str) -> Distribution:
    """Read a distribution: a number is a constant, text names the kind.

    >>> as_distribution("normal(240, 30)[2, 320]", "dimension").support
    (2.0, 320.0)
    >>> as_distribution("20", "dimension").quantile(0.9)
    20.0
    """
    if isinstance(value, Distribution):
        return value
    if not isinstance(value, str):
        number = as_number(value, what)
        return Distribution("constant", number, number)
    found = _PATTERN.fullmatch(value)
    try:
        texts = [value, value] if found is None else [text for text in found.groups()[1:] if text is not None]
        numbers = [float(text) for text in texts]
    except ValueError:
        numbers = [math.nan]
    if any(map(math.isnan, numbers)) or any(map(math.isinf, numbers[:2])):
        raise InvalidInputError(
            f"{what}: expected a number or a distribution such as lognormal(2, 1) or normal(240, 30)[2, 320], "
            f"got {short(value)}."
        )
    try:
        return Distribution("constant" if found is None else found[1], *numbers)
    except InvalidInputError as problem:
        raise InvalidInputError(f"{what}: {problem}") from None


def _text(number: float) -> str:
    return repr(number).removesuffix(".0")
