"""Style and scripts of a report, from the files in ``assets``; all are part of the page."""

from __future__ import annotations

from pathlib import Path

_ASSETS = Path(__file__).parent / "assets"
# Pure functions first, then what uses them; the last one starts everything.
SCRIPTS = ("pure", "page", "state", "picture", "chart", "charts", "budget", "preference", "rows", "choose", "start")


def _read(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _script() -> str:
    """One script of all files, so that nothing but ``polarbearReport`` is visible outside."""
    body = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return f'\n(function () {{\n"use strict";\n{body}}}());\n'


STYLE = "\n".join(_read(name) for name in ("page.css", "uplot/uPlot.min.css", "explore.css"))
SCRIPT = _script()
#: uPlot, which draws the charts, with its licence, as that demands.
LIBRARY = f"\n/*!\n{_read('uplot/LICENSE')}\n*/\n{_read('uplot/uPlot.iife.min.js')}"
