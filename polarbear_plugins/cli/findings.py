"""What a race or an analysis found, as a table and in words."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from polarbear_plugins.cli.output import WIDE, text_table
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.words import amount, conclusion, mean_ratings, reasons
from polarbear_plugins.trajectories.timepoints import few_places

__all__ = ["show_result"]


def show_result(out: Console, result: RaceResult, unit: str = "") -> None:
    """Print who is in, who is out and why, and what follows from it."""
    if not result.rounds:
        out.print(conclusion(result))
        return
    grid = result.timepoints
    narrow = out.width < WIDE
    columns = sorted({0, grid.size - 1}) if narrow else few_places(grid.size)
    mean = mean_ratings(result.posterior)
    summary, why = result.summary(), reasons(result)
    failed = bool(summary["failed"].any())
    view = text_table(
        "algorithm",
        "status",
        "because",
        *(f">at {grid[t]:,.5g}" for t in columns),
        *([] if narrow else [">instances", ">cost"]),
        *([">failed"] if failed else []),
    )
    for place, (name, row) in enumerate(summary.iterrows()):
        out_of_it = row["status"] == "out"
        status = "in"
        if out_of_it:
            status = f"out (round {row['round']})" if len(result.rounds) > 1 else "out"
        cells = [f"{mean[t, place]:.0%}" for t in columns]
        if not narrow:
            cells += [f"{row['instances']:,}", amount(row["cost"])]
        cells += [str(row["failed"])] if failed else []
        because = Text(why[str(name)])
        view.add_row(Text(str(name)), status, because, *cells, style="dim" if out_of_it else None)
    out.print("Probability of being best of all, by the mean of the posterior:")
    out.print(view)
    out.print(conclusion(result, unit), soft_wrap=True)
