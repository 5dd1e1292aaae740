"""Places of IOHprofiler data: folders and zip files, read without unpacking."""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, TypeAlias

from polarbear_plugins.errors import SourceError, reason, short
from polarbear_plugins.files import check_growth

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot open members packed by LZMA either
    LZMAError = zlib.error  # type: ignore[misc,assignment]


_IN_MEMORY = 1 << 26  # bytes of a zip file in a zip file; larger ones are copied to the disk

#: Opens a file of a place, by its name, as text.
Opener: TypeAlias = Callable[[str], IO[str]]


class Place(Protocol):
    """A folder or archive with files; their names have forward slashes."""

    @property
    def title(self) -> str:
        """Name, for messages and for the folder that holds everything."""

    @property
    def names(self) -> Sequence[str]:
        """All files."""

    def identity(self, name: str) -> str:
        """Identity of a file: different for different files, in whatever place."""

    def reading(self) -> AbstractContextManager[Opener]:
        """Context that opens files by their names."""


def is_index(name: str) -> bool:
    """Whether a file describes runs."""
    return re.fullmatch(r"IOHprofiler_.*\.json", PurePosixPath(name).name, re.IGNORECASE) is not None


def is_rows(name: str) -> bool:
    """Whether a file holds the rows of runs."""
    return re.fullmatch(r"IOHprofiler_.*\.dat", PurePosixPath(name).name, re.IGNORECASE) is not None


def is_old_index(name: str) -> bool:
    """Whether a file describes runs in the format before JSON, which is also that of COCO."""
    return name.lower().endswith(".info")


@dataclass(frozen=True)
class Folder:
    """A folder, or some files in it."""

    path: Path
    names: Sequence[str] = field(repr=False)

    @classmethod
    def walk(cls, path: Path) -> Folder:
        """Find all files in a folder and in the folders in it."""
        names = []
        for folder, _, files in os.walk(path):  # does not follow links, which may form cycles
            found = (Path(folder) / name for name in files if not name.startswith("._"))
            # Reading a pipe would block, and a device has no end.
            names += [file.relative_to(path).as_posix() for file in found if file.is_file()]
        return cls(path, names)

    @property
    def title(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name or str(self.path)

    def identity(self, name: str) -> str:
        """Full path of a file."""
        return str((self.path / name).resolve())

    @contextmanager
    def reading(self) -> Iterator[Opener]:
        """Context that opens files by their names."""
        yield lambda name: (self.path / name).open(encoding="utf-8-sig")


@dataclass(frozen=True)
class ZipFile:
    """A zip file, or one in it.  Nothing is unpacked by the names in it, so they are harmless.

    Parameters
    ----------
    inside
        Name of the zip file in it that is meant; empty for itself.
    """

    path: Path
    names: Sequence[str] = field(repr=False)
    inside: str = ""

    @classmethod
    def walk(cls, path: Path, inside: str = "") -> ZipFile:
        """List all files in a zip file, or in one in it."""
        place = cls(path, (), inside)
        with _zip_errors(place.who), place._archive() as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]  # the others are folders
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise SourceError(f"{place.who} holds {short(name)} twice. Create the zip file again.")
            seen.add(name)
        kept = (name for name in names if not name.startswith("__MACOSX/"))
        return cls(path, [name for name in kept if not PurePosixPath(name).name.startswith("._")], inside)

    @property
    def packed(self) -> list[str]:
        """The zip files in it."""
        return [name for name in self.names if name.lower().endswith(".zip")]

    @property
    def who(self) -> str:
        """Name of the file, for messages."""
        return f"{self.path.name}/{self.inside}" if self.inside else self.path.name

    @property
    def title(self) -> str:
        """Name of the file, without its ending."""
        return f"{self.path.stem}/{PurePosixPath(self.inside).with_suffix('')}" if self.inside else self.path.stem

    def identity(self, name: str) -> str:
        """Full path of the zip file, and the name of the file in it."""
        return "/".join(filter(None, (str(self.path.resolve()), self.inside, name)))

    @contextmanager
    def reading(self) -> Iterator[Opener]:
        """Context that opens files by their names, while the zip file is open."""
        with ExitStack() as stack:
            with _zip_errors(self.who):
                archive = stack.enter_context(self._archive())
            yield lambda name: self._open(archive, name)

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with zipfile.ZipFile(self.path) as outer:
            if not self.inside:
                yield outer
                return
            member = outer.getinfo(self.inside)
            check_growth(member.compress_size, member.file_size, self.who)
            # A packed file cannot be read from its end, where a zip file lists what it holds.
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
                with outer.open(member) as packed:
                    shutil.copyfileobj(packed, copy)
                with zipfile.ZipFile(copy) as inner:
                    yield inner

    def _open(self, archive: zipfile.ZipFile, name: str) -> IO[str]:
        with _zip_errors(self.who):
            member = archive.getinfo(name)
            # A member never unpacks to more than it declares.
            check_growth(member.compress_size, member.file_size, f"{self.who}/{name}")
            return io.TextIOWrapper(_Member(archive.open(member), self.who), encoding="utf-8-sig")


class _Member(io.BufferedReader):
    """A member of a zip file, with errors that name the file."""

    def __init__(self, member: IO[bytes], who: str) -> None:
        super().__init__(member, 1 << 16)  # type: ignore[arg-type]
        self._who = who

    def read1(self, size: int = -1, /) -> bytes:
        with _zip_errors(self._who):
            return super().read1(size)

    def read(self, size: int | None = -1, /) -> bytes:
        with _zip_errors(self._who):
            return super().read(size)


@contextmanager
def _zip_errors(who: str) -> Iterator[None]:
    """Turn the errors of damaged zip files into one that names the file."""
    try:
        yield
    # RuntimeError: it is encrypted.  NotImplementedError: it is packed by an unknown method.  MemoryError: LZMA would
    # take as much as a damaged member asks for.
    except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError, UnicodeError) as problem:
        raise SourceError(f"{who} cannot be read as a zip file: {reason(problem)}") from None
    except MemoryError:
        raise SourceError(f"{who} cannot be read as a zip file: it asks for more memory than there is.") from None
