"""Which tests run when: the quick half about every room, and in tox without extras those that can tell."""

from __future__ import annotations

import ast
import configparser
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = sorted(path.parent.name for path in (Path(__file__).parents[2] / "polarbear_plugins").glob("*/__init__.py"))
BESIDE = {"hostile", "laws"}  # about the package as a whole


# What asks for an extra, or whether one is there; see polarbear_plugins/extras.py.
ASKING = {"require", "find_spec", "MissingExtraError"}


def is_slow(test: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(decorator) == "pytest.mark.slow" for decorator in test.decorator_list)


def needs_an_extra(module: ast.Module) -> bool:
    """Whether the whole module is skipped where something is not installed."""
    return any(not isinstance(each, ast.FunctionDef) and "importorskip" in ast.unparse(each) for each in module.body)


def quick_tests(folder: Path) -> Iterator[str]:
    """Names of the tests of a room that are not slow and need no extra."""
    for path in sorted(folder.rglob("test_*.py")):
        module = ast.parse(path.read_text())
        if not needs_an_extra(module) and "pytestmark" not in path.read_text():
            tests = (each for each in module.body if isinstance(each, ast.FunctionDef))
            yield from (test.name for test in tests if test.name.startswith("test_") and not is_slow(test))


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_quick_tests(room: str, root: Path) -> None:
    assert list(quick_tests(root / "tests" / room))


def test_every_folder_of_tests_is_that_of_a_room(root: Path) -> None:
    folders = {path.parent.relative_to(root / "tests").parts[0] for path in (root / "tests").glob("*/**/test_*.py")}
    assert folders == set(ROOMS) | BESIDE


def test_slow_tests_and_those_that_need_an_extra_do_not_count(tmp_path: Path) -> None:
    slow = "@pytest.mark.slow\ndef test_a(): ...\n@pytest.mark.slow\n@pytest.mark.usefixtures('x')\ndef test_b(): ...\n"
    (tmp_path / "test_slow.py").write_text(slow)
    (tmp_path / "test_extra.py").write_text("ioh = pytest.importorskip('ioh')\ndef test_c(): ...\n")
    assert list(quick_tests(tmp_path)) == []
    (tmp_path / "test_quick.py").write_text("def test_d():\n    pytest.importorskip('ioh')\ndef helper(): ...\n")
    assert list(quick_tests(tmp_path)) == ["test_d"]


def asking(folder: Path) -> list[str]:
    """Modules of a folder that ask for an extra."""
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*.py"))
        if any(name in path.read_text() for name in ASKING)
        for node in ast.walk(ast.parse(path.read_text()))
        if getattr(node, "id", getattr(node, "attr", None)) in ASKING
    ]


def commands(root: Path, environment: str) -> str:
    """Commands of an environment of tox."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(root / "tox.ini")
    return tox[f"testenv:{environment}"]["commands"]


def test_the_rooms_that_run_only_with_all_extras_ask_for_none(root: Path) -> None:
    left_out = set(re.findall(r"--ignore=tests/(\S+)", commands(root, "core"))) - {"laws/test_hard_cases.py"}
    assert left_out <= set(ROOMS) | BESIDE
    asked = {room: asking(root / "polarbear_plugins" / room) for room in left_out & set(ROOMS)}
    # The tests of PyMC's engines are skipped without PyMC.
    asked["inference"] = [module for module in asked["inference"] if not module.startswith("pymc/")]
    assert {room for room in asked if asked[room]} == set()


def test_the_rooms_that_ask_for_an_extra_are_known() -> None:
    package = Path(__file__).parents[2] / "polarbear_plugins"
    assert {"plots", "report", "cli", "measures"} <= {room for room in ROOMS if asking(package / room)}


def test_the_long_tests_are_those_that_the_test_command_leaves_out(root: Path) -> None:
    assert '-m "not long"' in commands(root, "full")
    assert '-m "long or hypothesis"' in commands(root, "long")
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(root / "tox.ini")
    assert "long" not in tox["tox"]["env_list"].split(", ")


def test_a_long_test_is_slow_too(root: Path) -> None:
    """So that the quick half has none of them."""
    for path in (root / "tests").rglob("test_*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "pytest.mark.long" in text else ():
            if isinstance(node, ast.FunctionDef) and any(
                "pytest.mark.long" in ast.unparse(d) for d in node.decorator_list
            ):
                assert is_slow(node), f"{path.name}: {node.name} is long and not slow"


def test_ctrl_c_is_not_ignored_in_tests() -> None:
    # As it is under nohup; a process that a test starts and interrupts would ignore it, too.
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
