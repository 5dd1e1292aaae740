"""A short run of tests/hostile/fuzz.py: some hundred damaged inputs for each reader, always the same ones."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

#: How many inputs: as many as fit into about a second.
INPUTS = {
    "csv": 30,
    "parquet": 30,
    "ioh": 80,
    "ioh-zip": 80,
    "coco": 80,
    "coco-tar": 80,
    "bayesmark": 40,
    "yahpo": 100,
    "onnx": 80,
    "journal": 20,
    "posterior": 80,
    "result": 20,
    "optuna-sqlite": 8,
    "optuna-journal": 40,
    "criteria": 25,
    "ma-bbob": 150,
    "options": 60,
}


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    pytest.importorskip("resource")  # limits as Unix has them
    folder = str(Path(__file__).parent)  # the harness is also a script, which finds its parts beside itself
    sys.path.insert(0, folder)
    try:
        import fuzz

        yield fuzz
    finally:
        sys.path.remove(folder)


def test_there_is_a_short_run_for_every_reader(fuzz: ModuleType) -> None:
    assert set(INPUTS) == set(fuzz.READERS)


@pytest.mark.parametrize("name", INPUTS)
def test_a_damaged_input_is_read_or_refused_in_a_line_that_names_it(
    fuzz: ModuleType, name: str, tmp_path: Path
) -> None:
    reader = fuzz.READERS[name]
    if reader.missing:
        pytest.skip(f"needs {', '.join(reader.missing)}")
    options = argparse.Namespace(seed=7, seconds=20.0, megabytes=2048, inputs=INPUTS[name], first=0, minutes=5.0)
    seeds = fuzz.seeds_of(reader, tmp_path / "seeds")
    counts, findings = fuzz.fuzz(name, seeds, options)
    assert not findings, "\n".join(fuzz.keep(name, fuzz.Work(name, seeds, options), findings, tmp_path))
    assert sum(counts.values()) == INPUTS[name]
    assert counts["refused"] > 0
    assert counts["read"] > 0


def test_what_is_wrong_is_found(fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader with every kind of mistake: each becomes a finding, and none ends the run."""

    def make(folder: Path) -> None:
        (folder / "seed").mkdir()
        (folder / "seed" / "numbers.txt").write_text("1 2 3 4 5 6 7 8 9\n" * 3)

    def read(folder: Path) -> int:
        content = (folder / "numbers.txt").read_bytes()
        if b"\x00" in content:
            raise KeyError("a bare error")
        if b"nan" in content:
            return len(bytearray(4 * 2**30))
        if b"inf" in content:
            while True:
                pass
        if b"script" in content:
            os.kill(os.getpid(), signal.SIGKILL)
        if len(content) > 60:
            raise fuzz.PolarBearError("no name of a file")
        return len(content)

    monkeypatch.setitem(fuzz.READERS, "wrong", fuzz.Reader(make, read))
    options = argparse.Namespace(seed=1, seconds=0.2, megabytes=512, inputs=80, first=0, minutes=5.0)
    counts, _ = fuzz.fuzz("wrong", fuzz.seeds_of(fuzz.READERS["wrong"], tmp_path / "seeds"), options)
    assert {"KeyError", "memory", "time", "crash", "message names no file"} <= set(counts)
