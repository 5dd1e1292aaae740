"""Correlations between the means of configurations: similar parameters, similar means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.spatial.distance import pdist, squareform

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.integrations.optuna_sampler.study_values import Configuration

_Numeric: TypeAlias = FloatDistribution | IntDistribution

# Distances over which means are similar, where the whole range of a parameter is 1.
_LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6)
# Two configurations say too little about lengths, and three hardly more.
_FEWEST = 4


def parameter_correlations(configurations: Sequence[Configuration]) -> list[FloatArray]:
    """Correlations that configurations may have; none if they are few, or have no numeric parameter."""
    names = sorted({name for configuration in configurations for name in configuration.parameters})
    numeric = [name for name in names if _is_numeric(configurations, name)]
    if len(configurations) < _FEWEST or not numeric:
        return []
    coordinates = [(_numbers if name in numeric else _choices)(configurations, name) for name in names]
    distances = squareform(pdist(np.hstack(coordinates)))
    return [_matern(distances / length) for length in _LENGTHS]


def _matern(distances: FloatArray) -> FloatArray:
    """Matérn correlation with smoothness 5/2."""
    scaled = np.sqrt(5) * distances
    return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)


def _is_numeric(configurations: Sequence[Configuration], name: str) -> bool:
    """Whether a parameter is a number wherever it is there."""
    kinds = [one.distributions[name] for one in configurations if name in one.parameters]
    return all(isinstance(kind, _Numeric) for kind in kinds)


def _numbers(configurations: Sequence[Configuration], name: str) -> FloatArray:
    """Coordinates of a numeric parameter; one that is missing is a distance of 0.87 to 1 from all others."""
    kinds = [kind for one in configurations if isinstance(kind := one.distributions.get(name), _Numeric)]
    # Ranges may differ between trials.
    low, high = min(kind.low for kind in kinds), max(kind.high for kind in kinds)
    there = np.array([name in one.parameters for one in configurations])
    values = np.array([one.parameters.get(name, low) for one in configurations], dtype=np.float64)
    if all(kind.log for kind in kinds):
        values, low, high = np.log(values), np.log(low), np.log(high)
    places = (values - low) / (high - low) if high > low else np.zeros(len(values))
    return np.column_stack([np.where(there, places, 0.5), np.sqrt(0.75) * ~there])


def _choices(configurations: Sequence[Configuration], name: str) -> FloatArray:
    """Coordinates of a choice: any two are a distance of 1 apart, and to be missing is one more choice."""
    keys = [repr(one.parameters[name]) if name in one.parameters else "" for one in configurations]
    return (np.array(keys)[:, None] == np.unique(keys)) / np.sqrt(2)
