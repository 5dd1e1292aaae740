"""Parts of declared changes: the same content written in another way, and small things that must be refused."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from dataclasses import dataclass
from typing import Any

#: What is no time: not a number, not finite, negative, nothing.
NO_TIME = ("nan", "inf", "-inf", "-1", "-1e-300", "1e999", "x", "1:30")
#: What is no number at all.
NO_NUMBER = ("x", "1,5", "0x10", "--1", "1e", "[1]", "1 2")


def number(rng: random.Random, low: float = -10.0, high: float = 10.0) -> str:
    """A number between bounds, as people and programs write it."""
    value = rng.uniform(low, high)
    form = rng.choice(("{!r}", "{:.6f}", "{:.17g}", "{:.12e}", "{:+.9e}"))
    return form.format(value)


def rewritten(text: str, rng: random.Random) -> str:
    """The same finite number in other characters."""
    value = float(text)
    # Without a sign in front: +3 may be read as text that is no number, and 0003 as one.
    return rng.choice((text, repr(value), f"{value:.17e}", f"{value:.17E}"))


def reformatted_json(data: bytes, rng: random.Random) -> bytes:
    """The same document with its keys in another order and other blanks."""
    text = json.dumps(
        _shuffled(json.loads(data), rng),
        indent=rng.choice((None, 1, "\t")),
        ensure_ascii=rng.random() < 0.5,
        separators=rng.choice((None, (",", ":"), (" , ", " : "))),
    )
    return (rng.choice(("", " ", "\n")) + text + rng.choice(("", "\n", "\r\n\r\n"))).encode()


def _shuffled(node: Any, rng: random.Random) -> Any:
    if isinstance(node, dict):
        keys = list(node)
        rng.shuffle(keys)
        return {key: _shuffled(node[key], rng) for key in keys}
    return [_shuffled(item, rng) for item in node] if isinstance(node, list) else node


def other_line_ends(data: bytes) -> bytes:
    """The lines as Windows ends them."""
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def regzipped(data: bytes, rng: random.Random) -> bytes:
    """What is packed, packed again; possibly in two members, as ``cat a.gz b.gz`` makes it."""
    inside = gzip.decompress(data)
    at = rng.choice((0, rng.randrange(len(inside) + 1)))
    parts = [part for part in (inside[:at], inside[at:]) if part]
    return b"".join(gzip.compress(part, rng.randrange(1, 10), mtime=rng.randrange(2**31)) for part in parts)


def rezipped(data: bytes, rng: random.Random) -> bytes:
    """The same members in another order, packed in other ways, with entries for folders."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist() if not name.endswith("/")]
    rng.shuffle(members)
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for folder in sorted({name.rpartition("/")[0] for name, _ in members}) if rng.random() < 0.5 else ():
            if folder:
                archive.writestr(f"{folder}/", b"")
        for name, content in members:
            archive.writestr(name, content, rng.choice(methods))
        archive.comment = rng.choice((b"", b"made again"))
    return target.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip file."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def untarred(data: bytes) -> dict[str, bytes]:
    """The members of a compressed tar file."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isreg()}  # type: ignore[union-attr]


def tarred(members: dict[str, bytes], rng: random.Random) -> bytes:
    """A compressed tar file, in one of the formats that there are."""
    target = io.BytesIO()
    kind = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    names = list(members)
    rng.shuffle(names)
    with tarfile.open(fileobj=target, mode="w", format=kind) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(members[name]), rng.randrange(2**31)
            archive.addfile(member, io.BytesIO(members[name]))
    return gzip.compress(target.getvalue(), rng.randrange(1, 10), mtime=0)


@dataclass
class Sheet:
    """A text table: the names of its columns, and its cells as they are written."""

    columns: list[str]
    rows: list[list[str]]

    @classmethod
    def parse(cls, data: bytes, separator: str = ",") -> Sheet:
        """Read a table without quotes, as the seeds are."""
        lines = [line.split(separator) for line in data.decode().splitlines() if line]
        return cls(lines[0], lines[1:])

    def at(self, name: str) -> int:
        """Place of a column."""
        return self.columns.index(name)

    def cells(self, name: str) -> list[str]:
        """Cells of a column."""
        return [row[self.at(name)] for row in self.rows]

    def put(self, row: int, name: str, cell: str) -> None:
        """Replace a cell."""
        self.rows[row][self.at(name)] = cell

    def permuted(self, rng: random.Random) -> Sheet:
        """The same table with its columns in another order."""
        order = list(range(len(self.columns)))
        rng.shuffle(order)
        return Sheet([self.columns[k] for k in order], [[row[k] for k in order] for row in self.rows])

    def write(self, separator: str, rng: random.Random) -> bytes:
        """Text of the table, in any of the ways in which tables are written."""
        quote = rng.choice(("", "", '"'))
        ends = rng.choice(("\n", "\n", "\r\n"))
        lines = [separator.join(f"{quote}{cell}{quote}" for cell in row) + ends for row in [self.columns, *self.rows]]
        if rng.random() < 0.3:
            lines.insert(rng.randrange(1, len(lines) + 1), ends)
        text = "".join(lines)
        if rng.random() < 0.3:
            text = text.rstrip("\r\n")
        return rng.choice((b"", b"", b"\xef\xbb\xbf")) + text.encode()
