from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from polarbear_plugins.cli import main
from polarbear_plugins.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))]
# What an example needs beyond the core, by a word in it.
NEEDS = {
    "optuna": ["optuna"],
    "modcma": ["ioh", "modcma"],
    "yahpo:demo": ["onnxruntime"],
    "polarbear_plugins.plots": ["matplotlib"],
    "attainment_": ["moocore"],
}


def _blocks(root: Path, language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (root / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def _commands(page: str) -> list[list[str]]:
    """Arguments of each call of polarbear in the shell blocks of a page."""
    found = []
    for block in _blocks(ROOT, "sh", page):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            ends = [place for place, word in enumerate(words) if word in ("&&", "|", ";", "&")]
            for start, end in zip([0, *(place + 1 for place in ends)], [*ends, len(words)], strict=True):
                if words[start:end] and Path(words[start]).name == "polarbear":
                    found.append(words[start + 1 : end])
    return found


def _anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else(root: Path) -> None:
    [command] = [block.strip() for block in _blocks(root, "sh") if "tox" in block]
    lines = (root / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith(("#", "set "))] == [command]


def test_the_first_command_is_the_demo_with_what_it_needs(root: Path) -> None:
    first = _blocks(root, "sh")[0]
    assert first.rstrip().endswith("pip install '.[ioh,plots]' && .venv/bin/polarbear demo")


@pytest.mark.slow
def test_the_command_for_existing_results_analyses_a_table_that_is_there(root: Path) -> None:
    [command] = [block for block in _blocks(root, "sh") if "examples/runs.csv" in block]
    arguments = command.partition(".venv/bin/polarbear ")[2].split()
    code = "from polarbear_plugins.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], cwd=root, capture_output=True, text=True, check=True
    )
    assert "dual-annealing" in done.stdout
    assert not done.stderr


@pytest.mark.parametrize(
    ("page", "example"),
    [
        pytest.param(page, example, id=f"{page}-{number}")
        for page in PAGES
        for number, example in enumerate(_blocks(ROOT, "python", page), start=1)
    ],
)
def test_the_python_examples_run(root: Path, page: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for word, modules in NEEDS.items():
        for module in modules if word in example else ():
            pytest.importorskip(module)
    monkeypatch.chdir(root)
    exec(compile(example, page, "exec"), {})  # noqa: S102 - our own pages


def test_many_pages_have_commands() -> None:
    assert len([page for page in PAGES if _commands(page)]) > 10


@pytest.mark.parametrize("page", [page for page in PAGES if _commands(page)])
def test_the_commands_exist_with_these_options(page: str) -> None:
    for name, *arguments in _commands(page):
        assert name in main.commands
        with contextlib.suppress(MissingExtraError):  # the option is there, and says what it needs
            main.commands[name].make_context(name, arguments).close()  # parses, and does not run


def test_a_command_with_an_unknown_option_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        main.commands["race"].make_context("race", ["a", "b", "--no-such-option"])


@pytest.mark.parametrize("page", PAGES)
def test_the_links_lead_somewhere(root: Path, page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (root / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if not target.startswith(("http:", "https:")):
            path = (root / page).parent / target if target else root / page
            assert path.exists(), f"{page} links to {target}"
            if anchor and path.suffix == ".md":
                assert anchor in _anchors(path), f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_scripts_and_pages_that_are_named_exist(root: Path, page: str) -> None:
    folders = "benchmarks|docs|examples|tests|tools|yardsticks"
    named = re.findall(rf"(?<![\w./-])(?:{folders})/[\w/]+\.(?:py|md|csv|json|npz|toml)\b", (root / page).read_text())
    missing = {name for name in named if not (root / name).exists()}
    assert not missing, f"{page} names {sorted(missing)}"


def test_the_extras_in_the_readme_are_those_of_the_package(root: Path) -> None:
    extras = set(tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    named = set(re.findall(r"^\| `(\w+)` \|", (root / "README.md").read_text(), flags=re.MULTILINE))
    assert named == {extra for extra in extras if not extra.startswith("test")}
