from __future__ import annotations

import csv
import io
import re

import pytest

from polarbear_plugins.display.tables import csv_table, latex_table, latex_text, markdown_table, markdown_text

HOSTILE = "a_b & 100% #1 $x$ \\end{tabular} ~^ <b> | `c` [d] *e* -- \"f\" 'g'"


def test_every_special_character_of_latex_is_escaped() -> None:
    text = latex_text(HOSTILE)
    assert "\\textbackslash{}end\\{tabular\\}" in text
    # Without the escapes nothing special is left.
    rest = re.sub(r"\\text\w+\{\}|\\[&%#$_{}]|\{[\[\]*]\}|-\{\}", "", text)
    assert not set(rest) & set("\\{}$&#^_%~<>|\"`'[]*")
    assert "--" not in text


def test_a_single_hyphen_stays_one() -> None:
    assert latex_text("sep-CMA-ES") == "sep-CMA-ES"
    assert latex_text("a--b---c") == "a-{}-b-{}-{}-c"


def test_a_row_of_latex_cannot_be_taken_for_an_option_of_the_row_before() -> None:
    rows = latex_table(["name"], [["x"], ["[2cm] y"], ["*z"]], []).splitlines()
    assert "{[}2cm{]} y \\\\" in rows
    assert "{*}z \\\\" in rows


def test_a_table_of_latex_has_rules_sides_and_comments() -> None:
    text = latex_table(["name", ">P"], [["a_b", "0.5"]], ["What\nit is\r\x0c."])
    lines = text.splitlines()
    assert lines[0].startswith("% What it is")
    assert all(line.startswith("%") for line in lines[: lines.index("\\begin{tabular}{lr}")])
    assert lines[-6:] == [
        "\\toprule",
        "name & P \\\\",
        "\\midrule",
        "a\\_b & 0.5 \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]


def test_a_cell_of_markdown_is_one_cell_and_plain_text() -> None:
    text = markdown_table(["name", ">P"], [["a|b\nc <script>", "0.5"]], ["--> not the end"])
    lines = text.splitlines()
    assert lines[-3:] == ["| name | P |", "| :--- | ---: |", "| a\\|b c &lt;script&gt; | 0.5 |"]
    assert text.count("-->") == 1
    assert markdown_text("_a_ *b* `c` [d](e) ~f~ $g$ & #h \\") == (
        "\\_a\\_ \\*b\\* \\`c\\` \\[d\\](e) \\~f\\~ \\$g\\$ &amp; \\#h \\\\"
    )


@pytest.mark.parametrize("name", [HOSTILE, "a,b", 'say "x"', "two\nlines"])
def test_csv_is_read_again_as_it_was(name: str) -> None:
    found = list(csv.reader(io.StringIO(csv_table(["name", "x"], [[name, 0.1], [name, None]]))))
    assert found == [["name", "x"], [name, "0.1"], [name, ""]]
