"""The mutants of a room: small changes of its source, and the lists of them that tools/mutation.py writes and reads."""

from __future__ import annotations

import difflib
import functools
import importlib
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MUTATORS = "mutmut.mutation.mutators"
OWN_SWAPS = [("any", "all"), ("min", "max"), ("argmin", "argmax"), ("minimum", "maximum"), ("nanmin", "nanmax")]


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, the lines of the statement around it, and the whole text with it."""

    path: str
    line: int
    statement: range
    original: str
    changed: str

    @property
    def diff(self) -> tuple[str, ...]:
        """The lines that differ, as ``- before`` and ``+ after``, without their indentation."""
        lines = list(difflib.unified_diff(self.original.splitlines(), self.changed.splitlines(), n=0))[2:]
        return tuple(f"{line[0]} {line[1:].strip()}" for line in lines if line[0] in "-+")


def mutants_of(path: str, root: Path) -> list[Any]:
    """Every change of one file, as functions that make the mutant: to make them all would take minutes."""
    cst, metadata, mutators = (importlib.import_module(name) for name in ("libcst", "libcst.metadata", MUTATORS))
    text = (root / path).read_text()
    wrapper = metadata.MetadataWrapper(cst.parse_module(text))
    positions = wrapper.resolve(metadata.PositionProvider)
    swaps = {a: b for pair in OWN_SWAPS for a, b in (pair, pair[::-1])}
    skipped = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)
    found: list[Any] = []

    def changes(node: Any) -> Iterator[Any]:
        for kind, operator in mutators.mutation_operators:
            if isinstance(node, kind):
                yield from operator(node)
        if isinstance(node, cst.Name) and node.value in swaps:
            yield node.with_changes(value=swaps[node.value])
        if isinstance(node, cst.Attribute) and node.attr.value == "T":  # a transposed array
            yield node.value

    def visit(node: Any, statement: Any) -> None:
        if isinstance(node, skipped):
            return
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ("len", "isinstance"):
            return
        if isinstance(node, cst.Assign) and node.targets[0].target.deep_equals(cst.Name("__all__")):
            return
        if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            statement = node
        found.extend(functools.partial(make, node, changed, statement) for changed in changes(node))
        for child in node.children:
            visit(child, statement)

    def make(node: Any, changed: Any, statement: Any) -> Mutant | None:
        # Of a compound statement, say a loop or a function, only the head.
        end = positions[statement.body].start.line if hasattr(statement, "body") else positions[statement].end.line
        code = wrapper.module.deep_replace(node, changed).code
        try:
            compile(code, path, "exec")
        except SyntaxError:
            return None
        if code == text:
            return None
        first = positions[statement].start.line
        line = positions[node].start.line if node in positions else first
        return Mutant(path, line, range(first, end + 1), text, code)

    visit(wrapper.module, None)
    return found


def listed(file: Path) -> set[tuple[str, tuple[str, ...]]]:
    """The mutants in a Markdown file: a heading with the path of the source, and a block of ``diff`` for each."""
    found, path = set(), ""
    text = file.read_text() if file.is_file() else ""
    pattern = re.compile(r"^#+ ([\w./]+\.py)$|^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for heading, block in pattern.findall(text):
        path = heading or path
        if block:
            found.add((path, tuple(f"{line[0]} {line[1:].strip()}" for line in block.splitlines())))
    return found


def as_markdown(mutants: Iterable[Mutant]) -> str:
    """The text that `listed` reads."""
    return "\n".join(
        f"## {mutant.path}\n\nLine {mutant.line}.\n\n```diff\n{chr(10).join(mutant.diff)}\n```\n" for mutant in mutants
    )


def draw(source: Path, root: Path, sample: int, seed: int, only: set[tuple[str, tuple[str, ...]]]) -> list[Mutant]:
    """A random sample of a room's mutants in random order; all if ``sample`` is 0, or just those in ``only``."""
    files = sorted(path.relative_to(root).as_posix() for path in (root / source).rglob("*.py"))
    files = [path for path in files if not only or path in {path for path, _ in only}]
    makers = [maker for path in files for maker in mutants_of(path, root)]
    print(f"{len(makers):,} mutants in {len(files)} files of {source}", flush=True)
    random.Random(seed).shuffle(makers)  # noqa: S311
    drawn: dict[tuple[str, tuple[str, ...]], Mutant] = {}
    for maker in makers:
        mutant = maker()
        if mutant is not None and (not only or (mutant.path, mutant.diff) in only):
            drawn.setdefault((mutant.path, mutant.diff), mutant)
        if len(drawn) == (len(only) or sample):
            break
    return list(drawn.values())
