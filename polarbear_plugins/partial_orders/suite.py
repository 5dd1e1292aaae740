"""Depths of the partial orders of a suite of test functions, and what they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.display.frames import pair_frame
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.partial_orders.order import PartialOrder

if TYPE_CHECKING:
    import pandas as pd


_EQUAL = 1e-12  # depths that differ less differ by rounding


@dataclass(frozen=True, slots=True)
class CommonStructure:
    """What some orders have in common.

    Attributes
    ----------
    edges
        Pairs (better, worse) in all orders.
    non_edges
        Pairs (one, other) such that the one is better than the other in no order.
    functions
        Test functions of the orders.
    """

    functions: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    non_edges: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SuiteDepth:
    """Depths of the partial orders of a suite.  Returned by :func:`measure_depth`.

    Attributes
    ----------
    functions
        Names of the test functions, or of the orders given as ``of``.
    orders
        Their partial orders.
    depths
        Their union-free generic depths.
    errors
        Standard error of each depth; 0 if no sets were sampled.
    bound
        Bound on the error of each depth from large sets that were left out.
    tested, generic
        Number of sets tested, and of union-free generic ones among them, by size.
    seconds_for_all
        Estimated CPU seconds for testing all sets, if sets were drawn because this is too long.
    """

    functions: tuple[str, ...]
    orders: tuple[PartialOrder, ...]
    depths: FloatArray
    errors: FloatArray
    bound: float
    tested: Mapping[int, int] = field(default_factory=dict)
    generic: Mapping[int, int] = field(default_factory=dict)
    seconds_for_all: float | None = None

    def ranking(self) -> list[str]:
        """Test functions from the most central to the most outlying; ties in the given order."""
        return [self.functions[place] for place in np.argsort(-self.depths.round(12), kind="stable")]

    def central(self) -> list[str]:
        """Test functions of the greatest depth; none if all depths are equal.

        If sets were drawn, also those whose depth is less than twice the sum of the two errors away.
        """
        return self._extreme(int(np.argmax(self.depths)))

    def outlying(self) -> list[str]:
        """Test functions of the least depth; none if all depths are equal.  See :meth:`central`."""
        return self._extreme(int(np.argmin(self.depths)))

    def common(self, deepest: int) -> CommonStructure:
        """What the orders of the ``deepest`` most central test functions have in common.

        More than this many if others are as deep as the last of them.
        """
        count = as_whole_number(deepest, "deepest", at_least=1)
        if count > len(self.functions):
            raise InvalidInputError(f"deepest: there are only {len(self.functions)} orders, got {count}.")
        cut = np.sort(self.depths)[-count] - _EQUAL
        chosen = [name for name in self.ranking() if self.depths[self.functions.index(name)] >= cut]
        names = self.orders[0].optimizers
        relations = np.array([self.order(function).among(names).better for function in chosen])
        none = ~(relations.any(axis=0) | np.eye(len(names), dtype=np.bool_))
        edges, non_edges = (
            tuple((names[i], names[j]) for i, j in np.argwhere(which)) for which in (relations.all(axis=0), none)
        )
        return CommonStructure(tuple(chosen), edges, non_edges)

    def order(self, function: str) -> PartialOrder:
        """Partial order of a test function."""
        if function not in self.functions:
            raise InvalidInputError(f"There is no test function {function!r}.")
        return self.orders[self.functions.index(function)]

    def dispersion(self) -> dict[str, float]:
        """Spread of the depths, the standard deviation that of a sample: how diverse the suite is for these optimizers.

        Depths that are all low and close to each other mean that no order is well supported by the others.
        Compare suites only for the same optimizers and similar numbers of test functions: both limit the depths.
        """
        return {
            "minimum": float(self.depths.min()),
            "maximum": float(self.depths.max()),
            "range": float(np.ptp(self.depths)),
            "mean": float(self.depths.mean()),
            "standard_deviation": float(self.depths.std(ddof=1)) if self.depths.size > 1 else 0.0,
            "distinct_orders": len(set(self.orders)),
        }

    def summary(self) -> pd.DataFrame:
        """Table with a row for each test function, the most central first."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "depth": self.depths,
                "error": self.errors,
                "edges": [int(order.better.sum()) for order in self.orders],
                "undominated": [
                    ", ".join(np.array(order.optimizers)[~order.better.any(axis=0)]) for order in self.orders
                ],
            },
            index=pd.Index(self.functions, name="function"),
        )
        return frame.loc[self.ranking()]

    def to_pandas(self) -> pd.DataFrame:
        """Depths and orders in long form: a row for each test function and ordered pair.

        Columns: ``function``, ``optimizer``, ``other``, ``better`` (whether the optimizer is), and the ``depth`` of the
        function with its ``error``.
        """
        names = self.orders[0].optimizers
        columns = {
            "better": np.array([order.among(names).better for order in self.orders]),
            "depth": self.depths[:, None, None],
            "error": self.errors[:, None, None],
        }
        return pair_frame(names, "optimizer", "other", columns, function=self.functions)

    def _repr_html_(self) -> str:
        what = f"Depths of {len(self.functions)} test functions for {len(self.orders[0].optimizers)} optimizers"
        return f"<p>{text(what)}</p>{summary_table(self.summary(), 'The most central first')}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "optimizers": list(self.orders[0].optimizers),
            "functions": [
                {"function": name, "depth": float(depth), "error": float(error), "edges": order.edges()}
                for name, depth, error, order in zip(self.functions, self.depths, self.errors, self.orders, strict=True)
            ],
            "central": self.central(),
            "outlying": self.outlying(),
            "dispersion": self.dispersion(),
            "bound": self.bound,
            "sampled": bool(self.errors.any()),
            "seconds_for_all": self.seconds_for_all,
            "sets_tested": {str(size): number for size, number in self.tested.items()},
            "sets_generic": {str(size): number for size, number in self.generic.items()},
        }

    def _extreme(self, place: int) -> list[str]:
        """Functions whose depth cannot be told from that of one; none if that is so for all."""
        near = _EQUAL + 2 * (self.errors + self.errors[place])
        same = np.abs(self.depths - self.depths[place]) <= near
        return [] if same.all() else [name for name, chosen in zip(self.functions, same, strict=True) if chosen]
