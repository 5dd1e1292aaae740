"""Errors and warnings of this package, and the text of those of others in a message.

A message names the source, what was expected, what came and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

#: Most characters of foreign text in a line for people, and in what is stored, such as the reason of a failed run.
LINE, STORED = 200, 2_000

# Controls a terminal, changes the writing direction, or cannot be encoded as UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NESTED = 10  # groups of exceptions inside each other that are looked into
_CLASS_NAME = type.__dict__["__name__"]  # asks the class itself: a metaclass may answer anything, or raise


class PolarBearError(Exception):
    """An error that the user can fix; the command line shows its message as one line."""


class InvalidInputError(PolarBearError, ValueError):
    """A value passed to this package is not valid."""


class SourceError(PolarBearError):
    """A source of results is damaged or cannot be opened; the message names the place."""


class UnknownNameError(PolarBearError, LookupError):
    """No plugin knows a source, suite, portfolio or executor of that name."""


class MissingExtraError(PolarBearError, ImportError):
    """An optional dependency is not installed."""


class PolarBearWarning(UserWarning):
    """Something the user should know; the work continues."""


class InferenceWarning(PolarBearWarning):
    """A posterior is not good enough to decide on."""


class ModelWarning(PolarBearWarning):
    """Rankings do not look as the model says, and an answer rests on it."""


class PluginWarning(PolarBearWarning):
    """A plugin could not be loaded; the others were loaded."""


class RunWarning(PolarBearWarning):
    """A run failed and counts as having found nothing."""


def visible(text: str) -> str:
    r"""Text from data, safe to show: control characters are written as JSON escapes.

    >>> print(visible(chr(27) + "[31mcsa"))
    \u001b[31mcsa
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def foreign_text(thing: object, most: int = LINE) -> str:
    r"""Text of what is not ours, such as the message of another package's exception: all of it passes through here.

    One line of at most ``most`` characters, cut in the middle, without control characters and always valid UTF-8,
    whatever ``thing`` is and whether or not it can be written.

    >>> foreign_text(ValueError("bad    news \ud800"))
    'bad news \\ud800'
    """
    # Cut first: what follows takes time for a text of many megabytes.
    text = _cut(_written(thing, str).strip(), 10 * most)
    return _cut(visible(" ".join(text.split())), most)


def short(value: object) -> str:
    """Text of a value for a message, shortened if long.

    >>> short("a  b"), short(10**5000)
    ("'a  b'", 'a huge int')
    """
    text = visible(" ".join(_written(value, repr)[:600].splitlines()))
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(problem: BaseException) -> str:
    """Text of another package's error for one of our messages; the name of its class if it has none.

    >>> reason(KeyError())
    'KeyError'
    """
    return foreign_text(problem) or _class_name(problem)


def describe_exception(problem: BaseException, *, with_place: bool = True) -> str:
    """Class, message, file and line of an exception, in one line that is short enough to be stored.

    >>> describe_exception(ExceptionGroup("two at once", [ValueError("one"), TypeError("other")]))
    'ExceptionGroup: two at once (2 sub-exceptions), the first ValueError: one'
    """
    first: Any = problem
    try:
        for _ in range(_NESTED):
            if isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
        place = _place(first) if with_place else ""
    except Exception:  # a class of somebody's own may override anything
        first, place = problem, ""
    problems = [problem] if first is problem else [problem, first]
    most = (STORED - 300) // len(problems)  # 300: more than the names of classes and files take
    return ", the first ".join(_named(each, most) for each in problems) + place


def _written(thing: object, write: Callable[[Any], str]) -> str:
    try:
        return str.__str__(write(thing))  # a plain str, since a class of somebody's own may override anything
    except Exception as problem:
        if write is repr and type(problem) is ValueError:  # from an int with thousands of digits
            return f"a huge {_class_name(thing)}"
        return f"a {_class_name(thing)} whose text raises {_class_name(problem)}"


def _named(problem: BaseException, most: int) -> str:
    name, text = _class_name(problem), foreign_text(problem, most)
    return f"{name}: {text}" if text else name


def _class_name(thing: object) -> str:
    return foreign_text(_CLASS_NAME.__get__(type(thing)), 60)


def _place(problem: BaseException) -> str:
    """File and line; not by the module traceback, which also reads the file, whatever that is."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f", {foreign_text(PurePath(trace.tb_frame.f_code.co_filename).name, 60)} line {trace.tb_lineno}"


def _cut(text: str, most: int) -> str:
    """Text without its middle if it is too long: an error often ends with the place or the remedy."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 5]} ... {text[len(text) - end :]}"
