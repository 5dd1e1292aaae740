"""Places of logs: folders, zip files and tar files, read without unpacking to disk."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, TypeAlias, TypeVar

from polarbear_plugins.errors import SourceError, reason, short
from polarbear_plugins.files import check_growth, open_gzip
from polarbear_plugins.regular_files import open_regular

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot open members packed by LZMA either
    LZMAError = zlib.error  # type: ignore[misc,assignment]


_IN_MEMORY = 1 << 26  # bytes of a zip file in a zip file; larger ones are copied to the disk
_PIECE = 1 << 20

#: Opens a file of a place, by its name.
Opener: TypeAlias = Callable[[str], IO[bytes]]


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


def as_text(file: IO[bytes]) -> IO[str]:
    """Text of a file that was opened."""
    return io.TextIOWrapper(file, encoding="utf-8-sig")


class Placed(Protocol):
    """A file of a place."""

    @property
    def place(self) -> Place:
        """Where it is."""


AnyPlaced = TypeVar("AnyPlaced", bound=Placed)


def open_each(files: Iterable[AnyPlaced]) -> Iterator[tuple[AnyPlaced, Opener]]:
    """Files and what opens them; each place is opened once if its files follow each other."""
    with ExitStack() as stack:
        place: Place | None = None
        opener: Opener | None = None
        for file in files:
            if opener is None or file.place is not place:
                stack.close()
                place, opener = file.place, stack.enter_context(file.place.reading())
            yield file, opener


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
        return Path(os.path.realpath(self.path)).name or str(self.path)

    def identity(self, name: str) -> str:
        """Full path of a file."""
        return os.path.realpath(self.path / name)  # also of links that form a cycle

    @contextmanager
    def reading(self) -> Iterator[Opener]:
        """Context that opens files by their names."""
        yield self._open

    def _open(self, name: str) -> IO[bytes]:
        path = self.path / name
        # An index may name a pipe, a device or a folder.
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")
        return open_regular(path)


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
        return cls(path, _check_members(names, place.who, "zip"), inside)

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
        return "/".join(filter(None, (os.path.realpath(self.path), self.inside, name)))

    @contextmanager
    def reading(self) -> Iterator[Opener]:
        """Context that opens files by their names, while the zip file is open."""
        with ExitStack() as stack:
            with _zip_errors(self.who):
                archive = stack.enter_context(self._archive())
            yield lambda name: self._open(archive, name)

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with open_regular(self.path) as file, zipfile.ZipFile(file) as outer:
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

    def _open(self, archive: zipfile.ZipFile, name: str) -> IO[bytes]:
        with _zip_errors(self.who):
            member = archive.getinfo(name)
            # A member never unpacks to more than it declares.
            check_growth(member.compress_size, member.file_size, f"{self.who}/{name}")
            return _Member(archive.open(member), self.who)


@dataclass(frozen=True)
class TarFile:
    """A tar file, gzip-compressed or not.  Nothing is unpacked to disk, and links in it are not followed.

    A compressed tar file can only be read from its start, so its files are taken into memory in one pass.
    """

    path: Path
    names: Sequence[str] = field(repr=False)

    @classmethod
    def walk(cls, path: Path, wanted: Callable[[str], bool]) -> TarFile:
        """List the files in a tar file that are wanted; the others are never taken into memory."""
        with _members_of_tar(path) as (_, members):
            names = [name for name, _ in members if wanted(name)]
        return cls(path, _check_members(names, path.name, "tar"))

    @property
    def title(self) -> str:
        """Name of the file, without its endings."""
        return re.sub(r"(\.tar)?(\.gz)?(\.tgz)?$", "", self.path.name, flags=re.IGNORECASE)

    def identity(self, name: str) -> str:
        """Full path of the tar file, and the name of the file in it."""
        return f"{os.path.realpath(self.path)}/{name}"

    @contextmanager
    def reading(self) -> Iterator[Opener]:
        """Context that opens files by their names."""
        files: dict[str, bytes] = {}
        listed = set(self.names)
        with _members_of_tar(self.path) as (archive, members):
            for name, member in members:
                content = archive.extractfile(member) if name in listed else None
                if content is not None:
                    files[name] = content.read()
        yield lambda name: io.BytesIO(files[name])


def is_tar(path: Path) -> bool:
    """Whether a file is a tar file that can be read, by its name."""
    return path.name.lower().endswith((".tgz", ".tar.gz", ".tar"))


@contextmanager
def _members_of_tar(path: Path) -> Iterator[tuple[tarfile.TarFile, Iterator[tuple[str, tarfile.TarInfo]]]]:
    """A tar file and its files, by name and in their order; links, devices and folders are left out."""
    packed = not path.name.lower().endswith(".tar")
    with (
        _tar_errors(path),
        open_gzip(path) if packed else open_regular(path) as file,
        # As a stream: it is refused as soon as it grows more than data does.
        tarfile.open(fileobj=file, mode="r|") as archive,
    ):
        yield archive, ((member.name.removeprefix("./"), member) for member in archive if member.isreg())
        # tarfile takes a damaged header for the end.  Behind the real one there is nothing but zeros.
        while piece := archive.fileobj.read(_PIECE):
            if piece.strip(b"\0"):
                raise tarfile.ReadError("its end comes too early, so a file in it is damaged")


def _check_members(names: Sequence[str], who: str, kind: str) -> list[str]:
    """Files of an archive, each once, without those that macOS adds."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SourceError(f"{who} holds {short(name)} twice. Create the {kind} file again.")
        seen.add(name)
    kept = (name for name in names if not name.startswith("__MACOSX/"))
    return [name for name in kept if not PurePosixPath(name).name.startswith("._")]


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


@contextmanager
def _tar_errors(path: Path) -> Iterator[None]:
    """Turn the errors of damaged tar files into one that names the file."""
    try:
        yield
    except SourceError:
        raise
    # A damaged header fails in many ways, also with errors of Python itself.
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, ArithmeticError, LookupError) as problem:
        raise SourceError(f"{path.name} cannot be read as a tar file: {reason(problem)}") from None
    except MemoryError:
        raise SourceError(f"{path.name} cannot be read as a tar file: it asks for more memory than there is.") from None
