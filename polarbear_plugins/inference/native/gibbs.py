"""Gibbs sampling under a Dirichlet prior, which crosses the long tail of an algorithm that never wins in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.quality import (
    correlations,
    distinct_share,
    has_forgotten,
    parallel_chains,
    shortcomings,
    worth_of_rounds,
)
from polarbear_plugins.plackett_luce.likelihood import log_set_sums
from polarbear_plugins.plackett_luce.subsets import Statistics

_MOST_SWEEPS = 200
_SWEEPS = 2  # between two looks at what was forgotten
_MOST_GROUPS = 8
_MOST_NUMBERS = 1 << 21  # arrivals at a time
_CHUNK = 256  # sets at a time


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Draws of ``utilities[draw, algorithm]`` at one timepoint, and how they were made."""

    utilities: FloatArray
    count: int
    memory: float
    effective: float
    problems: tuple[str, ...]


def sample_by_sweeps(
    timepoints: Sequence[Statistics], begin: Sequence[FloatArray], rng: np.random.Generator
) -> list[Sweeps]:
    """Sweep timepoints with the same sets until they have forgotten where they began."""
    draws = len(begin[0])
    chains = parallel_chains(draws)
    size = max(1, _MOST_NUMBERS // (chains * max(1, len(timepoints[0].sets[0][1]))))
    if len(timepoints) > size:
        parts = range(0, len(timepoints), size)
        done = [sample_by_sweeps(timepoints[at : at + size], begin[at : at + size], rng) for at in parts]
        return [sweeps for part in done for sweeps in part]
    joint = _Joint(timepoints, chains)
    first = np.concatenate([each[:chains] for each in begin])
    state, count, left = first, 0, np.ones(len(timepoints))
    while count < _MOST_SWEEPS and not all(has_forgotten(each, chains) for each in left):
        state, count = joint.sweeps(state, _SWEEPS, rng), count + _SWEEPS
        left = np.array(
            [correlations(*pair).max() for pair in zip(joint.split(first), joint.split(state), strict=True)]
        )
    # As many again: what is left of a start that was far from the posterior is then negligible, too.
    rounds, gap = [joint.sweeps(state, count, rng)], -(-count // 2)
    count *= 2
    while chains * len(rounds) < draws:
        rounds.append(joint.sweeps(rounds[-1], gap, rng))
        count += gap
    kept = zip(*(joint.split(state) for state in rounds), strict=True)
    return [_result(list(states), draws, count, float(memory)) for states, memory in zip(kept, left, strict=True)]


def _result(states: list[FloatArray], draws: int, count: int, memory: float) -> Sweeps:
    utilities, effective = np.concatenate(states)[:draws], min(worth_of_rounds(states), float(draws))
    problems = shortcomings(
        draws,
        distinct=distinct_share(utilities),
        effective=effective,
        acceptance=None,
        left=memory,
        chains=len(states[0]),
        moves=count,
    )
    return Sweeps(utilities, count, memory, effective, problems)


class _Joint:
    """Timepoints with the same sets; their statistics include the prior, whose set of all algorithms is the last.

    The state is ``[timepoint * chain, algorithm]``.
    """

    def __init__(self, timepoints: Sequence[Statistics], chains: int) -> None:
        self._members = timepoints[0].sets[0][0][:-1].astype(np.float64, copy=False)
        self._timepoints = len(timepoints)

        def repeated(rows: FloatArray) -> FloatArray:
            return np.repeat(rows, chains, axis=0)

        counts = np.array([statistics.sets[0][1] for statistics in timepoints])
        shape = np.array([statistics.wins[0] for statistics in timepoints])
        self._counts, self._total, self._shape = repeated(counts[:, :-1]), repeated(counts[:, -1:]), repeated(shape)
        groups = _groups(self._members, counts[:, :-1], shape)
        self._groups = [(group, inside, repeated(power)) for group, inside, power in groups]

    def split(self, state: FloatArray) -> list[FloatArray]:
        """State of each timepoint."""
        return np.split(state, self._timepoints)

    def sweeps(self, state: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Sweep several times."""
        for _ in range(count):
            state = self.sweep(state, rng)
        return state

    def sweep(self, utilities: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One exact sweep over latent gamma variables.

        After the arrivals of the sets and the ratings given them, groups of algorithms are scaled together with the
        arrivals of the sets inside them: the common rating of a group that is far behind would change only in small
        steps if ratings moved one by one.  All are logarithms, since ratings under a small alpha are smaller than the
        smallest number.
        """
        members, everything = self._members, np.ones((1, utilities.shape[1]))
        # The prior makes ratings the shares of independent gamma variables; their sum is independent of the shares.
        logs = utilities - log_set_sums(utilities, everything) + _log_gamma(self._total, rng)
        arrivals = _log_gamma(self._counts, rng) - log_set_sums(logs, members)
        logs = _log_gamma(self._shape, rng)
        if len(members):
            logs -= np.logaddexp(0.0, log_set_sums(arrivals, members.T))
        for group, inside, power in self._groups:
            across = members * group
            crossing = ~inside & across.any(axis=1)
            rate = log_set_sums(logs, group[None])
            if crossing.any():
                each = arrivals[:, crossing] + log_set_sums(logs, across[crossing])
                rate = np.logaddexp(rate, log_set_sums(each, np.ones((1, each.shape[1]))))
            scale = _log_gamma(power, rng) - rate
            logs += scale * group
            arrivals[:, inside] -= scale
        return logs - logs.mean(axis=1, keepdims=True)


def _log_gamma(shape: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Logarithms of gamma variables; one of small shape would underflow, its logarithm does not."""
    return np.log(rng.gamma(shape + 1)) + np.log(rng.random(shape.shape)) / shape


def fewest_choices(statistics: Statistics) -> float:
    """How often, at least, an algorithm or a member of a group was chosen before all others, with the prior.

    It is the rate of the longest tail of the posterior: the fewer choices, the less is known of how far behind it is.
    """
    members, counts = statistics.sets[0][0][:-1].astype(np.float64, copy=False), statistics.sets[0][1][:-1]
    powers = _powers(members, counts[None], statistics.wins)[:, 0]
    partial = ~members.all(axis=1)
    return float(min(statistics.wins.min(), powers[partial].min(initial=np.inf)))


def _powers(members: FloatArray, counts: FloatArray, shape: FloatArray) -> FloatArray:
    """How often a member of each set was chosen from a set that is not inside it, ``[set, timepoint]``."""
    powers = members @ shape.T
    for start in range(0, len(members), _CHUNK):  # which sets are inside which would be a large matrix
        part = slice(start, start + _CHUNK)
        inside = (1 - members[part]) @ members.T == 0
        powers[part] -= inside @ counts.T
    return powers


def _groups(
    members: FloatArray, counts: FloatArray, shape: FloatArray
) -> list[tuple[FloatArray, NDArray[np.bool_], FloatArray]]:
    """Observed sets whose common rating is least certain: their members, the sets inside them, how often they won."""
    powers = _powers(members, counts, shape)
    partial = np.flatnonzero(~members.all(axis=1))
    chosen = partial[np.argsort(powers[partial].sum(axis=1), kind="stable")][:_MOST_GROUPS]
    return [(members[k], members @ (1 - members[k]) == 0, powers[k][:, None]) for k in chosen.tolist()]
