"""A gate: whether the new version of an algorithm is better or worse than the one before, at each budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.measures.further_units import FurtherUnits, further_units
from polarbear_plugins.measures.paired_verdicts import Evidence, Judged, Verdict, judge_leads
from polarbear_plugins.measures.run_pairs import PairGroups, Pairing, RunPairs, listed, pair_runs
from polarbear_plugins.measures.sign_flips import least_observations
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.ends import EarlyEnds, Ended
from polarbear_plugins.rankings.stream import default_timepoints
from polarbear_plugins.rankings.table import Repetitions
from polarbear_plugins.trajectories.runs import check_trajectory
from polarbear_plugins.trajectories.timepoints import as_timepoints, log_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd

FailOn: TypeAlias = Literal["worse", "open"]

_SPAN = 100.0  # ratio of the last and the first budget by default


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """What is known at one budget.

    Attributes
    ----------
    algorithm
        Name of the new version.
    verdict
        ``"better"``, ``"worse"`` or ``"equivalent"``, said of the new version; ``"open"`` if the data do not tell;
        ``None`` where no pair of runs was compared, and then there are no numbers either.
    p_better
        Posterior probability that the new version wins more pairs than it loses.
    win_share, low, high
        Share of pairs that it wins, where a tie is half a win and every unit has the same weight, and its interval.
    wins, ties, losses
        Pairs of runs.
    units
        Independent observations: groups, instances or pairs.
    p
        Probability of being as sure at some budget if the two versions are equal.
    further
        How many more units would settle an open budget.
    fails
        Whether the gate fails because of it.
    """

    algorithm: str
    budget: float
    verdict: Verdict | None
    p_better: float | None
    win_share: float | None
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int
    units: int
    p: float | None
    further: FurtherUnits | None
    fails: bool

    @property
    def pairs(self) -> int:
        """Pairs of runs that were compared."""
        return self.wins + self.ties + self.losses

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"pairs": self.pairs, "further": None if self.further is None else self.further.to_json()}


@dataclass(frozen=True, slots=True)
class GateComparison:
    """Two versions of one algorithm.

    Attributes
    ----------
    base, new
        Names of the two, mostly the same.
    threshold
        P(better) from which on a budget is decided, or 1 minus it; ``None`` if there are too few units for any.
    early_ends
        Runs that ended before their partner, of ``"base"`` or ``"new"``, and what counts from there on.
    """

    base: str
    new: str
    pairing: Pairing
    threshold: float | None
    early_ends: tuple[EarlyEnds, ...]
    verdicts: tuple[BudgetVerdict, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "base": self.base,
            "new": self.new,
            "pairing": self.pairing.to_json(),
            "threshold": self.threshold,
            "early_ends": [each.to_json() for each in self.early_ends],
            "verdicts": [each.to_json() for each in self.verdicts],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """Whether a new version passes.  Made by :func:`gate`.

    Attributes
    ----------
    comparisons
        One for each algorithm.
    alpha
        1 minus the largest probability of any false "better" or "worse", of all algorithms and budgets together, if the
        two versions are equal.
    level
        What each algorithm has of that probability.
    """

    comparisons: tuple[GateComparison, ...]
    budgets: tuple[float, ...]
    alpha: float
    level: float
    epsilon: float
    fail_on: FailOn
    require_better: bool

    @property
    def verdicts(self) -> tuple[BudgetVerdict, ...]:
        """Verdicts of all algorithms at all budgets."""
        return tuple(each for comparison in self.comparisons for each in comparison.verdicts)

    @property
    def missing_better(self) -> tuple[str, ...]:
        """Algorithms that are better at no budget, if they are required to be at some."""
        if not self.require_better:
            return ()
        return tuple(each.new for each in self.comparisons if not any(one.verdict == "better" for one in each.verdicts))

    @property
    def passed(self) -> bool:
        """Whether no budget fails, and the new version is better somewhere if that is required."""
        return not any(each.fails for each in self.verdicts) and not self.missing_better

    @property
    def least_units(self) -> int:
        """Fewest units with which "better" or "worse" is possible at all."""
        return least_observations(self.level)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "passed": self.passed,
            "fail_on": self.fail_on,
            "require_better": self.require_better,
            "missing_better": list(self.missing_better),
            "alpha": self.alpha,
            "level": self.level,
            "epsilon": self.epsilon,
            "budgets": list(self.budgets),
            "least_units": self.least_units,
            "comparisons": [each.to_json() for each in self.comparisons],
        }

    def to_pandas(self) -> pd.DataFrame:
        """Table with a row for each algorithm and budget; columns are the fields of :class:`BudgetVerdict`.

        ``further`` is the median of the further units.
        """
        import pandas as pd

        rows = [
            each.to_json() | {"further": None if each.further is None else each.further.median}
            for each in self.verdicts
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        found = ", ".join(f"{each.verdict or 'not compared'} at {each.budget:g}" for each in self.verdicts[:6])
        more = ", ..." if len(self.verdicts) > 6 else ""
        return f"Gate({'passed' if self.passed else 'failed'}: {found}{more})"


def gate(
    base: Iterable[Trajectory],
    new: Iterable[Trajectory],
    budgets: ArrayLike | None = None,
    *,
    algorithms: Sequence[str] | None = None,
    alpha: float = 0.99,
    epsilon: float = 0.05,
    fail_on: FailOn = "worse",
    require_better: bool = False,
    groups: PairGroups = "auto",
    repetitions: Repetitions = "weight",
    tolerance: float = 0.0,
    ended: Ended = "cut",
    seed: int = 0,
) -> Gate:
    """Compare two versions of an algorithm at several budgets, with one error level for all of them.

    Runs are paired on each instance: those of one seed, and the rest in the order of their seeds.  If the two versions
    are equal, so that exchanging their runs on any unit changes nothing, the probability of "better" or "worse"
    at any budget is at most ``1 - alpha``.  That is exact.  It is so for one look at the data whose size was chosen
    before, not for adding runs until a verdict comes.

    Parameters
    ----------
    base, new
        Runs of the version before, and of the new one.
    budgets
        When to compare; by default five, at equal ratios over the last two decades that both have.
    algorithms
        Those to compare; by default the only one of each, which need not have the same name, or all that both have.
        The error level is divided among them.
    epsilon
        Equivalent where the whole interval of the win share is this close to 1/2, also if it excludes 1/2.
    fail_on
        ``"worse"``: the gate fails if the new version is worse at some budget.  ``"open"``: also if one is open, or
        was not compared.
    require_better
        The gate also fails unless the new version is better at some budget.
    groups
        ``"new"``: a group of instances counts as one, for what holds in new groups.  ``"same"`` and ``"none"``: each
        instance counts, for further instances of these groups.  ``"auto"``: ``"new"``, unless the groups are all there
        are.
    repetitions
        ``"weight"``: several pairs of an instance count together as one instance, unless there is only one.
        ``"independent"``: each pair counts, for what holds on these instances.
    tolerance
        Values this close tie.
    ended
        What counts for a run past its horizon: ``"cut"``, nothing; ``"hold"``, its last value, for as long as its
        partner was watched.
    seed
        Of the random flips of signs.

    Examples
    --------
    >>> runs = {
    ...     name: [
    ...         Trajectory(algorithm="tpe", instance=f"f{k}", times=[1, 10], best=[99.0, better + k], horizon=100)
    ...         for k in range(12)
    ...     ]
    ...     for name, better in (("old", 0.5), ("new", 0.0))
    ... }
    >>> gate(runs["old"], runs["new"], [1, 10, 100])
    Gate(passed: open at 1, better at 10, better at 100)
    """
    level = 1 - as_number(alpha, "alpha", above=0.5, below=1)
    epsilon = as_number(epsilon, "epsilon", at_least=0, below=0.5)
    as_choice(fail_on, FailOn, "fail_on")
    as_number(tolerance, "tolerance", at_least=0)
    as_choice(ended, Ended, "ended")
    seed = as_whole_number(seed, "seed", at_least=0)
    chosen = select_algorithms(base, new, algorithms)
    grid = default_budgets(chosen, ended=ended) if budgets is None else as_timepoints(budgets)
    level /= len(chosen)
    comparisons = []
    for before, after in chosen:
        pairs = pair_runs(before, after, grid, groups=groups, repetitions=repetitions, tolerance=tolerance, ended=ended)
        judged = judge_leads(pairs.leads(), level, epsilon, seed)
        names, least = (before[0].algorithm, after[0].algorithm), least_observations(level)
        comparisons.append(_compared(names, grid, pairs, judged, least, epsilon, fail_on))
    if not any(each.pairs for comparison in comparisons for each in comparison.verdicts):
        raise InvalidInputError(
            f"gate: no pair of runs was watched until any of the budgets ({', '.join(f'{time:g}' for time in grid)})."
        )
    return Gate(tuple(comparisons), tuple(grid.tolist()), float(alpha), level, epsilon, fail_on, require_better)


def default_budgets(
    pairs: Sequence[tuple[Sequence[Trajectory], Sequence[Trajectory]]], count: int = 5, *, ended: Ended = "cut"
) -> FloatArray:
    """Budgets at equal ratios over the last two decades that both versions have, whole ones if all times are."""
    sides = [
        run.changed(algorithm=f"{place} {side}")
        for place, pair in enumerate(pairs)
        for side, runs in zip(("base", "new"), pair, strict=True)
        for run in runs
    ]
    ends = default_timepoints(sides, 2, ended=ended)
    first, last = max(float(ends[0]), float(ends[-1]) / _SPAN), float(ends[-1])
    if first == last or count == 1:
        return as_timepoints([last])
    whole = bool((ends == np.rint(ends)).all())
    count = min(count, math.floor(last) - math.ceil(first) + 1) if whole else count
    return log_timepoints(math.ceil(first) if whole else first, last, count, integer=whole)


def _by_algorithm(runs: Iterable[Trajectory], side: str) -> dict[str, list[Trajectory]]:
    found: dict[str, list[Trajectory]] = {}
    for run in runs:
        found.setdefault(check_trajectory(run).algorithm, []).append(run)
    if not found:
        raise InvalidInputError(f"gate: {side} has no runs.")
    return found


def select_algorithms(
    base: Iterable[Trajectory], new: Iterable[Trajectory], wanted: Sequence[str] | None = None
) -> list[tuple[list[Trajectory], list[Trajectory]]]:
    """Runs of each algorithm to compare: those wanted, or the only one of each, or all that both have."""
    before, after = _by_algorithm(base, "base"), _by_algorithm(new, "new")
    if wanted is None and len(before) == len(after) == 1:
        return [(next(iter(before.values())), next(iter(after.values())))]
    names = sorted(before.keys() & after.keys(), key=natural_key) if wanted is None else list(dict.fromkeys(wanted))
    for side, found in (("base", before), ("new", after)):
        missing = [name for name in names if name not in found]
        if missing or not names:
            what = (
                f"has no run of {', '.join(map(short, missing))}" if missing else "shares no algorithm with the other"
            )
            raise InvalidInputError(f"gate: {side} {what}. Base has {listed(before)}; new has {listed(after)}.")
    return [(before[name], after[name]) for name in names]


def _compared(
    names: tuple[str, str],
    grid: FloatArray,
    pairs: RunPairs,
    judged: Judged,
    least: int,
    epsilon: float,
    fail_on: FailOn,
) -> GateComparison:
    evidence = Evidence.of(pairs.leads())
    verdicts = []
    for t, (budget, verdict) in enumerate(zip(grid.tolist(), judged.verdicts, strict=True)):
        outcomes = pairs.outcomes[:, t]
        numbers = {name: _number(getattr(judged, name)[t]) for name in ("p_better", "low", "high", "p")}
        verdicts.append(
            BudgetVerdict(
                algorithm=names[1],
                budget=budget,
                verdict=verdict,
                win_share=_number(judged.share[t]),
                wins=int((outcomes > 0).sum()),
                ties=int((outcomes == 0).sum()),
                losses=int((outcomes < 0).sum()),
                units=int(judged.units[t]),
                further=further_units(evidence.at(t), judged.interval_tail, epsilon, least=least)
                if verdict == "open"
                else None,
                fails=verdict == "worse" or (fail_on == "open" and verdict in ("open", None)),
                **numbers,
            )
        )
    threshold = 1 - judged.tail if judged.tail else None
    return GateComparison(*names, pairs.pairing, threshold, pairs.early_ends, tuple(verdicts))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
