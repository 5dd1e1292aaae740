"""The Python environment: versions of the packages that a result may depend on, and available cores."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version

_PACKAGES = ("polarbear-plugins", "numpy", "scipy", "pandas")
_BENCHMARKS = ("ioh", "modcma", "optuna", "cmaes", "onnxruntime")
#: Packages on whose versions the values of a run may depend; their modules have the same names.
RUN_PACKAGES = ("numpy", "scipy", *_BENCHMARKS)
_ENGINES = ("pymc", "pymc-extras", "nutpie", "pytensor")
_GROUP = "polarbear"  # entry point group of plugins


def installed_versions(engine: object = "native") -> dict[str, str]:
    """Versions, by name, of the installed packages that a result may depend on.

    Installed packages count, not imported ones: those differ between a process and its workers.  The native engine
    leaves out the packages of the PyMC engines.  Distributions that provide a plugin are included.

    >>> list(installed_versions())[:3]
    ['python', 'polarbear-plugins', 'numpy']
    """
    return dict(_versions(with_engines=engine != "native"))


@cache
def _versions(*, with_engines: bool) -> Mapping[str, str]:
    providers = {point.dist.name for point in entry_points(group=_GROUP) if point.dist is not None}
    known = (*_PACKAGES, *_BENCHMARKS, *(_ENGINES if with_engines else ()))
    found = {"python": platform.python_version()}
    for name in (*known, *sorted(providers - set(known))):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def versions_text(versions: Mapping[str, str]) -> str:
    """Versions in one line.

    >>> versions_text({"python": "3.11.2", "numpy": "2.4.6"})
    'Python 3.11.2, numpy 2.4.6'
    """
    return ", ".join(f"{'Python' if name == 'python' else name} {number}" for name, number in versions.items())


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
