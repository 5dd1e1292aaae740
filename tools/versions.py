"""Which versions of other packages this one needs: the lowest that pyproject.toml allows, and what is installed.

    python tools/versions.py lowest all test                # the lowest versions, as constraints for pip
    python tools/versions.py install all,test -e '.[all]'   # pip install with these constraints
    python tools/versions.py table                          # the table of docs/evidence/reliability_tests.md

It needs nothing but Python and pip, since it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = "core"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>\d+(\.\d+)*)(,<\d+(\.\d+)*)?")


def requirements(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Lowest version of each package, for the core and for each extra, as they are written in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    own = re.compile(rf"{re.escape(project['name'])}\[(.*)\]")
    groups: dict[str, dict[str, str]] = {}
    for group, lines in {CORE: project["dependencies"], **project["optional-dependencies"]}.items():
        groups[group] = {}
        for line in lines:
            if extras := own.fullmatch(line):
                for extra in extras[1].split(","):
                    groups[group] |= highest([groups[group], groups[extra]])
            elif found := REQUIREMENT.fullmatch(line):
                groups[group][found["name"].lower()] = found["version"]
            else:
                raise SystemExit(
                    f"pyproject.toml, {group}: expected NAME>=VERSION or NAME>=VERSION,<VERSION, got {line!r}."
                )
    return groups


def highest(groups: Iterable[dict[str, str]]) -> dict[str, str]:
    """Lowest versions that satisfy all of these."""
    lowest: dict[str, str] = {}
    for group in groups:
        for name, version in group.items():
            lowest[name] = max(lowest.get(name, version), version, key=_parts)
    return dict(sorted(lowest.items()))


def lowest(extras: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Lowest versions of the core and these extras."""
    groups = requirements(root)
    unknown = [extra for extra in extras if extra not in groups]
    if unknown:
        raise SystemExit(f"There is no extra {unknown[0]!r}; there are {', '.join(groups)}.")
    return highest([groups[CORE], *(groups[extra] for extra in extras)])


def table(root: Path = ROOT) -> list[str]:
    """Lines of a table: each package, who needs it, its lowest version, and the one that is installed here."""
    groups = {extra: own for extra, own in requirements(root).items() if extra != "all"}
    lines = ["| package | minimum | newest |", "| --- | --- | --- |"]
    for name in sorted({name for own in groups.values() for name in own}):
        bounds: dict[str, list[str]] = {}
        for extra, own in groups.items():
            if name in own:
                bounds.setdefault(own[name], []).append(extra)
        needed = "; ".join(f"{version} ({', '.join(extras)})" for version, extras in bounds.items())
        lines.append(f"| {name} | {needed} | {_installed(name)} |")
    return lines


def install(extras: Iterable[str], arguments: Sequence[str]) -> int:
    """Run pip install with the lowest versions as constraints."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "lowest.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in lowest(extras).items()))
        command = [sys.executable, "-I", "-m", "pip", "install", "--constraint", str(constraints), *arguments]
        return subprocess.run(command, check=False).returncode


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Lowest and installed versions of what the package needs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lowest").add_argument("extras", nargs="*")
    installing = commands.add_parser("install")
    installing.add_argument("extras", help="separated by commas")
    installing.add_argument("arguments", nargs=argparse.REMAINDER, help="for pip install")
    commands.add_parser("table")
    given = parser.parse_args(arguments)
    if given.command == "install":
        return install(given.extras.split(","), given.arguments)
    if given.command == "table":
        print("\n".join(table()))
    else:
        print("\n".join(f"{name}=={version}" for name, version in lowest(given.extras).items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
