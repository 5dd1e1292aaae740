"""Whether what came of one input is right."""

from __future__ import annotations

import signal
import traceback
from dataclasses import dataclass
from pathlib import Path

from fuzzing.kinds import Answer, Files, Reader, difference
from polarbear_plugins.errors import PolarBearError

#: Readers whose files carry checksums: whatever the damage, another answer than that of the whole file is wrong.
CHECKSUMMED: frozenset[str] = frozenset({"journal", "posterior", "result"})


class TooLongError(BaseException):
    """More processor time than an input may take; no reader catches it."""


@dataclass(frozen=True)
class Input:
    """What is read.

    Attributes
    ----------
    allowed
        The answers that are right, ``None`` for a refusal; ``None`` altogether if the damage does not say.
    what
        What was changed.
    whole
        The answer to the files before they were changed.
    """

    files: Files
    allowed: tuple[Answer | None, ...] | None
    what: str
    whole: Answer


def judge(reader: Reader, folder: Path, given: Input, seconds: float, *, checksummed: bool) -> tuple[str, str]:
    """Read an input: ``equal``, ``other`` or ``refused`` and nothing, or what was found and where.

    ``equal`` is the answer of the whole file, or that which the change declares; ``other`` another valid answer.
    """
    names = {part for path in folder.rglob("*") for part in (path.name, path.stem)} | {folder.name}
    try:
        found = _within(seconds, reader, folder)
        kind, what = _answered(reader, found, given, checksummed)
        if kind == "other":
            again = difference(_within(seconds, reader, folder), found)
            return ("not repeatable", again) if again else (kind, what)
    except PolarBearError as problem:
        return _refused(reader, problem, given, names)
    except TooLongError as problem:
        return "time", f"more than {seconds:g} s of processor time in {_place(problem)}"
    except MemoryError as problem:
        return "memory", f"MemoryError in {_place(problem)}"
    except Exception as problem:
        return type(problem).__name__, f"{_place(problem)}: {str(problem)[:300]}"
    return kind, what


def _within(seconds: float, reader: Reader, folder: Path) -> Answer:
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        return reader.read(folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answered(reader: Reader, found: Answer, given: Input, checksummed: bool) -> tuple[str, str]:
    flaw = reader.flaw(found)
    if flaw:
        return "not valid", flaw
    if given.allowed is not None:
        answers = [answer for answer in given.allowed if answer is not None]
        if not answers:
            return "read what must be refused", given.what
        wrong = [difference(found, answer) for answer in answers]
        return ("wrong answer", f"{given.what}: {wrong[0]}") if all(wrong) else ("equal", "")
    other = difference(found, given.whole)
    if other and checksummed:
        return "believed", other
    return ("other" if other else "equal"), ""


def _refused(reader: Reader, problem: PolarBearError, given: Input, names: set[str]) -> tuple[str, str]:
    text = str(problem)
    where = f"{type(problem).__name__} from {_place(problem)}"
    if isinstance(problem.__context__, MemoryError):
        return "memory", f"MemoryError behind {where}: {text[:200]}"
    if given.allowed is not None and None not in given.allowed:
        return "refused what is right", f"{given.what}: {where}: {text[:200]}"
    if not text.strip() or (reader.names_file and len(text) > 2000):
        return "message", f"{len(text)} characters, {where}: {text[:80]!r}"
    if reader.names_file and not any(name in text for name in names):
        return "message names no file", f"{where}: {text[:300]}"
    return "refused", ""


def _place(problem: BaseException) -> str:
    """Innermost line of ours; of other packages where there is none."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [f for f in frames if any(part in f.filename for part in ("polarbear", "/adapters/", "/integrations/"))]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).parent.name}/{Path(frame.filename).name}:{frame.lineno}"
