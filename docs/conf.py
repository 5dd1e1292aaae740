"""Settings of the documentation: ``tox -e docs`` builds it, without any network, and a warning ends the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError

project = "polarbear-plugins"
author = "The polarbear-plugins developers"
copyright = author  # noqa: A001 - the name is Sphinx's

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["results"]
smartquotes = False  # it would make one dash of the two before an option
# Pages link to headings of each other as a code host names them.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "polarbear-plugins"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": [], "footer_icons": []}

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
# Names that would otherwise be spelled out over several lines.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Parameter", "PreferenceLike", "Configuration", "Value")}
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
toc_object_entries = False
napoleon_google_docstring = False
# A class lists its attributes once, in its docstring.
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_attr_annotations = False


def _write_aliases_plainly(
    app: Any, what: str, name: str, documented: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Give aliases within unions their names, where autodoc shows how it keeps them."""
    pattern = r"TypeAliasForwardRef\('([\w.]+)'\)"
    return tuple(text and re.sub(pattern, r"\1", text) for text in (signature, returns))  # type: ignore[return-value]


def _keep_attributes_together(app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """Write ``low, high`` without its space, since Sphinx would take ``low,`` for the type of ``high``."""
    for number, line in enumerate(lines):
        if found := re.match(r":ivar \w+(?:, \w+)+:", line):
            lines[number] = ":ivar " + found[0][6:].replace(", ", ",") + line[found.end() :]


def _find_in_its_room(app: Any, env: Any, node: Any, text: Any) -> Any:
    """Link what docstrings name at the top of the package, or by its module, to where its room describes it."""
    package, *rooms = node["reftarget"].split(".")
    if node.get("refdomain") != "py" or package != "polarbear_plugins" or not rooms:
        return None
    name = rooms.pop()
    domain = env.get_domain("py")
    pattern = re.compile(rf"{package}\.{rooms[0] if rooms else '[a-z_]+'}\.{name}")
    places = [place for place in domain.objects if pattern.fullmatch(place)]
    if len(places) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], places[0], node, text)


def _load_nothing_from_elsewhere(app: Any, problem: Exception | None) -> None:
    """Refuse pages that would load a script, a style, a font or a picture from another place."""
    address = r"""["']?\s*(?:https?:)?//"""
    loads = re.compile(
        rf"<(?:script|img|iframe)\b[^>]*\bsrc={address}|<link\b[^>]*\bhref={address}|url\({address}|@import"
    )
    for path in Path(app.outdir).rglob("*"):
        if path.suffix in (".html", ".css") and (found := loads.search(path.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{path} loads something from elsewhere: {found[0]}")


def _write_dashes(app: Any, page: Any) -> None:
    """Put a dash between a parameter and its description, where Sphinx leaves two to what is switched off above."""
    for text in list(page.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def setup(app: Any) -> None:
    """Let Sphinx call what is above."""
    app.connect("autodoc-process-signature", _write_aliases_plainly)
    app.connect("autodoc-process-docstring", _keep_attributes_together, priority=600)  # after napoleon
    app.connect("doctree-read", _write_dashes)
    app.connect("missing-reference", _find_in_its_room)
    app.connect("build-finished", _load_nothing_from_elsewhere)
