"""Damage to bytes, words of text and parts of JSON; where a JSON no longer parses, its bytes are damaged instead."""

from __future__ import annotations

import json
import random
import re
import struct
from typing import Any

NUMBERS = (
    *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "-1e308", "5e-324"),
    *("0", "-0", "-1", "0.5", "1", "2147483648", "9007199254740993", "9223372036854775808", "18446744073709551616"),
    *("1" + "0" * 400, "9" * 5000, "1_000", "0x10", "\uff11\uff12", "1,5", "1e5", "true", "null", "None", ""),
)
TEXTS = (
    *("", " ", "\x00", "a\x00b", "\ufeff", "\u202eabc", "\x1b[31mred", "[red]x[/]", "<script>alert(1)</script>"),
    *("../../etc/passwd", "/etc/passwd", "C:\\x", "//x", "a" * 300, "é" * 5000, "'", '"', "]]>", "&amp;", "\r", "\n"),
    *("nan", "NA", "1", "-1", "1e999", "true", "{}", "[]", "{x}", "%s%n", "\u0661", "\U0001f600", "name", "."),
)
# As they stand in a JSON file: what no encoder writes, too.
_RAW = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "9" * 5000, "1" + "0" * 400, "-0", "1E5", "01"),
    *('"\\ud800"', '"\\u0000"', '"\t"', "[" * 100_000, "[" * 5000 + "]" * 5000, '{"a":' * 3000 + "1" + "}" * 3000),
    *("", ",", "null", "true", '{"a":1,"a":2}', "'x'", "/*x*/1", "\ufeff1", "0x1", '"' + "x" * 100_000 + '"'),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, -0.5, 1e300, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64, 10**400, float("nan")),
    *(float("inf"), float("-inf"), [], {}, [[]], [None], [1, "a"], {"a": 1}, "\ud800", [float("nan")], [10**400]),
)


# --- bytes


def bytes_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Flip bits, cut, repeat, insert, or splice with another file."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        size = len(changed)
        at = rng.randrange(size + 1)
        kind = rng.randrange(9)
        if kind <= 1 and size:
            changed[at % size] ^= 1 << rng.randrange(8)
        elif kind == 2 and size:
            changed[at % size] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            del changed[at : at + rng.choice((1, 2, 8, 64, 512))]
        elif kind == 5:
            chunk = changed[at : at + rng.choice((1, 4, 32, 256))]
            changed[at:at] = chunk * rng.choice((1, 2, 16))
        elif kind == 6:
            changed[at:at] = rng.randbytes(rng.choice((1, 4, 16)))
        elif kind == 7:
            begin = rng.randrange(len(other) + 1)
            length = rng.choice((4, 32, 256, 4096))
            changed[at : at + rng.choice((0, length))] = other[begin : begin + length]
        elif size >= 8:
            number = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, rng.getrandbits(64)))
            width, letter = rng.choice(((4, "I"), (8, "Q")))
            packed = struct.pack(rng.choice("<>") + letter, number & (2 ** (8 * width) - 1))
            at = min(at, size - width)
            changed[at : at + width] = packed
    return bytes(changed)


# --- text

_WORDS = re.compile(rb"[^\s,;:\t\"{}\[\]=|]+")


def text_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Replace words and lines of a text by other and by extreme ones."""
    kind = rng.randrange(10)
    if kind <= 5:
        words = list(_WORDS.finditer(data))
        if not words:
            return _extreme(rng)
        for word in sorted(rng.sample(words, min(len(words), rng.choice((1, 1, 1, 2, 5)))), key=lambda m: -m.start()):
            data = data[: word.start()] + _extreme(rng) + data[word.end() :]
        return data
    lines = data.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    if kind == 6:
        lines[at:at] = [rng.choice(lines)] * rng.choice((1, 2, 50))
    elif kind == 7:
        del lines[at]
        rng.shuffle(lines) if rng.random() < 0.2 else None
    elif kind == 8:
        lines[at] = rng.choice(other.splitlines(keepends=True) or [b"\n"])
    else:
        mark = rng.choice(
            (b",", b"\t", b";", b" ", b'"', b"\r", b"\n", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf")
        )
        place = rng.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + mark * rng.choice((1, 1, 3, 1000)) + lines[at][place:]
    return b"".join(lines)


def _extreme(rng: random.Random) -> bytes:
    if rng.random() < 0.02:
        return b"\xed\xa0\x80"  # half of a surrogate pair
    return rng.choice(NUMBERS if rng.random() < 0.6 else TEXTS).encode()


# --- JSON


def json_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Replace, remove, rename, double, wrap or swap parts of a JSON document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_mutation(data, rng, other)
    raw: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        document = _change(document, rng, raw)
    try:
        text = json.dumps(document)
    except (ValueError, RecursionError):
        return bytes_mutation(data, rng, other)
    for placeholder, value in raw.items():
        text = text.replace(f'"{placeholder}"', value)
    return text.encode("utf-8", "surrogatepass")


def _change(document: Any, rng: random.Random, raw: dict[str, str]) -> Any:
    places: list[tuple[Any, Any]] = []
    stack = [document] if isinstance(document, dict | list) else []
    while stack:
        node = stack.pop()
        inside = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
        for key, value in inside:
            places.append((node, key))
            if isinstance(value, dict | list):
                stack.append(value)
    kind = rng.randrange(8)
    if not places or (kind == 0 and rng.random() < 0.1):
        return _value(rng, raw)
    parent, key = rng.choice(places)
    if kind <= 2:
        parent[key] = _value(rng, raw)
    elif kind == 3:
        del parent[key]
    elif kind == 4 and isinstance(parent, dict):
        parent[rng.choice(TEXTS)] = parent.pop(key)
    elif kind == 5:
        parent[key] = rng.choice(([parent[key]], {"a": parent[key]}, str(parent[key])))
    elif kind == 6:
        there, place = rng.choice(places)
        if place in there if isinstance(there, dict) else place < len(there):
            parent[key] = json.loads(json.dumps(there[place]))
    elif isinstance(parent, list):
        parent[key:key] = [parent[key]] * rng.choice((1, 3, 100))
    else:
        parent[key] = _value(rng, raw)
    return document


def _value(rng: random.Random, raw: dict[str, str]) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return json.loads(json.dumps(rng.choice(_VALUES)))
    if kind < 0.75:
        return rng.choice(TEXTS)
    placeholder = f"raw-{rng.getrandbits(60)}"
    raw[placeholder] = rng.choice(_RAW)
    return placeholder
