"""Settings of the documentation: ``tox -e docs`` builds it, without any network, and a warning ends the build."""

project = "polarbear-plugins"
author = "The polarbear-plugins developers"
copyright = author  # noqa: A001 - the name is Sphinx's

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["results"]
# Pages link to headings of each other as a code host names them.
myst_heading_anchors = 4
# Folders of pages may be empty.
suppress_warnings = ["toc.empty_glob"]

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
