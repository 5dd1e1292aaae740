"""Which versions the machines of a race have, and whether they go together."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping

from polarbear_plugins.environment import installed_versions

OURS = "polarbear-plugins"
#: Distributions on whose versions the values of a run may depend; their modules have the same names.
PACKAGES = ("numpy", "scipy", "ioh", "modcma", "optuna", "cmaes", "onnxruntime")


def present() -> dict[str, str]:
    """Versions in this process of everything that a race may use; who lacks a package leaves it out."""
    return dict(_installed())


def needed() -> dict[str, str]:
    """Versions of what this process has loaded: a race loads here, too, what its portfolio and suite need."""
    return {name: version for name, version in _installed().items() if name not in PACKAGES or name in sys.modules}


def misfit(have: Mapping[str, str], need: Mapping[str, str]) -> str | None:
    """Say why a worker cannot take part: it lacks a package, or has another version of this one.

    >>> misfit({"polarbear-plugins": "0.1", "python": "3.12"}, {"polarbear-plugins": "0.2", "python": "3.11"})
    'it has polarbear-plugins 0.1, and this process 0.2'
    >>> misfit({"polarbear-plugins": "0.2"}, {"polarbear-plugins": "0.2", "ioh": "0.3.22"})
    'it has no ioh, and this process 0.3.22'
    """
    if have.get(OURS) != need[OURS]:
        return _compared({OURS: need[OURS]}, have)
    missing = {name: version for name, version in need.items() if name not in have}
    return _compared(missing, have) if missing else None


def difference(have: Mapping[str, str], need: Mapping[str, str]) -> str | None:
    """Say what a worker has in another version, which may or may not change the values of its runs.

    >>> difference({"numpy": "2.1.0", "python": "3.12"}, {"numpy": "2.4.6", "python": "3.12"})
    'it has numpy 2.1.0, and this process 2.4.6'
    """
    other = {name: version for name, version in need.items() if have.get(name, version) != version}
    return _compared(other, have) if other else None


def _compared(need: Mapping[str, str], have: Mapping[str, str]) -> str:
    theirs = ", ".join(f"{name} {have[name]}" if name in have else f"no {name}" for name in need)
    return f"it has {theirs}, and this process {', '.join(need.values())}"


@functools.cache
def _installed() -> Mapping[str, str]:
    found = installed_versions()
    found["python"] = ".".join(platform.python_version_tuple()[:2])  # what comes after makes no difference
    return {name: found[name] for name in ("python", OURS, *PACKAGES) if name in found}
