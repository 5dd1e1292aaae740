from __future__ import annotations

import inspect
import re
from pathlib import Path

from polarbear_plugins.plugins import hookspecs
from polarbear_plugins.plugins.hookspecs import PROJECT


def _specs() -> dict[str, object]:
    return {name: spec for name, spec in vars(hookspecs).items() if hasattr(spec, f"{PROJECT}_spec")}


def _page(root: Path) -> str:
    return (root / "docs" / "plugs_into" / "plugins.md").read_text()


def test_every_hook_is_documented_with_its_exact_arguments(root: Path) -> None:
    headings = re.findall(r"^### `(\w+)\((.*)\)`$", _page(root), flags=re.MULTILINE)
    documented = {name: arguments.split(", ") if arguments else [] for name, arguments in headings}
    actual = {name: list(inspect.signature(spec).parameters) for name, spec in _specs().items()}  # type: ignore[arg-type]
    assert documented == actual


def test_the_page_says_of_exactly_the_first_result_hooks_that_they_stop_early(root: Path) -> None:
    sections = re.split(r"^### `", _page(root), flags=re.MULTILINE)[1:]
    said = {section.partition("(")[0] for section in sections if "Stops at" in " ".join(section.split())}
    assert said == {name for name, spec in _specs().items() if getattr(spec, f"{PROJECT}_spec")["firstresult"]}
