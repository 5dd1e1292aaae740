"""A second opinion on eliminations that needs no model and stays valid however often one looks.

For an ordered pair of algorithms and a timepoint, someone bets on each new instance that the first beats the second.
If the first wins no more than half of the time, no strategy is expected to gain, so a large gain is evidence against
that: the gain is an e-value, and the probability that it ever reaches 1/d is at most d, whatever the data look like and
whoever decides when to stop and whom to run next.  Instances must be independent draws.

An algorithm is dominated by majorities if one rival beats it on most instances at *every* timepoint.  If it is not so
for one rival, a timepoint has a bet that is not expected to gain: the smallest gain over timepoints is an e-value, with
no correction for their number.  An e-value for "no rival does so" is the gain of someone who puts half of the money on
all rivals alike, and the other half, after the first instances, on the rival that was ahead in these.  Closed testing
over algorithms with means of these makes the probability of any wrong elimination, ever, at most 1 - alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.tallies import Tallies, tally

# Stakes as a share of the largest that cannot lose everything, and how the money is spread over them: at the least sure
# timepoint a rival rarely wins nearly always.  Spreading costs little against the best stake in hindsight, and counts
# suffice: the data need not be kept.  Chosen on the Gaussian data of benchmarks/misfit_cases.py, as is the number of
# first instances; whatever they are, the bets are fair.
_STAKES = (np.arange(40) + 0.5) / 40
_LOG_MONEY = np.log(_STAKES * (1 - _STAKES) ** 2) - np.log(np.sum(_STAKES * (1 - _STAKES) ** 2))
_FIRST_INSTANCES = 12
_LARGEST_LOG = 300.0  # of an e-value, so that sums stay finite


@dataclass(frozen=True, slots=True, eq=False)
class SecondOpinion:
    """Evidence for dominance by majorities.  Made by :func:`second_opinion`.

    Attributes
    ----------
    log_e_values
        ``log_e_values[i, j]``: logarithm of the e-value for "``i`` beats ``j`` on most instances at every timepoint".
    evidence
        ``evidence[j]``: e-value for "some rival does so to ``j``".
    """

    algorithms: tuple[str, ...]
    log_e_values: FloatArray
    evidence: FloatArray

    def certain(self, alpha: float) -> BoolArray:
        """Which algorithms are dominated; the probability that one of them is wrong, ever, is at most 1 - alpha."""
        n = len(self.algorithms)
        if alpha >= 1:
            return np.zeros(n, dtype=bool)
        e = self.evidence
        found = np.zeros(n, dtype=bool)
        for j in range(n):
            # Closed testing: the mean over each set of algorithms with this one must be large enough.  The smallest is
            # that with the others that have the least evidence.
            sums = e[j] + np.concatenate(([0.0], np.cumsum(np.sort(np.delete(e, j)))))
            found[j] = (sums / np.arange(1, n + 1)).min() >= 1 / (1 - alpha)
        return found

    def dominates(self, alpha: float) -> BoolArray:
        """``[i, j]``: whether ``j`` is certainly dominated, and ``i`` does so by its own e-value."""
        with np.errstate(divide="ignore"):
            needed = -np.log(max(1 - alpha, 0.0))
        return self.certain(alpha)[None, :] & (self.log_e_values >= needed)


def second_opinion(table: RankingTable, by_group: bool = False) -> SecondOpinion:
    """Evidence in a table, without a model, that algorithms are dominated.

    Parameters
    ----------
    by_group
        A group of instances is one bet, on the share of its instances that are won: for what holds in new groups.

    Examples
    --------
    >>> table = RankingTable.from_values([[[1.0, 2.0]]] * 15, algorithms=["csa", "msr"], timepoints=[10])
    >>> opinion = second_opinion(table)
    >>> np.exp(opinion.log_e_values[0, 1]).round(), opinion.certain(0.99)
    (np.float64(879.0), array([False,  True]))
    """
    # An instance of a larger weight is still one bet; a smaller weight makes it a smaller one.
    counts, first = (tally(table, most=1.0, units=units, by_group=by_group) for units in (None, _FIRST_INSTANCES))
    return opinion_from(table.algorithms, counts, first)


def opinion_from(algorithms: tuple[str, ...], counts: Tallies, first: Tallies) -> SecondOpinion:
    """Evidence in counts of all instances, of which ``first`` are those of the first ones."""
    later = Tallies(counts.wins - first.wins, counts.ties - first.ties, counts.first - first.first)
    of_pairs, before, after = (_smallest_over_time(part) for part in (counts, first, later))
    n = len(algorithms)
    ahead = np.where(np.eye(n, dtype=bool), -np.inf, before).argmax(axis=0)
    on_all = np.exp(np.minimum(of_pairs, _LARGEST_LOG)).sum(axis=0, where=~np.eye(n, dtype=bool)) / (n - 1)
    on_one = np.exp(np.minimum(after[ahead, np.arange(n)], _LARGEST_LOG))
    return SecondOpinion(algorithms, of_pairs, (on_all + on_one) / 2)


def _smallest_over_time(counts: Tallies) -> FloatArray:
    evidence = log_e_values(counts).min(axis=0)
    np.fill_diagonal(evidence, 0.0)
    return evidence


def log_e_values(counts: Tallies) -> FloatArray:
    """``[timepoint, i, j]``: logarithm of the e-value for "``i`` beats ``j`` on more than half of the instances".

    A tie neither wins nor loses.  For an instance of which a share x of the runs is won, counting it in part as a tie
    gives no more than the bet on x would.
    """
    win, loss = np.log1p(_STAKES), np.log1p(-_STAKES)
    gains = counts.wins[..., None] * win + counts.losses[..., None] * loss + _LOG_MONEY
    largest = gains.max(axis=-1)
    return largest + np.log(np.exp(gains - largest[..., None]).sum(axis=-1))
