"""The quick half of the suite, ``pytest -m "not slow"``, says something about every room without any extra."""

from __future__ import annotations

import ast
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = sorted(path.parent.name for path in (Path(__file__).parents[2] / "polarbear_plugins").glob("*/__init__.py"))
BESIDE = {"hostile", "laws"}  # about the package as a whole


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


def test_ctrl_c_is_not_ignored_in_tests() -> None:
    # As it is under nohup; a process that a test starts and interrupts would ignore it, too.
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
