from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import load_plugins
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.pycma_portfolio import NAMES, PycmaAlgorithm, pycma_portfolio
from polarbear_plugins.problems.protocols import Identity


class Box:
    """A function on a box with ranges of very different size, which fails below a line."""

    def __init__(self, failing: float = -math.inf) -> None:
        self.identity = Identity("box", {"dimension": 2})
        self.lower, self.upper = np.array([-5.0, 100.0]), np.array([5.0, 900.0])
        self.failing, self.evaluations = failing, 0

    def evaluate(self, x: Any, /) -> float:
        assert (self.lower <= x).all()
        assert (x <= self.upper).all()
        self.evaluations += 1
        return math.nan if x[0] < self.failing else float((x[0] - 1) ** 2 + ((x[1] - 300) / 80) ** 2)


@pytest.fixture(autouse=True)
def _pycma() -> None:
    pytest.importorskip("cma")


@pytest.mark.parametrize("name", NAMES)
def test_it_converges_uses_its_budget_and_repeats_itself(name: str) -> None:
    problem = Box()
    run = PycmaAlgorithm(name).run(problem, 1_500, 4)
    assert problem.evaluations == run.horizon == 1_500
    assert run.best[-1] < 1e-10
    assert np.array_equal(run.best, PycmaAlgorithm(name).run(Box(), 1_500, 4).best)
    assert not np.array_equal(run.best, PycmaAlgorithm(name).run(Box(), 1_500, 5).best)


def test_failed_evaluations_are_worse_than_any_value() -> None:
    problem = Box(failing=0.0)
    run = PycmaAlgorithm("pycma-ipop").run(problem, 400, 1)
    assert np.isfinite(run.best[-1])
    assert run.best[-1] < 1e-4


def test_restarts_with_larger_and_with_small_populations_differ() -> None:
    runs = [PycmaAlgorithm(name).run(Box(), 6_000, 2) for name in NAMES]
    first = [run.best[:20] for run in runs]
    assert np.array_equal(*first)  # the first start is the same
    assert runs[0].best[-1] < 1e-10


def test_other_problems_are_refused() -> None:
    class Space:
        identity = Identity("space")

    assert PycmaAlgorithm("pycma-ipop").refuses(Space()) == "it runs on boxes (lower, upper, evaluate) only"
    with pytest.raises(InvalidInputError, match="'pycma-ipop' cannot run on 'space': it runs on boxes"):
        PycmaAlgorithm("pycma-ipop").run(Space(), 10, 1)


def test_the_portfolio_is_found_by_its_name() -> None:
    assert [each.name for each in load_plugins().portfolio("pycma")] == list(NAMES)
    assert [each.name for each in load_plugins().portfolio("pycma", algorithms="pycma-bipop")] == ["pycma-bipop"]
    with pytest.raises(InvalidInputError, match="has no algorithm 'bipop'"):
        pycma_portfolio(["bipop"])
