"""The .dat files of IOHprofiler: a header for each run, then its rows."""

from __future__ import annotations

import bisect
import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from polarbear_plugins.adapters.ioh_logs.index import Run
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import SourceError, short

# ioh prints this many decimals, whatever the value.
_DECIMALS = 10
_HALF_UNIT = 0.5 * 10.0**-_DECIMALS
_WHOLE = "." + "0" * _DECIMALS
_ZEROS = frozenset({f"0{_WHOLE}", f"-0{_WHOLE}"})
# What ioh prints for a value that is not finite, besides nan.
_NO_VALUE = frozenset({"None", "-nan", "-nan(ind)", "nan(ind)"})


@dataclass(slots=True)
class Block:
    """The lines of one run: the header on ``line``, the rows after it."""

    line: int
    header: str
    rows: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name.strip('"') for name in re.findall(r'"[^"]*"|\S+', self.header)]


@dataclass(frozen=True, slots=True)
class Rows:
    """Best values so far of a run, minimised, where they improved.

    Attributes
    ----------
    rounded
        How many of them are printed as 0.
    logged
        Times of all rows.
    worse
        A row but the last is worse than the best before it, so that rows are not improvements alone.
    """

    times: FloatArray
    best: FloatArray
    horizon: float
    rounded: int
    logged: FloatArray
    worse: bool


def split_runs(lines: Iterable[str], who: str) -> Iterator[Block]:
    """Split the lines of a file into runs, one at a time."""
    block: Block | None = None
    for number, line in enumerate(lines, start=1):
        if line[0] not in "0123456789" and _is_header(line):
            if block is not None:
                yield _strip_blank_lines(block)
            block = Block(number, line)
        elif block is not None:
            block.rows.append(line)
        elif line.strip():
            raise SourceError(f"{who}, line {number}: expected the names of columns, got {short(line.strip())}.")
    if block is not None:
        yield _strip_blank_lines(block)


def parse_rows(block: Block, run: Run, maximize: bool, options: LogOptions, who: str) -> Rows:
    """Best values so far of a run.

    Where the JSON has the final value, it replaces the printed one.  Other values that were printed as 0, or just like
    the final one, may be any number that is printed so: the largest such number was certainly reached.

    Parameters
    ----------
    who
        Name of the file and the run, for messages.
    """
    columns = block.columns
    time_at = _find_column(columns, options.time, "time", block, who)
    value_at = _find_column(columns, _value_column(columns, options), "value", block, who)
    cells = _split_cells(block, columns, who)
    times = _parse_times([row[time_at] for row in cells], block, who)
    texts = [row[value_at] for row in cells]
    sign = -1.0 if maximize else 1.0
    observed = sign * np.array(_parse_values(texts, block, who))
    worse = bool((observed > np.fmin.accumulate(observed))[:-1].any())  # as printed, without the digits of the JSON
    horizon = times[-1]
    if options.time == "evaluations":
        if options.best == "json":
            _check_count(run, times, block, who)
        else:
            horizon = max(horizon, float(run.evaluations or 0))
    rounded = None
    if options.uses_best:
        _check_final_value(observed, times, run, sign, who)
        if run.notes is None:
            rounded = _restore_digits(observed, texts, times, run, sign)
    if run.notes is not None and run.notes.horizon is not None and options.time == "evaluations":
        horizon = max(horizon, run.notes.horizon)
    best = np.fmin.accumulate(observed)
    best[np.isnan(best)] = np.inf
    improved = best < np.concatenate(([np.inf], best[:-1]))
    count = 0 if rounded is None else int(np.count_nonzero(improved[rounded]))
    logged = np.array(times)
    return Rows(logged[improved], best[improved], horizon, count, logged, worse)


def has_values(block: Block, options: LogOptions) -> bool:
    """Whether a run has any value; the JSON that ioh writes leaves out runs without one."""
    columns = block.columns
    name = _value_column(columns, options)
    if name not in columns or not block.rows:
        return True
    rows = (row.split() for row in block.rows)
    return any(len(row) != len(columns) or not _is_missing(row[columns.index(name)]) for row in rows)


def _is_header(line: str) -> bool:
    first = line.split(maxsplit=1)[:1]
    if not first or first[0] in _NO_VALUE:
        return False
    try:
        float(first[0])
    except ValueError:
        return True
    return False


def _strip_blank_lines(block: Block) -> Block:
    while block.rows and not block.rows[-1].strip():
        block.rows.pop()
    return block


def _value_column(columns: Sequence[str], options: LogOptions) -> str:
    return options.value or ("raw_y_best" if "raw_y_best" in columns else "raw_y")


def _find_column(columns: Sequence[str], name: str, role: str, block: Block, who: str) -> int:
    if columns.count(name) != 1:
        found = ", ".join(columns)
        found = found if len(found) <= 200 else f"{found[:200]}..."
        raise SourceError(
            f"{who}, line {block.line}: expected one column {name!r}, got {found}. "
            f"Say with {role}= which column to read."
        )
    return columns.index(name)


def _split_cells(block: Block, columns: Sequence[str], who: str) -> list[list[str]]:
    cells = [row.split() for row in block.rows]
    if not cells:
        raise SourceError(f"{who}, line {block.line}: expected rows after the names of the columns, got none.")
    if set(map(len, cells)) != {len(columns)}:
        row = next(place for place, row in enumerate(cells) if len(row) != len(columns))
        raise SourceError(
            f"{who}, line {block.line + 1 + row}: expected {len(columns)} numbers ({' '.join(columns)}), "
            f"got {short(block.rows[row].strip())}."
        )
    if not block.rows[-1].endswith("\n"):
        # The file may have been cut inside its last number.  Numbers of ioh all have the same decimals.
        usual = {len(row[-1].partition(".")[2]) for row in cells[:-1]}
        if len(usual) == 1 and min(usual) > 3 and usual != {len(cells[-1][-1].partition(".")[2])}:
            end = short(cells[-1][-1])
            raise SourceError(
                f"{who}, line {block.line + len(cells)}: the file was cut: it ends inside a number ({end})."
            )
    return cells


def _parse_times(texts: Sequence[str], block: Block, who: str) -> list[float]:
    try:
        times = list(map(float, texts))
        if times[0] >= 0 and times[-1] < math.inf and all(map(operator.lt, times, times[1:])):
            return times
    except ValueError:
        pass
    last = -math.inf
    for row, text in enumerate(texts):
        try:
            time = float(text)
        except ValueError:
            time = math.nan
        if not (last < time < math.inf and time >= 0):
            after = f" above {last:g}" if last >= 0 else ""
            raise SourceError(f"{who}, line {block.line + 1 + row}: expected a time{after}, got {short(text)}.")
        last = time
    raise AssertionError("the times are in order")


def _parse_values(texts: Sequence[str], block: Block, who: str) -> list[float]:
    try:
        return list(map(float, texts))
    except ValueError:
        pass
    values = []
    for row, text in enumerate(texts):
        try:
            values.append(math.nan if text in _NO_VALUE else float(text))
        except ValueError:
            raise SourceError(f"{who}, line {block.line + 1 + row}: expected a value, got {short(text)}.") from None
    return values


def _is_missing(text: str) -> bool:
    return text in _NO_VALUE or text.lower() in ("nan", "inf", "-inf")


def _check_count(run: Run, times: Sequence[float], block: Block, who: str) -> None:
    if run.evaluations is not None and run.evaluations != times[-1]:
        raise SourceError(
            f"{who}: the JSON counts {run.evaluations} evaluations, but the rows end at {times[-1]:g} (line "
            f"{block.line + len(times)}). The file is cut or belongs to other runs; best=rows uses the rows alone."
        )


def _check_final_value(observed: FloatArray, times: Sequence[float], run: Run, sign: float, who: str) -> None:
    """Refuse rows that do not have the final value of the JSON; those of our writer have all its digits."""
    if run.best is None or run.best_evaluation is None:
        return
    row = bisect.bisect_left(times, run.best_evaluation)
    printed = sign * float(observed[row]) if row < len(times) and times[row] == run.best_evaluation else None
    if run.notes is not None:
        # Its last value is the best one: anything better is a number that was cut.
        agrees = printed == run.best and not (observed < observed[row]).any()
    else:
        agrees = printed is not None and math.isclose(printed, run.best, rel_tol=1e-9, abs_tol=2 * _HALF_UNIT)
    if not agrees:
        rows = "have no row for it" if printed is None else f"have {printed:.10g} there"
        if run.notes is not None and printed == run.best:
            rows = f"have {sign * float(np.nanmin(observed)):.10g}, which is better"
        raise SourceError(
            f"{who}: the JSON has the best value {run.best:.10g} at evaluation {run.best_evaluation}, but the rows "
            f"{rows}. The file is cut or belongs to other runs; best=rows uses the rows alone."
        )


def _restore_digits(
    observed: FloatArray, texts: Sequence[str], times: Sequence[float], run: Run, sign: float
) -> list[int] | None:
    """Put in the exact final value from the JSON; return the other rows that are printed as 0."""
    row, final = None, None
    if run.best is not None and run.best_evaluation is not None:
        row = bisect.bisect_left(times, run.best_evaluation)
        observed[row] = sign * run.best
        final = f"{run.best:.{_DECIMALS}f}"
    if _ZEROS.isdisjoint(texts) and (final is None or texts.count(final) < 2):
        return None
    whole = (run.best is None or run.best.is_integer()) and all(text.endswith(_WHOLE) for text in texts if "." in text)
    if whole:  # whole numbers were printed exactly
        return None
    alike = [place for place, text in enumerate(texts) if place != row and (text in _ZEROS or text == final)]
    observed[alike] += _HALF_UNIT
    return [place for place in alike if texts[place] in _ZEROS]
