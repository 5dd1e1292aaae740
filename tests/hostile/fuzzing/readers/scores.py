"""Tables without runs: criteria of optimizers, published results, and the problems of MA-BBOB."""

from __future__ import annotations

import gzip
import math
import random
from pathlib import Path

import numpy as np

from fuzzing.kinds import Answer, Change, Declared, Files, Reader
from fuzzing.rewriting import NO_NUMBER, Sheet, number, regzipped, rewritten

# --- criteria of optimizers on test functions


def _make_criteria(folder: Path) -> None:
    text = "function,optimizer,loss,time\n" + "".join(
        f"f{f},o{o},{(f * o * 7) % 5}.5,{(f + o * 3) % 7}\n" for f in range(4) for o in range(3)
    )
    (folder / "made").mkdir()
    (folder / "made" / "criteria.csv").write_text(text)


def _read_criteria(folder: Path) -> Answer:
    from polarbear_plugins.partial_orders.criteria import orders_of_functions, read_criteria
    from polarbear_plugins.partial_orders.depth import ufg_depth

    frames = read_criteria(folder / "criteria.csv")
    orders = orders_of_functions(frames, indifferent="incomparable", missing="incomparable")
    found = list(orders.values())
    if 1 < len(found) < 8 and len(found[0].optimizers) < 6:
        ufg_depth(found)
    return {("function", name): tuple(sorted(order.edges())) for name, order in orders.items()}


def _answer_of_criteria(sheet: Sheet) -> Answer:
    functions: dict[str, dict[str, list[float]]] = {}
    for function, optimizer, *values in sheet.rows:
        functions.setdefault(function, {})[optimizer] = [float(value) for value in values]
    return {
        ("function", function): tuple(
            sorted(
                (one, other)
                for one, own in rows.items()
                for other, theirs in rows.items()
                if own != theirs and all(a <= b for a, b in zip(own, theirs, strict=True))
            )
        )
        for function, rows in functions.items()
    }


# --- published results


def _make_results(folder: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{system},{task},{'easy' if task < 3 else 'hard'},{rng.random():.6f}" for system in "abc" for task in range(5)
    ]
    text = "\n".join(["system,task,group,score", *rows, ""])
    for name, data in {
        "results.csv": text.encode(),
        "results.tsv": text.replace(",", "\t").encode(),
        "results.csv.gz": gzip.compress(text.encode(), mtime=0),
    }.items():
        (folder / name).mkdir()
        (folder / name / name).write_bytes(data)


def _read_results(folder: Path) -> Answer:
    from polarbear_plugins.measures.results_table import read_results

    [path] = folder.iterdir()
    found = read_results(path)
    groups = found.groups or (None,) * len(found.instances)
    answer: Answer = {("group", name): group for name, group in zip(found.instances, groups, strict=True)}
    for instance, row in zip(found.instances, found.scores.tolist(), strict=True):
        answer |= {("score", instance, name): score for name, score in zip(found.algorithms, row, strict=True)}
    return answer


def _answer_of_results(sheet: Sheet) -> Answer:
    rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
    answer: Answer = {("group", row["task"]): row["group"] for row in rows}
    return answer | {("score", row["task"], row["system"]): float(row["score"]) for row in rows}


def _flaw_of_results(answer: Answer) -> str:
    for key, part in answer.items():
        if key[0] == "score" and not math.isfinite(part):
            return f"{key!r} is {part!r}"
        if any(not name.strip() for name in key[1:]):
            return f"{key!r} is a name without text"
    return ""


# --- changes to both


def _opened(files: Files) -> tuple[str, str, Sheet]:
    [(name, data)] = files.items()
    separator = "\t" if ".tsv" in name else ","
    return name, separator, Sheet.parse(gzip.decompress(data) if name.endswith(".gz") else data, separator)


def _written(name: str, separator: str, sheet: Sheet, rng: random.Random) -> Files:
    text = sheet.write(separator, rng)
    return {name: regzipped(gzip.compress(text), rng) if name.endswith(".gz") else text}


def _same(numbers: tuple[str, ...]) -> Change:
    def changed(files: Files, whole: Answer, rng: random.Random) -> Declared:
        """Order of rows and columns, line ends, quotes, blank lines and packing change nothing."""
        name, separator, sheet = _opened(files)
        rng.shuffle(sheet.rows)
        for column in numbers:
            for row in sheet.rows:
                row[sheet.at(column)] = rewritten(row[sheet.at(column)], rng)
        return Declared(_written(name, separator, sheet.permuted(rng), rng), (whole,), "written in another way")

    return changed


def _another_criterion(files: Files, _: Answer, rng: random.Random) -> Declared:
    """One criterion of one optimizer: only the order on its function may differ."""
    name, separator, sheet = _opened(files)
    sheet.put(rng.randrange(len(sheet.rows)), rng.choice(("loss", "time")), number(rng, -1, 8))
    return Declared(_written(name, separator, sheet, rng), (_answer_of_criteria(sheet),), "another criterion")


def _another_score(files: Files, _: Answer, rng: random.Random) -> Declared:
    """One score, or the name of one system: nothing else differs."""
    name, separator, sheet = _opened(files)
    if rng.random() < 0.7:
        sheet.put(rng.randrange(len(sheet.rows)), "score", number(rng))
    else:
        for row in sheet.rows:
            row[sheet.at("system")] = row[sheet.at("system")].replace("b", "another")
    return Declared(_written(name, separator, sheet, rng), (_answer_of_results(sheet),), "another score")


def _refusable(names: tuple[str, str], numbers: tuple[str, ...], *, needs_all: bool) -> Change:
    def changed(files: Files, _: Answer, rng: random.Random) -> Declared:
        """A word for a number, no name, a missing or doubled column, a missing row."""
        name, separator, sheet = _opened(files)
        row = rng.randrange(len(sheet.rows))
        kind = rng.randrange(4 + needs_all)
        if kind == 0:
            sheet.put(row, rng.choice(numbers), rng.choice(NO_NUMBER).replace(",", ";"))
        elif kind == 1:
            sheet.put(row, rng.choice(names), rng.choice(("", " ")))
        elif kind == 2:
            sheet.columns[sheet.at(rng.choice(names))] = "other"
        elif kind == 3:
            sheet.rows[row].append("1")
        else:
            del sheet.rows[row]
        return Declared(_written(name, separator, sheet, rng), (None,), f"refusable {kind}, row {row}")

    return changed


def _twice(files: Files, _: Answer, rng: random.Random) -> Declared:
    """Two rows for an optimizer on a function."""
    name, separator, sheet = _opened(files)
    sheet.rows.append(list(rng.choice(sheet.rows)))
    return Declared(_written(name, separator, sheet, rng), (None,), "a row twice")


def _in_two_groups(files: Files, _: Answer, rng: random.Random) -> Declared:
    """A task in two groups."""
    name, separator, sheet = _opened(files)
    sheet.put(rng.randrange(len(sheet.rows)), "group", "third")
    return Declared(_written(name, separator, sheet, rng), (None,), "a task in two groups")


# --- MA-BBOB

_TABLES = ("weights", "iids", "opt_locs")


def _make_ma_bbob(folder: Path) -> None:
    from polarbear_plugins.integrations.ma_bbob import draw_parameters

    (folder / "made").mkdir()
    drawn = [draw_parameters(np.random.default_rng(seed), 3) for seed in range(3)]
    for name, key in zip(_TABLES, ("weights", "instances", "xopt"), strict=True):
        rows = [",".join([str(row), *map(str, parameters[key])]) for row, parameters in enumerate(drawn)]
        header = ",".join(["", *map(str, range(len(drawn[0][key])))])
        (folder / "made" / f"{name}.csv").write_text("\n".join([header, *rows, ""]))


def _read_ma_bbob(folder: Path) -> Answer:
    from polarbear_plugins.integrations.ma_bbob import read_csv_folder

    problems = read_csv_folder(folder, 3)
    return {("problem", label, part): values for label, of in problems.items() for part, values in of.items()}


def _flaw_of_ma_bbob(answer: Answer) -> str:
    return next((f"{k!r} is {v!r}"[:300] for k, v in answer.items() if not all(map(math.isfinite, v))), "")


def _same_ma_bbob(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Line ends, quotes and blank lines change nothing."""
    made = {name: Sheet.parse(data).write(",", rng).removeprefix(b"\xef\xbb\xbf") for name, data in files.items()}
    return Declared(made, (whole,), "written in another way")


def _another_number(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """One number of one problem: nothing else differs."""
    table, part = rng.choice((("weights", "weights"), ("iids", "instances"), ("opt_locs", "xopt")))
    sheet = Sheet.parse(files[f"{table}.csv"])
    row = rng.randrange(len(sheet.rows))
    place = rng.randrange(1, len(sheet.rows[row]))
    text = str(rng.randrange(1, 200)) if table == "iids" else number(rng, 0, 1)
    sheet.rows[row][place] = text
    key = ("problem", sheet.rows[row][0], part)
    values = list(whole[key])
    values[place - 1] = int(text) if table == "iids" else float(text)
    made = {**files, f"{table}.csv": sheet.write(",", random.Random(0))}  # noqa: S311
    return Declared(made, ({**whole, key: values},), f"{table}, row {row}")


def _refusable_ma_bbob(files: Files, _: Answer, rng: random.Random) -> Declared:
    """No numbers, rows that are missing or doubled, other labels."""
    name = rng.choice(list(files))
    sheet = Sheet.parse(files[name])
    row = rng.choice(sheet.rows)
    kind = rng.randrange(5)
    if kind == 0:
        row[rng.randrange(1, len(row))] = rng.choice((*NO_NUMBER, "nan", "inf", ""))
    elif kind == 1:
        del row[rng.randrange(1, len(row))]
    elif kind == 2:
        sheet.rows.append(list(row))
    elif kind == 3:
        sheet.rows.remove(row)
    else:
        row[0] = "other"
    return Declared({**files, name: sheet.write(",", random.Random(0))}, (None,), f"refusable {kind} in {name}")  # noqa: S311


READERS = {
    "criteria": Reader(
        _make_criteria,
        _read_criteria,
        changes=(
            _same(("loss", "time")),
            _another_criterion,
            _refusable(("function", "optimizer"), ("loss", "time"), needs_all=False),
            _twice,
        ),
        slow=True,
    ),
    "results": Reader(
        _make_results,
        _read_results,
        changes=(
            _same(("score",)),
            _another_score,
            _refusable(("system", "task"), ("score",), needs_all=True),
            _in_two_groups,
        ),
        flaw=_flaw_of_results,
        slow=True,
    ),
    "ma-bbob": Reader(
        _make_ma_bbob,
        _read_ma_bbob,
        changes=(_same_ma_bbob, _another_number, _refusable_ma_bbob),
        flaw=_flaw_of_ma_bbob,
    ),
}
