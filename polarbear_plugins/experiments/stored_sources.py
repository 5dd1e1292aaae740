"""Portfolio and suite as a journal stores them: by name, or not at all if they were given as Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution.requests import PortfolioSource, Registered, SuiteSource
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.settings import RaceSettings


def unit_of(identity: Identity, settings: RaceSettings) -> float:
    """How much time a unit of the timepoints is on an instance."""
    if not settings.per_dimension:
        return 1.0
    if identity.dimension is None:
        raise InvalidInputError(
            f"The instance {identity.name!r} does not say its dimension, so timepoints cannot be multiples of it. Give "
            "its identity a parameter dimension, or race without per_dimension."
        )
    return float(identity.dimension)


def registered_names(portfolio: PortfolioSource, suite: SuiteSource) -> dict[str, Any]:
    """Registered names and options of portfolio and suite, JSON-ready; ``None`` for what was given as Python."""
    portfolios = {portfolio.registered.get(name) for name in portfolio.algorithms}
    return {
        "portfolio": _source_json(portfolios.pop() if len(portfolios) == 1 else None),
        "suite": _source_json(suite.registered),
    }


def _source_json(source: Registered | None) -> dict[str, str] | None:
    return None if source is None else {"name": source.name, "options": source.options}


def restore_portfolio(
    portfolio: Any, about: Mapping[str, Any], plugins: Plugins | None, path: str | Path
) -> PortfolioSource:
    """Portfolio of a journal: the registered one, and what the user gives now, such as newcomers."""
    stored = about.get("portfolio")
    if stored is None or portfolio is None or isinstance(portfolio, str):
        return PortfolioSource.of(*choose_source(portfolio, about, "portfolio", path), plugins)
    registered = PortfolioSource.of(stored["name"], json.loads(stored["options"]), plugins)
    return registered | PortfolioSource.of(portfolio, None, plugins)


def choose_source(
    given: Any, about: Mapping[str, Any], what: str, path: str | Path
) -> tuple[Any, Mapping[str, Any] | None]:
    """What to resume with, and its options: what the user gives now, or what the journal names."""
    stored = about.get(what)
    if stored is None and given is None:
        raise InvalidInputError(
            f"{path}: the {what} of this race was given as Python, which a journal cannot store. Pass it again: "
            f"resume({str(path)!r}, {what}=...)."
        )
    if stored is not None and isinstance(given, str) and given != stored["name"]:
        raise InvalidInputError(
            f"{path}: the {what} of this race is {stored['name']!r}, and {given!r} was given. Their runs cannot be "
            f"compared. Leave {what}= out, or start another race."
        )
    if stored is None or not (given is None or isinstance(given, str)):
        return given, None
    return stored["name"], json.loads(stored["options"])
