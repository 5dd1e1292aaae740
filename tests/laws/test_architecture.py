from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

FOLDERS = {"polarbear_plugins": "polarbear_plugins", "adapters": "polarbear_plugins.adapters"}
FOLDERS["integrations"] = "polarbear_plugins.integrations"
HEAVY = {
    "pymc",
    "optuna",
    "ioh",
    "modcma",
    "matplotlib",
    "pandas",
    "scipy",
    "onnxruntime",
    "distributed",
    "pyarrow",
    "moocore",
}


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for folder, package in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            inside = path.relative_to(root / folder)
            if folder == "polarbear_plugins" and inside.parts[0] in ("adapters", "integrations"):
                continue  # the links
            parts = [*inside.parts[:-1]] if inside.name == "__init__.py" else [*inside.parts[:-1], inside.stem]
            yield ".".join([package, *parts]), ast.parse(path.read_text())


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _part(module: str) -> str | None:
    """The part of the package that a module belongs to: its second name."""
    names = module.split(".")
    return names[1] if names[0] == "polarbear_plugins" and len(names) > 1 else None


def test_adapters_and_integrations_do_not_import_each_other(root: Path) -> None:
    wrong = []
    for module, tree in _modules(root):
        if _part(module) in ("adapters", "integrations"):
            wrong += [
                f"{module} imports {imported}"
                for imported in _imports(tree)
                if _part(imported) in ("adapters", "integrations") and imported.split(".")[:3] != module.split(".")[:3]
            ]
    assert not wrong


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, polarbear_plugins; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {name.partition(".")[0] for name in loaded}


def test_loading_the_built_in_plugins_imports_nothing_heavy(root: Path) -> None:
    modules = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]["polarbear"].values()
    code = f"import sys, importlib; [importlib.import_module(m) for m in {list(modules)!r}]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
