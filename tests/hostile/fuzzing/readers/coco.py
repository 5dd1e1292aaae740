"""Folders and archives of COCO, and of IOHprofiler before it wrote JSON."""

from __future__ import annotations

import gzip
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from fuzzing.kinds import Answer, Change, Declared, Files, Reader
from fuzzing.readers.real import SHARED
from fuzzing.rewriting import other_line_ends, tarred, untarred
from fuzzing.runs import answer_of, flaw_of_runs, plugin, some_runs, steps
from polarbear_plugins import Trajectory

_COLUMNS = {
    "new": "% f evaluations | g evaluations | best noise-free fitness - Fopt (7.9e+01) + sum g_i+ | measured | x1",
    "old": "% function evaluation | noise-free fitness - Fopt (7.9e+1) | best noise-free fitness - Fopt | measured | x",
    "ioh": '"function evaluation" "current f(x)" "best-so-far f(x)" "current af(x)+b" "best af(x)+b"',
}
_HEADERS = {
    "new": "suite = 'bbob', funcId = {f}, DIM = 2, Precision = 1.000e-08, algId = '{a}', coco_version = '2.8.2'",
    "old": "funcId = {f}, DIM = 2, Precision = 1.000e-008, algId = '{a}'",
    "ioh": 'suite = "PBO", funcId = {f}, funcName = "OneMax", DIM = 2, maximization = "F", algId = "{a}"',
}


def _make(folder: Path) -> None:
    curves: dict[tuple[str, str], list[Trajectory]] = {}
    for run in some_runs():
        curves.setdefault((run.algorithm, run.instance), []).append(run)
    for kind, columns in _COLUMNS.items():
        for (algorithm, instance), runs in curves.items():
            target = folder / kind / algorithm
            name = f"data_{instance}/exp_{instance}_DIM2"
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            rows = [
                [columns, *(f"{t:.0f} 0 {b:+.9e} +8.0e+01 -2.9e+00" for t, b in zip(run.times, run.best, strict=True))]
                for run in runs
            ]
            last = [f"{run.horizon:.0f} 0 {run.best[-1]:+.9e} +8.0e+01 -2.9e+00" for run in runs]
            (target / f"{name}.dat").write_text("\n".join(line for block in rows for line in block) + "\n")
            fixed = (line for block, end in zip(rows, last, strict=True) for line in (*block[:2], end))
            (target / f"{name}.tdat").write_text("\n".join(fixed) + "\n")
            header = _HEADERS[kind].format(f=instance[1:], a=algorithm)
            path = name.replace("/", "\\" if kind == "old" else "/")
            entries = [f"{run.seed + 1}:{run.horizon:.0f}|{run.best[-1]:.1e}" for run in runs]
            (target / f"exp_{instance}.info").write_text(", ".join([f"{header}\n% x\n{path}.dat", *entries]) + "\n")
    real = SHARED / "coco" / "exdata" / "random-search"
    if real.is_dir():
        shutil.copytree(real / "data_f1", folder / "real" / "data_f1")
        shutil.copyfile(real / "bbobexp_f1.info", folder / "real" / "bbobexp_f1.info")


def _make_tar(folder: Path) -> None:
    _make(folder)
    for seed in list(folder.iterdir()):
        with tarfile.open(folder / "logs.tar", "w") as archive:
            archive.add(seed, "logs")
        packed = gzip.compress((folder / "logs.tar").read_bytes(), mtime=0)
        (folder / "logs.tar").unlink()
        shutil.rmtree(seed)
        seed.mkdir()
        (seed / "logs.tgz").write_bytes(packed)


def _read(folder: Path) -> Answer:
    return answer_of(plugin("polarbear_plugins.adapters.coco").read_trajectories(folder))


def _read_tar(folder: Path) -> Answer:
    return answer_of(plugin("polarbear_plugins.adapters.coco").read_trajectories(folder / "logs.tgz"))


# --- changes that say what must come of them


def _as_it_was(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Comments, blank lines, line ends, more blanks between columns and files of other kinds change nothing."""
    made = {}
    for name, data in files.items():
        lines = data.decode("latin-1").splitlines()
        for _ in range(rng.choice((0, 0, 1, 3))):
            lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(("", "% a comment", " ")))
        if name.endswith("dat") and rng.random() < 0.3:
            gap = rng.choice(("  ", "\t"))
            lines = [line.replace(" ", gap) if line[:1].isdigit() else line for line in lines]
        text = ("\n".join(lines) + "\n").encode("latin-1")
        if name.endswith(".info"):  # a comment does not stand between a header and its line of runs
            text = data
        made[name] = other_line_ends(text) if rng.random() < 0.3 else text
    if rng.random() < 0.2:
        made["notes.txt"] = b"\xff"
    return Declared(made, (whole,), "written in another way")


def _blocks(files: Files, rng: random.Random) -> tuple[str, list[list[str]]]:
    """A .dat file: the lines of each run, its header first."""
    name = rng.choice([name for name in files if name.endswith(".dat")])
    blocks: list[list[str]] = []
    for line in files[name].decode("latin-1").splitlines():
        if line[:1] in '%"':
            blocks.append([])
        blocks[-1].append(line)
    return name, blocks


def _joined(files: Files, name: str, blocks: list[list[str]]) -> Files:
    text = "".join(f"{line}\n" for block in blocks for line in block)
    return {**files, name: text.encode("latin-1")}


def _another(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
    """A step between the first and the last has another value, or is left out: that is all that differs."""
    name, blocks = _blocks(files, rng)
    algorithm, function = Path(name).parts[-3:-1] if name.count("/") > 1 else ("", "")
    run = rng.randrange(len(blocks))
    keys = [key for key in whole if key[1] == algorithm and key[2].startswith(function.removeprefix("data_") + "_")]
    block = blocks[run]
    if len(keys) != len(blocks) or len(block) < 4:
        return None
    key = sorted(keys, key=lambda key: (key[2], key[3]))[run]
    times, best, *rest = whole[key]
    row = rng.randrange(2, len(block) - 1)
    before, after = float(block[row - 1].split()[2]), float(block[row + 1].split()[2])
    expected = dict(whole)
    if rng.random() < 0.4:
        del block[row]
        kept = [place for place in range(len(times)) if place != row - 1]
        expected[key] = steps([times[k] for k in kept], [best[k] for k in kept], *rest)
    else:
        cells = block[row].split()
        cells[2] = f"{rng.uniform(after, before):+.9e}"
        block[row] = " ".join(cells)
        values = [*best[: row - 1], float(cells[2]), *best[row:]]
        if not values[row - 2] > values[row - 1] > values[row]:
            return None
        expected[key] = steps(times, values, *rest)
    return Declared(_joined(files, name, blocks), (expected,), f"row {row} of {key!r}")


def _refusable(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """Rows that are none, and files that do not belong together."""
    name, blocks = _blocks(files, rng)
    block = rng.choice(blocks)
    row = rng.randrange(1, len(block))
    cells = block[row].split()
    kind = rng.randrange(8)
    if kind == 0:
        cells[0] = rng.choice(("nan", "inf", "-1", "1e999", "x"))
    elif kind == 1:
        cells[2] = rng.choice(("x", "1,5", "0x10", "1e"))
    elif kind == 2:
        cells = rng.choice((cells[:-1], [*cells, "1"]))
    elif kind == 3 and row > 1:
        block[row - 1], cells = block[row], block[row - 1].split()
    elif kind == 4:
        blocks.remove(block)
    elif kind == 5:
        block[0] = rng.choice(("% f evaluations | other", "% nothing | of it"))
    elif kind == 6:
        made = {key: data for key, data in files.items() if not key.startswith(name[:-4])}
        return Declared(made, (None,), f"without {name}")
    elif kind == 7:
        index = rng.choice([key for key in files if key.endswith(".info")])
        bad = rng.choice((b"funcId = x", b"funcId = -1", b"funcId = 1.5", b"funcId ="))
        changed = files[index].replace(b"funcId = 1", bad).replace(b"funcId = 2", bad)
        return Declared({**files, index: changed}, (None,), f"{index}: {bad!r}")
    else:
        return None
    block[row] = " ".join(cells)
    return Declared(_joined(files, name, blocks), (None,), f"refusable {kind}: {name}, row {row}: {block[row]!r}")


def _in_tar(change: Callable[[Files, Answer, random.Random], Declared | None]) -> Change:
    def changed(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
        [(name, data)] = files.items()
        made = change(untarred(data), whole, rng)
        return None if made is None else Declared({name: tarred(made.files, rng)}, made.allowed, made.what)

    return changed


_CHANGES = (_as_it_was, _another, _refusable)
READERS = {
    "coco": Reader(_make, _read, changes=_CHANGES, flaw=flaw_of_runs, slow=True),
    "coco-tar": Reader(_make_tar, _read_tar, changes=tuple(map(_in_tar, _CHANGES)), flaw=flaw_of_runs, slow=True),
}
