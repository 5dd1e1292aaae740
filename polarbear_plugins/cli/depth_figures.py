"""Figures of ``polarbear depth``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polarbear_plugins.cli.output import save_figures
from polarbear_plugins.partial_orders.order import PartialOrder
from polarbear_plugins.partial_orders.shared import shared_order
from polarbear_plugins.partial_orders.suite import CommonStructure, SuiteDepth

_MOST_DIAGRAMS = 3  # side by side


def draw_ends(found: SuiteDepth, path: Path) -> Path:
    """Draw the most central and the most outlying order into one file; what all share, if no order is."""
    from polarbear_plugins.plots.hasse import save_hasse_diagrams

    if not found.central():
        everyone = shared_order(found.orders)
        return save_hasse_diagrams([everyone], path, titles=[_share(everyone, _all(found))])
    central, outlying = found.central()[0], found.outlying()[0]
    titles = [_title(found, central, "most central"), _title(found, outlying, "most outlying")]
    return save_hasse_diagrams([found.order(central), found.order(outlying)], path, titles=titles)


def draw_all(found: SuiteDepth, deepest: CommonStructure, folder: Path) -> list[Path]:
    """Draw everything into a folder; the most central and outlying orders only if there are any."""
    from polarbear_plugins.plots.depths import plot_above, plot_depths
    from polarbear_plugins.plots.hasse import save_hasse_diagrams

    everyone = shared_order(found.orders)
    saved = save_figures({"above": plot_above(found.orders), "depths": plot_depths(found)}, folder)
    saved.append(save_hasse_diagrams([everyone], folder / "shared.png", titles=[_share(everyone, _all(found))]))
    if not found.central():
        return saved
    agreed = shared_order([found.order(name) for name in deepest.functions])
    title = _share(agreed, f"the {len(deepest.functions)} deepest orders")
    saved.append(save_hasse_diagrams([agreed], folder / "deepest.png", titles=[title]))
    for names, what in ((found.central(), "central"), (found.outlying(), "outlying")):
        shown = _distinct(found, names)
        titles = [_title(found, name, f"most {what}") for name in shown]
        orders = [found.order(name) for name in shown]
        saved.append(save_hasse_diagrams(orders, folder / f"{what}.png", titles=titles))
    return saved


def _distinct(found: SuiteDepth, names: Sequence[str]) -> list[str]:
    """One function for each different order, not too many."""
    first: dict[PartialOrder, str] = {}
    for name in names:
        first.setdefault(found.order(name), name)
    return list(first.values())[:_MOST_DIAGRAMS]


def _title(found: SuiteDepth, name: str, what: str) -> str:
    return f"{name}: {what}, depth {found.depths[found.functions.index(name)]:.3f}"


def _all(found: SuiteDepth) -> str:
    return f"all {len(found.orders)} orders"


def _share(order: PartialOrder, who: str) -> str:
    return f"what {who} share{'' if order.edges() else ': nothing'}"
