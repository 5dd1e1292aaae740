"""``polarbear report``: one HTML page about a result."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from polarbear_plugins.cli.browser import open_option, show_report
from polarbear_plugins.cli.output import console, json_option, print_json, show_next
from polarbear_plugins.cli.outputs import InputPath, OutputFile
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.journal.replay import is_journal, load_result
from polarbear_plugins.regular_files import check_output
from polarbear_plugins.report import write_report
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.next_steps import Kept, next_steps
from polarbear_plugins.report.page import check_replaceable
from polarbear_plugins.report.words import conclusion


@click.command(short_help="Write one HTML page about a result.")
@click.argument("result", type=InputPath())
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="The file to write.  [default: RESULT with the ending .html]",
)
@click.option("--title", help="Title of the report.  [default: what was raced or analyzed]")
@click.option("--unit", default="", help="Unit of time, such as evaluations or seconds.")
@click.option("--force", is_flag=True, help="Also replace a file that is not a report.")
@open_option
@json_option
def report(
    result: Path,
    output: Path | None,
    title: str | None,
    unit: str,
    force: bool,
    wanted: bool | None,
    as_json: bool,
) -> None:
    """Write one HTML page about RESULT: the conclusion, figures, selection, and the pairs that are not settled.

    RESULT is what `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race. The page is
    self-contained: it can be mailed, printed and opened without a network. Figures need the extra plots.
    """
    if output is None and result.is_file():
        output = check_output(result.with_suffix(".html"))
    if output is not None and not force:
        check_replaceable(output)
    found = load_result(result)
    kept = Kept(journal=result) if is_journal(result) else Kept(saved=result)
    with spinner("writing the report"):
        known = compute(found)
        path = output or result.with_suffix(".html")
        written = write_report(found, path, title=title, unit=unit, force=force, known=known, kept=kept)
    text = conclusion(found, unit, *known)
    if as_json:
        steps = [asdict(step) for step in next_steps(found, known.forecast, kept)]
        print_json({"report": str(written), "bytes": written.stat().st_size, "conclusion": text, "next": steps})
        show_report(written, wanted, quiet=True)
        return
    out = console()
    out.print(text, soft_wrap=True)
    out.print(f"saved {written}", soft_wrap=True)
    if find_spec("matplotlib") is None:
        out.print("without figures: they need matplotlib, from the extra plots")
    show_next(out, found, known, kept)
    show_report(written, wanted)
