"""The packages in ``hub``, as CONTRIBUTING.md, the template and the tutorials of the OptunaHub registry want them."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest

optuna = pytest.importorskip("optuna")
from polarbear_plugins.integrations import optuna_pruner, optuna_sampler  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner import pruner  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler import study_values  # noqa: E402

MODULES = {"pruners": optuna_pruner, "samplers": optuna_sampler}
# optunahub, which would download the packages.
STAND_IN = """
import importlib.util

def load_local_module(package, *, registry_root):
    spec = importlib.util.spec_from_file_location(package.replace("/", "_"), f"{registry_root}/{package}/__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def load_module(package):
    return load_local_module(package, registry_root="package")
"""

# Name, type and default of each parameter.
Parameters: TypeAlias = list[tuple[str, str, str | None]]


@pytest.fixture
def registry(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker_module: Callable[[str, str], ModuleType]
) -> ModuleType:
    """The current folder has the packages where the registry has them, and optunahub finds them there."""
    (tmp_path / "package").symlink_to(root / "hub")
    monkeypatch.chdir(tmp_path)
    return worker_module("optunahub", STAND_IN)


@pytest.fixture(params=MODULES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def folder(kind: str, root: Path) -> Path:
    return root / "hub" / kind / "polarbear"


@pytest.fixture
def readme(folder: Path) -> str:
    return (folder / "README.md").read_text()


def test_a_package_has_the_files_of_the_template_and_what_users_and_reviewers_need(folder: Path, root: Path) -> None:
    files = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert files == {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt", "tests"}
    assert (folder / "LICENSE").read_text() == (root / "LICENSE").read_text()


def test_a_package_exports_what_is_installed(kind: str, registry: ModuleType) -> None:
    package = registry.load_module(f"{kind}/polarbear")
    assert all(getattr(package, name) is getattr(MODULES[kind], name) for name in package.__all__)


# The README


def test_the_front_matter_has_the_fields_of_the_template(kind: str, readme: str, root: Path) -> None:
    front = dict(line.split(": ", maxsplit=1) for line in readme.split("---\n")[1].splitlines())
    assert list(front) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert " " in front["title"]  # a name for people, not that of the class
    assert kind.removesuffix("s") in front["tags"].strip("[]").split(", ")
    assert front["license"] == "MIT License"
    versions = front["optuna_versions"].strip("[]").split(", ")
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lowest = next(line.removeprefix("optuna>=") for line in extras["optuna"] if line.startswith("optuna>="))
    assert versions[0].startswith(f"{lowest}.")


def test_a_readme_has_the_sections_of_the_template_in_their_order(readme: str) -> None:
    sections = re.findall(r"^## (.*)$", readme, flags=re.MULTILINE)
    assert sections == ["Abstract", "APIs", "Installation", "Example", "Others"]


def test_a_readme_has_no_html_and_no_link_that_the_site_lacks(readme: str) -> None:
    assert not re.search(r"<[a-zA-Z/!]", readme)
    assert all(address.startswith("https://") for address in re.findall(r"\]\((.*?)\)", readme))
    assert "load_local_module" not in readme


def test_the_requirements_are_this_package_and_the_readme_installs_them(
    kind: str, folder: Path, readme: str, root: Path
) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    [line] = (folder / "requirements.txt").read_text().splitlines()
    found = re.fullmatch(r"(.*)\[(.*)\]>=([\d.]+)", line)
    assert found is not None
    assert found[1] == project["name"]
    assert found[2] in project["optional-dependencies"]
    assert project["version"].startswith(found[3])
    assert f"pip install -r https://hub.optuna.org/{kind}/polarbear/requirements.txt" in readme
    assert f"Python {project['requires-python'].removeprefix('>=')} or later" in readme


def _documented(readme: str) -> dict[str, tuple[str, Parameters]]:
    """Signature and parameters of each class and function in the section APIs."""
    section = readme.split("\n## APIs\n")[1].split("\n## ")[0]
    found = {}
    for entry in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
        head = re.match(r"`([\w.]+)(\(.*?\))`", entry)
        assert head is not None
        parameters = re.findall(r"^  - `(\w+)` \(`([^`]+)`(?:, default `([^`]+)`)?\): \w", entry, flags=re.MULTILINE)
        assert len(parameters) == entry.count("\n  - ")
        found[head[1]] = head[2], [(name, kind, default or None) for name, kind, default in parameters]
    return found


def _actual(function: Callable[..., Any]) -> tuple[str, Parameters]:
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    signature = inspect.Signature([one.replace(annotation=one.empty) for one in parameters])
    return _quote(str(signature)), [
        (
            one.name,
            _without_aliases(one.annotation),
            None if one.default is one.empty else _quote(repr(one.default)),
        )
        for one in parameters
    ]


def _without_aliases(annotation: str) -> str:
    """A type as users of the hub read it, who see no aliases."""
    aliases = {"Parameters": "Mapping[str, Any]", "FrozenTrial": "optuna.trial.FrozenTrial"}
    literals = {"Goal": pruner.Goal, "Criterion": pruner.Criterion, "Steps": study_values.Steps}
    aliases |= {name: repr(literal).replace("typing.", "") for name, literal in literals.items()}
    return _quote(re.sub(r"\w+", lambda word: aliases.get(word[0], word[0]), annotation))


def _quote(code: str) -> str:
    return code.replace("'", '"')


def _public_methods(made: type) -> list[str]:
    """Methods that a class has beyond those of Optuna's."""
    own = [name for name, what in vars(made).items() if callable(what) and not name.startswith("_")]
    return [name for name in own if not hasattr(made.__base__, name)]


def test_the_apis_of_a_readme_are_those_of_the_package(kind: str, readme: str, registry: ModuleType) -> None:
    package = registry.load_module(f"{kind}/polarbear")
    actual = {}
    for name in package.__all__:
        made = getattr(package, name)
        actual[name] = _actual(made)
        for method in _public_methods(made) if isinstance(made, type) else ():
            actual[f"{name}.{method}"] = _actual(getattr(made, method))
    assert _documented(readme) == actual


# What runs


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("where", ["example.py", "README.md"])
def test_an_example_runs(where: str, kind: str, folder: Path) -> None:
    code = (folder / where).read_text()
    if where == "README.md":
        [code] = re.findall(r"```python\n(.*?)```", code, flags=re.DOTALL)
    assert f'optunahub.load_module(package="{kind}/polarbear")' in code
    made: dict[str, Any] = {}
    exec(compile(code, where, "exec"), made)  # noqa: S102 - our own
    assert made["study"].best_trial is not None


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_the_tests_of_a_package_pass_from_the_top_folder_of_the_registry(kind: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"package/{kind}/polarbear/tests"]
    if importlib.util.find_spec("optuna.testing.pytest_samplers") is None:  # new in Optuna 4.8
        command.append("--ignore=package/samplers/polarbear/tests/test_sampler.py")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
