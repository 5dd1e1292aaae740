"""Regular files: nothing else is read or written.

Reading a pipe or a device may never end, and replacing a device by a file destroys it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from polarbear_plugins.errors import SourceError

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SHOWN = 40  # characters of a name in that of its unfinished file, which must not become too long


def check_regular(path: str | Path) -> None:
    """Refuse to read a pipe, a socket or a device; a missing file or a folder is left to whoever opens it.

    >>> check_regular("/dev/null")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: /dev/null is a device, not a file. Save what it gives to a file first, and \
give that file.
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    kind = _special(mode)
    if kind is not None:
        raise SourceError(
            f"{path} is {kind}, not a file. Save what it gives to a file first, and give that file."
            + (" That also holds for <(...) of a shell." if stat.S_ISFIFO(mode) else "")
        )


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading, which must not be a pipe, a socket or a device."""
    check_regular(path)
    return path.open("rb")


def open_regular_text(path: Path, *, newline: str | None = None) -> IO[str]:
    """:func:`open_regular` for text in UTF-8."""
    return io.TextIOWrapper(open_regular(path), encoding="utf-8", newline=newline)


def check_output(path: str | Path) -> Path:
    """Refuse what could not be written, before the work whose result it is to hold; returns the path.

    That is a file in a folder that does not exist or is not writable, and anything there that is not a regular file.
    A link to a regular file is one.
    """
    with naming_output(path):
        _try_to_write(_target(path))
    return Path(path)


def check_output_folder(path: str | Path) -> Path:
    """Refuse a folder that could not be made, or in which no file could be written; returns the path."""
    with naming_output(path):
        folder = _first_existing(Path(os.path.realpath(path)))
        if not folder.is_dir():
            raise SourceError(f"{path}: cannot be written, since {folder} is not a folder. Give another name.")
        _try_to_write(folder / "folder")
    return Path(path)


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write a file completely or not at all, and return its path; refuses what :func:`check_output` refuses.

    A link stays a link, to the new file; a file that is replaced keeps its permissions.
    """
    with naming_output(path):
        target = _target(path)
        file = _create_beside(target)
        unfinished = Path(file.name)
        try:
            with file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                unfinished.chmod(stat.S_IMODE(target.stat().st_mode))
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    return Path(path)


@contextlib.contextmanager
def naming_output(path: str | Path) -> Iterator[None]:
    """Turn an error in writing a file or folder into one that names it."""
    try:
        yield
    except OSError as problem:
        folder = Path(path).parent
        if isinstance(problem, FileNotFoundError) and not folder.is_dir():
            raise SourceError(f"{path}: cannot be written, since there is no folder {folder}. Make it first.") from None
        raise SourceError(f"{path}: cannot be written ({problem.strerror or problem}).") from None


def _target(path: str | Path) -> Path:
    """The file that a path leads to, behind links; it is a regular file, or there is none yet."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise SourceError(f"{path}: cannot be written, since it is a folder. Give the name of a file.")
    kind = _special(mode)
    if kind is not None:
        raise SourceError(f"{path}: cannot be written, since it is {kind}. Give the name of a file.")
    if not os.access(target, os.W_OK):
        raise SourceError(f"{path}: cannot be written, since the file is write-protected. Give another name.")
    return target


def _first_existing(path: Path) -> Path:
    """A path, or the nearest folder above it that exists."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _first_existing(path.parent)
    return path


def _special(mode: int) -> str | None:
    return next((kind for matches, kind in _KINDS if matches(mode)), None)


def _try_to_write(target: Path) -> None:
    with _create_beside(target) as file:
        pass
    Path(file.name).unlink()


def _create_beside(target: Path) -> IO[bytes]:
    """A new file in the folder of another, under a name that nothing there has."""
    while True:
        with contextlib.suppress(FileExistsError):
            return free_name(target, ".unfinished").open("xb")


def free_name(path: Path, ending: str) -> Path:
    """A path beside another, with its name and an ending, where there is nothing.

    >>> str(free_name(Path("nowhere/result.npz"), ".unfinished"))
    'nowhere/result.npz.unfinished'
    """
    start = path.name[:_SHOWN]
    names = (f"{start}{f'-{number}' if number > 1 else ''}{ending}" for number in itertools.count(1))
    return next(free for name in names if not os.path.lexists(free := path.with_name(name)))
