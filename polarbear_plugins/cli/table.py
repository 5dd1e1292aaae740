"""``polarbear table``: a table of a result for a paper, a page or a program."""

from __future__ import annotations

from pathlib import Path

import click

from polarbear_plugins.cli.options import parse_numbers
from polarbear_plugins.cli.output import console, json_option, print_json
from polarbear_plugins.cli.outputs import InputPath, OutputFile
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.display.tables import TEXT_FORMATS, TextFormat
from polarbear_plugins.display.text import visible
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.regular_files import write_whole
from polarbear_plugins.report.paper_tables import PAPER_TABLES, PaperTableKind, paper_table

_ENDINGS: dict[str, TextFormat] = {".tex": "latex", ".md": "markdown", ".csv": "csv"}


@click.command(short_help="Write a table of a result for a paper.")
@click.argument("result", type=InputPath())
@click.option(
    "--what",
    type=click.Choice(PAPER_TABLES),
    default="algorithms",
    show_default=True,
    help="The algorithms, in and out; their ratings with 90 % intervals; or their pairs.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(TEXT_FORMATS),
    help="LaTeX for the package booktabs, Markdown or CSV.  [default: by the ending of --output, else latex]",
)
@click.option("--timepoints", help="For ratings and pairs: timepoints separated by commas.")
@click.option("-o", "--output", type=OutputFile(), help="The file to write; without it the table is printed.")
@click.option("--unit", default="", help="Unit of time, such as evaluations or seconds.")
@json_option
def table(
    result: Path,
    what: PaperTableKind,
    kind: TextFormat | None,
    timepoints: str | None,
    output: Path | None,
    unit: str,
    as_json: bool,
) -> None:
    """Write a table of RESULT as LaTeX, Markdown or CSV.

    RESULT is what `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race. Comments in
    the table say what its numbers are and what they rest on; CSV has none, and they are notes of the command.
    """
    kind = kind or ("latex" if output is None else _ENDINGS.get(output.suffix.lower(), "latex"))
    times = None if timepoints is None else parse_numbers(timepoints, "--timepoints")
    with spinner("reading"):
        found = paper_table(load_result(result), what, timepoints=times, unit=unit)
    text = found.text(kind)
    if output is not None:
        write_whole(output, lambda file: file.write(text.encode()))
    if as_json:
        print_json(
            {
                "what": what,
                "format": kind,
                "output": None if output is None else str(output),
                "columns": list(found.columns),
                "rows": found.rows,
                "notes": found.notes,
            }
        )
        return
    if output is None:
        click.echo(text, nl=False)
    if kind == "csv":
        for note in found.notes:
            click.echo(visible(f"Note: {note}"), err=True)
    if output is not None:
        console().print(f"saved {output}", soft_wrap=True)
