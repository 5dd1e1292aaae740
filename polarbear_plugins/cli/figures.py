"""``polarbear figures``: every figure of a result as a file, for a paper."""

from __future__ import annotations

import re
from pathlib import Path

import click

from polarbear_plugins.cli.output import console, json_option, print_json
from polarbear_plugins.cli.outputs import FigureFolder, InputPath
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.report.paper_figures import FIGURE_FORMATS, FIGURE_NAMES, STYLES, FigureFormat, write_figures

_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # points of TeX


@click.command(short_help="Write every figure of a result for a paper.")
@click.argument("result", type=InputPath())
@click.option("-o", "--output", type=FigureFolder(), default="figures", show_default=True, help="The folder to write.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(FIGURE_FORMATS),
    default="pdf",
    show_default=True,
    help="PDF with embedded fonts, SVG or PNG.",
)
@click.option(
    "--style",
    type=click.Choice(list(STYLES)),
    default="acm",
    show_default=True,
    help="Width of a column: 3.33 in (acm), 3.5 in (ieee) or 4.8 in (springer, LNCS).",
)
@click.option(
    "--columns", type=click.IntRange(1, 2), default=1, show_default=True, help="How many columns a figure spans."
)
@click.option("--width", help="Width of the figures, such as 3.4in, 86mm or 245pt, instead of that of the style.")
@click.option("--only", metavar="NAME,...", help=f"Only these figures: {', '.join(FIGURE_NAMES)}.")
@click.option("--unit", default="", help="Unit of time, such as evaluations or seconds.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@json_option
def figures(
    result: Path,
    output: Path,
    kind: FigureFormat,
    style: str,
    columns: int,
    width: str | None,
    only: str | None,
    unit: str,
    force: bool,
    as_json: bool,
) -> None:
    """Write every figure of RESULT into a folder, a file each, as wide as a column of a paper.

    RESULT is what `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race. Fonts are
    embedded as TrueType and at least 6 points high, and the figures can be read in grey. They have no title: the file
    captions.txt says what each one shows, and what it rests on. The same result gives the same bytes.
    """
    inches = None if width is None else parse_width(width)
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    found = load_result(result)
    with spinner("drawing"):
        written = write_figures(
            found, output, kind=kind, style=style, columns=columns, width=inches, only=names, unit=unit, force=force
        )
    if as_json:
        print_json(
            {
                "figures": [
                    {
                        "name": figure.name,
                        "file": str(figure.path),
                        "width": round(figure.width, 3),
                        "height": round(figure.height, 3),
                        "caption": figure.caption,
                    }
                    for figure in written.figures
                ],
                "left_out": written.left_out,
                "notes": list(written.notes),
                "captions": str(written.captions),
            }
        )
        return
    out = console()
    for figure in written.figures:
        out.print(f"saved {figure.path}, {figure.width:.2f} x {figure.height:.2f} in", soft_wrap=True)
    for name, why in written.left_out.items():
        out.print(f"no {name}: {why}", soft_wrap=True)
    out.print(f"saved {written.captions}: what each shows, and what they rest on", soft_wrap=True)


def parse_width(text: str) -> float:
    """Width in inches.

    >>> parse_width("3.4in"), round(parse_width("86 mm"), 2)
    (3.4, 3.39)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm|pt)\s*", text)
    if match is None:
        raise InvalidInputError(f"--width: expected a number and in, cm, mm or pt, such as 3.4in, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]
