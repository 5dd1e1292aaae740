"""Paired tests on differences over instances: test, interval, effect, and whether the assumptions hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.planning.critical_values import EXACT_RANKS, sign_critical, signed_rank_critical
from polarbear_plugins.planning.powers import PairedTest
from polarbear_plugins.planning.sample_size import as_probability

Direction = Literal["two-sided", "less", "greater"]

_RESAMPLES = 999
_SHAPIRO = (3, 5000)  # numbers of values for the Shapiro-Wilk test


@dataclass(frozen=True, slots=True, kw_only=True)
class Normality:
    """How close differences are to a normal distribution.

    Attributes
    ----------
    p
        Of the Shapiro-Wilk test; ``None`` for fewer than 3 or more than 5,000 values.
    correlation
        Of the differences with normal quantiles: how straight their quantile plot is.
    mean_correlation
        The same for bootstrapped means, whose normality the t test assumes (Algorithm 3); without a test, since the
        number of resamples is arbitrary.
    """

    p: float | None
    correlation: float
    mean_correlation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Result of a paired test of two algorithms; differences are the second minus the first.

    Attributes
    ----------
    estimate
        Mean difference (t), pseudomedian of the differences that are not 0 (wilcoxon) or median (sign).
    low, high
        Its two-sided interval; with several comparisons all intervals hold at once (Bonferroni).
    effect
        Mean difference in standard deviations; ``None`` if the differences do not vary.
    p, p_corrected
        Of the test, before and after Holm's correction; ``None`` if a test is not possible.
    significant
        Whether ``p_corrected`` is at most ``alpha``.
    note
        Remarks.
    """

    one: str
    other: str
    test: PairedTest
    instances: int
    estimate: float
    low: float
    high: float
    effect: float | None
    p: float | None
    p_corrected: float | None = None
    significant: bool = False
    normality: Normality | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return asdict(self)


def compare_pairs(
    differences: dict[tuple[str, str], FloatArray],
    test: PairedTest = "t",
    alternative: Direction = "two-sided",
    alpha: float = 0.05,
    seed: int = 0,
) -> tuple[Comparison, ...]:
    """Test the differences of each pair over the instances, with Holm's correction for the number of pairs.

    Parameters
    ----------
    alternative
        ``"two-sided"``; ``"less"``: the second algorithm has the lower values; ``"greater"``: the higher.

    Examples
    --------
    >>> [found] = compare_pairs({("csa", "msr"): np.array([0.3, 0.1, 0.4, 0.1, 0.5])})
    >>> f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f}), p = {found.p:.3f}"
    '0.28 (0.06 to 0.50), p = 0.025'
    """
    level = as_probability(alpha, "alpha") / max(len(differences), 1)
    tested = [
        judge_differences(sample, test, alternative, level, names=pair, seed=seed)
        for pair, sample in differences.items()
    ]
    # A pair that cannot be tested still counts in the correction.
    adjusted = holm_correction([1.0 if found.p is None else found.p for found in tested])
    return tuple(
        found if found.p is None else replace(found, p_corrected=p, significant=p <= alpha)
        for found, p in zip(tested, adjusted, strict=True)
    )


def judge_differences(
    differences: ArrayLike,
    test: PairedTest = "t",
    alternative: Direction = "two-sided",
    alpha: float = 0.05,
    *,
    names: tuple[str, str] = ("first", "second"),
    seed: int = 0,
) -> Comparison:
    """Test whether the differences of two algorithms over instances are zero; see :func:`compare_pairs`."""
    as_choice(test, PairedTest, "test")
    as_choice(alternative, Direction, "alternative")
    as_probability(alpha, "alpha")
    sample = as_vector(differences, f"differences of {names[0]!r} and {names[1]!r}")
    if sample.size < 2 or not np.isfinite(sample).all():
        raise InvalidInputError(
            f"differences of {names[0]!r} and {names[1]!r}: expected at least two finite numbers, one per instance, "
            f"got {sample.size}{'' if np.isfinite(sample).all() else ', not all finite'}."
        )
    deviation = float(sample.std(ddof=1))
    constant = bool(np.ptp(sample) <= 1e-12 * np.abs(sample).max())
    p, notes = None, []
    if not sample.any():
        notes.append("no difference on any instance: nothing to test")
    elif constant and test == "t":
        notes.append("the same difference on every instance: a t test needs variation, the sign test does not")
    else:
        p = _p_value(sample, test, alternative)
    estimate, low, high, has_level = _interval(sample, test, alpha)
    if not has_level:
        notes.append(f"too few instances for an interval of {1 - alpha:.4g}: it spans all differences")
    notes += _note_on_zeros(sample, test)
    return Comparison(
        one=names[0],
        other=names[1],
        test=test,
        instances=sample.size,
        estimate=estimate,
        low=low,
        high=high,
        effect=None if constant else float(sample.mean()) / deviation,
        p=p,
        p_corrected=p,
        significant=p is not None and p <= alpha,
        normality=None if constant else normality_of(sample, seed),
        note="; ".join(notes),
    )


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """P values after Holm's correction for several tests.

    >>> holm_correction([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = most
    return adjusted


def normality_of(values: ArrayLike, seed: int = 0) -> Normality:
    """Normality of a sample, and of its mean by bootstrap.

    >>> normality_of([1.0, 2.0, 3.0, 4.0, 5.0]).p > 0.5
    True
    """
    from scipy.stats import shapiro

    sample = as_vector(values, "values")
    if sample.size < 2 or np.ptp(sample) == 0:
        raise InvalidInputError("values: normality needs at least two values that differ.")
    rng = np.random.default_rng(as_whole_number(seed, "seed", at_least=0))
    means = sample[rng.integers(sample.size, size=(_RESAMPLES, sample.size))].mean(axis=1)
    low, high = _SHAPIRO
    return Normality(
        p=float(shapiro(sample).pvalue) if low <= sample.size <= high else None,
        correlation=_normal_plot_correlation(sample),
        mean_correlation=_normal_plot_correlation(means),
    )


def _normal_plot_correlation(values: FloatArray) -> float:
    """Correlation of ordered values with the normal quantiles at (k - 3/8) / (n + 1/4)."""
    from scipy.special import ndtri

    quantiles = ndtri((np.arange(1, values.size + 1) - 0.375) / (values.size + 0.25))
    return float(np.corrcoef(np.sort(values), quantiles)[0, 1])


def _p_value(sample: FloatArray, test: PairedTest, alternative: Direction) -> float:
    from scipy import stats

    if test == "t":
        return float(stats.ttest_1samp(sample, 0.0, alternative=alternative).pvalue)
    if test == "sign":
        wins, losses = int((sample > 0).sum()), int((sample < 0).sum())
        return float(stats.binomtest(wins, wins + losses, alternative=alternative).pvalue)
    away = _away_from_zero(sample)  # with zeros scipy would switch to the normal approximation
    exact = np.unique(np.abs(away)).size == away.size <= EXACT_RANKS
    with warnings.catch_warnings():
        # scipy 1.13 warns below ten differences; where there are ties, there is no other choice.
        warnings.filterwarnings("ignore", "Sample size too small for normal approximation", UserWarning)
        found = stats.wilcoxon(
            away, alternative=alternative, method="exact" if exact else "approx", correction=True, axis=None
        )
    return float(found.pvalue)


def _interval(sample: FloatArray, test: PairedTest, alpha: float) -> tuple[float, float, float, bool]:
    """Estimate, both ends of its interval, and whether the interval has the requested level."""
    if test == "t":
        from scipy.special import stdtrit

        half = stdtrit(sample.size - 1, 1 - alpha / 2) * sample.std(ddof=1) / math.sqrt(sample.size)
        return float(sample.mean()), float(sample.mean() - half), float(sample.mean() + half), True
    if test == "sign":
        ordered, cut = np.sort(sample), sign_critical(sample.size, alpha / 2) + 1
    else:
        away = _away_from_zero(sample)
        ordered, cut = _walsh_averages(away), signed_rank_critical(away.size, alpha / 2) + 1
    kept = max(cut, 1)
    return float(np.median(ordered)), float(ordered[kept - 1]), float(ordered[-kept]), cut > 0


def _away_from_zero(sample: FloatArray) -> FloatArray:
    """Differences that Wilcoxon's test ranks and its interval is about; all if there is no other."""
    return sample[sample != 0] if sample.any() else sample


def _note_on_zeros(sample: FloatArray, test: PairedTest) -> list[str]:
    zeros = int((sample == 0).sum())
    if not 0 < zeros < sample.size or test == "t":
        return []
    instances = f"{zeros} instance{'s' if zeros > 1 else ''} without a difference"
    if test == "wilcoxon":
        return [f"{instances} left out, as Wilcoxon did: estimate, interval and test are about the others"]
    return [f"{instances} left out of the test, but not of the median and its interval"]


def _walsh_averages(sample: FloatArray) -> FloatArray:
    """Sorted means of all pairs, each value with itself included; their median is the pseudomedian."""
    one, other = np.triu_indices(sample.size)
    return np.sort((sample[one] + sample[other]) / 2)
