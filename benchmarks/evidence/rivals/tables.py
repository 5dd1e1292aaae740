"""Write the tables of docs/evidence/rivals.md anew, from the files in docs/results.

python benchmarks/evidence/rivals/tables.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "evidence" / "rivals.md"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _range(found: Mapping[str, float], form: str) -> str:
    """A mean with its interval."""
    return f"{found['mean']:{form}} ({found['low']:{form}} to {found['high']:{form}})"


def _percent(found: Mapping[str, float]) -> str:
    """A share with its interval."""
    return f"{100 * found['mean']:.0f} ({100 * found['low']:.0f} to {100 * found['high']:.0f})"


def races(data: Mapping[str, Any]) -> list[str]:
    """A table for each kind of data."""
    tables = []
    for kind, rivals in data["results"].items():
        rows = [
            [
                name,
                f"{found['cost share']['mean']:.2f}",
                _percent(found["lost"]),
                _percent(found["family-wise"]),
                _percent(found["dominated kept"]),
                _range(found["regret"], ".3f"),
                _range(found["regret by wins"], ".3f"),
            ]
            for name, found in rivals.items()
        ]
        head = [kind, "cost", "members lost, %", "any lost, %", "dominated kept, %", "regret", "regret by wins"]
        tables.append(_markdown(head, rows))
    return tables


def configurators(data: Mapping[str, Any]) -> list[str]:
    """A table for each task; the lowest mean is bold, and a star marks what was not told apart from it."""
    tables = []
    for task in dict.fromkeys(one["task"] for one in data["summary"]):
        here = [one for one in data["summary"] if one["task"] == task]
        budgets = list(dict.fromkeys(one["budget"] for one in here))
        rows = []
        for label in dict.fromkeys(one["label"] for one in here):
            mine = {one["budget"]: one for one in here if one["label"] == label}
            seeds = max(one["seeds"] for one in mine.values())
            rows.append([label, str(seeds), *(_regret(mine.get(budget)) for budget in budgets)])
        head = [task, "seeds", *(f"{budget} evaluations" for budget in budgets)]
        tables.append(_markdown(head, rows))
    return tables


def _regret(one: Mapping[str, Any] | None) -> str:
    if one is None or one["regret"] is None:
        return "refused" if one and one["refused"] else "-"
    if one["regret_half"] is None:  # a single seed
        return f"{one['regret']:.3f}"
    text = f"{one['regret']:.3f} ± {one['regret_half']:.3f}"
    if one["best"]:
        return f"**{text}**"
    return f"{text} *" if one["behind"] <= one["behind_half"] else text


def analyses(data: Mapping[str, Any]) -> list[str]:
    """Predictions from all numbers of training instances; intervals and statements from the largest."""
    kinds = list(dict.fromkeys(row["data"] for row in data["summary"]))
    methods = [name for name in dict.fromkeys(row["method"] for row in data["summary"]) if name != "coin"]
    methods.sort(key=lambda name: not name.startswith("PolarBear"))
    found = {(row["data"], row["training"], row["method"]): row for row in data["summary"]}
    sizes = data["settings"]["training"]

    def table(title: str, cell: Callable[[Mapping[str, Any]], str], size: int) -> str:
        rows = [[name, *(cell(found.get((kind, size, name), {})) for kind in kinds)] for name in methods]
        return _markdown([title, *kinds], [row for row in rows if set(row[1:]) != {"-"}])

    def scores(title: str, key: str) -> list[str]:
        return [table(f"{title}, {size} instances", lambda row: _behind(row, key), size) for size in sizes]

    most = max(sizes)
    intervals = [
        [f"{name}: {what}", *(_coverage(found.get((kind, most, name), {}), what) for kind in kinds)]
        for what in ("first", "wins", "mean ranks")
        for name in methods
    ]
    return [
        *scores("log score of pairs", "log_score"),
        *scores("log score of the winner", "winner_log_score"),
        _markdown(["95 % intervals that hold, %", *kinds], [row for row in intervals if set(row[1:]) != {"-"}]),
        table("stated; false in its own sense, %", lambda row: _statements(row, "false_own share"), most),
        table("stated; false by majorities, %", lambda row: _statements(row, "false share"), most),
    ]


def _behind(row: Mapping[str, Any], key: str) -> str:
    """A score, bold if it is the best; a star if the difference from the best may be none."""
    if key not in row:
        return "-"
    behind = row[f"{key} to best"]
    if behind["mean"] == 0:
        return f"**{row[key]['mean']:.3f}**"
    return f"{row[key]['mean']:.3f}" + (" *" if behind["high"] >= 0 else "")


def _coverage(row: Mapping[str, Any], what: str) -> str:
    found = row.get(f"coverage of {what}")
    return "-" if found is None else f"{100 * found['mean']:.0f}"


def _statements(row: Mapping[str, Any], key: str) -> str:
    """Share of the pairs about which something is stated, and how much of it is false, in percent."""
    if not row.get(key):
        return "-"
    low, high = 100 * row[key]["low"], 100 * row[key]["high"]
    return f"{100 * row['stated']['mean']:.0f}; {100 * row[key]['mean']:.1f} ({low:.1f} to {high:.1f})"


def posteriors(data: Mapping[str, Any]) -> list[str]:
    """Seconds and errors by number of algorithms."""
    found = {(row["method"], row["n"]): row for row in data["summary"]}
    sizes = sorted({row["n"] for row in data["summary"]})
    methods = list(dict.fromkeys(row["method"] for row in data["summary"]))
    rows = [[name, *(_fit(found.get((name, n))) for n in sizes)] for name in methods]
    return [_markdown(["CPU s; error of means, of deviations", *(f"{n} algorithms" for n in sizes)], rows)]


def _fit(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    deviations = f", {row['sd_error']:.3f}" if "sd_error" in row else ""
    return f"{row['cpu']:.2g} s; {row['mean_error']:.3f}{deviations}"


TABLES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "races": races,
    "configurators": configurators,
    "analyses": analyses,
    "posteriors": posteriors,
}


def updated(page: str) -> str:
    """The page with the tables as they are now; a table is known by its first line."""
    for name, make in TABLES.items():
        for table in make(json.loads((DOCS / "results" / f"rival_{name}.json").read_text(encoding="utf-8"))):
            head = table.partition("\n")[0]
            before, found, after = page.partition(f"{head}\n")
            if not found:
                raise ValueError(f"{PAGE.name} has no table that begins with {head}")
            rest = after.partition("\n\n")[2]
            page = f"{before}{table}\n\n{rest}"
    return page


def main() -> None:
    """Write the page."""
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
