"""The check of the model: silent on rankings from it, loud on others."""

from __future__ import annotations

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins import fit

KINDS = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second


@pytest.mark.parametrize("likelihood", ["rankings", "first-places"])
def test_timepoints_and_algorithms_without_comparisons_are_left_out(likelihood: str) -> None:
    values = np.concatenate([KINDS, np.full((60, 1, 3), np.nan), KINDS], axis=1)
    values[:, 1, 0] = 1.0  # alone
    with_absent = np.concatenate([values, np.full((60, 3, 1), np.nan)], axis=2)
    check = fit(table_of(with_absent), seed=1, likelihood=likelihood).check  # type: ignore[arg-type]
    assert check is not None
    assert (check.p_first[1], check.p_pairs[1]) == (1.0, 1.0)
    assert np.isnan(check.observed[1]).all()
    assert np.isnan(check.modelled[1]).all()
    assert check.observed[[0, 2], :3].tolist() == [[0.5, 0.5, 0.0]] * 2
    assert np.isnan(check.observed[:, 3]).all()
    assert check.fits == (likelihood == "first-places")
