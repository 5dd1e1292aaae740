"""Tables of runs in long form: CSV and Parquet."""

from __future__ import annotations

import gzip
import io
import math
import random
from pathlib import Path
from typing import Any

from fuzzing.damage import NUMBERS, TEXTS, bytes_mutation
from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.rewriting import NO_NUMBER, NO_TIME, Sheet, number, regzipped, rewritten
from fuzzing.runs import answer_of, flaw_of_runs, improvements, plugin, some_runs, steps

_MISSING = ("", "nan", "NaN", "NA", "null")
_FULL = (
    "algorithm,instance,group,dimension,seed,time,value,horizon,end\n"
    "a,x,g,2,0,1,3.5,9,stopped\na,x,g,2,0,4,2.5,9,stopped\nb,x,g,2,0,2,1e-9,9,done\nb,x,g,2,1,0,7,3,\n"
    "a,y,h,5,0,1,-4,9,unknown\nb,y,h,5,0,1,-3,9,stopped\nb,y,h,5,0,8,-5.25,9,stopped\n"
)


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(
        [
            (run.algorithm, run.instance, run.seed, time, best, run.horizon)
            for run in some_runs()
            for time, best in zip(run.times.tolist(), run.best.tolist(), strict=True)
        ],
        columns=["algorithm", "instance", "seed", "time", "value", "horizon"],
    )


def _make_csv(folder: Path) -> None:
    text = _frame().to_csv(index=False)
    for name, content in {
        "runs.csv": text.encode(),
        "runs.tsv": text.replace(",", "\t").encode(),
        "runs.csv.gz": gzip.compress(text.encode(), mtime=0),
        "plain.csv": b"algorithm,instance,time,value\na,x,1,3\na,x,2,1\nb,x,1,2\nb,x,2,2\n",
        "groups.csv": b"algorithm,instance,group,time,value\na,x,g,1,3\nb,x,g,1,2\na,y,h,1,3\nb,y,h,1,2\n",
        "full.csv": _FULL.encode(),
    }.items():
        (folder / name).mkdir()
        (folder / name / name).write_bytes(content)


def _make_parquet(folder: Path) -> None:
    for name, options in {"plain": {"compression": None}, "packed": {"compression": "snappy"}}.items():
        (folder / name).mkdir()
        _frame().to_parquet(folder / name / "runs.parquet", index=False, **options)


def _read(folder: Path) -> Answer:
    [path] = folder.iterdir()
    return answer_of(plugin("polarbear_plugins.adapters.table").read_trajectories(path))


# --- what a table says, read by plain loops


def _answer(sheet: Sheet) -> Answer:
    """What a table without damage means."""
    runs: dict[tuple[str, str, int], list[dict[str, str]]] = {}
    for row in sheet.rows:
        cells = dict(zip(sheet.columns, row, strict=True))
        key = cells["algorithm"], cells["instance"], int(cells.get("seed", "0"))
        runs.setdefault(key, []).append(cells)
    answer: Answer = {}
    for key, rows in runs.items():
        first = rows[0]
        points = [(float(row["time"]), _value(row["value"])) for row in rows]
        dimension = int(first["dimension"]) if "dimension" in first else None
        about = first.get("group"), False, dimension, first.get("end", "") or "unknown"
        horizon = float(first.get("horizon", points[-1][0]))
        answer["run", *key] = steps(*improvements(points), horizon, *about)
    return answer


def _value(text: str) -> float:
    return math.nan if text in _MISSING else float(text)


def _rows_of_run(sheet: Sheet, rng: random.Random) -> list[int]:
    keys = [tuple(row[sheet.at(name)] for name in _key(sheet)) for row in sheet.rows]
    chosen = rng.choice(sorted(set(keys)))
    return [row for row, key in enumerate(keys) if key == chosen]


def _key(sheet: Sheet) -> list[str]:
    return [name for name in ("algorithm", "instance", "seed") if name in sheet.columns]


def _opened(files: Files) -> tuple[str, Sheet]:
    [(name, data)] = files.items()
    if name.endswith(".parquet"):
        return name, Sheet.parse(_frame().to_csv(index=False).encode())
    data = gzip.decompress(data) if name.endswith(".gz") else data
    return name, Sheet.parse(data, "\t" if name.endswith(".tsv") else ",")


def _written(name: str, sheet: Sheet, rng: random.Random) -> Files:
    if name.endswith(".parquet"):
        return {name: _parquet(sheet, rng)}
    text = sheet.write("\t" if name.endswith(".tsv") else ",", rng)
    return {name: regzipped(gzip.compress(text), rng) if name.endswith(".gz") else text}


def _parquet(sheet: Sheet, rng: random.Random) -> bytes:
    """The table with types, encodings and compression as different programs write them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name in sheet.columns:
        cells = sheet.cells(name)
        if name in ("algorithm", "instance"):
            texts = pa.array(cells, rng.choice((pa.string(), pa.large_string())))
            arrays[name] = texts.dictionary_encode() if rng.random() < 0.3 else texts
        elif name == "seed":
            arrays[name] = pa.array([int(cell) for cell in cells], rng.choice((pa.int64(), pa.int8(), pa.uint16())))
        else:
            arrays[name] = pa.array([_value(cell) for cell in cells], pa.float64())
    target = io.BytesIO()
    packing = rng.choice(("none", "snappy", "gzip", "zstd"))
    pq.write_table(pa.table(arrays), target, compression=packing, row_group_size=rng.choice((1, 5, 1000)))
    return target.getvalue()


# --- changes that say what must come of them


def _as_it_was(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Rows of different runs, columns, line ends, quotes, blank lines and packing may change, and nothing else does."""
    name, sheet = _opened(files)
    keys = [tuple(row[sheet.at(column)] for column in _key(sheet)) for row in sheet.rows]
    places = {key: iter([row for row, other in zip(sheet.rows, keys, strict=True) if other == key]) for key in keys}
    rng.shuffle(keys)
    sheet = Sheet(sheet.columns, [next(places[key]) for key in keys]).permuted(rng)
    for column in {"time", "value", "horizon"} & set(sheet.columns):
        for row in sheet.rows:
            row[sheet.at(column)] = rewritten(row[sheet.at(column)], rng)
    if rng.random() < 0.2 and not name.endswith(".parquet"):
        sheet = Sheet([*sheet.columns, "note"], [[*row, rng.choice(("1", "x y"))] for row in sheet.rows])
    return Declared(_written(name, sheet, rng), (whole,), "written in another way")


def _another(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """One value, one horizon, or one run more, less or under another name: that is all that differs."""
    name, sheet = _opened(files)
    rows = _rows_of_run(sheet, rng)
    kind = rng.randrange(6)
    if kind <= 1:
        odd = rng.choice(("nan", "", "NA", "inf", "1e308"))
        sheet.put(rng.choice(rows), "value", number(rng) if kind else odd)
    elif kind == 2:
        if len(rows) == len(sheet.rows):
            return None
        sheet = Sheet(sheet.columns, [row for place, row in enumerate(sheet.rows) if place not in rows])
    elif kind == 3:
        copies = [list(sheet.rows[row]) for row in rows]
        for copy in copies:
            copy[sheet.at("algorithm")] = "another"
        sheet.rows += copies
    elif kind == 4:
        for row in rows:
            sheet.put(row, "algorithm", "another")
    elif "horizon" in sheet.columns:
        for row in rows:
            sheet.put(row, "horizon", "1234.5")
    else:
        return None
    expected = _answer(sheet)
    # Who has reached a target has a value.
    possible = all(times or end != "done" for times, _, _, _, _, _, end in expected.values())
    return Declared(_written(name, sheet, rng), (expected if possible else None,), f"change {kind} of a run")


def _refusable(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """What no table of runs may hold."""
    name, sheet = _opened(files)
    rows = _rows_of_run(sheet, rng)
    row = rng.choice(rows)
    kind = rng.randrange(9)
    if name.endswith(".parquet") and kind not in (1, 2, 6, 7):
        return None  # its cells have types
    if kind == 0:
        sheet.put(row, "time", rng.choice((*NO_TIME, *_MISSING)))
    elif kind == 1:
        sheet.put(row, "time", rng.choice(("nan", "inf", "-1")))
    elif kind == 2 and len(rows) > 1:
        sheet.rows[rows[0]], sheet.rows[rows[-1]] = sheet.rows[rows[-1]], sheet.rows[rows[0]]
    elif kind == 3:
        sheet.put(row, "value", rng.choice(NO_NUMBER).replace(",", ";"))
    elif kind == 4:
        sheet.put(row, rng.choice(("algorithm", "instance")), rng.choice(("", " ")))
    elif kind == 5 and "seed" in sheet.columns:
        sheet.put(row, "seed", rng.choice(("0.5", "x", "", "nan", "1e30")))
    elif kind == 6:
        sheet.rows.insert(row, list(sheet.rows[row]))
    elif kind == 7 and "horizon" in sheet.columns:
        for each in rows:
            sheet.put(each, "horizon", "-1")
    elif kind == 8:
        column = rng.choice(("algorithm", "instance", "time", "value"))
        sheet.columns[sheet.at(column)] = rng.choice(("other", "algorithm" if column == "time" else "time"))
    else:
        return None
    return Declared(_written(name, sheet, rng), (None,), f"refusable {kind}: row {sheet.rows[row]!r}")


def _one_cell_too_many(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """A row that is longer than the header."""
    name, sheet = _opened(files)
    if name.endswith(".parquet"):
        return None
    rng.choice(sheet.rows).append("1")
    return Declared(_written(name, sheet, rng), (None,), "a row with a cell too many")


def _parquet_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Write a table whose columns have other types or names than they should."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = _frame().head(rng.choice((0, 1, 12, 40)))
    columns = {name: frame[name].tolist() for name in frame}
    name = rng.choice(list(columns))
    count = len(frame)
    kind = rng.randrange(8)
    types = [pa.int8(), pa.float16(), pa.bool_(), pa.date32(), pa.binary(), pa.large_string(), pa.null(), pa.uint64()]
    types += [pa.decimal128(38, 2), pa.list_(pa.float64()), pa.struct([("a", pa.int64())]), pa.timestamp("ns", "UTC")]
    values: Any = columns[name]
    try:
        if kind <= 1:
            values = pa.array([rng.choice((None, 1, 2**62, -1, 0)) for _ in range(count)])
        elif kind == 2:
            values = pa.nulls(count, rng.choice(types))
        elif kind == 3:
            values = [rng.choice((*NUMBERS, *TEXTS)) for _ in range(count)]
        elif kind == 4:
            values = pa.array([[1.0]] * count)
        elif kind == 5:
            values = pa.array([rng.choice((float("nan"), float("inf"), 1e308, -1.0, 0.0)) for _ in range(count)])
        elif kind == 6:
            values = pa.array(values).cast(rng.choice(types), safe=False)
        else:
            values = pa.array([str(value) for value in values]).dictionary_encode()
        columns[name] = values
        if rng.random() < 0.1:
            columns[rng.choice(TEXTS)] = columns.pop(name)
        target = io.BytesIO()
        pq.write_table(pa.table(columns), target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return bytes_mutation(data, rng, other)
    made = target.getvalue()
    return bytes_mutation(made, rng, data) if rng.random() < 0.2 else made


_CHANGES = (_as_it_was, _another, _refusable, _one_cell_too_many)
READERS = {
    "csv": Reader(_make_csv, _read, changes=_CHANGES, flaw=flaw_of_runs, slow=True),
    "parquet": Reader(
        _make_parquet,
        _read,
        ("pyarrow",),
        {".parquet": _parquet_mutation},
        changes=_CHANGES,
        flaw=flaw_of_runs,
        slow=True,
    ),
}
