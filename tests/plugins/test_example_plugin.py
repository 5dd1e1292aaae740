from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example plugin, installed by pip into a folder of its own without any network."""
    folder = tmp_path_factory.mktemp("example")
    # A copy, so that the build leaves nothing behind in the repository.
    shutil.copytree(Path(__file__).parents[2] / "examples" / "plugin", folder / "source")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", folder / "target", folder / "source"],
        check=True,
    )
    return folder / "target"


def run_beside(installed: Path, program: str, *arguments: str) -> str:
    """What a Python prints that finds the example installed."""
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=installed.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr == ""
    return result.stdout


@pytest.mark.slow
def test_the_installed_example_is_listed_with_its_distribution_and_both_hooks(installed: Path) -> None:
    listed = json.loads(run_beside(installed, "from polarbear_plugins.cli import main; main()", "plugins", "--json"))
    assert listed["failed"] == []
    plugins = {plugin["name"]: plugin for plugin in listed["installed"]}
    assert plugins["spheres"] == {
        "name": "spheres",
        "module": "polarbear_spheres",
        "distribution": "polarbear-spheres 1.0",
        "hooks": {
            "polarbear_suite": "spheres: a bowl around a random centre; option dimension (2)",
            "polarbear_portfolio": "samplers: random search over the whole box, and over the middle of it",
        },
    }
    assert "table" in plugins


@pytest.mark.slow
def test_the_portfolio_of_the_installed_example_runs_on_its_suite(installed: Path) -> None:
    program = """
from polarbear_plugins import load_plugins
plugins = load_plugins()
suite = plugins.suite("spheres", dimension="3")
problem = suite.build(next(suite.identities(0)))
for algorithm in plugins.portfolio("samplers"):
    run = algorithm.run(problem, 25, 1)
    print(run.algorithm, run.instance, run.seed, run.horizon, problem.lower.size)
"""
    assert run_beside(installed, program).splitlines() == ["everywhere sphere-0 1 25.0 3", "middle sphere-0 1 25.0 3"]
