"""Versions of Python and of the packages on which a result may depend."""

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
_GROUP = "polarbear"  # of the entry points of plugins


def installed_versions(engine: object = "native") -> dict[str, str]:
    """Version of each package on which what runs now may depend, by its name, as far as they are installed.

    What is installed counts, not what was imported: that differs between a process and its workers.  The packages of
    the PyMC engines are left out for the native one.  Whoever provides a plugin is in it.

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
    """Write versions in a line.

    >>> versions_text({"python": "3.11.2", "numpy": "2.4.6"})
    'Python 3.11.2, numpy 2.4.6'
    """
    return ", ".join(f"{'Python' if name == 'python' else name} {number}" for name, number in versions.items())


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
