"""Folders and zip files of IOHprofiler."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from fuzzing.kinds import Answer, Change, Declared, Files, Reader
from fuzzing.readers.real import SHARED
from fuzzing.rewriting import NO_TIME, number, other_line_ends, reformatted_json, rezipped, unzipped, zipped
from fuzzing.runs import answer_of, flaw_of_runs, improvements, plugin, some_runs, steps


def _make(folder: Path) -> None:
    from polarbear_plugins.integrations.ioh_writer import IOHWriter, Scenario

    scenarios = {f"f{number}": Scenario(number, f"F{number}", 2, 1) for number in (1, 2)}
    with IOHWriter(folder / "written", scenarios=scenarios, suite="mine") as writer:
        for run in some_runs():
            writer.add(run)
    real = SHARED / "ioh" / "examples" / "SO_Data"
    for index in sorted(real.rglob("IOHprofiler_*.json"))[:2] if real.is_dir() else ():
        target = folder / f"real-{index.parent.name}-{index.stem}"
        data = index.parent / json.loads(index.read_bytes())["scenarios"][0]["path"]
        if data.stat().st_size < 300_000:
            copy = target / data.relative_to(index.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data, copy)
            shutil.copyfile(index, target / index.name)


def _make_zip(folder: Path) -> None:
    _make(folder)
    for seed in list(folder.iterdir()):
        with zipfile.ZipFile(folder / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(seed.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(seed))
        shutil.rmtree(seed)
        seed.mkdir()
        (folder / "logs.zip").rename(seed / "logs.zip")


def _read(folder: Path) -> Answer:
    return answer_of(plugin("polarbear_plugins.adapters.ioh_logs").read_trajectories(folder))


def _read_zip(folder: Path) -> Answer:
    return answer_of(plugin("polarbear_plugins.adapters.ioh_logs").read_trajectories(folder / "logs.zip"))


# --- changes that say what must come of them


class _Described:
    """One JSON file, and the lines of its runs in the .dat file: the header first."""

    def __init__(self, files: Files, rng: random.Random) -> None:
        self.index = rng.choice([name for name in files if name.endswith(".json")])
        self.about: Any = json.loads(files[self.index])
        self.runs: list[Any] = self.about["scenarios"][0]["runs"]
        self.rows = str(PurePosixPath(self.index).parent / self.about["scenarios"][0]["path"])
        self.blocks: list[list[str]] = []
        for line in files[self.rows].decode().splitlines():
            if not line[:1].isdigit():
                self.blocks.append([])
            self.blocks[-1].append(line)

    def key(self, run: int) -> tuple[Any, ...]:
        """Part of the answer that a run of our writer is."""
        noted = self.runs[run]["polarbear"]
        return "run", self.about["algorithm"]["name"], noted["instance"], noted["seed"]

    def written(self, files: Files) -> Files:
        """The files with what was changed."""
        text = "".join(f"{line}\n" for block in self.blocks for line in block)
        return {**files, self.index: json.dumps(self.about).encode(), self.rows: text.encode()}


def _as_it_was(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Order of keys, line ends, blanks at the end and files of other kinds change nothing."""
    made = {}
    for name, data in files.items():
        if name.endswith(".json"):
            made[name] = reformatted_json(data, rng)
        elif name.endswith(".dat"):
            text = data + rng.choice((b"", b"\n", b"\n\n"))
            text = text.replace(b"\n", b" \n") if rng.random() < 0.2 else text
            text = text.replace(b" ", rng.choice((b" ", b"  ", b"\t")))
            made[name] = other_line_ends(text) if rng.random() < 0.3 else text
        elif rng.random() < 0.5:
            made[name] = data  # the list of instances is for people
    if rng.random() < 0.2:
        made["README.txt"] = b"\xff\xfe not text"
    return Declared(made, (whole,), "written in another way")


def _another(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
    """A step of a run has another value or is left out, or a run is left out: that is all that differs."""
    found = _Described(files, rng)
    if "polarbear" not in found.runs[0]:
        return None
    run = rng.randrange(len(found.runs))
    block, about = found.blocks[run], found.runs[run]
    key, expected = found.key(run), dict(whole)
    if rng.random() < 0.2 and len(found.runs) > 1:
        del found.blocks[run], found.runs[run], expected[key]
        return Declared(found.written(files), (expected,), f"without {key!r}")
    steps_before = [row for row in range(1, len(block)) if int(block[row].split()[0]) < about["best"]["evals"]]
    if not steps_before or len(block) < 4:
        return None
    row = rng.choice(steps_before)
    time = block[row].split()[0]
    if rng.random() < 0.3 and row > 1:
        del block[row]
    else:
        block[row] = f"{time} {number(rng, about['best']['y'] + 1e-3, 3.0)}"
    points = [tuple(map(float, line.split())) for line in block[1:]]
    _, _, *rest = whole[key]
    expected[key] = steps(*improvements(points), *rest)
    return Declared(found.written(files), (expected,), f"row {row} of {key!r}")


def _refusable(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """Rows that are none, and files that do not belong together."""
    found = _Described(files, rng)
    run = rng.randrange(len(found.runs))
    block, about = found.blocks[run], found.runs[run]
    row = rng.randrange(1, len(block))
    time, _, rest = block[row].partition(" ")
    kind = rng.randrange(10)
    if kind == 0:
        block[row] = f"{rng.choice([text for text in NO_TIME if text[0] not in 'nix'])} {rest}"
    elif kind == 1:
        block[row] = f"{time} {rng.choice(('x', '1,5', '0x10', '1e'))}"
    elif kind == 2:
        block[row] = rng.choice((time, f"{time} {rest} 1"))
    elif kind == 3 and row > 1:
        block[row - 1], block[row] = block[row], block[row - 1]
    elif kind == 4:
        block.insert(row, block[row])
    elif kind == 5:
        del found.blocks[run]
    elif kind == 6:
        about["evals"] += rng.choice((1, -1, 1000))
    elif kind == 7:
        about["best"]["y"] += rng.choice((0.5, -0.5, 1e-3))
    elif kind == 8:
        about["best"]["evals"] = about["evals"] + 1
    elif kind == 9:
        made = found.written(files)
        del made[found.rows]
        return Declared(made, (None,), f"without {found.rows}")
    else:
        return None
    return Declared(found.written(files), (None,), f"refusable {kind}: run {run}, row {row}: {block[row : row + 1]}")


def _cut(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """A file that ends too early is noticed, unless nothing but zeros and blanks is missing."""
    name = rng.choice([name for name in files if name.endswith((".json", ".dat"))])
    data = files[name].rstrip()
    at = rng.randrange(len(data))
    allowed = (None,) if data[at:].strip(b"0 \n") else (None, whole)
    return Declared({**files, name: data[:at]}, allowed, f"{name} cut at {at}")


def _in_zip(change: Callable[[Files, Answer, random.Random], Declared | None]) -> Change:
    def changed(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
        [(name, data)] = files.items()
        made = change(unzipped(data), whole, rng)
        if made is None:
            return None
        return Declared({name: rezipped(zipped(made.files), rng)}, made.allowed, made.what)

    return changed


_CHANGES = (_as_it_was, _another, _refusable, _cut)
READERS = {
    "ioh": Reader(_make, _read, changes=_CHANGES, flaw=flaw_of_runs, slow=True),
    "ioh-zip": Reader(_make_zip, _read_zip, changes=tuple(map(_in_zip, _CHANGES)), flaw=flaw_of_runs, slow=True),
}
