"""``polarbear depth``: which test functions are central and which are outlying, by their partial orders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.options import parse_key_values, parse_numbers, read_runs
from polarbear_plugins.cli.output import console, json_option, print_json, text_table
from polarbear_plugins.cli.progress import advise_on_interrupt, spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.partial_orders.criteria import (
    Statistic,
    SuiteIndifference,
    best_at_timepoints,
    orders_of_functions,
    read_criteria,
    time_to_targets,
)
from polarbear_plugins.partial_orders.depth import MOST_SETS, TOLERANCE, SuiteDepth, depth_changes, measure_depth
from polarbear_plugins.partial_orders.order import Missing


@click.command(short_help="Find central and outlying test functions.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_files)
@click.option("--at", "timepoints", metavar="A,B,...", help="Read runs; criteria are the best values at timepoints.")
@click.option("--targets", metavar="A,B,...", help="Read runs; criteria are the times to reach targets.")
@click.option(
    "--statistic",
    type=click.Choice(["median", "mean"]),
    default="median",
    show_default=True,
    help="How repeated runs are summarized.",
)
@click.option(
    "-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option for the adapter that reads runs."
)
@click.option("--function", default="function", show_default=True, help="Column of the test functions.")
@click.option("--optimizer", default="optimizer", show_default=True, help="Column of the optimizers.")
@click.option("--criterion", "criteria", multiple=True, help="Column of a criterion; all others by default.")
@click.option("--maximize", multiple=True, metavar="CRITERION", help="A criterion in which larger is better.")
@click.option("--separator", help="Column separator; a comma by default, or a tab in files that end with .tsv.")
@click.option("--decimal", default=".", show_default=True, help="Decimal separator.")
@click.option(
    "--indifferent",
    type=click.Choice(["refuse", "incomparable", "leave-out"]),
    default="refuse",
    show_default=True,
    help="What to do with optimizers that are equal in all criteria: refuse, treat them as incomparable, or leave out "
    "the test function.",
)
@click.option(
    "--missing",
    type=click.Choice(["refuse", "worst", "incomparable"]),
    default="refuse",
    show_default=True,
    help="What to do with a missing value: refuse, treat it as the worst value, or treat the optimizer as incomparable "
    "with every other.",
)
@click.option("--common", type=int, default=3, show_default=True, help="Show what this many deepest orders share.")
@click.option("--without", multiple=True, metavar="OPTIMIZER", help="Show how depths change without this optimizer.")
@click.option("--samples", type=int, help="Draw this many of the larger sets of orders, instead of testing all.")
@click.option("--seed", type=int, help="Seed of the draws.")
@click.option(
    "--tolerance", type=float, default=TOLERANCE, show_default=True, help="Error of the depths allowed for speed."
)
@click.option(
    "--most-sets", type=int, default=MOST_SETS, show_default=True, help="Refuse to start if more sets must be tested."
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the most central and the most outlying order into this file (needs the extra plots).",
)
@json_option
def depth(
    sources: Sequence[str],
    timepoints: str | None,
    targets: str | None,
    statistic: Statistic,
    options: Sequence[str],
    maximize: Sequence[str],
    indifferent: SuiteIndifference,
    missing: Missing,
    common: int,
    without: Sequence[str],
    figure: Path | None,
    as_json: bool,
    function: str,
    optimizer: str,
    criteria: Sequence[str],
    separator: str | None,
    decimal: str,
    **measure: Any,
) -> None:
    """Find the test functions that order the optimizers as most others do, and the outliers.

    On each test function, one optimizer is better than another if it is better in at least one criterion and worse in
    none. SOURCE is a CSV file with the columns function, optimizer and the criteria, of which smaller is better; or,
    with --at or --targets, whatever an installed adapter reads, or the journal or saved result of a race.
    """
    if timepoints is not None or targets is not None:
        if timepoints is not None and targets is not None:
            raise InvalidInputError("--at and --targets: give only one of the two.")
        with spinner("reading"):
            runs, _ = read_runs(sources, parse_key_values(options, "--option"))
        if timepoints is not None:
            frames = best_at_timepoints(runs, parse_numbers(timepoints, "--at"), statistic)
        else:
            frames = time_to_targets(runs, parse_numbers(targets or "", "--targets"), statistic)
    elif len(sources) > 1:
        raise InvalidInputError("Expected one table of criteria. For runs, give --at or --targets.")
    else:
        chosen = list(criteria) or None
        frames = read_criteria(sources[0], function, optimizer, chosen, separator=separator, decimal=decimal)
    orders = orders_of_functions(frames, maximize, indifferent=indifferent, missing=missing)
    with (
        advise_on_interrupt("--samples 100000 tests only some of the sets of orders."),
        spinner(f"depth of {len(orders)} orders"),
    ):
        found = measure_depth(orders, **measure)
    shared = found.common(min(common, len(found.functions)))
    changes = None
    if without:
        with spinner(f"depth without {', '.join(without)}"):
            changes = depth_changes(orders, without, **measure).drop(columns="depth")
    if figure is not None:
        _draw(found, figure)
    if as_json:
        data = found.to_dict()
        data["common"] = {"functions": shared.functions, "edges": shared.edges, "non_edges": shared.non_edges}
        if changes is not None:
            data["changes_without"] = {name: changes[name].to_dict() for name in without}
        print_json(data)
        return
    out = console()
    _show(out, found, changes)
    edges = ", ".join(f"{better} > {worse}" for better, worse in shared.edges) or "nothing"
    out.print(
        f"The {len(shared.functions)} deepest orders ({', '.join(shared.functions)}) agree on {edges}. For "
        f"{len(shared.non_edges)} other pairs, they agree that the first is not better than the second (--json lists "
        "them).",
        soft_wrap=True,
    )
    if figure is not None:
        out.print(f"saved {figure}", soft_wrap=True)


def _show(out: Console, found: SuiteDepth, changes: Any) -> None:
    spread = found.dispersion()
    optimizers = found.orders[0].optimizers
    out.print(
        f"{len(found.functions)} test functions, {spread['distinct_orders']} distinct orders of {len(optimizers)} "
        f"optimizers · {sum(found.tested.values()):,} sets tested, {sum(found.generic.values()):,} union-free generic"
    )
    sampled = bool(found.errors.any())
    names = [] if changes is None else list(changes)
    columns = [">depth", *([">error"] if sampled else []), *(f">without {name}" for name in names)]
    view = text_table("function", *columns, ">edges", "undominated")
    for name, row in found.summary().iterrows():
        cells = [f"{row['depth']:.4f}", *([f"{row['error']:.4f}"] if sampled else [])]
        cells += [f"{changes.loc[name, other]:+.4f}" for other in names]
        view.add_row(Text(str(name)), *cells, str(row["edges"]), Text(str(row["undominated"])))
    out.print(view)
    if not found.generic:
        out.print("No set of these orders is union-free generic, so all depths are 0.")
    out.print(
        f"Most central: {', '.join(found.central())}. Most outlying: {', '.join(found.outlying())}. Depths range over "
        f"{spread['range']:.4f}, standard deviation {spread['standard_deviation']:.4f}.",
        soft_wrap=True,
    )


def _draw(found: SuiteDepth, path: Path) -> None:
    from polarbear_plugins.plots.hasse import save_hasse_diagrams

    ends = {found.central()[0]: "most central", found.outlying()[0]: "most outlying"}
    places = [found.functions.index(name) for name in ends]
    titles = [
        f"{name}: {ends[name]}, depth {found.depths[place]:.3f}" for name, place in zip(ends, places, strict=True)
    ]
    save_hasse_diagrams([found.orders[place] for place in places], path, titles=titles)
