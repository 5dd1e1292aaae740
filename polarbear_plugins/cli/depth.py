"""``polarbear depth``: which test functions are central and which are outlying, by their partial orders."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.depth_figures import draw_all, draw_ends
from polarbear_plugins.cli.options import parse_key_values, parse_numbers, read_runs
from polarbear_plugins.cli.output import console, json_option, print_json, show_saved, text_table
from polarbear_plugins.cli.outputs import FigureFile, FigureFolder, Saving, Source
from polarbear_plugins.cli.progress import advise_on_interrupt, share_bar, spinner
from polarbear_plugins.display.text import format_duration
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning
from polarbear_plugins.measures.consensus import MOST_FOR_KEMENY, Consensus, ConsensusMethod, consensus_ranking
from polarbear_plugins.partial_orders.criteria import (
    Statistic,
    SuiteIndifference,
    best_at_timepoints,
    orders_of_functions,
    read_criteria,
    time_to_targets,
)
from polarbear_plugins.partial_orders.depth import MOST_SECONDS, TOLERANCE, depth_changes, measure_depth
from polarbear_plugins.partial_orders.order import Missing, PartialOrder
from polarbear_plugins.partial_orders.shared import above_counts, shared_order
from polarbear_plugins.partial_orders.suite import CommonStructure, SuiteDepth

# Names of Python's options whose name on the command line is another; others have the same name.
_OPTIONS = {"deepest": "common", "timepoints": "at", "most_seconds": "seconds"}
_SAME = ("maximize", "samples", "tolerance", "indifferent", "missing", "separator", "decimal", "targets")


@click.command(short_help="Find central and outlying test functions.")
@click.argument("sources", nargs=-1, required=True, type=Source(), metavar="SOURCE...", shell_complete=complete_files)
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
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "--tolerance", type=float, default=TOLERANCE, show_default=True, help="Error of the depths allowed for speed."
)
@click.option(
    "--seconds",
    type=float,
    default=MOST_SECONDS,
    show_default=True,
    help="CPU seconds that testing all sets of orders may take. If it would take longer, 20,000 of the larger sets are "
    "drawn, and depths have standard errors.",
)
@click.option("--exact", is_flag=True, help="Test all sets, however long it takes.")
@click.option(
    "--figure",
    type=FigureFile(),
    help="Draw the most central and the most outlying order into this file (needs the extra plots).",
)
@click.option(
    "--figures",
    type=FigureFolder(),
    help="Draw everything into this folder: how often one optimizer is above another (above.png), the depths "
    "(depths.png), what all orders share (shared.png) and the deepest (deepest.png), the most central and the most "
    "outlying orders (central.png, outlying.png). Needs the extra plots.",
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
    samples: int | None,
    seconds: float,
    exact: bool,
    figure: Path | None,
    figures: Path | None,
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
    if exact and samples is not None:
        raise InvalidInputError("--exact and --samples: give only one of the two.")
    limit = None if exact else seconds
    options_of_measure = {**measure, "samples": samples, "most_seconds": limit}
    with _command_line_words():
        if timepoints is not None or targets is not None:
            frames = _criteria_of_runs(sources, timepoints, targets, statistic, options)
        elif len(sources) > 1:
            raise InvalidInputError("Expected one table of criteria. For runs, give --at or --targets.")
        else:
            chosen = list(criteria) or None
            frames = read_criteria(sources[0], function, optimizer, chosen, separator=separator, decimal=decimal)
        orders = orders_of_functions(frames, maximize, indifferent=indifferent, missing=missing)
        found = _measure(orders, options_of_measure)
        shared = found.common(min(common, len(found.functions)))
        changes = None
        if without:
            with spinner(f"depth without {', '.join(without)}"), _without_advice_for_python():
                changes = depth_changes(orders, without, **options_of_measure).drop(columns="depth")
    with Saving() as saving:
        saving.save(figure, lambda path: draw_ends(found, path))
        saving.save(figures, lambda folder: draw_all(found, shared, folder))
        if as_json:
            print_json(_data(found, shared, changes, orders))
            return
        out = console()
        _show(out, found, changes)
        _show_shared(out, shared, found)
        _show_consensus(out, found)
        show_saved(out, saving.saved)


def _criteria_of_runs(
    sources: Sequence[str],
    timepoints: str | None,
    targets: str | None,
    statistic: Statistic,
    options: Sequence[str],
) -> dict[str, Any]:
    if timepoints is not None and targets is not None:
        raise InvalidInputError("--at and --targets: give only one of the two.")
    with spinner("reading"):
        runs, _ = read_runs(sources, parse_key_values(options, "--option"))
    if timepoints is not None:
        return best_at_timepoints(runs, parse_numbers(timepoints, "--at"), statistic)
    return time_to_targets(runs, parse_numbers(targets or "", "--targets"), statistic)


def _measure(orders: Mapping[str, PartialOrder], options: Mapping[str, Any]) -> SuiteDepth:
    advice = "Fewer --samples take less time." if options["samples"] else "--samples 2000 tests fewer sets of orders."
    with (
        advise_on_interrupt(advice),
        share_bar(f"depth of {len(orders)} orders") as watch,
        _without_advice_for_python(),
    ):
        return measure_depth(orders, **options, watch=watch)


@contextlib.contextmanager
def _without_advice_for_python() -> Iterator[None]:
    """Leave out the warning that sets are drawn: the table and the JSON data say so, in words of the command line."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Testing all sets", category=PolarBearWarning)
        yield


@contextlib.contextmanager
def _command_line_words() -> Iterator[None]:
    """Let messages name options as they are typed."""
    try:
        yield
    except PolarBearError as problem:
        raise type(problem)(as_typed(str(problem))) from None


def as_typed(message: str) -> str:
    """Message with the options of Python as options of the command.

    >>> as_typed('Accept indifferent="leave-out", or samples=100; deepest must be at least 1.')
    'Accept --indifferent leave-out, or --samples 100; --common must be at least 1.'
    """
    names = "|".join((*_SAME, *_OPTIONS))

    def option(match: re.Match[str]) -> str:
        return f"--{_OPTIONS.get(match[1], match[1])}"

    message = re.sub(rf"\b({names})=\"?([\w-]+|'[^']*')\"?", lambda match: f"{option(match)} {match[2]}", message)
    return re.sub(rf"(?<![\w-])({names})(?=: | must )", option, message)


def _data(
    found: SuiteDepth, shared: CommonStructure, changes: Any, orders: Mapping[str, PartialOrder]
) -> dict[str, Any]:
    data = found.to_dict()
    data["common"] = {"functions": shared.functions, "edges": shared.edges, "non_edges": shared.non_edges}
    data["shared"] = shared_order(orders).edges()
    data["above"] = above_counts(orders).to_numpy().tolist()
    data["consensus"] = [each.to_json() for each in _consensus(found)]
    if changes is not None:
        data["changes_without"] = {name: changes[name].to_dict() for name in changes}
    return data


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
    if found.seconds_for_all is not None:
        out.print(
            f"Testing all sets would take about {format_duration(found.seconds_for_all)} of CPU time, so some of the "
            "larger sets were drawn: each depth has a standard error. --exact tests all, --samples draws more.",
            soft_wrap=True,
        )
    if not found.generic:
        out.print("No set of these orders is union-free generic, so all depths are 0.")
    out.print(
        f"{_ends(found)} Depths range over {spread['range']:.4f}, standard deviation "
        f"{spread['standard_deviation']:.4f}.",
        soft_wrap=True,
    )


def _ends(found: SuiteDepth) -> str:
    """The most central and the most outlying functions, as far as they can be told."""
    if found.central():
        return f"Most central: {', '.join(found.central())}. Most outlying: {', '.join(found.outlying())}."
    if found.errors.any():
        return "The errors are too large to say which function is more central than another."
    return "All depths are equal: no function is more central than another."


def _show_shared(out: Console, shared: CommonStructure, found: SuiteDepth) -> None:
    edges = ", ".join(f"{better} > {worse}" for better, worse in shared.edges) or "nothing"
    count = len(shared.functions)
    deepest = f"The {count} deepest orders ({', '.join(shared.functions)})"
    out.print(
        f"{deepest if count < len(found.functions) else f'All {count} orders'} agree on {edges}. For "
        f"{len(shared.non_edges)} other pairs, they agree that the first is not better than the second (--json lists "
        "them).",
        soft_wrap=True,
    )


def _consensus(found: SuiteDepth) -> list[Consensus]:
    """Total orders from how often one optimizer is above another, by each method that takes so many."""
    above = above_counts(found.orders)
    many = len(above) > MOST_FOR_KEMENY
    return [consensus_ranking(above, method) for method in get_args(ConsensusMethod) if method != "kemeny" or not many]


def _show_consensus(out: Console, found: SuiteDepth) -> None:
    named = {
        "kemeny": "fewest reversals (Kemeny)",
        "borda": "wins minus losses (Borda)",
        "copeland": "duels (Copeland)",
    }
    out.print("For comparison, total orders from how often one is above another, which hide what is incomparable:")
    for each in _consensus(found):
        several = f" (one of {each.optima:,})" if each.optima is not None and each.optima > 1 else ""
        out.print(f"  {named[each.method]}: {each}{several}", soft_wrap=True)
