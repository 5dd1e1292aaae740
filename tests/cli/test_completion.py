from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from polarbear_plugins.cli import main
from polarbear_plugins.cli.completion import names_in
from polarbear_plugins.plugins.manager import load_plugins

BASH = shutil.which("bash")


def completed(*words: str) -> list[tuple[str, str]]:
    """Completions of a command line whose last word is being typed."""
    complete = BashComplete(main, {}, "polarbear", "_POLARBEAR_COMPLETE")
    return [(item.type, item.value) for item in complete.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], ["resume", "report"]),
        (["race", "synth"], ["synthetic"]),
        (["race", "modcma"], ["modcma-ssa", "modcma-matrix", "modcma:"]),
        (["race", "synthetic", "ma"], ["ma-bbob"]),
        (["race", "synthetic", "yahpo"], ["yahpo:", "yahpo:demo", "yahpo-so", "yahpo-mo"]),
        (["race", "synthetic", "synthetic", "--prior", "h"], ["hierarchical-dirichlet", "hsgp"]),
        (["analyze", "--engine", "n"], ["native", "nuts"]),
        (["select", "x.npz", "--preference", ""], ["uniform", "log-uniform", "final", "worst"]),
        (["select", "x.npz", "--risk", "q"], ["quantile:0.05"]),
        (["analyze", "--elimination", "j"], ["joint"]),
    ],
)
def test_names_are_completed(words: list[str], expected: list[str]) -> None:
    assert completed(*words) == [("plain", name) for name in expected]


@pytest.mark.parametrize(
    "command", ["analyze", "measures", "depth", "select", "report", "plan", "resume", "leaderboard"]
)
def test_files_are_left_to_the_shell(command: str) -> None:
    assert completed(command, "ru") == [("file", "ru")]


def test_every_portfolio_and_suite_that_plugins_name_is_known_to_them() -> None:
    """The first line of a docstring begins with names; otherwise completion would offer unknown names."""
    plugins = load_plugins()
    for kind in ("portfolio", "suite"):
        for plugin in plugins.installed:
            line = plugin.hooks.get(f"polarbear_{kind}")
            assert line is None or names_in(line), f"{plugin.name} names no {kind}"


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_completes_as_documented(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "reference" / "commands.md").read_text()
    [line] = [line for line in page.splitlines() if "=bash_source polarbear" in line]
    program = tmp_path / "polarbear"
    code = "from polarbear_plugins.cli import main; main(prog_name='polarbear')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    program.chmod(0o755)
    script = (
        f"{line.partition('#')[0]}\n"
        "COMP_WORDS=(polarbear select x --preference lo); COMP_CWORD=4; _polarbear_completion polarbear\n"
        'echo "${COMPREPLY[*]}"; complete -p polarbear'
    )
    path = f"{tmp_path}:/usr/bin:/bin"
    assert BASH is not None
    done = subprocess.run(
        [BASH, "-c", script], env={"PATH": path, "PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[0] == "log-uniform", done.stderr
    assert "_polarbear_completion polarbear" in done.stdout
