"""Damage inside of archives, arrays and databases, which stay such; where they are none any more, to their bytes."""

from __future__ import annotations

import gzip
import io
import random
import re
import sqlite3
import stat
import struct
import tarfile
import zipfile
import zlib

from fuzzing.damage import TEXTS, bytes_mutation, json_mutation, text_mutation
from fuzzing.kinds import Mutation

# --- archives


def gzip_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage what is packed, or pack far too much."""
    try:
        inside, beside = gzip.decompress(data), gzip.decompress(other)
    except (OSError, EOFError, zlib.error):
        return bytes_mutation(data, rng, other)
    if rng.random() < 0.005:
        return gzip.compress(inside + b"0" * 50_000_000, 6, mtime=0)
    return gzip.compress(text_mutation(inside, rng, beside), 1, mtime=0)


def zip_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage members of a zip file: their content, names, attributes, flags and sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
        return bytes_mutation(data, rng, other)
    at = rng.randrange(len(members)) if members else 0
    kind = rng.randrange(12)
    symlink = method = None
    if members:
        name, content = members[at]
        if kind <= 5:
            members[at] = name, mutation_of(name)(content, rng, content)
        elif kind == 6:
            odd = ("../" + name, "/" + name, "C:\\" + name, name.upper(), name + "/", "\x1b[31m" + name, "a" * 5000)
            members[at] = rng.choice(odd), content
        elif kind == 7:
            members.insert(at, (name, content))
        elif kind == 8:
            del members[at]
        elif kind == 9:
            symlink, members[at] = at, (name, b"/etc/passwd")
        elif kind == 10:
            members[at] = name, b"0" * 20_000_000 if rng.random() < 0.02 else data  # a bomb, or itself
        else:
            method = rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED))
    made = _zipped(members, symlink, method or zipfile.ZIP_DEFLATED)
    if rng.random() < 0.1:  # a flag or a size in one of the directories
        for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            start = made.find(signature)
            if start >= 0 and rng.random() < 0.7:
                place = start + offset + rng.choice((0, 2, 12, 14, 16, 18, 20))
                made = made[:place] + rng.choice((b"\x01", b"\xff", b"\x09")) + made[place + 1 :]
    return made


def _zipped(members: list[tuple[str, bytes]], symlink: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for place, (name, content) in enumerate(members):
            info = zipfile.ZipInfo("x")
            info.filename = name  # as it is: the constructor cuts at a NUL
            info.compress_type = method
            if place == symlink:
                info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            if archive.NameToInfo.get(name):
                archive.NameToInfo.pop(name)  # else zipfile warns of the double name that is wanted
            archive.writestr(info, content)
    return target.getvalue()


def tar_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage members of a compressed tar file: their content, names, types and headers."""
    try:
        inside = bytearray(gzip.decompress(data))
        with tarfile.open(fileobj=io.BytesIO(inside)) as archive:
            members = [(member, archive.extractfile(member).read()) for member in archive if member.isreg()]  # type: ignore[union-attr]
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError):
        return bytes_mutation(data, rng, other)
    kind = rng.randrange(8)
    if not members or kind == 0:  # a byte of a header, mostly
        place = rng.choice(members)[0].offset + rng.randrange(512) if members else 0
        if place < len(inside):
            inside[place] = rng.randrange(256)
        return gzip.compress(bytes(inside), 1, mtime=0)
    at = rng.randrange(len(members))
    member, content = members[at]
    if kind <= 3:
        content = mutation_of(member.name)(content, rng, content)
    elif kind == 4:
        member.name = rng.choice(("../" + member.name, "/etc/" + member.name, "\x1b[31m", "a" * 5000, "", "x/../y"))
    elif kind == 5:
        member.type, member.linkname = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)), "/etc/passwd"
        content = b""
    elif kind == 6:
        members.insert(at, (member, content))
    elif rng.random() < 0.02:
        content = b"0" * 50_000_000
    member.size = len(content)
    members[at] = member, content
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for each, packed in members:
            each.size = len(packed)
            archive.addfile(each, io.BytesIO(packed))
    return gzip.compress(target.getvalue(), 1, mtime=0)


def npy_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage an array: its header, its numbers, or the JSON text that it is."""
    start = data.find(b"}")
    if not data.startswith(b"\x93NUMPY\x01") or start < 0:
        return bytes_mutation(data, rng, other)
    length = struct.unpack("<H", data[8:10])[0]
    header, content = data[10 : 10 + length].rstrip(), data[10 + length :]
    kind = rng.random()
    if b"<U" in header and kind < 0.7:
        try:
            text = json_mutation(content.decode("utf-32-le").encode(), rng, b"").decode("utf-8", "replace")
        except UnicodeDecodeError:
            return bytes_mutation(data, rng, other)
        content = text.encode("utf-32-le")
        header = re.sub(rb"<U\d+", b"<U%d" % len(text), header)
    elif kind < 0.85 and content:
        width = 8 if len(content) >= 8 else 1
        number = rng.choice((float("nan"), float("inf"), -float("inf"), 1e308, -1.0, 0.0, 5e-324))
        at = rng.randrange(len(content) // width) * width
        content = content[:at] + struct.pack("<d", number)[:width] + content[at + width :]
    else:
        new = rng.choice(
            (b"(1000000000000,)", b"(500000000,)", b"(-1,)", b"()", b"(0,)", b"(2, 3)", b"x", b"(10,)*9**9")
        )
        types = (
            b"'|O'",
            b"'<U500000000'",
            b"'<f4'",
            b"'<i8'",
            b"'<c16'",
            b"'|S8'",
            b"'<M8[s]'",
            b"[('a', '<f8')]",
            b"'|b1'",
        )
        if rng.random() < 0.5:
            header = re.sub(rb"'shape': \([^)]*\)", lambda _: b"'shape': " + new, header)
        else:
            header = re.sub(rb"'descr': '[^']*'", lambda _: b"'descr': " + rng.choice(types), header)
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return data[:8] + struct.pack("<H", len(header)) + header + content


# --- databases

_HOSTILE_VIEW = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT {columns} FROM more"


def sqlite_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage cells, rows and tables of an SQLite file that stays one."""
    if data[:6] != b"SQLite" or len(data) < 100:
        return bytes_mutation(data, rng, other)
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data[:18] + b"\x01\x01" + data[20:])  # no WAL in memory
        for _ in range(rng.choice((1, 1, 2))):
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            _change_table(connection, rng.choice(tables), rng)
        connection.commit()
        return connection.serialize()
    except (sqlite3.Error, IndexError, UnicodeError, OverflowError):
        return bytes_mutation(data, rng, other)
    finally:
        connection.close()


def _change_table(connection: sqlite3.Connection, table: str, rng: random.Random) -> None:
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    column = rng.choice(columns)
    kind = rng.randrange(12)
    if kind == 0:
        connection.execute(f'DELETE FROM "{table}" WHERE rowid % 3 = ?', (rng.randrange(3),))  # noqa: S608
    elif kind == 1:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x{rng.randrange(9)}"')
    elif kind == 2:
        which = rng.choice(("DROP TABLE", "VIEW", "TRIGGER"))
        if which == "DROP TABLE":
            connection.execute(f'DROP TABLE "{table}"')
        elif which == "VIEW":
            names = ", ".join(f'n AS "{name}"' for name in columns)
            connection.execute(f'DROP TABLE "{table}"')
            connection.execute(f'CREATE VIEW "{table}" AS {_HOSTILE_VIEW.format(columns=names)}')
        else:
            connection.execute(f'CREATE TRIGGER t AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END')  # noqa: S608
    elif kind == 3:
        names = ", ".join(f'"{name}"' for name in columns if name != columns[0])
        connection.execute(
            f'INSERT INTO "{table}" ("{columns[0]}", {names}) SELECT abs(random()), {names} FROM "{table}"'  # noqa: S608
        )
    else:
        [(count,)] = connection.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608
        [(rowid, cell)] = connection.execute(
            f'SELECT rowid, "{column}" FROM "{table}" LIMIT 1 OFFSET ?',  # noqa: S608
            (rng.randrange(max(count, 1)),),
        ).fetchmany(1) or [(0, 0)]
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (_cell(cell, rng), rowid))  # noqa: S608


def _cell(cell: object, rng: random.Random) -> object:
    if isinstance(cell, str) and rng.random() < 0.8:
        mutate = json_mutation if cell[:1] in ("{", "[", '"') else text_mutation
        return mutate(cell.encode(), rng, b"").decode("utf-8", "replace")
    if isinstance(cell, bytes) and rng.random() < 0.8:
        if rng.random() < 0.5 and len(cell) >= 8:
            at = rng.randrange(len(cell) // 8) * 8
            number = rng.choice((float("nan"), float("inf"), -float("inf"), 1e308, -1.0, 0.0, 5e-324))
            return cell[:at] + struct.pack("<d", number) + cell[at + 8 :]
        return bytes_mutation(cell, rng, b"")
    extremes = (
        0,
        -1,
        1,
        2**31,
        2**53,
        2**63 - 1,
        -(2**63),
        0.5,
        1e308,
        float("inf"),
        -float("inf"),
        None,
        b"\xff",
        "x",
    )
    return rng.choice((*extremes, *TEXTS[:20]))


# --- which for what

_STRUCTURED: dict[str, Mutation] = {
    ".json": json_mutation,
    ".csv": text_mutation,
    ".tsv": text_mutation,
    ".dat": text_mutation,
    ".tdat": text_mutation,
    ".info": text_mutation,
    ".log": text_mutation,
    ".txt": text_mutation,
    ".gz": gzip_mutation,
    ".tgz": tar_mutation,
    ".zip": zip_mutation,
    ".npz": zip_mutation,
    ".npy": npy_mutation,
    ".db": sqlite_mutation,
}
#: How often the bytes are damaged instead, of files whose structure a damaged byte mostly destroys.
_BYTES = {".gz": 0.3, ".tgz": 0.3, ".zip": 0.3, ".npz": 0.3, ".db": 0.4}


def mutation_of(name: str) -> Mutation:
    """Find how to damage a file, by how its name ends; others are only bytes."""
    suffix = "." + name.rpartition(".")[2]
    structured = _STRUCTURED.get(suffix, bytes_mutation)

    def mutate(data: bytes, rng: random.Random, other: bytes) -> bytes:
        chosen = bytes_mutation if rng.random() < _BYTES.get(suffix, 0.15) else structured
        return chosen(data, rng, other)

    return mutate
