from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from builders import run_of, table_of

from polarbear_plugins import compare, fit, select, select_portfolio
from polarbear_plugins.measures.orders import order_by_measures
from polarbear_plugins.measures.scores import Studies, score_studies
from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.depth import measure_depth

NAMES = ("csa", "<b>msr", "tpa")
RANDOM = np.random.default_rng(1).random((6, 4, 3))


def fitted() -> Any:
    return fit(table_of(RANDOM, algorithms=NAMES), draws=100, seed=1)


MADE: dict[str, Callable[[], Any]] = {
    "relations": lambda: compare(fitted()),
    "choice": lambda: select(fitted()),
    "portfolio": lambda: select_portfolio(fitted(), 2),
    "scores": lambda: score_studies(Studies(visible={(name, "f"): RANDOM for name in NAMES}, random=["csa"])),
    "orders": lambda: order_by_measures([run_of(name, best=k + 1) for k, name in enumerate(NAMES)], 9),
    "depth": lambda: measure_depth(
        {str(k): PartialOrder.from_edges(NAMES, [(NAMES[k], NAMES[1 - k])]) for k in (0, 1)}
    ),
}


@pytest.mark.parametrize("made", MADE)
def test_a_notebook_shows_a_table_in_which_names_are_text(made: str) -> None:
    html = MADE[made]()._repr_html_()
    assert "<table>" in html
    assert "&lt;b&gt;msr" in html
    assert "<b>" not in html
