from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
WHERE = (
    "import polarbear_plugins.adapters.table as t, polarbear_plugins.integrations as i; print(t.__file__, i.__file__)"
)


def _pyproject(root: Path) -> dict[str, object]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def _packages(root: Path) -> set[str]:
    """Packages in the tree, under the names they install as."""
    found = set()
    for folder, package in (
        ("polarbear_plugins", "polarbear_plugins"),
        ("adapters", "polarbear_plugins.adapters"),
        ("integrations", "polarbear_plugins.integrations"),
    ):
        for init in (root / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(root / folder).parts
            found.add(".".join([package, *parts]))
    return found


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A copy of what is needed to build, so that building leaves nothing in the repository."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("polarbear_plugins", "adapters", "integrations"):
        shutil.copytree(root / name, copy / name, symlinks=True, ignore=ignore)
    return copy


@pytest.fixture
def wheel(tree: Path, tmp_path: Path) -> Path:
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "dist", tree],
        check=True,
        capture_output=True,
    )
    [wheel] = (tmp_path / "dist").glob("*.whl")
    return wheel


def test_the_package_list_is_the_tree(root: Path) -> None:
    tool = _pyproject(root)["tool"]
    assert set(tool["setuptools"]["packages"]) == _packages(root)  # type: ignore[index]


@pytest.mark.slow
def test_the_wheel_holds_every_module_once_and_only_under_the_package(root: Path, wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"polarbear_plugins"}
    modules = {
        f"polarbear_plugins/{path.relative_to(root).as_posix()}"
        for folder in ("adapters", "integrations")
        for path in (root / folder).rglob("*.py")
    } | {path.relative_to(root).as_posix() for path in (root / "polarbear_plugins").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert "polarbear_plugins/py.typed" in names
    assets = [path for path in (root / "polarbear_plugins" / "report" / "assets").rglob("*") if path.is_file()]
    assert {path.relative_to(root).as_posix() for path in assets} <= set(names)
    assert len(assets) > 10
    demo = [path for path in (root / "adapters" / "yahpo" / "demo_data").rglob("*") if path.is_file()]
    assert {f"polarbear_plugins/{path.relative_to(root).as_posix()}" for path in demo} <= set(names)
    assert 0 < sum(path.stat().st_size for path in demo) < 50_000


@pytest.mark.slow
def test_adapters_import_from_an_installed_wheel_and_leak_no_top_level_name(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    subprocess.run([*PIP, "install", "--no-deps", "--target", target, wheel], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    found = subprocess.run(
        [sys.executable, "-c", WHERE], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert all(Path(path).is_relative_to(target) for path in found.stdout.split())
    leak = subprocess.run([sys.executable, "-c", "import adapters"], cwd=tmp_path, env=environment, capture_output=True)
    assert b"ModuleNotFoundError" in leak.stderr


@pytest.mark.slow
def test_adapters_import_from_an_editable_install_and_leak_no_top_level_name(tree: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    purelib = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # What the package needs, from the environment of the tests; but not the package itself, which is installed there.
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "polarbear" not in entry.name and entry.suffix != ".pth":
            (purelib / entry.name).symlink_to(entry)
    python = home / "bin" / "python"
    subprocess.run(
        [*PIP, "--python", python, "install", "--no-deps", "--no-build-isolation", "--editable", tree],
        check=True,
        capture_output=True,
    )
    found = subprocess.run([python, "-c", WHERE], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert all(Path(path).is_relative_to(tree) for path in found.stdout.split())
    leak = subprocess.run([python, "-c", "import adapters"], cwd=tmp_path, capture_output=True)
    assert b"ModuleNotFoundError" in leak.stderr


def test_the_links_in_the_package_point_at_the_top_level_folders(root: Path) -> None:
    for name in ("adapters", "integrations"):
        assert (root / "polarbear_plugins" / name).resolve() == root / name


def test_all_is_every_extra_for_users(root: Path) -> None:
    extras = _pyproject(root)["project"]["optional-dependencies"]  # type: ignore[index]
    [everything] = extras["all"]
    others = {"all", "docs", "examples", "test", "test-full"}
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(extras) - others
