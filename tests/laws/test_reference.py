from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import polarbear_plugins
from polarbear_plugins.errors import MissingExtraError

PACKAGE = "polarbear_plugins"
# The commands have a page of their own, made from their help.
UNLISTED = {"cli"}


def _source(root: Path, module: str) -> Path:
    """File of a module, found without importing it, since that may need an extra."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _listed(path: Path) -> list[str] | None:
    """What ``__all__`` lists in a file, ``None`` if it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def _public(root: Path, module: str) -> set[str]:
    """Public names of a module: those it lists, or else its functions and classes without an underscore."""
    path = _source(root, module)
    listed = _listed(path)
    if listed is not None:
        return set(listed)
    definitions = (ast.FunctionDef, ast.ClassDef)
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, definitions) and not node.name.startswith("_")
    }


def _rooms(root: Path) -> dict[str, list[str]]:
    """Public names of each room that has any."""
    folders = [path.parent for path in (root / PACKAGE).glob("*/__init__.py") if not path.parent.is_symlink()]
    listed = {folder.name: _listed(folder / "__init__.py") for folder in folders}
    return {room: names for room, names in sorted(listed.items()) if names and room not in UNLISTED}


def _described(root: Path, page: Path) -> dict[str, set[str]]:
    """Names that a page describes, by module: those of its automodules without excluded ones, and those written out."""
    found: dict[str, set[str]] = {}
    for block in re.split(r"^\.\. automodule:: ", page.read_text(), flags=re.MULTILINE)[1:]:
        module = block.partition("\n")[0].strip()
        block = block.partition("```")[0]
        assert "   :members:\n" in block, f"{page.name}: {module} shows no members"
        excluded = re.findall(r":exclude-members: (.+)", block)
        written = set(re.findall(r"^\.\. py:\w+:: (\w+)", block, flags=re.MULTILINE))
        found[module] = _public(root, module) - set(", ".join(excluded).split(", ")) | written
    return found


def _reference(root: Path) -> set[tuple[str, str]]:
    """Module and name of everything in the reference."""
    pages = sorted((root / "docs" / "reference").glob("*.md"))
    return {(module, name) for page in pages for module, names in _described(root, page).items() for name in names}


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


def test_every_room_has_a_page_with_all_its_public_names(root: Path) -> None:
    rooms = _rooms(root)
    assert {"rankings", "racing", "experiments", "priors"} <= set(rooms)
    for room, names in rooms.items():
        page = root / "docs" / "reference" / f"{room}.md"
        assert page.exists(), f"the room {room} has no page"
        missing = set(names) - _described(root, page).get(f"{PACKAGE}.{room}", set())
        assert not missing, f"{page.name} lacks {sorted(missing)}"


def test_whatever_is_made_from_a_docstring_has_one(root: Path) -> None:
    """Sphinx leaves out silently what has none, such as an alias: a page has to write it out."""
    for room in _rooms(root):
        page = root / "docs" / "reference" / f"{room}.md"
        written = set(re.findall(r"^\.\. py:\w+:: (\w+)", page.read_text(), flags=re.MULTILINE))
        for name in _described(root, page)[f"{PACKAGE}.{room}"] - written:
            thing = _object(f"{PACKAGE}.{room}", name)
            documented = inspect.isclass(thing) or inspect.isroutine(thing)
            assert thing is None or (documented and thing.__doc__), f"{page.name} has to write out {name}"


def test_every_module_of_an_adapter_or_an_integration_is_in_the_reference(root: Path) -> None:
    described = {module for module, _ in _reference(root)}
    for folder in ("adapters", "integrations"):
        for path in (root / folder).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").exists():
                name = path.stem
                assert name.startswith("_") or f"{PACKAGE}.{folder}.{name}" in described, f"{folder}/{path.name}"


def test_everything_in_the_reference_exists(root: Path) -> None:
    for module, name in _reference(root):
        try:
            assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
        except MissingExtraError:
            continue


def test_nothing_is_described_twice(root: Path) -> None:
    places: dict[int, tuple[str, str]] = {}
    for module, name in sorted(_reference(root)):
        thing = _object(module, name)
        if isinstance(thing, type) or callable(thing):
            assert id(thing) not in places, f"{module}.{name} is also {'.'.join(places[id(thing)])}"
            places[id(thing)] = (module, name)


def test_every_name_at_the_top_is_listed_with_its_room(root: Path) -> None:
    page = (root / "docs" / "reference" / f"{PACKAGE}.md").read_text()
    rows = re.findall(r"^\| (`.+`) \| \[(\w+)\]\(\2\.md\) \|$", page, flags=re.MULTILINE)
    listed = {name: room for names, room in rows for name in re.findall(r"`(\w+)`", names)}
    assert sorted(listed) == sorted(polarbear_plugins.__all__)
    for name, room in listed.items():
        described = _described(root, root / "docs" / "reference" / f"{room}.md")
        assert name in described[f"{PACKAGE}.{room}"], f"{room}.md does not describe {name}"
        assert _object(f"{PACKAGE}.{room}", name) is getattr(polarbear_plugins, name)


def test_what_the_pages_import_is_in_the_reference(root: Path) -> None:
    reference = _reference(root)
    modules = {module for module, _ in reference}
    imports = _imports(root)
    assert (f"{PACKAGE}.planning", "power_of") in imports
    reference |= {(PACKAGE, name) for name in polarbear_plugins.__all__}  # each is on the page of its room, too
    missing = [
        f"{module}.{name}"
        for module, name in imports
        if f"{module}.{name}" not in modules and (module, name) not in reference
    ]
    assert not missing


def test_every_command_is_in_the_reference(root: Path) -> None:
    page = (root / "docs" / "reference" / "commands.md").read_text()
    assert ".. click:: polarbear_plugins.cli:main" in page
    assert ":nested: full" in page
