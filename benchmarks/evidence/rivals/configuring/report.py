"""Tables and a figure of what configurators picked: regrets with intervals, and paired differences to the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measuring import report_figure
from scipy import stats

DEFAULT = "PolarBearSampler, TPE"
FEWEST = 5  # seeds of what is drawn
#: Colours by Okabe and Ito, which people with colour blindness can tell apart, and a marker for each row.
STYLES = {
    "irace": ("#D55E00", "s"),
    "SMAC3": ("#CC79A7", "D"),
    "TPE, WilcoxonPruner": ("#E69F00", "^"),
    "TPE, PolarBearPruner, likely_best": ("#56B4E9", "v"),
    "PolarBearSampler, TPE": ("#0072B2", "o"),
    "PolarBearSampler, near survivors": ("#009E73", "P"),
    "PolarBearSampler, TPE, alpha 0.8": ("#000000", "X"),
    "PolarBearSampler, TPE, alpha 0.8, no guard": ("#B8A800", "*"),
    "random search": ("#888888", "."),
}


def with_regrets(rows: Iterable[Mapping[str, Any]], sample: Sequence[float]) -> list[dict[str, Any]]:
    """Rows with regrets; those of modcma are relative to the best pick and to a random sample.

    A regret of 0 is the best configuration that any rival picked or that the sample holds, 1 the median of the sample.
    """
    rows = list(rows)
    values = [row["value"] for row in rows if row["task"] == "modcma" and row["value"] is not None]
    best = min([*values, *sample]) if values else 0.0
    scale = float(np.median(sample)) - best if len(sample) else 1.0

    def regret(row: Mapping[str, Any]) -> float | None:
        if row["value"] is None or row["task"] != "modcma":
            return row["value"]
        return (row["value"] - best) / scale

    return [{**row, "regret": regret(row)} for row in rows]


def summarize(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean regret for each task, budget and label, and how far behind the best and PolarBearSampler on common seeds.

    The best is the one with the lowest mean of those with the most seeds.
    """
    found = []
    cells = dict.fromkeys((row["task"], row["budget"]) for row in rows)
    for task, budget in cells:
        regrets: dict[str, dict[int, float | None]] = {}
        for row in rows:
            if (row["task"], row["budget"]) == (task, budget):
                regrets.setdefault(row["label"], {})[row["seed"]] = row["regret"]
        possible = {
            label: {seed: value for seed, value in one.items() if value is not None} for label, one in regrets.items()
        }
        most = max(len(one) for one in possible.values())
        full = [label for label, one in possible.items() if one and len(one) == most]
        best = min(full, key=lambda label: np.mean(list(possible[label].values())))
        for label, one in possible.items():
            ours = possible.get(DEFAULT, {})
            found.append(
                {
                    "task": task,
                    "budget": budget,
                    "label": label,
                    "seeds": len(one),
                    "refused": len(regrets[label]) - len(one),
                    "best": label == best,
                    **_interval("regret", list(one.values())),
                    **_interval("behind", _differences(one, possible[best])),
                    **_interval("behind_polarbear", _differences(one, ours)),
                }
            )
    return found


def _differences(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """Differences on the seeds of both."""
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def _interval(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """Mean and half the width of its 95 % interval by Student's t."""
    if not values:
        return {name: None, f"{name}_half": None}
    half = None
    if len(values) > 1:
        half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return {name: float(np.mean(values)), f"{name}_half": half}


def print_summary(summary: Sequence[Mapping[str, Any]]) -> None:
    """Print a table for each task and budget; the best is marked =, and ~ means that 0 is in the interval behind it."""
    for task, budget in dict.fromkeys((one["task"], one["budget"]) for one in summary):
        print(f"\n{task}, {budget} evaluations\n{'':44}{'seeds':>6}{'regret':>9}{'+-95%':>8}{'behind':>9}{'+-95%':>8}")
        for one in summary:
            if (one["task"], one["budget"]) != (task, budget):
                continue
            if one["regret"] is None:
                print(f"  {one['label']:42}{'not possible':>23}")
                continue
            half, behind_half = one["regret_half"] or np.nan, one["behind_half"] or 0.0
            mark = "=" if one["best"] else "~" if one["behind"] <= behind_half else " "
            report_figure(
                f"{mark} {one['label']:42}{one['seeds']:6d}{one['regret']:9.4f}{half:8.4f}{one['behind']:9.4f}"
                f"{behind_half:8.4f}" + (f"   refused {one['refused']} seeds" if one["refused"] else ""),
                f"regret, {task}, {budget} evaluations, {one['label']}",
                one["regret"],
                "the best configuration: 0",
                "lower",
            )


def draw(summary: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw regret against budget, a panel for each task; without those that have few seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tasks = list(dict.fromkeys(one["task"] for one in summary))
    figure, panels = plt.subplots(1, len(tasks), figsize=(4.2 * len(tasks), 4.6), squeeze=False, layout="constrained")
    labels = [label for label in STYLES if any(one["label"] == label for one in summary)]
    for panel, task in zip(panels[0], tasks, strict=True):
        for place, label in enumerate(labels):
            points = [one for one in summary if (one["task"], one["label"]) == (task, label)]
            points = [one for one in points if one["regret"] is not None and one["seeds"] >= FEWEST]
            if not points:
                continue
            colour, marker = STYLES[label]
            shift = 1.025 ** (place - (len(labels) - 1) / 2)  # so that intervals do not hide each other
            panel.errorbar(
                [one["budget"] * shift for one in points],
                [one["regret"] for one in points],
                [one["regret_half"] or 0.0 for one in points],
                label=label,
                color=colour,
                marker=marker,
                markersize=6,
                linewidth=2.2 if label == DEFAULT else 1.1,
                linestyle="--" if label.startswith("PolarBearSampler") and label != DEFAULT else "-",
                elinewidth=0.8,
            )
        budgets = sorted({one["budget"] for one in summary if one["task"] == task})
        panel.set(xscale="log", title=task, xlabel="evaluations")
        panel.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        panel.minorticks_off()
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("regret of the pick on other instances\n(median configuration: about 1)")
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)
