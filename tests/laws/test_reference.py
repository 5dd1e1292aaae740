from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import polarbear_plugins
from polarbear_plugins.errors import MissingExtraError

PACKAGE = "polarbear_plugins"


def _directives(root: Path, kinds: str) -> list[str]:
    pages = [page.read_text() for page in sorted((root / "docs" / "reference").glob("*.md"))]
    return re.findall(rf"^\.\. auto(?:{kinds}):: ([\w.]+)$", "\n".join(pages), flags=re.MULTILINE)


def _reference(root: Path) -> set[tuple[str, str]]:
    """Module and name of what the reference describes, under every module that it can be imported from."""
    found = {
        (module, name) for module, _, name in (d.rpartition(".") for d in _directives(root, "class|function|data"))
    }
    for module in _directives(root, "module"):
        tree = ast.parse(_source(root, module).read_text())
        [names] = [ast.literal_eval(node.value) for node in tree.body if _assigns_all(node)]
        found |= {(module, name) for name in names}
    return found


def _source(root: Path, module: str) -> Path:
    """File of a module, found without importing it, since that may need an extra."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _assigns_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _object(module: str, name: str) -> object:
    try:
        return getattr(importlib.import_module(module), name)
    except MissingExtraError:
        return None


def _imports(root: Path) -> set[tuple[str, str]]:
    """What the examples of all pages import from the package."""
    found = set()
    for page in (root / "README.md", *(root / "docs").rglob("*.md")):
        for block in re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                    found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def test_everything_in_the_reference_exists(root: Path) -> None:
    for module, name in _reference(root):
        try:
            assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
        except MissingExtraError:
            continue


def test_every_public_name_is_in_the_reference(root: Path) -> None:
    described = {id(_object(*place)) for place in _reference(root)}
    missing = [name for name in polarbear_plugins.__all__ if id(getattr(polarbear_plugins, name)) not in described]
    assert not missing


def test_what_the_pages_import_is_in_the_reference(root: Path) -> None:
    described = {id(_object(*place)) for place in _reference(root)}
    modules = _directives(root, "module")
    imports = _imports(root)
    assert (f"{PACKAGE}.sample_size", "power_of") in imports
    missing = [
        f"{module}.{name}"
        for module, name in imports
        if f"{module}.{name}" not in modules and id(_object(module, name)) not in described
    ]
    assert not missing


def test_every_command_is_in_the_reference(root: Path) -> None:
    page = (root / "docs" / "reference" / "commands.md").read_text()
    assert ".. click:: polarbear_plugins.cli:main" in page
    assert ":nested: full" in page
