"""Versions on the machines of a race, and whether they fit together."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping

from polarbear_plugins.environment import RUN_PACKAGES, installed_versions

OURS = "polarbear-plugins"


def present_versions() -> dict[str, str]:
    """Versions in this process of everything that a race may use, as far as it is installed."""
    return dict(_installed())


def needed_versions() -> dict[str, str]:
    """Versions of what this process has imported: here, too, a race imports what its portfolio and suite need."""
    return {name: version for name, version in _installed().items() if name not in RUN_PACKAGES or name in sys.modules}


def describe_misfit(have: Mapping[str, str], need: Mapping[str, str]) -> str | None:
    """Why a worker cannot take part: a package is missing, or polarbear-plugins has another version; else ``None``.

    >>> describe_misfit({"polarbear-plugins": "0.1", "python": "3.12"}, {"polarbear-plugins": "0.2", "python": "3.11"})
    'it has polarbear-plugins 0.1, and this process 0.2'
    >>> describe_misfit({"polarbear-plugins": "0.2"}, {"polarbear-plugins": "0.2", "ioh": "0.3.22"})
    'it has no ioh, and this process 0.3.22'
    """
    if have.get(OURS) != need[OURS]:
        return _compare_text({OURS: need[OURS]}, have)
    missing = {name: version for name, version in need.items() if name not in have}
    return _compare_text(missing, have) if missing else None


def describe_difference(have: Mapping[str, str], need: Mapping[str, str]) -> str | None:
    """What a worker has in another version, which may change the values of its runs; ``None`` if nothing.

    >>> describe_difference({"numpy": "2.1.0", "python": "3.12"}, {"numpy": "2.4.6", "python": "3.12"})
    'it has numpy 2.1.0, and this process 2.4.6'
    """
    other = {name: version for name, version in need.items() if have.get(name, version) != version}
    return _compare_text(other, have) if other else None


def _compare_text(need: Mapping[str, str], have: Mapping[str, str]) -> str:
    theirs = ", ".join(f"{name} {have[name]}" if name in have else f"no {name}" for name in need)
    return f"it has {theirs}, and this process {', '.join(need.values())}"


@functools.cache
def _installed() -> Mapping[str, str]:
    found = installed_versions()
    found["python"] = ".".join(platform.python_version_tuple()[:2])  # the patch version is ignored
    return {name: found[name] for name in ("python", OURS, *RUN_PACKAGES) if name in found}
