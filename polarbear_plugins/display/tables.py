"""Tables as text: LaTeX for papers, Markdown for pages, CSV for programs.  Text of others is escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from polarbear_plugins.display.text import visible

TextFormat: TypeAlias = Literal["latex", "markdown", "csv"]
TEXT_FORMATS: tuple[TextFormat, ...] = get_args(TextFormat)

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    **{sign: f"\\{sign}" for sign in "&%#$_{}"},
    # Two of them in a row would become a dash; one after the end of a row would belong to that.
    "-": "-{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}


def latex_text(text: str) -> str:
    r"""Text for LaTeX, where each character stands for itself.

    >>> print(latex_text("100%_of {x} & $y"))
    100\%\_of \{x\} \& \$y
    """
    plain = "".join(_LATEX.get(sign, sign) for sign in _one_line(text))
    return re.sub(r"-\{\}(?!-)", "-", plain)  # a single one is a hyphen


def markdown_text(text: str) -> str:
    r"""Text for a cell of a Markdown table, where each character stands for itself.

    >>> print(markdown_text("a|b_c"))
    a\|b\_c
    """
    plain = re.sub(r"[&<>]", lambda sign: {"&": "&amp;", "<": "&lt;", ">": "&gt;"}[sign[0]], _one_line(text))
    return re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", plain)


def latex_table(columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Table for the package booktabs, after comments that say what it holds; ``>`` aligns a column to the right."""
    sides = "".join("r" if column.startswith(">") else "l" for column in columns)
    lines = [f"% {_one_line(note)}" for note in notes]
    lines += [r"% It needs \usepackage{booktabs,textcomp} and \usepackage[T1]{fontenc}."]
    lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", _latex_row(_titles(columns)), r"\midrule"]
    lines += [_latex_row(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Table in Markdown, after a comment that says what it holds; ``>`` aligns a column to the right."""
    # A comment ends at the first "-->".
    comment = "\n".join(_one_line(note).replace(">", "&gt;") for note in notes)
    sides = ["---:" if column.startswith(">") else ":---" for column in columns]
    lines = [_markdown_row(map_cells) for map_cells in ([*map(markdown_text, _titles(columns))], sides)]
    lines += [_markdown_row([markdown_text(cell) for cell in row]) for row in rows]
    return f"<!--\n{comment}\n-->\n\n" + "\n".join(lines) + "\n"


def csv_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Table in CSV; missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    return text.getvalue()


def _titles(columns: Sequence[str]) -> list[str]:
    return [column.removeprefix(">") for column in columns]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())
