"""A short run of tests/hostile/fuzz.py: some dozens of changed inputs for each reader, always the same ones."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

#: How many inputs: as many as fit into about a second.
INPUTS = {
    "csv": 24,
    "parquet": 24,
    "ioh": 50,
    "ioh-zip": 50,
    "coco": 30,
    "coco-tar": 30,
    "bayesmark": 30,
    "yahpo": 80,
    "onnx": 50,
    "journal": 20,
    "posterior": 50,
    "result": 20,
    "dask": 150,
    "optuna-sqlite": 8,
    "optuna-journal": 30,
    "criteria": 12,
    "results": 10,
    "ma-bbob": 80,
    "options": 40,
}


@pytest.fixture(scope="module")
def working() -> Iterator[ModuleType]:
    pytest.importorskip("resource")  # limits as Unix has them
    folder = str(Path(__file__).parent)  # the harness is also a script, which finds its parts beside itself
    sys.path.insert(0, folder)
    try:
        import fuzzing.working

        yield fuzzing.working
    finally:
        sys.path.remove(folder)


def test_there_is_a_short_run_for_every_reader(working: ModuleType) -> None:
    assert set(INPUTS) == set(working.READERS)


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_input_is_read_as_the_change_says_or_refused_in_a_line_that_names_it(
    working: ModuleType, name: str, tmp_path: Path
) -> None:
    reader = working.READERS[name]
    if reader.missing:
        pytest.skip(f"needs {', '.join(reader.missing)}")
    limits = working.Limits(inputs=INPUTS[name], seed=7, seconds=20.0, megabytes=2048, duration=300.0)
    seeds = working.seeds_of(reader, tmp_path / "seeds")
    counts, findings = working.fuzz(name, seeds, limits)
    assert not findings, "\n".join(working.keep(name, seeds, findings, limits, tmp_path))
    assert sum(counts[kind] for kind in working.RIGHT) == INPUTS[name]
    assert counts["refused"] > 0
    assert counts["equal"] > 0
    assert not reader.changes or counts["declared"] > 0


def _reader(working: ModuleType, read: Any, **options: Any) -> Any:
    def make(folder: Path) -> None:
        (folder / "seed").mkdir()
        (folder / "seed" / "numbers.txt").write_text("1 2 3 4 5 6 7 8 9\n" * 3)

    return working.Reader(make, read, **options)


def _counts(working: ModuleType, reader: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> Any:
    monkeypatch.setitem(working.READERS, "wrong", reader)
    seeds = working.seeds_of(reader, folder / "seeds")
    return working.fuzz("wrong", seeds, working.Limits(**limits))[0]


def test_what_is_wrong_is_found(working: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader with every kind of mistake: each becomes a finding, and none ends the run."""
    from polarbear_plugins.errors import PolarBearError

    def read(folder: Path) -> dict[tuple[str], int]:
        content = (folder / "numbers.txt").read_bytes()
        if b"\x00" in content:
            raise KeyError("a bare error")
        if b"nan" in content:
            return {("size",): len(bytearray(4 * 2**30))}
        if b"inf" in content:
            while True:
                pass
        if b"script" in content:
            os.kill(os.getpid(), signal.SIGKILL)
        if len(content) > 60:
            raise PolarBearError("no name of a file")
        return {("size",): len(content)}

    reader = _reader(working, read)
    counts = _counts(working, reader, tmp_path, monkeypatch, inputs=80, seconds=0.2, megabytes=512)
    assert {"KeyError", "memory", "time", "crash", "message names no file"} <= set(counts)


def test_a_wrong_answer_is_found(working: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that adds up the numbers, with mistakes that only its answers show."""
    from fuzzing.kinds import Declared

    drawn = random.Random(1)  # noqa: S311 - not reproducible on purpose

    def read(folder: Path) -> dict[tuple[str], float]:
        words = (folder / "numbers.txt").read_text(errors="replace").split()
        numbers = [float(word) for word in words if word.replace(".", "", 1).isdigit()]
        if len(numbers) < 20:
            return {("total",): drawn.random()}
        if "5e-324" in words:
            return {("total",): -1.0}
        return {("total",): sum(numbers) + ("x" in words)}

    def same(files: Any, whole: Any, rng: Any) -> Declared:
        blank = rng.choice((b"  ", b"\n", b" x "))
        return Declared({"numbers.txt": files["numbers.txt"].replace(b" ", blank)}, (whole,), "blanks")

    def another(files: Any, whole: Any, _: Any) -> Declared:
        text = files["numbers.txt"].replace(b"9", b"5e-324")
        return Declared({"numbers.txt": text}, ({("total",): whole["total",] - 27},), "another number")

    def refusable(files: Any, *_: Any) -> Declared:
        return Declared({"numbers.txt": files["numbers.txt"] + b"-1"}, (None,), "a negative number")

    def flaw(answer: Any) -> str:
        return "it is negative" if answer["total",] < 0 else ""

    reader = _reader(working, read, changes=(same, another, refusable), flaw=flaw)
    counts = _counts(working, reader, tmp_path, monkeypatch, inputs=90)
    assert {"wrong answer", "not valid", "read what must be refused", "not repeatable", "equal", "other"} <= set(counts)
    strict = _counts(working, reader, tmp_path / "strict", monkeypatch, inputs=90, checksummed=frozenset({"wrong"}))
    assert strict["believed"] == counts["other"] + counts["not repeatable"]


@pytest.mark.usefixtures("working")
def test_choices_from_bytes_are_any_choices() -> None:
    """What atheris varies: the same bytes give the same choices, other bytes others, and none at all some, too."""
    from fuzzing.guided import Choices

    def choices(data: bytes) -> list[Any]:
        rng = Choices(data)
        return [rng.randrange(10), rng.choice("abcdef"), round(rng.random(), 3), rng.sample(range(5), 2)]

    made = [choices(bytes([number] * 9)) for number in range(256)]
    assert made == [choices(bytes([number] * 9)) for number in range(256)]
    assert len(Counter(map(str, made))) > 50
    assert sorted(Choices(b"").sample(range(100), 99)) != list(range(100))  # it ends
