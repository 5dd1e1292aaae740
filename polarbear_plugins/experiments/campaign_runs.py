"""The runs of a campaign: on the executors of a race, kept in the journal of a race.

Each open instance is asked for its next runs; those of all instances run side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError, PolarBearError, SourceError
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import PortfolioSource, Request, SuiteSource, check_sendable, make_request
from polarbear_plugins.journal.journal import Journal, JournalRun
from polarbear_plugins.names import distinct_names
from polarbear_plugins.planning.repetitions import RepetitionSettings, next_runs
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory

Measure: TypeAlias = Callable[[Trajectory], float]
Watcher: TypeAlias = Callable[[int, int], None]
#: Values by instance and algorithm, in the order of their repetitions.
Samples: TypeAlias = dict[str, dict[str, list[float]]]
Run: TypeAlias = tuple[str, str, int]  # algorithm, instance, repetition


class CampaignRuns:
    """Runs algorithms on instances as often as it takes; use it in a ``with`` statement.

    The seed of a run derives from the seed of the campaign, the algorithm, the instance and the repetition, so that
    neither workers nor interruptions change a result.
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
        """Begin a journal, or go on in one; its seed is taken over unless it must be the same."""
        about = {
            "seed": self.seed,
            "horizon": self._horizon,
            "timepoints": self._timepoints.tolist(),
            "suite": self._suite.suite.name,
        }
        if not path.exists():
            self._journal = Journal.create(
                path,
                {"campaign": about, "version": version("polarbear-plugins"), "versions": installed_versions()},
                self._names,
            )
            return
        self._journal = Journal.open(path)
        stored = self._journal.about.get("campaign")
        if not isinstance(stored, dict):
            raise SourceError(f"{path} is the journal of a race, not of a campaign; choose another name.")
        if not same_seed:
            self.seed = about["seed"] = as_whole_number(stored.get("seed"), f"{path}: seed", at_least=0)
        mine = {**about, "algorithms": sorted(self._names)}
        theirs = {**stored, "algorithms": sorted(entry.algorithm for entry in self._journal.entries)}
        for what, value in mine.items():
            if value != theirs.get(what):
                raise InvalidInputError(
                    f"{path} is the journal of another campaign: {what} is {theirs.get(what)!r} there and {value!r} "
                    "here. Choose another name, or go on with what it has."
                )
        for run in self._journal.runs():
            instance, _, repetition = run.trajectory.instance.rpartition("#")
            with self._journal.understanding("runs"):
                key = (run.trajectory.algorithm, instance, int(repetition))
            self._finished[key] = replace(run.trajectory, instance=instance)

    def draw(self, count: int) -> list[Identity]:
        """Draw so many instances, or as many as there are."""
        name = self._suite.suite.name
        supply: Iterator[Identity] = self._suite.suite.identities(derived_seed(self.seed, "instances"))
        identities = list(itertools.islice(supply, count))
        if len(identities) < 2:
            raise InvalidInputError(f"The suite {name!r} has {len(identities)} instance; a test needs at least two.")
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
        watch: Watcher | None = None,
    ) -> Samples:
        """Run on each instance until its differences are known well enough (Algorithm 1)."""
        values: Samples = {identity.name: {name: [] for name in self._names} for identity in identities}
        pending, sweep = list(identities), 0
        while pending:
            sweep += 1
            asked: list[tuple[Identity, Run]] = []
            still_open = []
            for identity in pending:
                samples = values[identity.name]
                wanted = next_runs(samples, settings, reference)
                numbers = {name: itertools.count(len(samples[name])) for name in self._names}
                asked += [(identity, (name, identity.name, next(numbers[name]))) for name in wanted]
                if wanted:
                    still_open.append(identity)
            self._carry_out([(identity, run) for identity, run in asked if run not in self._finished], sweep)
            for _, run in asked:
                values[run[1]][run[0]].append(self._value(run, measure))
            pending = still_open
            if watch is not None:
                done = sum(len(sample) for samples in values.values() for sample in samples.values())
                watch(done, len(pending))
        return values

    def _carry_out(self, asked: Sequence[tuple[Identity, Run]], sweep: int) -> None:
        requests: dict[int, tuple[Request, Run]] = {}
        for identity, run in asked:
            seed = derived_seed(self.seed, "run", *run)
            request = make_request(
                self._portfolio, self._suite, run[0], identity, self._horizon, seed, self._timepoints
            )
            requests[id(request)] = request, run
        for outcomes in self._dispatcher.carry_out([request for request, _ in requests.values()]):
            good = []
            for outcome in outcomes:
                run = requests[id(outcome.request)][1]
                if outcome.failure is None:
                    self._finished[run] = outcome.trajectory
                    # A journal holds one run of an algorithm on an instance: each repetition goes by a name of its own.
                    named = replace(outcome.trajectory, instance=f"{run[1]}#{run[2]}")
                    good.append(JournalRun(sweep, named, outcome.seconds))
            if self._journal is not None:
                self._journal.add_runs(good)
            for outcome in outcomes:
                if outcome.failure is not None:
                    raise PolarBearError(
                        f"A run of {outcome.request.algorithm_name!r} on {outcome.request.identity.name!r} failed, and "
                        f"means need every run: {outcome.failure}. Mend it, use retries=, or compare rankings (race)."
                    )

    def _value(self, run: Run, measure: Measure) -> float:
        value = float(measure(self._finished[run]))
        if not np.isfinite(value):
            raise PolarBearError(
                f"{run[0]!r} on {run[1]!r}, repetition {run[2]}, is worth {value}, and means need finite values. "
                "Choose a longer horizon or another measure, or compare rankings (race)."
            )
        return value
