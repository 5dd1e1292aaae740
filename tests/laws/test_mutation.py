"""The tool that changes the source and expects a test to fail, tools/mutation.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
SOURCE = '''"""A room."""


class Numbers(list):
    limit: int = 3

    @property
    def smallest(self) -> int:
        """The smallest."""
        return min(self)


def unused(x: int) -> int:
    return x + 1


def halved(number: int) -> float:
    return number / 2
'''
TESTS = """import pytest
from polarbear_plugins.room import Numbers, halved

@pytest.fixture(scope="module")
def smallest():
    return Numbers([2, 1, 4]).smallest

def test_something_else():
    assert halved(6) == 3

def test_the_smallest(smallest):
    assert smallest == 1
"""


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    import mutation

    yield mutation
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "polarbear_plugins/__init__.py": "",
        "polarbear_plugins/room/__init__.py": SOURCE,
        "integrations/plugin/__init__.py": "",
        "tests/room/test_room.py": TESTS,
        "tests/integrations/test_plugin_of_all.py": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["slow: slow"]\n')
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def test_a_room_is_found_with_its_tests(tool: ModuleType, project: Path) -> None:
    assert tool.source_of("room", project) == Path("polarbear_plugins/room")
    assert tool.tests_of("room", project) == ["tests/room"]
    assert tool.source_of("plugin", project) == Path("integrations/plugin")
    assert tool.tests_of("plugin", project) == ["tests/integrations/test_plugin_of_all.py"]
    with pytest.raises(SystemExit, match="There is no room 'attic'; there are plugin, room"):
        tool.source_of("attic", project)


def test_tests_of_other_rooms_that_are_listed_exist(tool: ModuleType, root: Path) -> None:
    for room in (*tool.ALSO, "racing", "selection", "plackett_luce", "planning"):
        paths = tool.tests_of(room, root)
        assert paths
        assert all((root / path).exists() for path in paths)


def test_survivors_are_read_as_they_are_written(tool: ModuleType, tmp_path: Path) -> None:
    text = "def f(x):\n    return x + 1\n"
    mutant = tool.Mutant("a/b.py", 2, range(2, 3), text, text.replace("+", "-"))
    assert mutant.diff == ("- return x + 1", "+ return x - 1")
    file = tmp_path / "survivors.md"
    file.write_text("# Survivors\n\nWhat this is.\n\n" + tool.as_markdown([mutant]))
    assert tool.listed(file) == {(mutant.path, mutant.diff)}
    assert tool.listed(tmp_path / "none.md") == set()


def test_what_is_listed_as_a_survivor_is_still_in_the_source(tool: ModuleType, root: Path) -> None:
    for path, diff in tool.listed(tool.LISTED):
        lines = {line.strip() for line in (root / path).read_text().splitlines()}
        assert {line[2:] for line in diff if line[0] == "-"} <= lines, path


def test_the_rate_counts_listed_survivors_and_comes_with_its_interval(tool: ModuleType) -> None:
    outcomes = ["tests/a.py::test_b"] * 6 + ["import", "timeout", "survived", "no test"]
    # Clopper and Pearson for 8 of 10.
    assert tool.table("room", outcomes, 1)[-1] == "| room | 10 | 7 | 1 | 2 | 1 | 80.0% | 44.4% to 97.5% |"


@pytest.mark.slow
def test_what_takes_too_long_is_ended_with_the_processes_that_it_started(project: Path, tmp_path: Path) -> None:
    command = f"""
import os, subprocess, sys, pathlib
sys.path.insert(0, {str(TOOLS)!r})
import mutation
root, work, source = map(pathlib.Path, ({str(project)!r}, {str(tmp_path)!r}, "polarbear_plugins/room"))
runner = mutation.Runner(root, work, source, [], False, 1)
print(runner.fork(lambda: 3, 60), runner.fork(lambda: 1 / 0, 60))
print(runner.fork(lambda: subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE).wait(), 0.5))
"""
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "70", "None"]


@pytest.mark.slow
def test_mutants_are_killed_by_tests_that_run_them_and_the_rest_survives(project: Path) -> None:
    pytest.importorskip("mutmut")
    command = f"import sys, pathlib; sys.path.insert(0, {str(TOOLS)!r}); import mutation; "
    command += f"mutation.main(['room', '--sample', '0'], pathlib.Path({str(project)!r}))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    outcomes: dict[int, set[str]] = {}
    for line in done.stdout.splitlines():
        if "/" in line and "room/__init__.py:" in line and line[0].isdigit():
            _, place, outcome, *_ = line.split()
            outcomes.setdefault(int(place.rpartition(":")[2]), set()).add(outcome)
    assert outcomes[10] == {"tests/room/test_room.py::test_the_smallest"}  # a property that a fixture uses
    assert outcomes[5] == outcomes[14] == {"survived"}  # a default that no test looks at, and a dead function
    assert outcomes[18] == {"tests/room/test_room.py::test_something_else"}
    assert "+ return x - 1" in (project / "build" / "mutation" / "room.md").read_text()
    assert (project / "polarbear_plugins" / "room" / "__init__.py").read_text() == SOURCE
