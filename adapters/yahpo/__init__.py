"""YAHPO Gym (Pfisterer et al. 2022): hyperparameter optimisation on surrogates, as suites of problems.

The surrogates are evaluated directly, from a local copy of yahpo_data.  The package yahpo_gym is not needed, and cannot
be installed beside numpy 2; :class:`BenchmarkSetSuite` takes a ``BenchmarkSet`` of that package.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping

from polarbear_plugins.adapters.yahpo.benchmark_sets import BenchmarkSetSuite
from polarbear_plugins.adapters.yahpo.lists import LISTS
from polarbear_plugins.adapters.yahpo.problems import YahpoObjectivesProblem, YahpoProblem, full_budget
from polarbear_plugins.adapters.yahpo.scenarios import SCENARIOS
from polarbear_plugins.adapters.yahpo.suites import OPTIONS, YahpoSuite, suite_of_list, suite_of_scenario
from polarbear_plugins.adapters.yahpo.surrogates import Surrogate, load_surrogate
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.options import read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import Suite

__all__ = [
    "SCENARIOS",
    "BenchmarkSetSuite",
    "Surrogate",
    "YahpoObjectivesProblem",
    "YahpoProblem",
    "YahpoSuite",
    "full_budget",
    "load_surrogate",
    "polarbear_suite",
]


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """yahpo:SCENARIO[:INSTANCE...], yahpo:demo, yahpo-so, yahpo-mo: options data, target, time, replications."""
    if name in LISTS:
        readers = {key: reader for key, reader in OPTIONS.items() if key != "target"}
        suite = suite_of_list(name, **read_options(options, readers, f"The suite {name!r}"))
    elif name == "yahpo" or name.startswith("yahpo:"):
        if name in ("yahpo", "yahpo:"):
            raise InvalidInputError(
                f"The suite {name!r} needs a scenario: yahpo:SCENARIO, with one of {', '.join(SCENARIOS)}."
            )
        suite = suite_of_scenario(name, **read_options(options, OPTIONS, f"The suite {name!r}"))
    else:
        return None
    if multiprocessing.parent_process() is None:  # workers build only the problems that they run
        suite.check()
    return suite
