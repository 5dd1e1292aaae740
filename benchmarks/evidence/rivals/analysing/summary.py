"""Means and intervals over replications, and a figure of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

_RESAMPLES = 2000
_MEANS = ("log_score", "brier", "winner_log_score", "regret", "cpu")
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
_MARKERS = "os^Dv*"


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each data set, number of training instances and method, with 95 % intervals over replications.

    ``log_score to best`` is the paired difference from the method with the best mean log score there.
    """
    summary = []
    for data, training in dict.fromkeys((row["data"], row["training"]) for row in rows):
        here = [row for row in rows if (row["data"], row["training"]) == (data, training)]
        methods = list(dict.fromkeys(row["method"] for row in here))
        by_method = {
            name: sorted((r for r in here if r["method"] == name), key=lambda r: r["replication"]) for name in methods
        }
        found = [{"data": data, "training": training, "method": name, **_one(by_method[name])} for name in methods]
        for key in ("log_score", "winner_log_score"):
            scored = [row for row in found if key in row]
            best = max(scored, key=lambda row: row[key]["mean"])["method"] if scored else None
            for row in scored:
                pairs = zip(by_method[row["method"]], by_method[best], strict=False)
                row[f"{key} to best"] = _mean([mine[key] - other[key] for mine, other in pairs])
        summary += found
    return summary


def _one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"replications": len(rows)}
    coverages = [key for key in rows[0] if key.startswith(("coverage", "width"))]
    for key in (*_MEANS, *coverages):
        if key in rows[0]:
            found[key] = _mean([row[key] for row in rows])
    found["alarms"] = sum(row.get("alarm", 0.0) for row in rows) / len(rows)
    if "statements" in rows[0]:
        made, pairs = (np.array([row[key] for row in rows]) for key in ("statements", "pairs"))
        found["statements"] = int(made.sum())
        found["stated"] = _share(made, pairs)
        for key in ("false", "false_own"):
            found[key] = int(sum(row[key] for row in rows))
            found[f"{key} share"] = _share(np.array([row[key] for row in rows]), made)
    return found


def _mean(numbers: list[float]) -> dict[str, float]:
    """Mean with a 95 % interval of Student's t."""
    mean = float(np.mean(numbers))
    half = float(stats.t.ppf(0.975, len(numbers) - 1) * stats.sem(numbers)) if len(numbers) > 1 else float("nan")
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _share(parts: np.ndarray, wholes: np.ndarray) -> dict[str, float] | None:
    """Ratio of sums with a 95 % interval by resampling replications."""
    if not wholes.sum():
        return None
    drawn = np.random.default_rng(0).integers(0, len(parts), (_RESAMPLES, len(parts)))
    tops, bottoms = parts[drawn].sum(axis=1), wholes[drawn].sum(axis=1)
    low, high = np.quantile(tops[bottoms > 0] / bottoms[bottoms > 0], (0.025, 0.975))
    return {"mean": float(parts.sum() / wholes.sum()), "low": float(low), "high": float(high)}


def draw(path: Path, summary: list[dict[str, Any]]) -> None:
    """Gain over a coin, statements made and statements that are false, from the most training instances."""
    import matplotlib.pyplot as plt

    most = max(row["training"] for row in summary)
    shown = [row for row in summary if row["training"] == most and row["method"] != "coin"]
    names = list(dict.fromkeys(row["data"] for row in shown))
    # A data set with groups has all methods.
    methods = max(([row["method"] for row in shown if row["data"] == name] for name in names), key=len)
    figure, axes = plt.subplots(1, 3, figsize=(13, 0.5 * len(methods) + 2), sharey=True, layout="constrained")
    panels = (
        ("log_score", "gain over a coin [nats per comparison]", np.log(2)),
        ("stated", "pairs with a 95 % statement [share]", 0.0),
        ("false share", "false among these statements [share]", 0.0),
    )
    for axis, (key, title, offset) in zip(axes, panels, strict=True):
        for place, name in enumerate(names):
            mine = [row for row in shown if row["data"] == name and row.get(key) is not None]
            x = np.array([row[key]["mean"] for row in mine]) + offset
            ends = np.abs([[row[key]["mean"] - row[key][end] for row in mine] for end in ("low", "high")])
            y = np.array([methods.index(row["method"]) for row in mine]) + 0.12 * (place - (len(names) - 1) / 2)
            look = {"color": _COLOURS[place], "label": name, "markersize": 5, "elinewidth": 1}
            axis.errorbar(x, y, xerr=ends.reshape(2, -1), fmt=_MARKERS[place], **look)
        axis.set_title(title, fontsize=10)
        for edge in np.arange(len(methods) - 1) + 0.5:
            axis.axhline(edge, color="0.85", linewidth=0.8)
        axis.grid(axis="x", alpha=0.3)
    axes[2].axvline(0.05, color="black", linestyle="--", linewidth=1)
    axes[0].axvline(0.0, color="black", linestyle="--", linewidth=1)
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].invert_yaxis()
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), frameon=False)
    figure.suptitle(f"{most} training instances", fontsize=11)
    figure.savefig(path, dpi=150)
