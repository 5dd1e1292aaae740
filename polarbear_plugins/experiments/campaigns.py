"""A classical comparison, from its plan to its test: Algorithm 2 of Campelo and Takahashi.

The number of instances follows from the power, the number of repetitions on each from the wanted standard error; the
runs use the executors and the journal of a race.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.execution.requests import PortfolioSource, SuiteSource
from polarbear_plugins.experiments.campaign_runs import CampaignRuns, CampaignWatcher, Measure
from polarbear_plugins.experiments.interference import dispatcher_for
from polarbear_plugins.experiments.left_out import leave_out_unfit
from polarbear_plugins.planning.paired_tests import Comparison, Direction, compare_pairs
from polarbear_plugins.planning.powers import PairedTest, PowerTarget
from polarbear_plugins.planning.repetitions import Estimate, RepetitionSettings, estimate_difference, pairs_of
from polarbear_plugins.planning.sample_size import number_of_instances, power_of
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.given import RunFunction
from polarbear_plugins.problems.protocols import Algorithm, Suite
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSettings:
    """Settings of a campaign: the effect it must find, its power and its error level.

    Parameters
    ----------
    repetitions
        How precisely the difference on each instance must be known.
    effect, power, alpha, test, power_target
        As for :func:`polarbear_plugins.planning.sample_size.number_of_instances`.
    alternative
        ``"two-sided"``; ``"less"``: the second algorithm of a pair has the lower values; ``"greater"``: the higher.
    reference
        Compare the others with this algorithm, rather than all pairs.  It is the first of each pair.
    instances
        Number of instances; by default it follows from the power.
    seed
        Seed of all random choices.
    """

    repetitions: RepetitionSettings
    effect: float = 0.5
    power: float = 0.8
    alpha: float = 0.05
    test: PairedTest = "t"
    alternative: Direction = "two-sided"
    reference: str | None = None
    instances: int | None = None
    power_target: PowerTarget = "worst-case"
    seed: int | None = None

    def __post_init__(self) -> None:
        as_choice(self.alternative, Direction, "alternative")
        self.needed(1)
        if self.instances is not None:
            as_whole_number(self.instances, "instances", at_least=2)
        if self.seed is not None:
            as_whole_number(self.seed, "seed", at_least=0)

    def needed(self, comparisons: int) -> int:
        """Number of instances for the power; with several comparisons, with Holm's correction."""
        return number_of_instances(
            self.effect,
            self.power,
            self.alpha,
            self.test,
            self._sides,
            comparisons=comparisons,
            power_target=self.power_target,
        )

    def power_with(self, instances: int, comparisons: int) -> float:
        """Power with that many instances."""
        return power_of(
            instances,
            self.effect,
            self.alpha,
            self.test,
            self._sides,
            comparisons=comparisons,
            power_target=self.power_target,
        )

    @property
    def _sides(self) -> Any:
        return "two-sided" if self.alternative == "two-sided" else "one-sided"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CampaignResult:
    """Result of a campaign.

    Attributes
    ----------
    needed
        Number of instances that the wanted power needs; ``instances`` are those used.
    power
        For the effect in the settings, with the instances used.
    values
        ``values[instance][algorithm]``: one value per run.
    estimates
        For each pair, its difference on each instance.
    comparisons
        Results of the tests, one for each pair.
    """

    settings: CampaignSettings
    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    needed: int
    power: float
    values: Mapping[str, Mapping[str, FloatArray]]
    estimates: Mapping[tuple[str, str], tuple[Estimate, ...]]
    comparisons: tuple[Comparison, ...]

    def summary(self) -> pd.DataFrame:
        """Table of the comparisons."""
        import pandas as pd

        rows = [comparison.to_dict() for comparison in self.comparisons]
        frame = pd.DataFrame(rows).drop(columns="normality").set_index(["one", "other"])
        frame["normality_p"] = [None if each.normality is None else each.normality.p for each in self.comparisons]
        return frame

    def repetitions(self) -> pd.DataFrame:
        """Table of how often each algorithm ran on each instance, and of each difference with its standard error."""
        import pandas as pd

        columns: dict[tuple[str, str], Any] = {
            ("runs", name): [self.values[instance][name].size for instance in self.instances]
            for name in self.algorithms
        }
        for pair, found in self.estimates.items():
            columns[" - ".join(reversed(pair)), "difference"] = [each.difference for each in found]
            columns[" - ".join(reversed(pair)), "error"] = [each.error for each in found]
        return pd.DataFrame(columns, index=pd.Index(self.instances, name="instance"))

    def to_pandas(self) -> pd.DataFrame:
        """Value of every run, with columns ``instance``, ``algorithm``, ``repetition`` and ``value``."""
        import pandas as pd

        rows = [
            (instance, name, repetition, value)
            for instance in self.instances
            for name in self.algorithms
            for repetition, value in enumerate(self.values[instance][name].tolist())
        ]
        frame = pd.DataFrame(rows, columns=["instance", "algorithm", "repetition", "value"])
        names = {"instance": self.instances, "algorithm": self.algorithms}
        return frame.astype({column: pd.CategoricalDtype(list(known)) for column, known in names.items()})

    @property
    def short_of(self) -> tuple[str, ...]:
        """Instances where the allowed number of runs did not reach the wanted standard error."""
        limit = self.settings.repetitions.error
        by_instance = zip(*self.estimates.values(), strict=True)
        return tuple(
            name
            for name, found in zip(self.instances, by_instance, strict=True)
            if any(each.error > limit for each in found)
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of the whole result."""
        return {
            "settings": asdict(self.settings),
            "algorithms": list(self.algorithms),
            "instances": list(self.instances),
            "needed": self.needed,
            "power": self.power,
            "values": {
                instance: {name: sample.tolist() for name, sample in samples.items()}
                for instance, samples in self.values.items()
            },
            "estimates": [
                {"pair": list(pair), "instances": [asdict(each) for each in found]}
                for pair, found in self.estimates.items()
            ],
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "short_of": list(self.short_of),
        }


def campaign(
    portfolio: str | Mapping[str, RunFunction] | Sequence[Algorithm],
    suite: str | Suite | Sequence[object] | Callable[[np.random.Generator], object],
    horizon: float,
    settings: CampaignSettings,
    workers: int | None = None,
    executor: Executor | None = None,
    journal: str | Path | None = None,
    *,
    measure: Measure | None = None,
    timepoints: ArrayLike | None = None,
    portfolio_options: Mapping[str, Any] | None = None,
    suite_options: Mapping[str, Any] | None = None,
    run_timeout: float | None = None,
    run_memory: float | None = None,
    retries: int = 0,
    progress: CampaignWatcher | None = None,
    plugins: Plugins | None = None,
) -> CampaignResult:
    """Compare the mean performance of algorithms over instances: plan, run, test.

    Parameters
    ----------
    portfolio, suite, workers, executor, portfolio_options, suite_options, run_timeout, run_memory, retries, plugins
        As for :func:`polarbear_plugins.race`.
    horizon
        How far each run goes.
    journal
        A file that keeps every finished run.  If it exists, its runs are not repeated; the settings may have changed
        since, but not the seed, the horizon, the algorithms or the suite.
    measure
        Value of a run, computed from its trajectory; smaller is better.  By default its best value at the horizon.
        Skewed values are better compared by their logarithms.
    timepoints
        Timepoints at which ``measure`` sees the trajectory; by default only the horizon.
    progress
        Called with the number of finished runs and the number of instances still open.

    Raises
    ------
    PolarBearError
        A run failed or has no finite value, so that there is no mean.

    Examples
    --------
    >>> def noisy(shift):
    ...     def run(level, horizon, seed):
    ...         value = level + shift + np.random.default_rng(seed).normal()
    ...         return Trajectory(algorithm="?", instance="?", times=[1], best=[value], horizon=horizon)
    ...     return run
    >>> settings = CampaignSettings(repetitions=RepetitionSettings(error=0.5, first=5), effect=1.0, seed=1)
    >>> found = campaign({"one": noisy(0), "other": noisy(-2)}, list(range(50)), 10, settings, workers=0)
    >>> found.needed, found.comparisons[0].significant
    (10, True)
    """
    seed = secrets.randbits(31) if settings.seed is None else settings.seed
    drawn_from = SuiteSource.of(suite, suite_options, plugins)
    given = PortfolioSource.of(portfolio, portfolio_options, plugins)
    sources = leave_out_unfit(given, drawn_from.suite, seed, least=2), drawn_from
    end = as_number(horizon, "horizon")
    grid = as_timepoints([end] if timepoints is None else timepoints)
    if grid[-1] > end:
        raise InvalidInputError(f"timepoints: {grid[-1]:g} lies past the horizon, {end:g}.")
    pairs = pairs_of(tuple(sources[0].algorithms), settings.reference)
    execution = workers, executor, run_timeout, retries, run_memory
    dispatcher = dispatcher_for(sources[0].algorithms.values(), *execution)
    with CampaignRuns(*sources, dispatcher, end, grid, seed) as runs:
        if journal is not None:
            runs.keep_journal(Path(journal), same_seed=settings.seed is not None)
        settings = replace(settings, seed=runs.seed)
        needed = settings.needed(len(pairs))
        identities = runs.draw(settings.instances or needed)
        power = settings.power_with(len(identities), len(pairs))
        if settings.instances is None and len(identities) < needed:
            warnings.warn(
                f"The suite {sources[1].suite.name!r} has {len(identities)} instances, and power {settings.power:g} "
                f"for an effect of {settings.effect:g} needs {needed}; with {len(identities)} it is {power:.2f}.",
                PolarBearWarning,
                stacklevel=2,
            )
        values = runs.sample(identities, settings.repetitions, settings.reference, measure or _final, progress)
    estimates = {
        pair: tuple(
            estimate_difference(
                samples[pair[0]],
                samples[pair[1]],
                settings.repetitions,
                pair,
                {name: sample for name, sample in samples.items() if name not in pair},
            )
            for samples in values.values()
        )
        for pair in pairs
    }
    differences = {pair: np.array([each.difference for each in found]) for pair, found in estimates.items()}
    return CampaignResult(
        settings=settings,
        algorithms=tuple(sources[0].algorithms),
        instances=tuple(values),
        needed=needed,
        power=power,
        values={
            instance: {name: np.array(sample) for name, sample in samples.items()}
            for instance, samples in values.items()
        },
        estimates=estimates,
        comparisons=compare_pairs(
            differences, settings.test, settings.alternative, settings.alpha, derived_seed(runs.seed, "normality")
        ),
    )


def _final(trajectory: Trajectory) -> float:
    """Best value at the end; ``inf`` for a run that has found nothing."""
    return float(trajectory.best[-1]) if trajectory.best.size else float("inf")
