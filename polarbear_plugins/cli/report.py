"""``polarbear report``: one HTML page about a result."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from polarbear_plugins.cli.output import console, json_option, print_json
from polarbear_plugins.cli.progress import working
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.report import write_report
from polarbear_plugins.report.words import conclusion


@click.command(short_help="Write one HTML page about a result.")
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: RESULT with the ending .html]",
)
@click.option("--title", help="What stands above the report.  [default: what was raced or analyzed]")
@click.option("--unit", default="", help="Unit of time, such as evaluations or seconds.")
@click.option("--force", is_flag=True, help="Replace a file that is no report, too.")
@json_option
def report(result: Path, output: Path | None, title: str | None, unit: str, force: bool, as_json: bool) -> None:
    """Write one HTML page about RESULT: the conclusion, figures, selection, and what is not settled.

    RESULT is what `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race. The page needs
    nothing else: it can be mailed, printed and opened without a network. Figures need the extra plots.
    """
    found = load_result(result)
    with working("writing the report"):
        written = write_report(found, output or result.with_suffix(".html"), title=title, unit=unit, force=force)
    says = conclusion(found, unit, found.forecast_if_open())
    if as_json:
        print_json({"report": str(written), "bytes": written.stat().st_size, "conclusion": says})
        return
    out = console()
    out.print(says, soft_wrap=True)
    out.print(f"saved {written}", soft_wrap=True)
    if find_spec("matplotlib") is None:
        out.print("without figures: they need matplotlib, from the extra plots")
