"""Text that is not ours: whatever it is, what comes of it can be stored, sent and shown."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import LINE, STORED, describe_exception, foreign_text, reason, short, visible

ANY_TEXT = st.text(st.characters(), max_size=5000)  # also surrogates


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class InterruptingError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class NotTextError(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("nameless")


class NamelessError(Exception, metaclass=Meta):
    """An exception whose class does not say its name."""


class Sly(str):
    """Text that raises when it is looked at."""

    __slots__ = ()

    def strip(self, *_: Any) -> str:
        raise RuntimeError

    def __str__(self) -> str:
        return self


class Endless(ExceptionGroup[Exception]):
    @property
    def exceptions(self) -> Any:  # type: ignore[override]
        return (self,)


class NoTraceError(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError


def raised(problem: BaseException) -> BaseException:
    try:
        raise problem
    except BaseException as caught:
        return caught


def check(text: str, most: int) -> None:
    assert len(text) <= most
    assert text.encode("utf-8")  # no surrogates, and not empty
    assert visible(text) == text
    assert "\n" not in text


@given(ANY_TEXT, st.integers(20, 300))
def test_any_text_becomes_one_line_that_can_be_stored_and_shown(text: str, most: int) -> None:
    for foreign in (text, ValueError(text)):
        found = foreign_text(foreign, most)
        assert len(found) <= most
        assert found.encode("utf-8").decode("utf-8") == found
        assert visible(found) == found
        assert len(found.splitlines()) <= 1


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u200e\u200f"), max_size=LINE))
def test_text_that_needs_nothing_stays_as_it_is(text: str) -> None:
    assert foreign_text(text) == visible(text)


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    found = foreign_text("the beginning " + "x" * 5_000_000 + " the end")
    assert len(found) == LINE
    assert found.startswith("the beginning")
    assert found.endswith("the end")
    assert " ... " in found


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MuteError(), "MuteError: a MuteError whose text raises RuntimeError, test_errors.py line"),
        (NotTextError(), "NotTextError: a NotTextError whose text raises TypeError"),
        (NamelessError("hm"), "NamelessError: hm, test_errors.py"),
        (ValueError("bad \ud800 name"), "ValueError: bad \\ud800 name, test_errors.py"),
        (ValueError("\x1b[31mred\x9b2J \u202etxt"), "ValueError: \\u001b[31mred\\u009b2J \\u202etxt, test_errors.py"),
        (ValueError("x" * 5_000_000), "xxx"),
        (ValueError(10**5000), "ValueError: a ValueError whose text raises ValueError"),
        (ValueError(list(range(100_000))), "ValueError: [0, 1, 2, 3"),
        (ValueError(Sly("words")), "ValueError: words"),
        (ValueError(threading.Lock()), "ValueError: <unlocked _thread.lock object"),
        (type("N" * 5000 + "\x1b", (Exception,), {})("long"), "\\u001b: long"),
        (
            ExceptionGroup("several", [raised(ValueError("one")), TypeError("two")]),
            "the first ValueError: one, test_err",
        ),
        (ExceptionGroup("several", [ExceptionGroup("inner", [MuteError()])]), "the first MuteError: a MuteError whose"),
        (Endless("endless", [ValueError("one")]), "Endless: endless"),
        (NoTraceError("hm"), "NoTraceError: hm"),
        (KeyboardInterrupt(), "KeyboardInterrupt, test_errors.py line"),
    ],
)
def test_an_exception_of_any_kind_can_be_described(problem: BaseException, expected: str) -> None:
    problem = raised(problem)
    check(describe_exception(problem), STORED)
    check(reason(problem), LINE)
    check(short(problem), 60)
    assert expected in describe_exception(problem)


def test_what_ends_the_process_is_not_taken_for_a_text_that_fails() -> None:
    with pytest.raises(KeyboardInterrupt):
        describe_exception(InterruptingError())


def test_describing_an_exception_opens_no_file(tmp_path: Path) -> None:
    # The module traceback would read the file of a frame, which code may name as it likes: here one without an end.
    code = f"""
import os
from polarbear_plugins.errors import describe_exception
os.mkfifo({str(tmp_path / "pipe")!r})
try:
    exec(compile("1 / 0", {str(tmp_path / "pipe")!r}, "exec"))
except ZeroDivisionError as problem:
    print(describe_exception(problem))
"""
    if sys.platform == "win32":
        pytest.skip("needs a named pipe")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "ZeroDivisionError: division by zero, pipe line 1\n"
