"""Input and output of an inference engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.plackett_luce.subsets import Statistics
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors.base import Prior

LikelihoodName: TypeAlias = Literal["rankings", "first-places"]
Groups: TypeAlias = Literal["auto", "new", "same", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A posterior to compute.

    Attributes
    ----------
    statistics
        Sufficient statistics of the rankings at each timepoint.
    time
        The timepoints, scaled to run from 0 to 1.
    prior
        A Dirichlet or hierarchical Dirichlet prior, or any :class:`TemporalPrior`.
    draws
        Number of draws.
    seed
        Source of all randomness.
    start
        The ``state`` of an earlier posterior, if there is one that fits.
    evidence_shift
        Added to the log-density of the hyperparameters: a function of the factor of a temporal prior.  For a symbolic
        factor it takes as a second argument a function ``log_normal(x, covariance)`` in the same symbols.
    """

    statistics: Statistics
    time: FloatArray
    prior: Prior
    draws: int
    seed: np.random.SeedSequence
    start: Any = None
    evidence_shift: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Draws of ``utilities[draw, timepoint, algorithm]`` (log-ratings up to a constant) and how they were made."""

    utilities: FloatArray
    diagnostics: Diagnostics
    hyperparameters: Mapping[str, FloatArray] = field(default_factory=dict)
    state: Any = None


#: An engine: called with the task and the user's options.
Engine: TypeAlias = Callable[..., Draws]
