"""Choosing from ratings of a model that does not fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from builders import table_of, wins_table

from polarbear_plugins import Posterior, RaceSettings, analyze, fit, select, select_portfolio
from polarbear_plugins.errors import ModelWarning

KINDS = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second
CHOICES = [(select, "select"), (partial(select_portfolio, size=2), "select_portfolio")]


@pytest.mark.parametrize(("choose", "name"), CHOICES)
def test_a_choice_from_a_model_that_does_not_fit_warns_once_and_says_what_to_do(
    choose: Callable[[Posterior], Any], name: str
) -> None:
    says = rf"^{name}: The model does not fit .*c is first on 0%.*robust_posterior\(among\).*first-places"
    with pytest.warns(ModelWarning, match=says) as caught:
        choose(fit(table_of(KINDS), seed=1))
    assert len(caught) == 1


@pytest.mark.parametrize(("choose", "name"), CHOICES)
def test_a_warning_points_to_the_line_that_chooses(choose: Callable[[Posterior], Any], name: str) -> None:
    posterior = fit(table_of(KINDS), seed=1)
    with pytest.warns(ModelWarning, match=name) as caught:
        choose(posterior)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("choose", "name"), CHOICES)
def test_a_choice_from_a_model_that_fits_or_was_not_checked_does_not_warn(
    choose: Callable[[Posterior], Any], name: str
) -> None:
    del name
    misfit = fit(table_of(KINDS), seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choose(fit(wins_table([12], 20), seed=1))
        choose(replace(misfit, check=None))
        choose(fit(table_of(KINDS), seed=1, check=False))
        choose(fit(table_of(KINDS), seed=1, likelihood="first-places"))


def test_of_two_kinds_of_instances_the_robust_choice_is_one_that_is_first() -> None:
    values = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0], [1.0, 3.0, 2.0]], (30, 1))[:, None, :]
    result = analyze(table_of(values), RaceSettings(seed=1, guard="none", draws=1000))
    with pytest.warns(ModelWarning):
        by_model = select(result.posterior)
    robust = select(result.robust_posterior())
    assert robust.algorithm == "a"
    assert robust.scores["c"] < 0.05 < by_model.scores["c"]
