"""The figure of rival_races.py: what an answer costs, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Okabe and Ito's colours for the families, markers for their variants.  What is missing here is not drawn: without
# barriers PolarBear would hide itself in rounds.
_STYLES = {
    "PolarBear": ("#0072B2", "o"),
    "PolarBear, anytime-valid": ("#0072B2", "D"),
    "PolarBear, cost 1": ("#56B4E9", "o"),
    "PolarBear, cost 0.2": ("#56B4E9", "D"),
    "irace, elitist": ("#D55E00", "^"),
    "irace, elitist, anytime": ("#D55E00", "v"),
    "irace, non-elitist": ("#D55E00", "<"),
    "irace, non-elitist, anytime": ("#D55E00", ">"),
    "F-race": ("#009E73", "s"),
    "Wilcoxon-Holm, 100": ("#000000", "P"),
    "Wilcoxon-Holm, 1,000": ("#000000", "X"),
    "successive halving": ("#CC79A7", "p"),
    "SMAC's intensifier": ("#E69F00", "*"),
}
_MEASURES = {
    "regret": "regret of the choice\n(share of first places)",
    "lost": "true members lost",
    "dominated kept": "dominated algorithms kept",
}


def draw(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw a column of panels for each kind of data and a row for each measure, over the cost."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(_MEASURES),
        len(results),
        figsize=(2.7 * len(results) + 1, 2.4 * len(_MEASURES) + 1.4),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    handles: dict[str, Any] = {}
    for column, (data, rivals) in enumerate(results.items()):
        for row, (measure, label) in enumerate(_MEASURES.items()):
            panel = panels[row, column]
            for name in (name for name in _STYLES if name in rivals):
                handles[name] = _point(panel, name, rivals[name]["cost share"], rivals[name][measure])
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")
            panel.grid(alpha=0.25)
            if row == 0:
                panel.set_title(data)
            if column == 0:
                panel.set_ylabel(label)
    panels[-1, len(results) // 2].set_xlabel("cost, relative to all algorithms in full on 100 instances")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _point(panel: Any, name: str, cost: Mapping[str, float], found: Mapping[str, float]) -> Any:
    """Draw a mean with its intervals in both directions."""
    colour, marker = _STYLES[name]
    # A mean of a skewed sample can lie a rounding error outside its interval.
    errors = [[[max(one["mean"] - one["low"], 0)], [max(one["high"] - one["mean"], 0)]] for one in (cost, found)]
    return panel.errorbar(
        cost["mean"],
        found["mean"],
        xerr=errors[0],
        yerr=errors[1],
        color=colour,
        marker=marker,
        markersize=7,
        markerfacecolor=colour if name in ("PolarBear", "F-race") else "white",
        linestyle="none",
        elinewidth=0.8,
    )
