"""What a reader is, what it answers, and what a change to its files declares."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Files: TypeAlias = dict[str, bytes]
#: What was read, in parts that can be compared one by one: a run, a score, a parameter.
Answer: TypeAlias = dict[tuple[Any, ...], Any]
#: Takes the bytes of a file, a generator and the bytes of another file of its kind; gives the bytes of a damaged one.
Mutation: TypeAlias = Callable[[bytes, random.Random, bytes], bytes]


@dataclass(frozen=True)
class Declared:
    """Files that were changed on purpose, and what must come of it.

    Attributes
    ----------
    allowed
        The answers that are right; ``None`` among them is a refusal.
    what
        The change in words, for findings.
    """

    files: Files
    allowed: tuple[Answer | None, ...]
    what: str


#: Takes the files of a seed, its answer and a generator; ``None`` where the change does not apply to these files.
Change: TypeAlias = Callable[[Files, Answer, random.Random], Declared | None]


@dataclass(frozen=True)
class Reader:
    """One kind of input.

    Attributes
    ----------
    make
        Writes the seeds: a folder for each below the folder it gets.
    read
        Reads an input, a folder.
    needs
        Packages without which it is skipped.
    mutations
        How files are damaged whose structure only their library knows, by how their names end.
    changes
        Changes that declare their effect.
    flaw
        What is wrong with an answer, whatever the input was; empty if nothing is.
    names_file
        Whether an error must name a file; options have none.
    slow
        It is run for a time rather than for a number of inputs.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], Answer]
    needs: tuple[str, ...] = ()
    mutations: Mapping[str, Mutation] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    flaw: Callable[[Answer], str] = lambda _: ""
    names_file: bool = True
    slow: bool = False

    @property
    def missing(self) -> list[str]:
        """Packages that are not there."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def difference(found: Answer, expected: Answer) -> str:
    """The first part in which two answers differ, in words; empty if they are equal."""
    for key in [*expected, *(key for key in found if key not in expected)]:
        # By their text: nan equals itself, and 1 differs from 1.0.
        one, other = repr(expected.get(key, "nothing")), repr(found.get(key, "nothing"))
        if one != other:
            return f"{key!r}: expected {one[:300]}, got {other[:300]}"
    return ""
