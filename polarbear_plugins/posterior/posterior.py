"""The posterior of ratings over time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.display.html import html_table, text
from polarbear_plugins.display.text import few_places
from polarbear_plugins.errors import SourceError, short
from polarbear_plugins.extras import require
from polarbear_plugins.files import NUMBERS, TEXT, Arrays, read_arrays, write_arrays
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.trajectories.timepoints import as_timepoints

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = 1
#: The arrays of a posterior in a file, beside those of hyperparameters.
ARRAYS: Arrays = {"about": TEXT, "timepoints": (NUMBERS, 1), "log_ratings": (NUMBERS, 3), "observed": ("b", 2)}
# Diagnostics that are a number, or None where they do not apply.
_NUMBERS = ("k_hat", "effective_draws", "moves", "acceptance", "memory", "r_hat", "divergences")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """How a posterior was computed, and how far it can be trusted.

    Attributes
    ----------
    engine, route
        Engine, and the route it took.
    good
        Whether the draws are good enough to decide on; if not, ``problems`` says what is wrong.
    k_hat
        Pareto shape of the importance weights, the worst over timepoints: up to 0.5 is fine, above 0.7 is not.  Where
        moves follow, it does not matter.
    effective_draws
        Number of independent draws that the draws are worth, the lowest over timepoints.
    moves, acceptance, memory
        Markov moves where importance sampling does not suffice: their number, the share accepted, and how strongly a
        draw still correlates with where its moves began.
    r_hat, divergences
        For engines that run chains.
    dependence
        Factor on the evidence at each timepoint because the rankings of a run repeat over time; 1 where they do not.
    """

    engine: str
    route: str
    good: bool
    problems: tuple[str, ...] = ()
    k_hat: float | None = None
    effective_draws: float | None = None
    moves: int = 0
    acceptance: float | None = None
    memory: float | None = None
    r_hat: float | None = None
    divergences: int | None = None
    dependence: tuple[float, ...] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Diagnostics:
        """Diagnostics from the data that ``dataclasses.asdict`` made of them; fields of later versions are ignored.

        :raises ValueError: a field has a value that no posterior writes.
        """
        stored: dict[str, Any] = {known.name: data[known.name] for known in fields(cls) if known.name in data}
        stored |= {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
        texts = stored["engine"], stored["route"], *stored.get("problems", ())
        numbers = *(stored.get(name) for name in _NUMBERS), *(stored.get("dependence") or ())
        if not (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(number, int | float | None) and not isinstance(number, bool) for number in numbers)
            and isinstance(stored["good"], bool)
        ):
            raise ValueError("the diagnostics have values that no posterior writes")
        return cls(**stored)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Posterior:
    """Draws from the posterior of the ratings.  Made by :func:`polarbear_plugins.fit`.

    Attributes
    ----------
    log_ratings
        ``log_ratings[draw, timepoint, algorithm]``: logarithm of the probability of being best.
    joint
        Whether the draws are joint over timepoints, as under the temporal priors.  Under a Dirichlet prior
        timepoints are independent, and nothing can be said about all of them at once.
    hyperparameters
        Draws of the prior's parameters, by name.
    likelihood
        What the ratings were inferred from: ``rankings`` or ``first-places``.
    check
        Whether the rankings look as the model says; ``None`` if it was not checked.
    groups
        What groups of instances mean for it: whether the ratings are those in a new group.  ``None`` without groups.
    observed
        ``observed[timepoint, algorithm]``: whether an algorithm was ever compared there.  Where it was not, its rating
        is only the prior: nothing is decided or advised because of it.
    state
        Starting point for a later ``fit(start=...)``; not saved.
    """

    algorithms: tuple[str, ...]
    timepoints: FloatArray
    log_ratings: FloatArray
    prior: str
    joint: bool
    diagnostics: Diagnostics
    hyperparameters: Mapping[str, FloatArray] = field(default_factory=dict)
    likelihood: str = "rankings"
    check: ModelCheck | None = None
    groups: GroupEffect | None = None
    observed: BoolArray = field(default_factory=lambda: np.ones((0, 0), dtype=bool))
    state: Any = None

    def __post_init__(self) -> None:
        if not self.observed.size:
            object.__setattr__(self, "observed", np.ones(self.log_ratings.shape[1:], dtype=bool))

    @property
    def mean_ratings(self) -> FloatArray:
        """``mean_ratings[timepoint, algorithm]``: posterior mean, ``nan`` where nothing was observed."""
        return np.where(self.observed, self.ratings.mean(axis=0), np.nan)

    @property
    def ratings(self) -> FloatArray:
        """``ratings[draw, timepoint, algorithm]``: the probability of being best."""
        return np.exp(self.log_ratings)

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.log_ratings)

    def summary(self, probability: float = 0.95) -> pd.DataFrame:
        """Mean, standard deviation and central interval of each rating: a row for each timepoint and algorithm.

        Missing where an algorithm was never observed.
        """
        import pandas as pd

        ratings = self.ratings
        low, high = np.quantile(ratings, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
        index = pd.MultiIndex.from_product([self.timepoints, self.algorithms], names=["timepoint", "algorithm"])
        columns = {"mean": ratings.mean(axis=0), "sd": ratings.std(axis=0), "low": low, "high": high}
        columns = {name: np.where(self.observed, values, np.nan) for name, values in columns.items()}
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)

    def to_pandas(self) -> pd.DataFrame:
        """Table of every draw in long form; :meth:`summary` is shorter.

        Columns: ``draw``, ``timepoint``, ``algorithm``, ``rating`` and ``log_rating``, which keeps tiny ratings apart.
        4,000 draws of 7 algorithms at 200 timepoints are 5.6 million rows, or 185 MB.
        """
        axes = {"draw": np.arange(self.draws), "timepoint": self.timepoints, "algorithm": self.algorithms}
        return long_frame(axes, {"rating": self.ratings, "log_rating": self.log_ratings})

    def to_arviz(self) -> Any:
        """Draws as ArviZ inference data, or as a data tree from ArviZ 1 on (needs the extra ``pymc``).

        The group ``posterior`` has one chain, the variable ``rating`` over ``timepoint`` and ``algorithm``, and one for
        each hyperparameter of the prior.
        """
        arviz = require("arviz", extra="pymc", who="Posterior.to_arviz")
        data = {"rating": self.ratings[None], **{name: draws[None] for name, draws in self.hyperparameters.items()}}
        about = {
            "coords": {"timepoint": self.timepoints, "algorithm": list(self.algorithms)},
            "dims": {"rating": ["timepoint", "algorithm"]},
        }
        if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before 1
            return arviz.from_dict(posterior=data, **about)
        return arviz.from_dict({"posterior": data}, **about)

    def arrays(self) -> dict[str, Any]:
        """Arrays for a file, from which :meth:`from_arrays` restores the posterior."""
        about = {
            "format": _FORMAT,
            "algorithms": self.algorithms,
            "prior": self.prior,
            "joint": self.joint,
            "diagnostics": asdict(self.diagnostics),
            "hyperparameters": list(self.hyperparameters),
            "likelihood": self.likelihood,
        }
        if self.check is not None:
            about["check"] = self.check.to_json()
        if self.groups is not None:
            about["groups"] = self.groups.to_json()
        arrays: dict[str, Any] = {f"hyperparameter_{name}": draws for name, draws in self.hyperparameters.items()}
        arrays |= {"timepoints": self.timepoints, "log_ratings": self.log_ratings}
        arrays |= {} if self.observed.all() else {"observed": self.observed}
        return {"about": np.array(json.dumps(about)), **arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Posterior:
        """Posterior from its :meth:`arrays`.

        :raises SourceError: they have another format than this version reads.
        """
        about = json.loads(str(arrays["about"]))
        if about["format"] != _FORMAT:
            raise SourceError(f"The posterior has the format {short(about['format'])}; this version reads {_FORMAT}.")
        timepoints, log_ratings = (np.asarray(arrays[name], dtype=np.float64) for name in ("timepoints", "log_ratings"))
        algorithms: Sequence[str] = about["algorithms"]
        if log_ratings.shape[1:] != (timepoints.size, len(algorithms)) or not log_ratings.size:
            raise ValueError(f"the draws have the shape {log_ratings.shape}")
        as_timepoints(timepoints)
        observed = np.asarray(arrays["observed"]) if "observed" in arrays else np.ones(log_ratings.shape[1:], bool)
        if observed.dtype != bool or observed.shape != log_ratings.shape[1:]:
            raise ValueError(f"observed: expected true or false for each rating, got {observed.dtype} {observed.shape}")
        # Ratings are probabilities of being best: not nan, and not more than 1.
        if not (np.isfinite(log_ratings) & (log_ratings < 1e-6)).all() or not np.allclose(
            np.exp(log_ratings).sum(axis=2), 1.0, atol=1e-6
        ):
            raise ValueError("the ratings of a draw do not add up to 1")
        names = tuple(map(str, algorithms))
        check, groups = about.get("check"), about.get("groups")
        return cls(
            algorithms=names,
            timepoints=timepoints,
            log_ratings=log_ratings,
            prior=str(about["prior"]),
            joint=bool(about["joint"]),
            diagnostics=Diagnostics.from_json(about["diagnostics"]),
            hyperparameters={name: arrays[f"hyperparameter_{name}"] for name in about["hyperparameters"]},
            likelihood=str(about.get("likelihood", "rankings")),
            check=None if check is None else ModelCheck.from_json(check, names, timepoints),
            groups=None if groups is None else GroupEffect.from_json(groups, timepoints.size),
            observed=observed,
        )

    def save(self, path: str | Path) -> Path:
        """Write the posterior to a file (numpy's ``.npz``, without pickle); returns its path."""
        return write_arrays(path, self.arrays())

    @classmethod
    def load(cls, path: str | Path) -> Posterior:
        """Read a posterior that :meth:`save` wrote."""
        return read_arrays(path, "a saved posterior", cls.from_arrays, ARRAYS)

    def __repr__(self) -> str:
        return (
            f"Posterior({self.draws} draws, {len(self.algorithms)} algorithms, {self.timepoints.size} timepoints, "
            f"prior {self.prior!r}, {'good' if self.diagnostics.good else 'NOT GOOD ENOUGH'})"
        )

    def _repr_html_(self) -> str:
        places = few_places(self.timepoints.size)
        ratings = np.exp(self.log_ratings[:, places])
        mean, (low, high) = ratings.mean(axis=0), np.quantile(ratings, [0.05, 0.95], axis=0)
        seen = self.observed[places]
        rows = [
            [
                name,
                *(
                    f"{mean[t, i]:.2f} ({low[t, i]:.2f} to {high[t, i]:.2f})" if seen[t, i] else "-"
                    for t in range(len(places))
                ),
            ]
            for i, name in enumerate(self.algorithms)
        ]
        columns = ("algorithm", *(f">at {self.timepoints[place]:,.5g}" for place in places))
        return f"<p>{text(self)}</p>{html_table(columns, rows, 'Rating: mean and 90 % interval')}"
