"""The house: which room may import which."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

# Every room may also import the modules at the root of the package, level 0.  Imports for type checkers do not count.
# One call goes upwards: a result that is asked for its report, or shown in a notebook, imports ``report`` then.
MAY_IMPORT = {
    # level 1
    "display": "",
    "trajectories": "",
    "plackett_luce": "",
    "priors": "",
    "planning": "",
    # level 2
    "rankings": "display trajectories",
    "partial_orders": "display trajectories",
    "posterior": "display trajectories plackett_luce",
    "problems": "trajectories",
    # level 3
    "plugins": "trajectories problems",
    "selection": "display posterior",
    "measures": "display trajectories planning rankings posterior",
    # level 4
    "inference": "plugins rankings plackett_luce priors posterior",
    "execution": "trajectories problems plugins",
    "adapters": "trajectories rankings problems plugins measures",
    # level 5
    "racing": "display trajectories rankings problems plackett_luce priors posterior inference",
    # level 6
    "journal": "trajectories problems racing",
    "plots": "trajectories rankings measures partial_orders posterior selection racing",
    "integrations": "display trajectories rankings problems plugins plackett_luce measures inference racing execution",
    # level 7
    "experiments": "trajectories rankings problems plugins planning posterior racing execution journal",
    "report": "display trajectories rankings plugins posterior selection racing plots",
    # level 8
    "watch": "display plugins posterior racing execution journal experiments report",
    # level 9
    "cli": "everything",
}
UPWARDS = {("polarbear_plugins.racing.result", "report")}
AT_THE_ROOT = "__init__ arrays checks environment errors extras files names options regular_files seeds testing"
FOLDERS = {"polarbear_plugins": "polarbear_plugins", "adapters": "polarbear_plugins.adapters"}
FOLDERS["integrations"] = "polarbear_plugins.integrations"
HEAVY = {
    "pymc",
    "optuna",
    "ioh",
    "modcma",
    "smac",
    "ConfigSpace",
    "cma",
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
    """Modules that are imported when the code runs."""
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from _running(child)


def _room(module: str) -> str | None:
    """Room of a module of the package; ``None`` for the modules at the root, and for those of others."""
    names = module.split(".")
    return names[1] if names[0] == "polarbear_plugins" and len(names) > 1 and names[1] in MAY_IMPORT else None


def test_every_folder_is_a_room_and_little_stands_at_the_root(root: Path) -> None:
    package = root / "polarbear_plugins"
    assert {path.name for path in package.iterdir() if (path / "__init__.py").is_file()} == set(MAY_IMPORT)
    assert {path.stem for path in package.glob("*.py")} == set(AT_THE_ROOT.split())


def test_the_table_of_rooms_has_no_cycle() -> None:
    above: list[str] = []
    for room, others in MAY_IMPORT.items():
        assert others == "everything" or set(others.split()) <= set(above), room
        above.append(room)


def test_the_table_says_exactly_which_room_imports_which(root: Path) -> None:
    found: dict[str, set[str]] = {room: set() for room in MAY_IMPORT}
    for module, tree in _modules(root):
        room = _room(module)
        others = {other for imported in _imports(tree) if (other := _room(imported)) and other != room}
        if room is not None:
            found[room] |= {other for other in others if (module, other) not in UPWARDS}
        elif module not in ("polarbear_plugins", "polarbear_plugins.testing"):
            assert not others, f"{module} stands at the root, below all rooms"
    for room, allowed in MAY_IMPORT.items():
        if allowed != "everything":
            assert found[room] == set(allowed.split()), room


def test_only_a_room_says_what_is_public(root: Path) -> None:
    """A module inside a room has no ``__all__``: what users may import is what the room lists."""
    wrong = [
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if path.name != "__init__.py" and "\n__all__" in path.read_text()
    ]
    assert not wrong


def test_adapters_and_integrations_do_not_import_each_other(root: Path) -> None:
    wrong = []
    for module, tree in _modules(root):
        if _room(module) in ("adapters", "integrations"):
            wrong += [
                f"{module} imports {imported}"
                for imported in _imports(tree)
                if _room(imported) in ("adapters", "integrations") and imported.split(".")[:3] != module.split(".")[:3]
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
