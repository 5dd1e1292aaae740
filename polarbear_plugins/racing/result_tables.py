"""Parts of a result as tables in long form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from polarbear_plugins.checks import as_choice
from polarbear_plugins.display.frames import categories

if TYPE_CHECKING:
    import pandas as pd

    from polarbear_plugins.racing.result import RaceResult


ResultTable: TypeAlias = Literal["algorithms", "rounds", "eliminations", "rivals", "open_pairs", "failures"]


def table_of_result(result: RaceResult, what: ResultTable) -> pd.DataFrame:
    """One of the tables of a result; see ``RaceResult.to_pandas``."""
    makers: dict[ResultTable, Callable[[RaceResult], pd.DataFrame]] = {
        "algorithms": _algorithms,
        "rounds": _rounds,
        "eliminations": _eliminations,
        "rivals": _rivals,
        "open_pairs": _open_pairs,
        "failures": _failures,
    }
    return makers[as_choice(what, ResultTable, "to_pandas")](result)


def summary_of(result: RaceResult) -> pd.DataFrame:
    """Table of the algorithms; see ``RaceResult.summary``."""
    import pandas as pd

    out = {elimination.algorithm: elimination for elimination in result.eliminations}
    table, stored = result.state.table, result.state.stored
    seen = ~np.isnan(table.values)
    if stored:  # a newcomer runs once on an instance, however many repetitions of its rivals it meets there
        seen &= (table.repetition_index == 0)[:, None, None] | np.isin(result.algorithms, stored)
    failed = [failure.algorithm for failure in result.failures]
    added: dict[str, float] = {}
    for ends in table.early_ends:
        added[ends.algorithm] = added.get(ends.algorithm, 0.0) + ends.added
    rows = []
    for place, name in enumerate(result.algorithms):
        elimination = out.get(name)
        watched = seen[:, :, place].sum(axis=1)
        rows.append(
            {
                "status": "in" if elimination is None else "out",
                "round": None if elimination is None else elimination.round,
                "by": None if elimination is None else elimination.by,
                "probability": None if elimination is None else elimination.probability,
                "instances": np.unique(table.instance_index[watched > 0]).size,
                "cost": 0.0
                if name in stored
                else float(result.timepoints[watched[watched > 0] - 1].sum()) - added.get(name, 0.0),
                "failed": failed.count(name),
                **({"stored": name in stored} if stored else {}),
            }
        )
    frame = pd.DataFrame(rows, index=pd.Index(result.algorithms, name="algorithm"))
    return frame.astype({"round": "Int64", "probability": "Float64"})


def _algorithms(result: RaceResult) -> pd.DataFrame:
    frame = summary_of(result).reset_index()
    for column in ("algorithm", "by"):
        frame[column] = _names(result, list(frame[column]))
    return frame


def _rounds(result: RaceResult) -> pd.DataFrame:
    rows = [
        (
            finished.number,
            finished.batch,
            finished.instances,
            finished.cost,
            len(finished.eliminations),
            # Each algorithm in the race has a rival, unless it is alone; newcomers count from their entry on.
            max(1, len(finished.rivals) - len(finished.eliminations)),
            len(finished.resolved),
            finished.resolved_share,
            finished.good,
            finished.next_batch,
        )
        for finished in result.rounds
    ]
    return _frame(
        rows,
        round="int64",
        batch="int64",
        instances="int64",
        cost="float64",
        eliminated="int64",
        left="int64",
        settled_pairs="int64",
        resolved_share="float64",
        good="bool",
        next_batch="int64",
    )


def _eliminations(result: RaceResult) -> pd.DataFrame:
    certain = result.certain_without_model
    rows = [
        (out.round, out.algorithm, out.by, out.probability, out.algorithm in certain) for out in result.eliminations
    ]
    frame = _frame(rows, round="int64", algorithm="object", by="object", probability="float64", without_model="bool")
    for column in ("algorithm", "by"):
        frame[column] = _names(result, list(frame[column]))
    return frame


def _rivals(result: RaceResult) -> pd.DataFrame:
    rows = [
        (finished.number, name, rival, probability)
        for finished in result.rounds
        for name, (rival, probability) in finished.rivals.items()
    ]
    frame = _frame(rows, round="int64", algorithm="object", rival="object", probability="float64")
    for column in ("algorithm", "rival"):
        frame[column] = _names(result, list(frame[column]))
    return frame


def _open_pairs(result: RaceResult) -> pd.DataFrame:
    rows = [(one, other, time) for one, other, times in result.open_pairs for time in times]
    frame = _frame(rows, algorithm="object", other="object", timepoint="float64")
    for column in ("algorithm", "other"):
        frame[column] = _names(result, list(frame[column]))
    return frame


def _failures(result: RaceResult) -> pd.DataFrame:
    rows = [(failure.algorithm, failure.instance, failure.reason) for failure in result.failures]
    frame = _frame(rows, algorithm="object", instance="str", reason="str")
    frame["algorithm"] = _names(result, list(frame["algorithm"]))
    return frame


def _frame(rows: Sequence[tuple[object, ...]], **kinds: str) -> pd.DataFrame:
    """Table whose columns have the same types whether or not it has rows."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)


def _names(result: RaceResult, names: list[object]) -> Any:
    """Algorithms as categories; anything else, such as the rival of an algorithm that is in, is missing."""
    place = {name: number for number, name in enumerate(result.algorithms)}
    codes = [place.get(name, -1) if isinstance(name, str) else -1 for name in names]
    return categories(np.array(codes, dtype=np.intp), result.algorithms)
