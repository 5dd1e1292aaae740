from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.planning import judge_differences, power_curve
from polarbear_plugins.plots import plot_differences, plot_normal_quantiles, plot_power, save_differences, save_power

pytest.importorskip("matplotlib")

VALUES = np.random.default_rng(1).normal(-0.5, 1, 20)
COMPARISON = judge_differences(VALUES, names=("$a_1$", "b"))


def test_differences_are_drawn_in_order_with_their_errors_and_the_interval() -> None:
    ax = plot_differences(VALUES, np.full(20, 0.1), COMPARISON)
    [container] = ax.containers
    points, _, [bars] = container
    assert points.get_ydata().tolist() == sorted(VALUES)
    assert np.allclose([np.ptp(bar[:, 1]) for bar in bars.get_segments()], 0.2)
    assert ax.get_ylabel() == "b - $a_1$"
    assert {COMPARISON.estimate, 0.0} <= {line.get_ydata()[0] for line in ax.lines}
    assert (ax.patches[0].get_y(), ax.patches[0].get_height()) == pytest.approx(
        (COMPARISON.low, COMPARISON.high - COMPARISON.low)
    )


def test_normal_values_lie_on_the_line() -> None:
    line, points = plot_normal_quantiles(VALUES).lines
    assert points.get_ydata().tolist() == sorted(VALUES)
    assert np.corrcoef(line.get_ydata(), points.get_ydata())[0, 1] > 0.95


def test_figures_are_saved(tmp_path: Path) -> None:
    errors = np.full(20, 0.1)
    path = save_differences(
        {COMPARISON: (VALUES, errors), judge_differences(-VALUES): (-VALUES, errors)}, tmp_path / "a.png"
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    curve = power_curve(30)
    assert plot_power(*curve).lines[-1].get_ydata().tolist() == curve[1].tolist()
    assert save_power(*curve, tmp_path / "b.svg").stat().st_size > 1000


def test_bad_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="errors: expected one for each of 20 differences, got 3"):
        plot_differences(VALUES, [1.0, 2.0, 3.0], COMPARISON)
    with pytest.raises(InvalidInputError, match="The figure cannot be saved as"):
        save_power([0, 1], [0, 1], tmp_path / "a.xyz")
