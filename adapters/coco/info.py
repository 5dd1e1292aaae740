"""The .info files of COCO, and of IOHprofiler before it wrote JSON, which describe the runs in the .dat files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath

from polarbear_plugins.errors import SourceError, short
from polarbear_plugins.trajectories.logs.groups import function_name

# The final target of COCO, above the optimum.
_PRECISION = 1e-8
_MAXIMIZED = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}
_SUITE_MAXIMIZES = {"pbo": True, "bbob": False}
# Written only by versions of COCO in which the value in the .info file is what it is in the rows.
_NEWER = frozenset({"suite", "coco_version", "logger", "data_format"})
_LONGEST_PATH = 1000
_RUN = re.compile(r"(\d{1,18})(?:\s*:\s*(\d{1,18})\s*\|\s*([^\s;]{1,40})(?:;\S*)?)?")


@dataclass(frozen=True, slots=True)
class Final:
    """Final value of a run as the .info file prints it, with few digits."""

    value: float
    half_unit: float

    @classmethod
    def parse(cls, text: str) -> Final | None:
        """Final value in a text; ``None`` if it is not finite.

        >>> Final.parse("-5.6e-009").half_unit
        5e-11
        """
        value = float(text)
        if not math.isfinite(value):
            return None
        # Zero has no rounding: any other number is printed with its exponent.
        exponent = Decimal(text).as_tuple().exponent
        return cls(value, 0.5 * 10.0 ** max(int(exponent), -400) if value else 0.0)

    def is_printed(self, value: float) -> bool:
        """Whether a value would be printed like this one."""
        return abs(value - self.value) <= self.half_unit * (1 + 1e-6)


@dataclass(frozen=True, slots=True)
class Run:
    """A run in an .info file: ``number`` counts from 1 in its .dat file.

    Without ``evaluations`` the run was begun, and the file does not say that it ended.
    """

    number: int
    instance: int
    evaluations: int | None
    final: Final | None


@dataclass(frozen=True, slots=True)
class Problem:
    """What an entry says about all of its runs.

    Attributes
    ----------
    algorithm
        Its name; empty if the file does not say.
    precision
        The final target, above the optimum; ``None`` for IOHprofiler, whose values are not relative to the optimum.
    shifted
        The file may print final values relative to the final target rather than to the optimum.
    maximize
        ``None`` if the file does not say.
    """

    suite: str
    function: int
    name: str
    dimension: int
    algorithm: str
    precision: float | None
    shifted: bool
    maximize: bool | None


@dataclass(frozen=True, slots=True)
class Entry:
    """The runs of one .dat file; ``path`` is relative to the folder of the .info file."""

    problem: Problem
    path: str
    runs: tuple[Run, ...]


def parse_info(text: str, who: str) -> list[Entry]:
    """Check the text of an .info file, and join what it says about the same .dat file in several places.

    Parameters
    ----------
    who
        Name of the file, for messages.
    """
    entries: dict[str, tuple[Problem, list[Run]]] = {}
    problem: Problem | None = None
    begun = 0  # line of a header that no data line followed yet
    for number, line in enumerate(text.splitlines(), start=1):
        here = f"{who}, line {number}"
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        if _is_header(line):
            _check_followed(begun, who)
            problem, begun = _parse_problem(dict(_attributes(line)), here), number
            continue
        if problem is None:
            raise SourceError(f"{here}: expected a line such as funcId = 1, DIM = 2, ..., got {short(line.strip())}.")
        begun = 0
        for path, instance, evaluations, final in _parse_data(line, here):
            other, runs = entries.setdefault(path, (problem, []))
            if other != problem:
                raise SourceError(f"{here}: {short(path)} belongs to another function, dimension or algorithm above.")
            if instance is not None:
                runs.append(Run(len(runs) + 1, instance, evaluations, final))
    _check_followed(begun, who)
    if not entries:
        raise SourceError(f"{who}: expected the description of runs, got nothing.")
    return [Entry(problem, path, tuple(runs)) for path, (problem, runs) in entries.items()]


def _check_followed(begun: int, who: str) -> None:
    if begun:
        raise SourceError(f"{who}, line {begun}: expected the name of a .dat file and its runs below. The file is cut.")


def _is_header(line: str) -> bool:
    """Whether a line describes a problem; a line about runs names a .dat file, and may begin with ``function = 1``."""
    return "=" in line and not any(part.strip().lower().endswith("dat") and "=" not in part for part in line.split(","))


def _attributes(line: str) -> Iterator[tuple[str, str]]:
    """The pairs of ``key = value, key = 'value'``; a value in quotes may hold commas and quotes."""
    start = 0
    while (equals := line.find("=", start)) >= 0:
        key = line[start:equals].strip(" \t,")
        rest = equals + 1
        while rest < len(line) and line[rest].isspace():
            rest += 1
        quote = line[rest : rest + 1]
        if quote and quote in "'\"":
            match = re.compile(rf"{quote}\s*(?=,|$)").search(line, rest + 1)
            end, start = (match.start(), match.end()) if match else (len(line), len(line))
            rest += 1
        else:
            comma = line.find(",", rest)
            end = start = comma if comma >= 0 else len(line)
        yield key, line[rest:end].strip()


def _parse_problem(given: dict[str, str], here: str) -> Problem:
    suite = given.get("suite", "")
    which = short(suite) if suite else "this"
    if "biobj" in suite or "indicator" in given:
        raise SourceError(
            f"{here}: {which} is bi-objective: its values are hypervolumes relative to reference sets, and are not "
            "read. Leave it out."
        )
    if "constrained" in suite:
        raise SourceError(
            f"{here}: {which} has constraints: its runs are counted in evaluations of two kinds, and are not read. "
            "Leave it out."
        )
    function, dimension = _whole(given, "funcId", here), _whole(given, "DIM", here, at_least=1)
    is_coco = "Precision" in given or "coco_version" in given
    precision = _number(given.get("Precision", str(_PRECISION)), here) if is_coco else None
    suite = suite or (("bbob-noisy" if function > 100 else "bbob") if is_coco else "unknown_suite")
    name = given.get("funcName", "") or function_name(suite, function)
    return Problem(
        suite=suite,
        function=function,
        name=name,
        dimension=dimension,
        algorithm=given.get("algId", "").strip(),
        precision=precision,
        shifted=is_coco and _NEWER.isdisjoint(given),
        maximize=None if is_coco else _maximize(given, suite, here),
    )


def _maximize(given: dict[str, str], suite: str, here: str) -> bool | None:
    text = next((value for key, value in given.items() if key.lower().startswith("maximi")), None)
    if text is None:
        return _SUITE_MAXIMIZES.get(suite.lower())
    if text.lower() not in _MAXIMIZED:
        raise SourceError(f"{here}: expected T or F as maximization, got {short(text)}.")
    return _MAXIMIZED[text.lower()]


def _whole(given: dict[str, str], key: str, here: str, at_least: int = 0) -> int:
    text = given.get(key, "")
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < at_least:
        raise SourceError(f"{here}: expected a whole number as {key}, got {short(text) if text else 'none'}.")
    return int(text)


def _number(text: str, here: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise SourceError(f"{here}: expected a number as Precision, got {short(text)}.")
    return number


def _parse_data(line: str, here: str) -> Iterator[tuple[str, int | None, int | None, Final | None]]:
    """The .dat file and the instance, evaluations and final value of each run; first the file alone."""
    path = None
    for part in map(str.strip, line.split(",")):
        if not part:
            continue
        if part.lower().endswith("dat"):
            path = _parse_path(part, here)
            yield path, None, None, None
            continue
        if path is None:
            raise SourceError(f"{here}: expected the name of a .dat file, got {short(part)}.")
        match = _RUN.fullmatch(part)
        try:
            final = Final.parse(match[3]) if match and match[3] else None
        except (ValueError, ArithmeticError):
            match = None
        if match is None:
            raise SourceError(f"{here}: expected a run as instance:evaluations|value, got {short(part)}.")
        yield path, int(match[1]), int(match[2]) if match[2] else None, final


def _parse_path(text: str, here: str) -> str:
    path = PurePosixPath(text.replace("\\", "/"))  # as Windows writes it
    is_name = len(text) <= _LONGEST_PATH and "\0" not in text
    if not is_name or path.is_absolute() or ":" in text or ".." in path.parts:
        raise SourceError(f"{here}: expected the path of a .dat file below the .info file, got {short(text)}.")
    return path.as_posix()
