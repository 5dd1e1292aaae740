"""Builders that tests of several rooms share; pyproject.toml puts this folder on the path."""

from __future__ import annotations

import contextlib
import html
import json
import re
import sqlite3
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from polarbear_plugins import Posterior, RaceResult, RaceSettings, RankingTable, Trajectory, race
from polarbear_plugins.files import write_arrays
from polarbear_plugins.inference.native.gibbs import _Joint
from polarbear_plugins.journal.tables import TABLES, Rows
from polarbear_plugins.plackett_luce.subsets import Statistics
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.racing.state import Elimination, Failure, RaceState, Round


def change_journal(path: Path, *statements: str | tuple[str, tuple[Any, ...]], seal: bool = True) -> None:
    """Change the journal of a race by SQL; its checksums are made to match, unless ``seal`` is false."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(*((statement,) if isinstance(statement, str) else statement))
        if seal:
            content = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}  # noqa: S608
            rows = Rows(connection)
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
            for table in content.keys() - {"totals"}:
                rows.write(table, (row[:-1] for row in content[table]))
        connection.commit()


def change_arrays(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the arrays of a saved result or posterior; its checksum is made to match."""
    with np.load(path, allow_pickle=False) as arrays:
        content = {name: array for name, array in arrays.items() if name != "checksum"}
    change(content)
    return write_arrays(path, content)


def change_json(path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the JSON in one of the arrays of a saved result or posterior."""

    def change_text(content: dict[str, Any]) -> None:
        data = json.loads(str(content[name]))
        change(data)
        content[name] = np.array(json.dumps(data))

    return change_arrays(path, change_text)


def names(count: int) -> list[str]:
    """Names of algorithms: the letters of the alphabet, or numbered ones where it is too short."""
    return list(string.ascii_lowercase[:count]) if count <= 26 else [f"a{i}" for i in range(count)]


def run(times: ArrayLike, best: ArrayLike, **more: Any) -> Trajectory:
    """Trajectory of ``a`` on ``f1``, watched until 100; ``more`` changes these labels."""
    labels = {"algorithm": "a", "instance": "f1", "horizon": 100, **more}
    return Trajectory(times=np.atleast_1d(times), best=np.atleast_1d(best), **labels)


def run_of(
    algorithm: str | int,
    instance: str | int = "f1",
    best: ArrayLike = 1.0,
    times: ArrayLike | None = None,
    **more: Any,
) -> Trajectory:
    """Trajectory of an algorithm on an instance, by default at the times 1, 10, 100 and so on, one for each value."""
    times = 10.0 ** np.arange(np.size(best)) if times is None else times
    return run(times, best, algorithm=algorithm, instance=instance, **more)


def table_of(values: ArrayLike, **more: Any) -> RankingTable:
    """Ranking table of ``values[instance, timepoint, algorithm]``; algorithms a, b, ... at the timepoints 1, 2, ...."""
    _, timepoints, algorithms = np.shape(values)
    return RankingTable.from_values(
        values, **{"algorithms": names(algorithms), "timepoints": range(1, timepoints + 1), **more}
    )


def wins_table(wins: Sequence[int], instances: int) -> RankingTable:
    """Ranking table of two algorithms; ``wins[t]`` is on how many instances the first is better at timepoint t."""
    first_is_better = np.arange(instances)[:, None] < np.asarray(wins)
    return table_of(np.stack([~first_is_better, first_is_better], axis=2).astype(float))


def posterior_of_logs(
    log_ratings: ArrayLike,
    *,
    algorithms: Sequence[str] | None = None,
    timepoints: ArrayLike | None = None,
    joint: bool = True,
    good: bool = True,
) -> Posterior:
    """Posterior of hand-made ``log_ratings[draw, timepoint, algorithm]``; they need not add up to 1 as ratings do."""
    draws = np.array(log_ratings, dtype=float)
    return Posterior(
        algorithms=tuple(names(draws.shape[2]) if algorithms is None else algorithms),
        timepoints=np.array(range(1, draws.shape[1] + 1) if timepoints is None else timepoints, dtype=float),
        log_ratings=draws,
        prior="gp" if joint else "dirichlet",
        joint=joint,
        diagnostics=Diagnostics(engine="native", route="by hand", good=good),
    )


def posterior_of(ratings: ArrayLike, **more: Any) -> Posterior:
    """Posterior of hand-made ``ratings[draw, timepoint, algorithm]``; see :func:`posterior_of_logs`."""
    return posterior_of_logs(np.log(np.asarray(ratings, dtype=float)), **more)


def synthetic_race(
    algorithms: int = 5, timepoints: int = 10, *, journal: Any = None, progress: Any = None, **settings: Any
) -> RaceResult:
    """Result of a race of synthetic algorithms in this process, from ``settings``; by default a short race."""
    return race(
        "synthetic",
        "synthetic",
        range(1, timepoints + 1),
        RaceSettings(**{"seed": 3, "max_rounds": 4, "alpha": 0.9, "draws": 200, **settings}),
        workers=0,
        portfolio_options={"algorithms": algorithms, "timepoints": timepoints},
        journal=journal,
        progress=progress,
    )


def assert_same_result(one: RaceResult, other: RaceResult, *, about: bool = True) -> None:
    """Check that two results are the same to the last bit; with ``about=False`` but for how the race was asked for."""
    if about:
        assert one.to_json() == other.to_json()
    else:
        data, expected = one.to_dict(), other.to_dict()
        assert data.pop("about")["version"] == expected.pop("about")["version"]
        assert data == expected
    np.testing.assert_array_equal(one.posterior.log_ratings, other.posterior.log_ratings)
    np.testing.assert_array_equal(one.state.table.values, other.state.table.values)


def column_kinds(frame: pd.DataFrame) -> dict[str, str]:
    """What each column of a data frame holds, in words that no version of pandas changes."""
    words = {"f": "float", "i": "int", "b": "bool"}
    return {
        str(column): "names"
        if isinstance(dtype, pd.CategoricalDtype)
        else "text"
        if pd.api.types.is_string_dtype(dtype)
        else words[dtype.kind]
        for column, dtype in frame.dtypes.items()
    }


def cells_of(markup: str) -> list[list[str]]:
    """Texts of the cells of the first HTML table, row by row."""
    table = markup.partition("<table>")[2].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in rows]


def gibbs_sweep(statistics: Statistics, utilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sweep every draw ``utilities[draw, algorithm]`` once, at a timepoint; the prior is part of its statistics."""
    return _Joint([statistics], len(utilities)).sweep(utilities, rng)


def two_kinds(instances: int = 200, timepoints: int = 2) -> RankingTable:
    """Rankings that no ratings explain: a or b is first, c always second and d always last."""
    kinds = np.tile([[1.0, 3.0, 2.0, 4.0], [3.0, 1.0, 2.0, 4.0]], (instances // 2, 1))
    return table_of(np.repeat(kinds[:, None, :], timepoints, axis=1))


def six_groups(names: str = "group {}", timepoints: int = 2) -> RankingTable:
    """Rankings of two algorithms on six groups of ten instances: a wins always in five of them, and b in the last."""
    values = np.repeat(np.tile([[[1.0, 2.0]]], (60, 1, 1)), timepoints, axis=1)
    values[50:] = values[50:, :, ::-1]
    return table_of(values, groups=[names.format(number // 10) for number in range(60)])


_NAMES = ("d", "a", "c", "b", "e")
_GRID = [10.0, 100.0, 2000.0]
# Ratings of a and b at each timepoint, in four draws.  The others are below, but d, which is out, leads in the last.
_A_AND_B = [
    [(0.6, 0.1), (0.1, 0.6), (0.1, 0.6)],
    [(0.6, 0.1), (0.1, 0.6), (0.1, 0.6)],
    [(0.6, 0.1), (0.351, 0.349), (0.1, 0.6)],
    [(0.1, 0.35), (0.3, 0.15), (0.1, 0.35)],
]


def _finished_round(number: int, *out: Elimination, **more: Any) -> Round:
    record: dict[str, Any] = {
        "batch": 2,
        "instances": 2 * number,
        "cost": 1500.0 * number,
        "resolved": (),
        "resolved_share": 0.3 * number,
        "rivals": {},
        "good": True,
        "next_batch": 2,
    }
    return Round(number=number, eliminations=out, **{**record, **more})


def race_by_hand() -> RaceResult:
    """A race that was never run: d is out in round 2, e and c in round 3, and a and b are not settled."""
    ratings = np.full((4, 3, 5), 0.02)
    for draw, row in enumerate(_A_AND_B):
        for at, (a, b) in enumerate(row):
            ratings[draw, at, [1, 3]] = a, b
            ratings[draw, at, 0] = 0.5 if draw == 3 else 0.25
    posterior = posterior_of(ratings, algorithms=_NAMES, timepoints=_GRID, joint=False)
    values = np.tile([5.0, 1.0, 3.0, 2.0, 4.0], (6, 3, 1))
    values[3:, :, 0] = np.nan  # d did not run any more
    resolved = np.ones((3, 5, 5), dtype=bool)
    resolved[:2, 1, 3] = resolved[:2, 3, 1] = False
    rounds = (
        _finished_round(1, good=False),
        _finished_round(2, Elimination("d", "a", 0.93, 2)),
        _finished_round(3, Elimination("e", "b", 0.96, 3), Elimination("c", "a", 0.91, 3)),
    )
    state = RaceState(
        settings=RaceSettings(alpha=0.9, epsilon=0.05, seed=3, max_rounds=3),
        table=table_of(values, algorithms=_NAMES, timepoints=_GRID, instances=[f"f{i}" for i in range(1, 7)]),
        resolved=resolved,
        rounds=rounds,
        batch=2,
        cost=4500.0,
    )
    failures = (Failure("c", "f2", "it broke"), Failure("c", "f3", "too slow"))
    return RaceResult(state=state, stopped="max_rounds", _posterior=posterior, failures=failures)
