from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDS = {"docs/anytime_measures.md": "moocore", "docs/figures.md": "matplotlib", "docs/optuna.md": "optuna"}


def _blocks(root: Path, language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / page).read_text(), flags=re.DOTALL)


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else(root: Path) -> None:
    [command] = [block.strip() for block in _blocks(root, "sh") if "tox" in block]
    lines = (root / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith(("#", "set "))] == [command]


def test_the_first_command_is_the_demo_with_what_it_needs(root: Path) -> None:
    first = _blocks(root, "sh")[0]
    assert first.rstrip().endswith("pip install '.[ioh,plots]' && .venv/bin/polarbear demo")


def test_the_command_for_existing_results_analyses_a_table_that_is_there(root: Path) -> None:
    [command] = [block for block in _blocks(root, "sh") if "examples/runs.csv" in block]
    arguments = command.partition(".venv/bin/polarbear ")[2].split()
    code = "from polarbear_plugins.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], cwd=root, capture_output=True, text=True, check=True
    )
    assert "dual-annealing" in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_the_python_examples_run(root: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    monkeypatch.chdir(root)
    for example in _blocks(root, "python", page):
        exec(compile(example, page, "exec"), {})  # noqa: S102 - our own pages


def test_the_extras_in_the_readme_are_those_of_the_package(root: Path) -> None:
    extras = set(tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    named = set(re.findall(r"^\| `(\w+)` \|", (root / "README.md").read_text(), flags=re.MULTILINE))
    assert named == {extra for extra in extras if not extra.startswith("test")}
