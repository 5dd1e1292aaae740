"""HTML fragments in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from polarbear_plugins.display.text import visible

if TYPE_CHECKING:
    import pandas as pd


_LONG = 24  # characters
_MAX_ROWS = 30


class Markup(str):
    """Text that is HTML already; any other text is escaped."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escape a text, unless it is markup already.

    >>> text("a < b")
    'a &lt; b'
    """
    return value if isinstance(value, Markup) else Markup(escape(visible(str(value))))


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """HTML table; a column whose name begins with ``>`` is right-aligned.

    >>> html_table(["algorithm", ">P"], [["<b>", 0.5]])
    '<table><thead><tr><th scope="col">algorithm</th><th scope="col" style="text-align:right">P</th></tr></thead>\
<tbody><tr><td>&lt;b&gt;</td><td style="text-align:right">0.5</td></tr></tbody></table>'
    """
    style = [' style="text-align:right"' if column.startswith(">") else "" for column in columns]
    head = "".join(
        f'<th scope="col"{right}>{text(name.removeprefix(">"))}</th>'
        for right, name in zip(style, columns, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(cell, right) for right, cell in zip(style, row, strict=True)) + "</tr>" for row in rows
    )
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return Markup(f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def summary_table(frame: pd.DataFrame, caption: str = "") -> Markup:
    """HTML table of the first rows of a data frame, index first."""
    kinds = [frame[column].dtype.kind in "iuf" for column in frame]
    columns = [
        str(frame.index.name),
        *(f"{'>' * number}{column}".replace("_", " ") for column, number in zip(frame, kinds, strict=True)),
    ]
    rows = [
        [name, *(f"{cell:.4g}" if isinstance(cell, float) else cell for cell in cells)]
        for name, *cells in frame.head(_MAX_ROWS).itertuples(name=None)
    ]
    more = f" (the first {_MAX_ROWS} of {len(frame):,} rows)" if len(frame) > _MAX_ROWS else ""
    return html_table(columns, rows, f"{caption}{more}")


def _cell(content: object, style: str) -> str:
    # A narrow page must not squeeze a sentence into a column of single words.
    long = ' class="long"' if len(str(content)) > _LONG and not style and not isinstance(content, Markup) else ""
    return f"<td{long}{style}>{text(content)}</td>"


def definitions(pairs: Iterable[tuple[object, object]]) -> Markup:
    """HTML definition list of names and descriptions."""
    return Markup("<dl>" + "".join(f"<dt>{text(name)}</dt><dd>{text(what)}</dd>" for name, what in pairs) + "</dl>")
