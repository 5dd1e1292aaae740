"""What a check of the model found: whether the rankings look as the ratings say they should."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array, as_number
from polarbear_plugins.display.frames import long_frame

if TYPE_CHECKING:
    import pandas as pd

#: The model is called wrong at this level.  Posterior predictive p-values are at most twice as often below a level as
#: uniform ones, and in fact more rarely: see docs/guide/inference.md for the false alarms measured.
LEVEL = 0.02


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference between an observed share and the one that the model says, and where it is.

    ``other`` is the rival in a pair; ``None`` for first places.
    """

    timepoint: float
    algorithm: str
    other: str | None
    observed: float
    modelled: float

    @property
    def size(self) -> float:
        """How far the two are apart."""
        return abs(self.observed - self.modelled)

    def __str__(self) -> str:
        what = "is first on" if self.other is None else f"beats {self.other} on"
        return (
            f"{self.algorithm} {what} {self.observed:.0%} of the instances at {self.timepoint:,.5g}, "
            f"and by the model on {self.modelled:.0%}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ModelCheck:
    """Posterior predictive check of a fit.  Made by :func:`polarbear_plugins.check_model`.

    Attributes
    ----------
    p
        Overall p-value, for first places and pairs at all timepoints together.
    p_first, p_pairs
        At each timepoint: how often rankings from the model would be at least as far from it as those observed, in
        first places and in the most deviating pair.
    observed, modelled
        ``[timepoint, algorithm]``: shares of first places; ``nan`` where an algorithm took no part.
    first_gap, pair_gap
        The largest differences, first places and pairs; ``None`` if there was nothing to compare.
    """

    algorithms: tuple[str, ...]
    timepoints: FloatArray
    p: float
    p_first: FloatArray
    p_pairs: FloatArray
    observed: FloatArray
    modelled: FloatArray
    first_gap: Gap | None
    pair_gap: Gap | None

    @property
    def fits(self) -> bool:
        """Whether the rankings may come from the model; few instances can hardly show that they do not."""
        return self.p > LEVEL

    @property
    def telling_gap(self) -> Gap | None:
        """The largest gap of the kind, first places or pairs, that speaks more against the model."""
        return self.first_gap if self.p_first.min() <= self.p_pairs.min() else self.pair_gap

    def to_pandas(self) -> pd.DataFrame:
        """Shares of first places in long form: ``timepoint``, ``algorithm``, ``observed``, ``modelled``."""
        axes = {"timepoint": self.timepoints, "algorithm": self.algorithms}
        return long_frame(axes, {"observed": self.observed, "modelled": self.modelled})

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict; shares that are not known are null."""
        arrays = ("p_first", "p_pairs", "observed", "modelled")
        found: dict[str, Any] = {"fits": self.fits, "p": self.p}
        found |= {name: _with_nulls(getattr(self, name).tolist()) for name in arrays}
        return found | {
            name: None if gap is None else asdict(gap)
            for name, gap in (("first_gap", self.first_gap), ("pair_gap", self.pair_gap))
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], algorithms: tuple[str, ...], timepoints: FloatArray) -> ModelCheck:
        """Check from the data of :meth:`to_json`.

        :raises ValueError: a field has a value that no check writes.
        """
        shape = (timepoints.size, len(algorithms))
        wanted = {"p_first": shape[:1], "p_pairs": shape[:1], "observed": shape, "modelled": shape}
        arrays = {name: as_array(_with_nans(data[name]), name) for name in wanted}
        for name, expected in wanted.items():
            if arrays[name].shape != expected:
                raise ValueError(f"{name}: expected the shape {expected}, got {arrays[name].shape}")
            known = arrays[name] if name.startswith("p_") else arrays[name][~np.isnan(arrays[name])]
            if not ((known >= 0) & (known <= 1)).all():
                raise ValueError(f"{name}: expected numbers from 0 to 1")
        gaps = [_gap(data[name], algorithms) for name in ("first_gap", "pair_gap")]
        return cls(
            algorithms=algorithms,
            timepoints=timepoints,
            p=as_number(data["p"], "p", at_least=0, at_most=1),
            p_first=arrays["p_first"],
            p_pairs=arrays["p_pairs"],
            observed=arrays["observed"],
            modelled=arrays["modelled"],
            first_gap=gaps[0],
            pair_gap=gaps[1],
        )

    def __str__(self) -> str:
        if self.fits:
            return f"The rankings do not contradict the model (p = {self.p:.2g})."
        gap = self.telling_gap
        where = "" if gap is None else f": {gap}"
        return f"The model does not fit (p = {self.p:.2g}){where}."

    def __repr__(self) -> str:
        return f"ModelCheck({'fits' if self.fits else 'DOES NOT FIT'}, p = {self.p:.2g})"


def _gap(data: Mapping[str, Any] | None, algorithms: tuple[str, ...]) -> Gap | None:
    if data is None:
        return None
    if set(data) != {field.name for field in fields(Gap)}:
        raise ValueError(f"expected a gap, got the fields {sorted(data)}")
    if data["algorithm"] not in algorithms or data["other"] not in (None, *algorithms):
        raise ValueError("a gap names something that is none of the algorithms")
    shares = (as_number(data[name], name, at_least=0, at_most=1) for name in ("observed", "modelled"))
    return Gap(as_number(data["timepoint"], "timepoint"), data["algorithm"], data["other"], *shares)


def _with_nulls(value: Any) -> Any:
    """Lists of numbers with ``None`` for nan, which JSON does not have."""
    if isinstance(value, list):
        return [_with_nulls(each) for each in value]
    return None if value != value else value


def _with_nans(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_nans(each) for each in value]
    return np.nan if value is None else value
