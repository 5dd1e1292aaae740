"""The runs of a campaign, with the executors and the journal of a race.

In each round every open instance asks for its next runs; the runs of all instances are performed in parallel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError, PolarBearError, SourceError, foreign_text
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import PortfolioSource, Request, SuiteSource, check_sendable, make_request
from polarbear_plugins.experiments.changes import FINGERPRINTS, fingerprints_of, warn_of_changes
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun
from polarbear_plugins.names import distinct_names
from polarbear_plugins.planning.repetitions import RepetitionSettings, next_runs
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory

Measure: TypeAlias = Callable[[Trajectory], float]
CampaignWatcher: TypeAlias = Callable[[int, int], None]
#: Values by instance and algorithm, in the order of their repetitions.
Samples: TypeAlias = dict[str, dict[str, list[float]]]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a campaign."""

    algorithm: str
    instance: str
    repetition: int

    @classmethod
    def from_stored(cls, run: Trajectory) -> Run:
        """Run that a trajectory of the journal belongs to.

        :raises ValueError: the name of its instance has no repetition.
        """
        instance, _, repetition = run.instance.rpartition("#")
        return cls(run.algorithm, instance, int(repetition))

    @property
    def stored_instance(self) -> str:
        """Name of the instance in the journal, which holds one run of an algorithm on an instance."""
        return f"{self.instance}#{self.repetition}"


class CampaignRuns:
    """Runs algorithms on instances as often as needed; use it in a ``with`` statement.

    The seed of a run is derived from the seed of the campaign, the algorithm, the instance and the repetition, so that
    a result depends neither on the workers nor on interruptions.
    """

    def __init__(
        self,
        portfolio: PortfolioSource,
        suite: SuiteSource,
        dispatcher: Dispatcher,
        horizon: float,
        timepoints: FloatArray,
        seed: int,
    ) -> None:
        self.seed = seed
        self._portfolio, self._suite, self._dispatcher = portfolio, suite, dispatcher
        self._horizon, self._timepoints = horizon, timepoints
        self._names = tuple(portfolio.algorithms)
        self._journal: Journal | None = None
        self._finished: dict[Run, Trajectory] = {}
        if dispatcher.pickles:
            check_sendable(portfolio, suite)

    def __enter__(self) -> CampaignRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._dispatcher.close(at_once=kind is not None)
        if self._journal is not None:
            self._journal.close()

    def keep_journal(self, path: Path, *, same_seed: bool) -> None:
        """Start a journal, or continue one; uses its seed unless ``same_seed`` requires that of this campaign."""
        about = {
            "seed": self.seed,
            "horizon": self._horizon,
            "timepoints": self._timepoints.tolist(),
            "suite": self._suite.suite.name,
            "suite_options": None if self._suite.registered is None else self._suite.registered.options,
            "portfolio": {name: asdict(source) for name, source in sorted(self._portfolio.registered.items())},
        }
        versions, fingerprints = installed_versions(), fingerprints_of(self._portfolio, self._suite)
        if not path.exists():
            noted = {"version": version("polarbear-plugins"), "versions": versions, FINGERPRINTS: fingerprints}
            self._journal = Journal.create(path, {"campaign": about, **noted}, self._names)
            return
        self._journal = Journal.open(path)
        stored = self._journal.about.get("campaign")
        if not isinstance(stored, dict):
            raise SourceError(f"{path} is the journal of a race, not of a campaign; choose another name.")
        if not same_seed:
            self.seed = about["seed"] = as_whole_number(stored.get("seed"), f"{path}: seed", at_least=0)
        mine = {**about, "algorithms": sorted(self._names)}
        theirs = {**stored, "algorithms": sorted(entry.algorithm for entry in self._journal.entries)}
        for noted_since in ("portfolio", "suite_options"):  # earlier versions did not note them
            theirs.setdefault(noted_since, mine[noted_since])
        for what, value in mine.items():
            if value != theirs.get(what):
                raise InvalidInputError(
                    f"{path} is the journal of another campaign: {what} is {theirs.get(what)!r} there and {value!r} "
                    "here. Choose another name, or use the value of the journal."
                )
        warn_of_changes(path, self._journal.about, versions, fingerprints)
        for stored_run in self._journal.runs():
            with self._journal.naming_damage("runs"):
                run = Run.from_stored(stored_run.trajectory)
            self._finished[run] = stored_run.trajectory.changed(instance=run.instance)

    def draw(self, count: int) -> list[Identity]:
        """Draw ``count`` instances, or all if the suite has fewer."""
        name = self._suite.suite.name
        supply: Iterator[Identity] = self._suite.suite.identities(derived_seed(self.seed, "instances"))
        identities = list(itertools.islice(supply, count))
        if len(identities) < 2:
            found = "1 instance" if identities else "no instances"
            raise InvalidInputError(f"The suite {name!r} has {found}; a test needs at least two.")
        distinct_names((identity.name for identity in identities), f"instances of the suite {name!r}")
        if self._journal is not None:
            stored = self._journal.instances
            for place, (mine, theirs) in enumerate(zip(identities, stored, strict=False)):
                if mine != theirs:
                    raise InvalidInputError(
                        f"{self._journal.path}: the suite {name!r} no longer gives the instance {theirs.name!r} at "
                        f"place {place}: it is another suite, or another version of it."
                    )
            self._journal.add_instances(len(stored), identities[len(stored) :])
        return identities

    def sample(
        self,
        identities: Sequence[Identity],
        settings: RepetitionSettings,
        reference: str | None,
        measure: Measure,
        watch: CampaignWatcher | None = None,
    ) -> Samples:
        """Run on each instance until its differences are known precisely enough (Algorithm 1)."""
        by_name = {identity.name: identity for identity in identities}
        values: Samples = {instance: {name: [] for name in self._names} for instance in by_name}
        pending, number = list(values), 0
        while pending:
            number += 1
            wanted = {instance: next_runs(values[instance], settings, reference) for instance in pending}
            runs: list[Run] = []
            for instance, names in wanted.items():
                repetitions = {name: itertools.count(len(sample)) for name, sample in values[instance].items()}
                runs += [Run(name, instance, next(repetitions[name])) for name in names]
            missing = [run for run in runs if run not in self._finished]
            done = sum(len(sample) for samples in values.values() for sample in samples.values())
            done += len(runs) - len(missing)
            for finished in self._carry_out(missing, by_name, number):
                if watch is not None:
                    watch(done + finished, len(pending))
            for run in runs:
                values[run.instance][run.algorithm].append(self._value(run, measure))
            pending = [instance for instance, names in wanted.items() if names]
            if watch is not None:
                watch(done + len(missing), len(pending))
        return values

    def _carry_out(self, runs: Sequence[Run], identities: Mapping[str, Identity], number: int) -> Iterator[int]:
        """Perform runs and store them; yields how many are finished after each of several steps."""
        finished = 0
        by_request = {self._request(run, identities[run.instance]): run for run in runs}
        for outcomes in self._dispatcher.carry_out(by_request):
            stored = []
            for outcome in outcomes:
                run = by_request[outcome.request]
                if outcome.failure is None:
                    self._finished[run] = outcome.trajectory
                    renamed = outcome.trajectory.changed(instance=run.stored_instance)
                    stored.append(JournalRun(number, renamed, outcome.seconds))
            if self._journal is not None:
                self._journal.add_runs(stored)
            for outcome in outcomes:
                if outcome.failure is not None:
                    raise PolarBearError(
                        f"A run of {outcome.request.algorithm_name!r} on {outcome.request.identity.name!r} failed, and "
                        f"means need every run: {foreign_text(outcome.failure)}. Fix it, use retries=, or compare "
                        "rankings (race)."
                    )
            finished += len(outcomes)
            yield finished

    def _request(self, run: Run, identity: Identity) -> Request:
        seed = derived_seed(self.seed, "run", run.algorithm, run.instance, run.repetition)
        return make_request(
            self._portfolio, self._suite, run.algorithm, identity, self._horizon, seed, self._timepoints
        )

    def _value(self, run: Run, measure: Measure) -> float:
        value = float(measure(self._finished[run]))
        if not np.isfinite(value):
            raise PolarBearError(
                f"{run.algorithm!r} on {run.instance!r}, repetition {run.repetition}, has the value {value}, and means "
                "need finite values. Choose a longer horizon or another measure, or compare rankings (race)."
            )
        return value
