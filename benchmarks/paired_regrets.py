"""Regrets of several methods on the same seeds: comparisons with the best, and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from measuring import report_figure
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
#: Figures by method and kind ("regret", "trials", ...), one for each seed.
Rows: TypeAlias = dict[str, dict[str, FloatArray]]
#: Mean regret and paired difference to the best, by method.
Comparison: TypeAlias = dict[str, dict[str, float]]


def standard_error(values: FloatArray) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def compare_with_best(regrets: Mapping[str, FloatArray]) -> Comparison:
    """Mean regret of each row, and its paired difference to the row with the lowest mean.

    >>> found = compare_with_best({"a": np.array([0.0, 1.0]), "b": np.array([0.5, 2.5])})
    >>> found["b"]["behind"], found["b"]["behind_error"]
    (1.0, 0.5)
    """
    best = regrets[min(regrets, key=lambda label: regrets[label].mean())]
    return {
        label: {
            "regret": float(values.mean()),
            "error": standard_error(values),
            "behind": float((values - best).mean()),
            "behind_error": standard_error(values - best),
        }
        for label, values in regrets.items()
    }


def compare_regrets(rows: Rows) -> Comparison:
    """:func:`compare_with_best` for the rows of a task."""
    return compare_with_best({label: row["regret"] for label, row in rows.items()})


def z_of(compared: Mapping[str, float]) -> float:
    """By how many standard errors a row is behind; infinite if by the same for all seeds."""
    if compared["behind"] == 0:
        return 0.0
    return compared["behind"] / compared["behind_error"] if compared["behind_error"] > 0 else np.inf


def mark(compared: Mapping[str, float]) -> str:
    """``=`` for the best, ``~`` if not significantly worse, else nothing."""
    if compared["behind"] == 0:
        return "="
    return "~" if z_of(compared) < 2 else " "


def print_block(title: str, rows: Rows) -> None:
    """Print the figures of a task and a sampler."""
    print(f"\n{title}\n{'':38}{'regret':>8}{'+-':>8}{'behind':>9}{'+-':>8}{'z':>7}", end="")
    print(f"{'trials':>8}{'complete':>10}{'evals':>7}{'seconds':>9}{'pruner':>8}")
    for label, one in compare_regrets(rows).items():
        row = rows[label]
        print(
            f"{mark(one)} {label:36}{one['regret']:8.4f}{one['error']:8.4f}{one['behind']:9.4f}"
            f"{one['behind_error']:8.4f}{z_of(one):7.1f}{row['trials'].mean():8.0f}{row['complete'].mean():10.0f}"
            f"{row['evaluations'].mean():7.0f}{row['seconds'].mean():9.2f}{row['pruning_seconds'].mean():8.2f}",
            flush=True,
        )


def average_over_tasks(tasks: Mapping[str, Rows], labels: list[str], units: Mapping[str, float]) -> Comparison:
    """Compare means over tasks of regrets in given units; empty without tasks."""
    if not units:
        return {}
    return compare_with_best(
        {
            label: np.mean([tasks[task][label]["regret"] / unit for task, unit in units.items()], axis=0)
            for label in labels
        }
    )


def print_averages(sampler: str, tasks: Mapping[str, Rows]) -> dict[str, Comparison]:
    """Print a table of all tasks of a sampler with averages, and report them as figures."""
    labels = [label for label in next(iter(tasks.values())) if all(label in rows for rows in tasks.values())]
    mean = average_over_tasks(tasks, labels, dict.fromkeys(tasks, 1.0))
    without = {task: float(rows["none"]["regret"].mean()) for task, rows in tasks.items() if "none" in labels}
    relative = average_over_tasks(tasks, labels, {task: regret for task, regret in without.items() if regret > 0})
    compared = {task: compare_regrets(rows) for task, rows in tasks.items()}
    headings = "".join(f"{task:>{_width(task)}}" for task in tasks)
    print(
        f"\n{sampler}, regret by task\n{'':38}{headings}{'mean':>9} {'+-':>8}{'to none':>9} {'+-':>7}{'worse on':>10}"
    )
    for label in labels:
        cells = "".join(_cell(rows[label], _width(task), 4) for task, rows in compared.items())
        cells += _cell(mean[label], 10, 4) + f"{mean[label]['error']:8.4f}"
        cells += _cell(relative[label], 10, 2) + f"{relative[label]['error']:7.2f}" if relative else f"{'':17}"
        report_figure(
            f"  {label:36}{cells}{sum(z_of(rows[label]) >= 2 for rows in compared.values()):10d}",
            f"mean regret, {sampler}, {label}",
            mean[label]["regret"],
            f"no pruning: {mean['none']['regret']:.4f}" if "none" in mean else "the best configuration: 0",
            "lower",
        )
    return {"mean": mean, "relative_to_none": relative}


def _width(task: str) -> int:
    return max(len(task) + 2, 9)


def _cell(compared: Mapping[str, float], width: int, digits: int) -> str:
    return f"{compared['regret']:{width - 1}.{digits}f}{mark(compared)}"
