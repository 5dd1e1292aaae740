"""Algorithms that cannot run on the problems of a suite: left out before a race or campaign begins, not run to fail."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.execution.requests import PortfolioSource
from polarbear_plugins.problems.protocols import Problem, Suite, reason_against
from polarbear_plugins.seeds import derived_seed


def leave_out_unfit(
    portfolio: PortfolioSource, suite: Suite, seed: int, least: int, stacklevel: int = 3
) -> PortfolioSource:
    """The portfolio without the algorithms that refuse the first problem of the suite; warns about each.

    An algorithm that accepts the first problem and not a later one fails there, as any failed run.

    :raises InvalidInputError: fewer than ``least`` algorithms remain.
    """
    reasons = _reasons_against(portfolio, suite, seed)
    if not reasons:
        return portfolio
    remaining = portfolio.without(reasons)
    said = "; ".join(f"{name!r}: {why}" for name, why in reasons.items())
    if len(remaining.algorithms) < least:
        left = ", ".join(map(repr, remaining.algorithms)) or "nothing"
        raise InvalidInputError(
            f"These algorithms cannot run on the suite {suite.name!r}, and {left} remains, where "
            f"{'two are' if least > 1 else 'one is'} needed. {said}. Choose other algorithms, or another suite."
        )
    warnings.warn(
        f"Left out, since they cannot run on the suite {suite.name!r}: {said}. The others run.",
        PolarBearWarning,
        stacklevel=stacklevel,
    )
    return remaining


def _reasons_against(portfolio: PortfolioSource, suite: Suite, seed: int) -> Mapping[str, str]:
    """Why algorithms refuse the first problem of the suite."""
    if not any(hasattr(algorithm, "refuses") for algorithm in portfolio.algorithms.values()):
        return {}
    problem = _first_problem(suite, seed)
    if problem is None:
        return {}
    asked = {name: reason_against(algorithm, problem) for name, algorithm in portfolio.algorithms.items()}
    return {name: why for name, why in asked.items() if why is not None}


def _first_problem(suite: Suite, seed: int) -> Problem | None:
    """First problem that the race draws; ``None`` if there is none, or if it cannot be built here.

    Workers on other machines may be able to: if they are not, they say why.
    """
    identity = next(suite.identities(derived_seed(seed, "instances")), None)
    try:
        return None if identity is None else suite.build(identity)
    except Exception:
        return None
