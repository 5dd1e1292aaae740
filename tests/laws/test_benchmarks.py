"""The runner of a folder of benchmarks, tested on folders of small scripts; every real script answers --help."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
FOLDERS = ("speed", "evidence", "endurance")
SCRIPTS = sorted(path for folder in FOLDERS for path in (BENCHMARKS / folder).glob("[!_]*.py"))

BEGIN = f"""
import argparse
import sys
sys.path.append({str(BENCHMARKS)!r})
from measuring import parse_arguments, report_figure, skip

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=1000)
options = parse_arguments(parser, {{"size": 10}})
"""
MAIN = (
    (BENCHMARKS / "speed" / "__main__.py").read_text().replace("str(Path(__file__).parents[1])", f"{str(BENCHMARKS)!r}")
)
FAST = BEGIN + 'report_figure(f"size {options.size}", "speed", 2.5, "a bare loop", "higher")\n'
FAILS = BEGIN + 'raise ValueError("the two do not agree")\n'
NO_PACKAGE = BEGIN + "sys.modules.pop('ioh', None)\nsys.path[:] = []\nimport ioh\n"
NO_EXTRA = BEGIN + "from polarbear_plugins.errors import MissingExtraError\nraise MissingExtraError('install it')\n"
NO_DATA = BEGIN + 'skip("there is no table")\n'
OWN_IS_MISSING = BEGIN + "import a_script_that_has_moved\n"
HANGS = BEGIN + 'import os, time\nreport_figure(f"pid {os.getpid()}", "half", 0.5, "a bare loop")\ntime.sleep(600)\n'


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., list[str]]:
    """Make a folder of scripts; gives the command that runs it."""

    def make(**scripts: str) -> list[str]:
        place = tmp_path / "fake"
        place.mkdir()
        for name, text in scripts.items():
            (place / f"{name}.py").write_text(text)
        (place / "__main__.py").write_text(MAIN)
        return [sys.executable, str(place)]

    return make


def run(command: list[str], *options: str) -> tuple[int, list[str], str]:
    """Exit code, lines of the table and what follows, and what was shown meanwhile."""
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_folder_is_one_table_on_standard_output(folder: Callable[..., list[str]]) -> None:
    code, lines, shown = run(folder(first=FAST, second=FAST.replace("2.5", "0.125")))
    assert code == 0
    assert lines[0].split() == ["script", "figure", "compared", "with", "value", "better", "seconds", "outcome"]
    assert [line.split()[:6] for line in lines[1:3]] == [
        ["first", "speed", "a", "bare", "loop", "2.5"],
        ["second", "speed", "a", "bare", "loop", "0.125"],
    ]
    assert lines[3].startswith("2 ok in ")
    assert len(lines) == 4
    assert shown.splitlines() == ["[1/2] first is running", "  size 1000", "[2/2] second is running", "  size 1000"]


def test_quick_means_small_sizes_and_only_some_scripts(folder: Callable[..., list[str]]) -> None:
    command = folder(first=FAST, second=FAST)
    code, lines, shown = run(command, "--quick", "--only", "second")
    assert (code, shown.splitlines()) == (0, ["[1/1] second is running", "  size 10"])
    assert "Small sizes" in lines[2]
    code, _, shown = run(command, "--only", "third")
    assert code == 2
    assert "invalid choice: 'third'" in shown


def test_a_script_that_fails_is_named_and_the_others_run(folder: Callable[..., list[str]]) -> None:
    code, lines, shown = run(folder(a=FAILS, b=FAST, c=OWN_IS_MISSING))
    assert code == 1
    assert lines[1].endswith("failed: ValueError: the two do not agree")
    assert lines[2].endswith("ok")
    assert lines[3].endswith("failed: ModuleNotFoundError: No module named 'a_script_that_has_moved'")
    assert lines[4].startswith("2 failed, 1 ok in ")
    assert "Traceback" in shown


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (NO_PACKAGE, "needs the package ioh"),
        (NO_EXTRA, "install it"),
        (NO_DATA, "there is no table"),
    ],
)
def test_a_script_that_cannot_run_here_is_skipped_with_the_reason(
    folder: Callable[..., list[str]], script: str, reason: str
) -> None:
    code, lines, _ = run(folder(only=script))
    assert code == 0
    assert lines[1].endswith(f"skipped: {reason}")
    assert lines[2].startswith("1 skipped in ")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_ends_the_script_and_prints_the_table_so_far(folder: Callable[..., list[str]], tmp_path: Path) -> None:
    command = folder(a=FAST, b=HANGS, c=FAST)
    with (tmp_path / "shown").open("wb") as shown:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=shown, text=True)
    try:
        deadline = time.monotonic() + 300
        while not (found := re.search(r"  pid (\d+)\n", (tmp_path / "shown").read_text())):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[1]), 0)
    lines = output.splitlines()
    assert process.returncode == 130
    assert lines[1].endswith("ok")
    assert lines[2].split()[:2] == ["b", "half"]
    assert lines[2].endswith("interrupted")
    assert lines[3].startswith("1 ok, 1 interrupted, 1 not run in ")


def test_every_folder_has_scripts_and_a_way_to_run_them() -> None:
    for folder in FOLDERS:
        assert (BENCHMARKS / folder / "__main__.py").exists()
        assert any(script.parent.name == folder for script in SCRIPTS)
    assert {path.name for path in BENCHMARKS.iterdir() if path.is_dir()} - {"__pycache__"} == set(FOLDERS)


# Calls scripts with --help one after the other, each as if it were the first: with the path of the process that was
# started, and with none of the modules beside it.  Importing the packages that many of them need takes longest.
ASK_ALL = """
import contextlib, io, json, runpy, sys, traceback
folder, *scripts = sys.argv[1:]
first_path = list(sys.path)
for script in scripts:
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(folder):
            del sys.modules[name]
    sys.path[:], sys.argv[:] = [script.rpartition("/")[0], *first_path[1:]], [script, "--help"]
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
    sys.stdout.write(json.dumps([script, code, output.getvalue(), errors.getvalue()]) + "\\n")
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """Exit code, standard output and standard error of every script when asked for help."""
    done = subprocess.run(
        [sys.executable, "-c", ASK_ALL, str(BENCHMARKS), *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("elsewhere"),
    )
    return {script: (code, *texts) for script, code, *texts in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_answers_help(
    script: Path, answers: dict[str, tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from run_folder import reason_to_skip

    code, output, errors = answers[str(script)]
    if code:
        reason = reason_to_skip(code, errors.strip().rpartition("\n")[2])
        assert reason is not None, errors
        pytest.skip(reason)
    assert "--quick" in output


@pytest.mark.slow
@pytest.mark.parametrize("script", ["speed", "speed/rankings.py", "evidence", "endurance"])
def test_a_script_or_a_folder_in_a_process_of_its_own_answers_help(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), "--help"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "--quick" in done.stdout


def test_every_path_that_a_script_names_exists() -> None:
    """Every path of this repository that a script or its docstring names exists; outputs go to folders that do."""
    files = [*SCRIPTS, *BENCHMARKS.glob("*.py"), *(ROOT / "tests" / "hostile").rglob("fuzz*.py")]
    named = {
        (path.name, word.strip("`\"'(),;:."))
        for path in files
        for word in path.read_text().split()
        if word.strip("`\"'(),;:.").startswith(("benchmarks/", "tests/", "docs/", "yardsticks/"))
    }
    assert named
    gone = {(name, word) for name, word in named if not (ROOT / word).exists() and not (ROOT / word).parent.is_dir()}
    missing = {(name, word) for name, word in named if word.endswith(".py") and not (ROOT / word).exists()}
    assert not gone | missing
