"""The pictures of the README, and tools/pictures.py, which makes them."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from builders import race_by_hand

from polarbear_plugins.report.computed import Computed


@pytest.fixture
def pictures(root: Path) -> ModuleType:
    pytest.importorskip("PIL")
    spec = importlib.util.spec_from_file_location("pictures", root / "tools" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_small_and_load_nothing(root: Path) -> None:
    png = (root / "docs" / "figures" / "report.png").read_bytes()
    assert len(png) < 200_000
    assert struct.unpack(">I", png[16:20]) == (1300,)  # its width
    svg = (root / "docs" / "figures" / "race.svg").read_text()
    assert len(svg) < 50_000
    assert not [word for word in ("href", "url(", "@import", "<script") if word in svg]
    assert "What to do next:" in "".join(ElementTree.fromstring(svg).itertext())  # noqa: S314 - our own file


def test_a_frame_is_a_round_and_the_last_one_what_to_do_next(pictures: ModuleType) -> None:
    told = race_by_hand()
    shown = pictures.frames(told, Computed(), Path("race.db"))
    assert len(shown) == 1 + len(told.rounds) + 1
    assert shown[2][-1] == "round 2: 4 instances · 60% settled · d out (a better, P = 0.930)"
    assert "What to do next:" in shown[-1]
    assert all(len(line) <= pictures.COLUMNS for line in shown[-1])


def test_the_animation_ends_with_its_last_frame_and_escapes_its_lines(pictures: ModuleType) -> None:
    svg = pictures.animation([["<one>"], ["<one>", "two & three"]])
    tree = ElementTree.fromstring(svg)  # noqa: S314 - made here
    groups = tree.findall("{http://www.w3.org/2000/svg}g")
    assert ["".join(group.itertext()).split("\n")[1:-1] for group in groups] == [["<one>"], ["<one>", "two & three"]]
    assert "#f0 { animation: f0 10s steps(1) infinite; opacity: 0 }" in svg
    assert "#f1 { animation: f1 10s steps(1) infinite; opacity: 1 }" in svg
