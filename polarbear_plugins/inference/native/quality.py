"""When draws are good enough to decide on."""

from __future__ import annotations

import itertools
import math

import numpy as np

from polarbear_plugins.arrays import FloatArray

# Shares of the draws that must be distinct, and that they must be worth; share of moves that must be accepted.
_FEWEST_DISTINCT, _FEWEST_EFFECTIVE, _LOWEST_ACCEPTANCE = 0.25, 0.05, 0.2
# Parallel chains are kept several times, some moves apart.
_ROUNDS, _FEWEST_CHAINS = 4, 500


def weights_suffice(k_hat: float, effective: float, draws: int, proposals: int) -> bool:
    """Whether importance weights are good enough without moves.

    The more uneven the weights, the lighter their tail must be; k-hat is noisy where nearly all proposals count.
    """
    share = effective / proposals
    return effective > 0.5 * draws and k_hat < (0.7 if share > 0.9 else 0.5 if share > 0.6 else 0.4)


def parallel_chains(draws: int) -> int:
    """Number of parallel chains for that many draws, of which each gives several."""
    return min(draws, max(_FEWEST_CHAINS, -(-draws // _ROUNDS)))


def correlations(before: FloatArray, after: FloatArray) -> FloatArray:
    """Absolute correlation of each coordinate between where parallel chains began and where they are.

    A coordinate that has no spread counts as 1: chains that all began at one place cannot show that they forgot it.
    """
    first = before - before.mean(axis=0)
    second = after - after.mean(axis=0)
    products = [np.einsum("zk,zk->k", one, other) for one, other in ((first, first), (second, second), (first, second))]
    spread = np.sqrt(products[0] * products[1])
    # A mean is rounded, and the products of a constant are not quite 0.
    varies = (np.ptp(before, axis=0) > 0) & (np.ptp(after, axis=0) > 0) & (spread > 0)
    return np.divide(np.abs(products[2]), spread, out=np.ones_like(spread), where=varies)


def has_forgotten(left: float, chains: int) -> bool:
    """Whether chains no longer correlate with where they began, beyond chance for that many chains."""
    return left < max(0.1, 3.5 / math.sqrt(chains))


def worth_of_rounds(rounds: list[FloatArray]) -> float:
    """Number of independent draws that successive states ``[chain, quantity]`` of parallel chains are worth.

    It is that of the quantity for which it is lowest.
    """
    if len(rounds) == 1:
        return float(len(np.unique(rounds[0], axis=0)))
    next_to = np.mean([correlations(one, other) for one, other in itertools.pairwise(rounds)], axis=0)
    distance = np.abs(np.subtract.outer(np.arange(len(rounds)), np.arange(len(rounds))))
    return len(rounds[0]) / float((next_to.max(initial=0.0) ** distance).mean())


def distinct_share(draws: FloatArray) -> float:
    """Share of distinct draws ``[draw, coordinate]``, to the last bit."""
    return len({row.tobytes() for row in draws}) / len(draws)


def shortcomings(
    draws: int,
    *,
    distinct: float,
    effective: float,
    acceptance: float | None,
    left: float,
    chains: int,
    moves: int,
) -> tuple[str, ...]:
    """Reasons why draws by Markov moves are not good enough, none if they are.

    Parameters
    ----------
    distinct
        Share of distinct draws.
    effective
        Number of independent draws that they are worth.
    acceptance
        Share of accepted moves; ``None`` where a move is never rejected.
    left
        Correlation of the chains with where they began.
    """
    found = []
    if not has_forgotten(left, chains):
        found.append(f"after {moves} moves draws still correlate by {left:.2f} with where they began")
    if distinct < _FEWEST_DISTINCT:
        found.append(f"only {distinct:.0%} of the draws are distinct")
    if effective < _FEWEST_EFFECTIVE * draws:
        found.append(f"{draws} draws are worth only {effective:.0f} independent ones")
    if acceptance is not None and acceptance < _LOWEST_ACCEPTANCE:
        found.append(f"only {acceptance:.0%} of the moves were accepted")
    return tuple(found)
