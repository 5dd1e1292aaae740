"""Restoring a race from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, SourceError, UnknownNameError
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.custody import is_sqlite
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import NO_ROUND, JournalContent, JournalRun
from polarbear_plugins.racing.posteriors import checked
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import enter, observe, plan
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Failure, RaceState, check_about, check_rounds, start_race, unused_cost
from polarbear_plugins.racing.stored import StoredRivals, start_against


def load_result(path: str | Path) -> RaceResult:
    """Load a saved result, or the result in the journal of a race; runs nothing.

    A race that is still running is read as if it had been interrupted after its last finished round.
    """
    result = load_without_posterior(path)
    if result._posterior is not None or not is_journal(path):
        return result
    with _naming_journal(Path(path)):
        return replace(result, _posterior=checked(result.state, None))


def is_journal(path: str | Path) -> bool:
    """Whether a file may be the journal of a race."""
    return Path(path).is_file() and is_sqlite(Path(path))


def load_without_posterior(path: str | Path) -> RaceResult:
    """:func:`load_result` without the inference that a journal needs, for what only looks at the runs."""
    return read_journal(path).result if is_journal(path) else RaceResult.load(path)


class JournalNow(NamedTuple):
    """What is in a journal now.

    Attributes
    ----------
    result
        The result after the last finished round, without a posterior.
    waiting
        Number of finished runs that belong to no finished round.
    failures
        All runs that failed for good, the last one last.
    drawn
        Number of instances drawn.
    """

    result: RaceResult
    waiting: int
    failures: tuple[Failure, ...]
    drawn: int


def read_journal(path: str | Path) -> JournalNow:
    """Read what is in a journal now, without inference."""
    path = Path(path)
    with journal_copy(path) as journal, _naming_journal(path):
        about = journal.about
        state, unused = replay(journal, about)
        waiting = {(run.trajectory.algorithm, run.trajectory.instance) for run in unused}
        failures, instances = tuple(journal.failures), journal.instances
        used = [failure for failure in failures if (failure.algorithm, failure.instance) not in waiting]
        result = RaceResult(
            state=state,
            # The size of the suite is not known here, but the journal notes why the race stopped.
            stopped=plan(state).over or about.get("stopped") or "interrupted",
            _posterior=None,
            failures=observed_failures(state, used),
            about={**recorded_versions(about), **recorded_origin(about), **recorded_interference(about)},
            identities=tuple(instances[: len(state.table.instances)]),
            unused_cost=unused_cost(state, spent_so_far(journal, about, state, unused)),
        )
        return JournalNow(result, len(unused), failures, len(instances))


def recorded_versions(about: Mapping[str, Any]) -> dict[str, Any]:
    """Versions with which a race started and was resumed, as far as its journal notes them."""
    noted = {key: about[key] for key in ("versions", "resumed_with") if key in about}
    return {"version": about.get("version"), **noted}


def recorded_origin(about: Mapping[str, Any]) -> dict[str, Any]:
    """Portfolio, suite and archive of a race, as its journal notes them."""
    against = {"against": about["against"]} if "against" in about else {}
    return {**{key: about.get(key) for key in ("portfolio", "suite")}, **against}


def recorded_interference(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a race against the clock has measured, as its journal notes it."""
    return {key: about[key] for key in ("interference",) if key in about}


def replay(journal: JournalContent, about: Mapping[str, Any]) -> tuple[RaceState, list[JournalRun]]:
    """State after the last finished round of a journal, and the finished runs that belong to no finished round."""
    if "campaign" in about:
        raise SourceError(
            f"{journal.path} is the journal of a campaign, not of a race: continue it with the same `polarbear "
            "campaign` command, or campaign(..., journal=...)."
        )
    rounds, entries = journal.rounds, journal.entries
    with journal.naming_damage("about"):
        check_about(about)
    with journal.naming_damage("rounds"):
        check_rounds(rounds, [entry.algorithm for entry in entries])
    by_round: dict[int, list[JournalRun]] = {}
    for run in journal.runs():
        by_round.setdefault(run.round, []).append(run)
    identities = journal.instances
    with journal.naming_damage("about"):
        settings, timepoints = RaceSettings.from_json(about["settings"]), about["timepoints"]
        starters = [entry.algorithm for entry in entries if entry.after_round == 0]
        tolerance = as_number(about.get("tolerance", 0.0), "tolerance", at_least=0)
        state = start_race(starters, timepoints, settings, tolerance)
    stored = StoredRivals(journal.stored(state.timepoints.size), tuple(identities), about.get("against") or {})
    if stored.values:
        with journal.naming_damage("stored"):
            newcomers = [name for name in starters if name not in stored.names]
            state = start_against(newcomers, timepoints, settings, stored, tolerance)
    order = _places_of_runs([identity.name for identity in identities], settings)
    with journal.naming_damage("runs"):
        for finished in rounds:
            runs = [run.trajectory for run in by_round.pop(finished.number, [])]
            runs = sorted(runs, key=lambda run: order[run.instance])
            runs = [identities[order[run.instance].instance].label(run) for run in runs]
            state = replace(observe(state, runs), rounds=(*state.rounds, finished))
            if finished is rounds[-1]:
                shape = state.timepoints.size, len(state.algorithms)
                state = replace(
                    state,
                    resolved=journal.resolved(*shape),
                    batch=finished.next_batch,
                    newcomers=finished.newcomers,
                )
            for entry in entries:
                if entry.after_round == finished.number:
                    state = enter(state, entry.algorithm)
    unused = [run for runs in by_round.values() for run in runs]
    # A race stops if every run of its first round failed; resuming it repeats them.  Those ahead of time may be good.
    if not rounds and all(run.failure is not None for run in unused if run.round != NO_ROUND):
        unused = [run for run in unused if run.failure is None]
    return state, unused


def spent_so_far(
    journal: JournalContent, about: Mapping[str, Any], state: RaceState, unused: Iterable[JournalRun]
) -> float:
    """Cost of everything that was begun, as far as the journal knows: not what was under way in a killed process."""
    with journal.naming_damage("about"):
        written = as_number(about.get("spent", 0.0), "spent", at_least=0)
    return max(written, state.cost + sum(run.trajectory.horizon for run in unused))


def reopen_journal(path: Path, state: RaceState) -> tuple[Journal, list[JournalRun]]:
    """Journal of a race that stopped in this state, and its finished runs that belong to no finished round."""
    journal = Journal.open(path)
    try:
        done = len(state.rounds)
        if len(journal.rounds) != done or tuple(entry.algorithm for entry in journal.entries) != state.algorithms:
            raise InvalidInputError(
                f"{path}: the race has advanced since this result. Enter the newcomer into the newest result, that of "
                f"resume({str(path)!r})."
            )
        return journal, [run for run in journal.runs() if run.round == NO_ROUND or run.round > done]
    except BaseException:
        journal.close()
        raise


def observed_failures(state: RaceState, failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Failures on the instances of a state, in an order that does not depend on which run finished first."""
    names = state.table.instances
    order = _places_of_runs(names, state.settings)
    known = [failure for failure in failures if failure.instance in order]
    known.sort(key=lambda failure: (order[failure.instance], failure.algorithm))
    return tuple(replace(failure, instance=names[order[failure.instance].instance]) for failure in known)


class _Place(NamedTuple):
    """Place of an instance, and which of the runs on it."""

    instance: int
    replication: int


def _places_of_runs(instances: Iterable[str], settings: RaceSettings) -> dict[str, _Place]:
    """Places of runs by the names under which the journal keeps them."""
    return {
        run_name: _Place(place, replication)
        for place, name in enumerate(instances)
        for replication, run_name in enumerate(settings.run_names(name))
    }


@contextmanager
def _naming_journal(path: Path) -> Iterator[None]:
    """Add the name of the journal to errors about its content."""
    try:
        yield
    except (InvalidInputError, UnknownNameError) as problem:
        raise SourceError(f"{path}: {problem}") from None
