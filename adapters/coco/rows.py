"""The .dat and .tdat files: a header for each run, then its rows."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import SourceError, short

_HEADERS = frozenset({b"%", b'"'})
# How the names of the value column begin, best first: of COCO, and of versions of IOHprofiler.
_VALUES = (
    "best noise-free fitness - Fopt",
    "best-so-far f(x)",
    "best original f(x)",
    "raw_y_best",
    "current f(x)",
    "original f(x)",
    "raw_y",
)
_COCO_VALUE = _VALUES[0]
# What C and Windows print for numbers that are not finite, where Python does not read it.
_NOT_FINITE = re.compile(rb"[+-]?(?:nan\(.*\)|1\.#(?:inf|ind|qnan|snan)\d*|none)", re.IGNORECASE)


@dataclass(slots=True)
class Block:
    """The lines of one run in a file: the header on ``line``, the rows after it."""

    file: str
    line: int
    header: str
    rows: list[bytes] = field(default_factory=list)
    width: int = 0
    is_cut: bool = False

    def has_rows(self) -> bool:
        """Whether there is any row."""
        return any(row.strip() for row in self.rows)

    @property
    def is_coco(self) -> bool:
        """Whether its columns are those of COCO, with values relative to the optimum."""
        return _columns(self.header)[1] == _COCO_VALUE


@dataclass(frozen=True, slots=True)
class Rows:
    """Evaluations and values of a run."""

    times: FloatArray
    values: FloatArray

    @property
    def increases(self) -> bool:
        """Whether a value is above one before it, as the best value so far cannot be."""
        return bool((self.values[1:] > self.values[:-1]).any())


def split_runs(data: bytes, who: str) -> list[Block]:
    """Split a file into runs."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    blocks: list[Block] = []
    begin = 0
    marked = [place for place, line in enumerate(lines) if line[:1] in _HEADERS]
    for place in marked:
        text = lines[place].decode("latin-1")
        if text.replace(" ", "") == "%algorithmtype=best":
            raise SourceError(
                f"{who}, line {place + 1}: these are not runs, but the best of several algorithms at each target. "
                "Leave it out."
            )
        if text.startswith("%") and "|" not in text:
            lines[place] = b""  # a comment
            continue
        _add_rows(blocks, lines[begin:place], begin, who)
        blocks.append(Block(who, place + 1, text))
        begin = place + 1
    _add_rows(blocks, lines[begin:], begin, who)
    _check_end(blocks, data)
    return blocks


def _add_rows(blocks: list[Block], lines: list[bytes], begin: int, who: str) -> None:
    """Give lines to the run whose header they follow."""
    if blocks:
        blocks[-1].rows = lines
        return
    for number, line in enumerate(lines, start=begin + 1):
        if line.strip():
            raise SourceError(
                f"{who}, line {number}: expected the names of columns, got {short(line.decode('latin-1').strip())}."
            )


def _check_end(blocks: Sequence[Block], data: bytes) -> None:
    """Compare the number of columns in all runs, and find a file that was cut inside its last number."""
    first = next((row for block in blocks for row in block.rows if row.strip()), b"")
    for block in blocks:
        block.width = len(first.split())
    if blocks and not data.endswith((b"\n", b"\r")):
        ends = [row.split()[-1] for row in blocks[-1].rows[-2:] if row.strip()]
        # Numbers of a column are printed with as many digits.
        blocks[-1].is_cut = len(ends) == 2 and len(ends[1]) < len(ends[0])


def parse_rows(block: Block, run: int) -> Rows:
    """Evaluations and values of a run.

    Parameters
    ----------
    run
        Its number, for messages.
    """
    who = f"{block.file}, run {run}"
    at, _ = _columns(block.header)
    if at is None:
        raise SourceError(f"{who}, line {block.line}: expected a column {_COCO_VALUE!r}, got {short(block.header)}.")
    rows = [row for row in block.rows if row and not row.isspace()]
    if block.is_cut:
        raise SourceError(
            f"{who}, line {block.line + len(block.rows)}: the file was cut: it ends inside a number "
            f"({short(rows[-1].split()[-1].decode('latin-1'))})."
        )
    if len({row.count(b" ") for row in rows}) > 1 or (rows and len(rows[0].split()) != block.width):
        _check_widths(block, who)
    cells = [row.split(None, at + 1) for row in rows]
    try:
        times = np.fromiter(map(float, [cell[0] for cell in cells]), float, len(cells))
        values = np.fromiter(map(float, [cell[at] for cell in cells]), float, len(cells))
    except (ValueError, IndexError):
        times, values = _parse_one_by_one(block, at, who)
    if not ((times[1:] >= times[:-1]).all() and (times >= 0).all() and (times < np.inf).all()):
        _refuse_times(block, who)
    return Rows(times, values)


def _check_widths(block: Block, who: str) -> None:
    for number, row in enumerate(block.rows, start=block.line + 1):
        if row.strip() and len(row.split()) != block.width:
            raise SourceError(
                f"{who}, line {number}: expected {block.width} numbers as in the rows before, got "
                f"{short(row.decode('latin-1').strip())}."
            )


def _parse_one_by_one(block: Block, at: int, who: str) -> tuple[FloatArray, FloatArray]:
    """Find the row that is not numbers, unless these are numbers that are not finite."""
    found: list[tuple[float, float]] = []
    for number, row in enumerate(block.rows, start=block.line + 1):
        cells = row.split()
        if not cells:
            continue
        try:
            value = np.nan if _NOT_FINITE.fullmatch(cells[at]) else float(cells[at])
            found.append((float(cells[0]), value))
        except (ValueError, IndexError):
            text = short(row.decode("latin-1").strip())
            raise SourceError(f"{who}, line {number}: expected evaluations and a value, got {text}.") from None
    table = np.array(found, dtype=float).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def _refuse_times(block: Block, who: str) -> None:
    last = 0.0
    for number, row in enumerate(block.rows, start=block.line + 1):
        cells = row.split()
        if cells and not last <= float(cells[0]) < np.inf:
            raise SourceError(
                f"{who}, line {number}: expected evaluations from {last:g} on, got {short(cells[0].decode('latin-1'))}."
                " Rows of another run begin there, or the file is damaged."
            )
        last = float(cells[0]) if cells else last


@functools.lru_cache(maxsize=256)
def _columns(header: str) -> tuple[int | None, str]:
    """Place of the column of best values so far, and how its name begins."""
    if header.startswith("%"):
        names = [name.strip() for name in header.strip("% ").split("|")]
    else:
        names = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', header)]
    for wanted in _VALUES:
        for place, name in enumerate(names):
            if place and name.strip().startswith(wanted):
                return place, wanted
    return None, ""
