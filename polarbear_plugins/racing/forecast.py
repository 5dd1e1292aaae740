"""How many more instances a race will likely need: simulated from its posterior until every pair is settled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.simulation import Simulations
from polarbear_plugins.racing.state import RaceState

if TYPE_CHECKING:
    import pandas as pd


_CELLS = 400_000  # simulations times pairs times timepoints at most, if no number of simulations is given
_SIMULATIONS = 200, 40  # by default: as a rule, and for large races


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast:
    """Instances, cost and rounds that would settle every pair, beside those there are, in simulations of the race.

    Attributes
    ----------
    instances, costs, rounds
        One number for each simulation; ``inf`` where it takes more than 100 times the instances there are.
    """

    instances: FloatArray
    costs: FloatArray
    rounds: FloatArray

    @property
    def median(self) -> int | None:
        """Median of the instances; here and below ``None`` means more than 100 times those there are."""
        return self.quantile(0.5)

    @property
    def low(self) -> int | None:
        """Lower end of the middle 80 %."""
        return self.quantile(0.1)

    @property
    def high(self) -> int | None:
        """Upper end of the middle 80 %."""
        return self.quantile(0.9)

    @property
    def mean(self) -> float | None:
        """Expected instances; ``None`` if some simulation did not end."""
        mean = float(self.instances.mean())
        return mean if math.isfinite(mean) else None

    def quantile(self, share: float, *, cost: bool = False) -> int | None:
        """Instances, or cost, that this share of the simulations does not exceed."""
        share = as_number(share, "quantile", at_least=0, at_most=1)
        return _quantile(self.costs if cost else self.instances, share)

    def quantile_of_rounds(self, share: float) -> int | None:
        """Rounds that this share of the simulations does not exceed."""
        return _quantile(self.rounds, as_number(share, "quantile", at_least=0, at_most=1))

    def to_pandas(self) -> pd.DataFrame:
        """Table with a row for each ``simulation``: the ``instances`` and the ``cost`` still to come in it."""
        axes = {"simulation": np.arange(self.instances.size)}
        return long_frame(axes, {"instances": self.instances, "cost": self.costs})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of means, quantiles and counts."""
        shares = {"low": 0.1, "median": 0.5, "high": 0.9}
        return {
            "instances": {"mean": self.mean, **{name: self.quantile(share) for name, share in shares.items()}},
            "cost": {name: self.quantile(share, cost=True) for name, share in shares.items()},
            "interval": 0.8,
            "simulations": self.instances.size,
            "unfinished": int(np.isinf(self.instances).sum()),
        }

    def __str__(self) -> str:
        if self.median is None:
            return "more than a hundred times as many instances as there are"
        most = "many" if self.high is None else f"{self.high:,}"
        return f"about {self.median:,} more instances (80 % interval {self.low:,} to {most})"

    def __repr__(self) -> str:
        return f"Forecast({self}, {self.instances.size} simulations)"


def _quantile(values: FloatArray, share: float) -> int | None:
    count = float(np.quantile(values, share, method="higher"))
    return math.ceil(count) if math.isfinite(count) else None


def forecast(state: RaceState, posterior: Posterior, simulations: int | None = None, seed: int = 0) -> Forecast:
    """Simulate how a race continues until every open pair is settled.

    Each simulation takes a draw of the posterior as the truth.  With every batch of instances the posterior moves
    towards that truth, with noise, and becomes narrower; the rules of the race decide which algorithms are eliminated,
    what is settled, how far algorithms run and how large the next batch is.  The posterior is approximated by a normal
    distribution whose precision is proportional to the instances; an instance tells less where fewer algorithms run.

    Parameters
    ----------
    simulations
        By default 200; fewer, but at least 40, for races of many algorithms and timepoints.
    """
    inside = [state.algorithms.index(name) for name in state.pareto_set]
    cells = max(1, state.timepoints.size * len(inside) * (len(inside) - 1) // 2)
    most, fewest = _SIMULATIONS
    count = (
        min(most, max(fewest, _CELLS // cells))
        if simulations is None
        else as_whole_number(simulations, "simulations", at_least=1)
    )
    rng = np.random.default_rng(as_whole_number(seed, "seed", at_least=0))
    if len(inside) < 2:
        return Forecast(*np.zeros((3, count)))
    return Forecast(*Simulations(state, posterior, inside, count, rng).run())
