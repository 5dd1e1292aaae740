"""What has changed since a journal was begun, and may make its runs differ from those to come."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearWarning
from polarbear_plugins.execution.requests import PortfolioSource, SuiteSource
from polarbear_plugins.experiments.fingerprints import fingerprint
from polarbear_plugins.journal.journal import Journal

#: Key in the description of a race: fingerprints of what was given as Python.
FINGERPRINTS = "fingerprints"


def fingerprints_of(portfolio: PortfolioSource, suite: SuiteSource) -> dict[str, Any]:
    """Fingerprints of what was given as Python; what was given by name is known by its name, options and version."""
    given = {
        name: fingerprint(algorithm)
        for name, algorithm in portfolio.algorithms.items()
        if name not in portfolio.registered
    }
    return {"algorithms": given, "suite": None if suite.registered is not None else fingerprint(suite.suite)}


def note_newcomers(journal: Journal, fingerprints: Mapping[str, Any]) -> None:
    """Add the fingerprints of newcomers; those of the others are from before they ran, which may change objects."""
    then = journal.about.get(FINGERPRINTS) or {}
    algorithms = {**(then.get("algorithms") or {}), **fingerprints["algorithms"]}
    journal.write_about(**{FINGERPRINTS: {**then, "algorithms": algorithms}})


def warn_of_changes(
    path: Path, about: Mapping[str, Any], versions: Mapping[str, str], fingerprints: Mapping[str, Any]
) -> None:
    """Warn if packages, algorithms or problems are not those with which a journal was begun."""
    then: Mapping[str, str] = about.get("versions") or versions
    changes = [
        f"{name} {then.get(name, 'not installed')} then, {versions.get(name, 'not installed')} now"
        for name in {**then, **versions}
        if then.get(name) != versions.get(name)
    ]
    # Bytecode is comparable within a version of Python, without its last number.
    if then.get("python", "").rpartition(".")[0] == versions["python"].rpartition(".")[0]:
        changes += _changed_code(about.get(FINGERPRINTS) or {}, fingerprints)
    if changes:
        warnings.warn(
            f"{path}: not everything is as it was when the journal was begun: {'; '.join(changes)}. Runs from then and "
            "from now are compared with each other all the same. If the difference matters, begin a new journal.",
            PolarBearWarning,
            stacklevel=2,
        )


def _changed_code(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    known = then.get("algorithms") or {}
    changed = [name for name, found in now["algorithms"].items() if known.get(name, found) != found]
    changes = [f"the code or the attributes of {name!r} are others" for name in changed]
    if None not in (then.get("suite"), now["suite"]) and then["suite"] != now["suite"]:
        changes.append("the problems of the suite, or the code that makes them, are others")
    return changes
