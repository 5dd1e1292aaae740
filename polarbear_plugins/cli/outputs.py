"""Files that commands write and read: checked before any work, and results saved elsewhere if they must be."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from polarbear_plugins.errors import InvalidInputError, PolarBearError, SourceError
from polarbear_plugins.extras import require
from polarbear_plugins.regular_files import check_output, check_output_folder, check_regular

_DECLARED = "polarbear.files"  # in the context of the command
_COMPANIONS = ("-wal", "-shm", "-journal")  # that SQLite keeps beside a journal


@dataclass(frozen=True, slots=True)
class Declared:
    """A file or folder that an option or argument names."""

    who: str
    path: Path
    written: bool
    is_journal: bool = False


def declared_files(ctx: click.Context) -> list[Declared]:
    """Files that the options and arguments of a command have named so far."""
    found: list[Declared] = ctx.meta.setdefault(_DECLARED, [])
    return found


class OutputFile(click.Path):
    """A file to write, refused before any work if it could not be written."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(path_type=Path)
        self.name = type(self).name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Path of the output."""
        text, who = os.fspath(value), _name_of(param)
        path = Path(text)
        if ctx is None or ctx.resilient_parsing:
            return path
        if not text:
            raise InvalidInputError(f"{who}: expected the name of a {self.name}, got none.")
        if text == "-" or _is_standard_stream(path):
            raise InvalidInputError(
                f"{who} {text}: standard output is for what the command prints. Give the name of a {self.name}; "
                "--json prints JSON to standard output."
            )
        self.check(path, text, who)
        self.declare(path, who, ctx)
        return path

    def check(self, path: Path, text: str, who: str) -> None:
        """Refuse what could not be written."""
        if text.endswith(os.sep):
            raise InvalidInputError(f"{who} {text}: expected the name of a file, got that of a folder.")
        check_output(path)

    def declare(self, path: Path, who: str, ctx: click.Context) -> None:
        """Refuse what the command writes or reads otherwise."""
        _declare(Declared(who, path, written=True), ctx)


class JournalFile(OutputFile):
    """The journal of a race, new or to be continued."""

    def check(self, path: Path, text: str, who: str) -> None:
        """Also check the files that SQLite keeps beside it."""
        super().check(path, text, who)
        for ending in _COMPANIONS:
            check_output(path.with_name(f"{path.name}{ending}"))

    def declare(self, path: Path, who: str, ctx: click.Context) -> None:
        """Also refuse the names of the files that SQLite keeps beside it."""
        _declare(Declared(who, path, written=True, is_journal=True), ctx)
        for ending in _COMPANIONS:
            _declare(Declared(f"{who} ({ending})", path.with_name(f"{path.name}{ending}"), written=True), ctx)


class FigureFile(OutputFile):
    """A file for a figure, in a format that its name ends in."""

    def check(self, path: Path, text: str, who: str) -> None:
        """Also refuse a figure that could not be drawn."""
        super().check(path, text, who)
        figure = require("matplotlib.figure", extra="plots", who=who).Figure()
        if path.suffix.removeprefix(".").lower() not in figure.canvas.get_supported_filetypes():
            raise InvalidInputError(f"{who} {path}: expected a file that ends in .png, .pdf or .svg.")


class FigureFolder(OutputFile):
    """A folder for figures."""

    name = "directory"

    def check(self, path: Path, text: str, who: str) -> None:  # noqa: ARG002 - a slash at the end is fine
        """Refuse a folder that could not be written, and figures that could not be drawn."""
        check_output_folder(path)
        require("matplotlib.figure", extra="plots", who=who)


class NewFolder(OutputFile):
    """A folder to make."""

    name = "directory"

    def check(self, path: Path, text: str, who: str) -> None:  # noqa: ARG002 - a slash at the end is fine
        """Refuse a folder that could not be made, or that holds something."""
        check_output_folder(path)
        if path.exists() and any(path.iterdir()):
            raise InvalidInputError(f"{who} {path}: it is not an empty folder. Give the name of a new one.")


class FileOrFolder(OutputFile):
    """A file or a folder, which the command checks when it knows which of the two."""

    name = "path"

    def check(self, path: Path, text: str, who: str) -> None:
        """Leave it to the command."""


class InputPath(click.Path):
    """A file or folder to read, which must not be a pipe or a device."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Path of the input."""
        path = Path(os.fspath(value))
        if ctx is None or ctx.resilient_parsing:
            return path
        if not os.fspath(value):
            raise InvalidInputError(f"{_name_of(param)}: expected the name of a file or folder, got none.")
        check_regular(path)
        _declare(Declared(_name_of(param), path, written=False), ctx)
        return path


class Source(click.types.StringParamType):
    """Whatever an adapter reads; if it is a file, then one that the command does not write."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The source as it was given."""
        text = str(value)
        if text and ctx is not None and not ctx.resilient_parsing:
            check_regular(text)
            _declare(Declared(_name_of(param), Path(text), written=False), ctx)
        return text


class Saving:
    """Saves what a command has found; it goes on if that fails, and ends with the error after the result is shown.

    What cannot be saved where it was to be is saved in the current folder or in that for temporary files, under a name
    that nothing there has.
    """

    def __init__(self) -> None:
        self.saved: list[Path] = []
        self._problems: list[str] = []

    def save(self, path: Path | None, write: Callable[[Path], object]) -> None:
        """Save what ``write`` writes to a path; nothing if there is none."""
        if path is None:
            return
        try:
            self._write(path, write)
        except SourceError as problem:
            elsewhere = self._save_elsewhere(path, write)
            instead = "No other place was found." if elsewhere is None else f"It was saved as {elsewhere} instead."
            self._problems.append(f"{problem} {instead}")
        except PolarBearError as problem:
            self._problems.append(str(problem))

    def _write(self, path: Path, write: Callable[[Path], object]) -> None:
        written = write(path)
        self.saved += written if isinstance(written, list) else [path]

    def _save_elsewhere(self, path: Path, write: Callable[[Path], object]) -> Path | None:
        with contextlib.suppress(PolarBearError, OSError):
            here = _free(Path.cwd() / path.name)
            self._write(here, write)
            return here
        folder = None
        with contextlib.suppress(PolarBearError, OSError):
            folder = Path(tempfile.mkdtemp(prefix="polarbear-"))  # others may write to the folder in which it is
            self._write(folder / path.name, write)
            return folder / path.name
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return None

    def __enter__(self) -> Saving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._problems:
            return
        if kind is None:
            raise SourceError(" ".join(self._problems))
        click.echo(f"Note: {' '.join(self._problems)}", err=True)


def _free(path: Path) -> Path:
    """A path, or one with a number in its name if there is something already."""
    names = itertools.chain([path.name], (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2)))
    return next(free for name in names if not os.path.lexists(free := path.with_name(name)))


def _name_of(param: click.Parameter | None) -> str:
    """How the user calls an option or argument."""
    if param is None:
        return "output"
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name


def _declare(new: Declared, ctx: click.Context) -> None:
    """Note a file that the command writes or reads; refuse one that it would write and use otherwise, too."""
    files = declared_files(ctx)
    for other in files:
        if other.who != new.who and (other.written or new.written) and _is_same(other.path, new.path):
            one, same = (new, other) if new.written else (other, new)
            raise InvalidInputError(f"{one.who} {one.path}: it is also {same.who}. Give another name.")
    files.append(new)


def _is_same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return one.samefile(other)  # also by different links
    return os.path.realpath(one) == os.path.realpath(other)


def _is_standard_stream(path: Path) -> bool:
    """Whether a path leads to the file that standard output or standard error go to."""
    for number in (1, 2):
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(number)
            if not stat.S_ISDIR(found.st_mode) and os.path.samestat(found, path.stat()):
                return True
    return False
