"""Races with known truth, performed once by their rules and recorded, to be replayed under any schedule.

What a race decides does not depend on when its runs end, under either schedule, so one recording serves all of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from polarbear_plugins import RaceSettings, Trajectory
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.plugins.synthetic import draw_log_ratings, pareto_set, utilities
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.rules import decide, observe, plan
from polarbear_plugins.racing.state import Order, RaceState, start_race

_STEP = 1e4  # best values never increase: each timepoint lies this much below the previous one, whatever the noise
#: Between the noise at neighbouring timepoints of a run, as in real ones.
_CORRELATION = 0.9

#: Seconds of a run in relation to its algorithm and its quality, each with a factor of 30 between algorithms but
#: the first.
DURATIONS = ("even", "heavy tails", "slow are good", "slow are bad", "good runs slow", "bad runs slow")


@dataclass(frozen=True)
class Truth:
    """What is drawn before a race: ratings ``[t, algorithm]``, noise and values ``[instance, t, algorithm]``."""

    seed: int
    log_ratings: np.ndarray
    noise: np.ndarray
    values: np.ndarray

    @classmethod
    def drawn(cls, seed: int, algorithms: int, timepoints: int, instances: int, spread: float = 1.0) -> Truth:
        """Draw ratings from the Gaussian process of the paper's synthetic examples, times ``spread``, and all runs."""
        logs = spread * draw_log_ratings(algorithms, timepoints, seed)
        rng = np.random.default_rng([seed, 1])
        drawn = utilities(np.tile(logs.T, (instances, 1, 1)), _CORRELATION, rng).transpose(0, 2, 1)
        steps = _STEP * np.arange(1, timepoints + 1)[:, None]
        return cls(seed, logs, drawn - logs, -(steps + np.clip(drawn, -_STEP / 2, _STEP / 2)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the algorithms, in the order of the columns."""
        return tuple(f"a{place}" for place in range(self.log_ratings.shape[1]))

    def run(self, order: Order) -> Trajectory:
        """The run that is ordered."""
        steps, column = int(order.until), self.names.index(order.algorithm)
        return Trajectory(
            algorithm=order.algorithm,
            instance=f"i{order.instance}",
            seed=0,
            times=np.arange(1.0, steps + 1),
            best=self.values[order.instance, :steps, column],
            horizon=order.until,
        )

    def wrong(self, state: RaceState) -> tuple[int, int]:
        """How many algorithms were eliminated that none dominates in truth, and of how many."""
        true, kept = pareto_set(self.log_ratings), np.isin(self.names, state.pareto_set)
        return int((true & ~kept).sum()), int(true.sum())

    def seconds(self, kind: str, mean: float) -> np.ndarray:
        """Seconds ``[instance, algorithm]`` of a run in full, of one of the kinds of ``DURATIONS``."""
        count, n = self.values.shape[0], self.values.shape[2]
        rng = np.random.default_rng([self.seed, 2])
        noise = rng.standard_normal((count, n))
        factors = 30.0 ** np.linspace(0, 1, n)
        place = rng.permutation(n)
        by_quality = np.argsort(np.argsort(self.log_ratings.mean(axis=0)))
        # How well a run did for its algorithm, as a standard normal number.
        fortune = norm.ppf(rankdata(self.noise.mean(axis=1), axis=0) / (count + 1))
        drawn = {
            "even": lambda: np.exp(0.2 * noise),
            "heavy tails": lambda: factors[place] * np.exp(0.5 * noise),
            "slow are good": lambda: factors[by_quality] * np.exp(0.5 * noise),
            "slow are bad": lambda: factors[n - 1 - by_quality] * np.exp(0.5 * noise),
            "good runs slow": lambda: factors[place] * np.exp(fortune),
            "bad runs slow": lambda: factors[place] * np.exp(-fortune),
        }[kind]()
        return mean * drawn / drawn.mean()


@dataclass(frozen=True)
class RecordedRound:
    """A round: the state before it, its runs, and the seconds that its inference and its decision took."""

    state: RaceState
    orders: Sequence[Order]
    seconds: float


@dataclass(frozen=True)
class RecordedRace:
    """A race from its first plan to its end, and how many instances there were for it."""

    instances: int
    rounds: Sequence[RecordedRound]
    final: RaceState


def settings_of(seed: int, **changes: Any) -> RaceSettings:
    """Default settings, with as many draws as an alpha of 0.99 needs."""
    return RaceSettings(**{"seed": seed, "draws": 1000, **changes})


def look(state: RaceState) -> RaceState:
    """State after the inference and the decision of a round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        return decide(state, infer(state, len(state.rounds) + 1))


def perform(truth: Truth, settings: RaceSettings) -> RecordedRace:
    """Race until every pair is settled or there are no more instances."""
    state = start_race(truth.names, np.arange(1, truth.values.shape[1] + 1), settings)
    rounds = []
    while orders := plan(state, len(truth.values)).orders:
        observed = observe(state, map(truth.run, orders))
        began = time.perf_counter()
        after = look(observed)
        rounds.append(RecordedRound(state, orders, time.perf_counter() - began))
        state = after
    return RecordedRace(len(truth.values), rounds, state)
