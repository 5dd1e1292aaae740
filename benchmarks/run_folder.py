"""Run every script of a folder and print one table.

    python benchmarks/speed                            # also: evidence, endurance
    python benchmarks/speed --quick                    # small sizes: does every script work?
    python benchmarks/speed --only rankings inference

What the scripts print goes to standard error while they run; the table alone goes to standard output.  A script that
needs a package or data that are missing is skipped, with the reason.  The exit code is 1 if a script failed.  Ctrl-C
ends the script under way and prints the table so far.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import FIGURES_FILE, SKIPPED

PATIENCE = 10.0  # seconds that a script has to end after ctrl-C
#: Packages of the extras, and a module that only Unix has.  Any other that is missing is a mistake in a script.
OPTIONAL = {
    *("distributed", "ioh", "matplotlib", "modcma", "nutpie", "onnx", "onnxruntime", "optuna", "psycopg", "pymc"),
    *("resource", "sklearn"),
}
HEADINGS = ("script", "figure", "compared with", "value", "better", "seconds", "outcome")


@dataclass
class Outcome:
    """What became of a script."""

    script: str
    word: str
    seconds: float
    reason: str = ""
    figures: list[dict[str, Any]] = field(default_factory=list)

    def rows(self) -> list[tuple[str, ...]]:
        """Rows of the table, one for each figure."""
        end = f"{self.word}: {self.reason}" if self.reason else self.word
        first = (f"{self.seconds:.1f}", end)
        shown = [
            (figure["name"], figure["against"], f"{figure['value']:.4g}", figure["better"]) for figure in self.figures
        ] or [("", "", "", "")]
        return [
            (self.script, *figure, *first) if not place else ("", *figure, "", "") for place, figure in enumerate(shown)
        ]


def scripts_of(folder: Path) -> list[Path]:
    """Scripts of a folder, in the order of their names."""
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))


def reason_to_skip(code: int, last: str) -> str | None:
    """Why a script that has ended could not run here; ``None`` if it could."""
    if code == SKIPPED:
        return last
    missing = re.fullmatch(r"ModuleNotFoundError: No module named '([\w.]+)'", last)
    if missing is not None and missing[1].partition(".")[0] in OPTIONAL:
        return f"needs the package {missing[1]}"
    needs = re.fullmatch(r"[\w.]*MissingExtraError: (.*)", last)
    return None if needs is None else needs[1]


def run(script: Path, options: Sequence[str], folder: Path) -> Outcome:
    """Run a script, showing on standard error what it prints."""
    figures = folder / f"{script.stem}.jsonl"
    began = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - a script of this repository
        [sys.executable, str(script), *options],
        env={**os.environ, FIGURES_FILE: str(figures), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that ctrl-C reaches this process alone, which ends all of its processes
    )
    lines: collections.deque[str] = collections.deque(maxlen=1)
    interrupted = False
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in process.stdout:
            sys.stderr.write(f"  {line}")
            sys.stderr.flush()
            if line.strip():
                lines.append(line.strip())
        code = process.wait()
    except KeyboardInterrupt:
        interrupted = True
        code = end(process)
    took = time.perf_counter() - began
    found = [json.loads(line) for line in figures.read_text(encoding="utf-8").splitlines()] if figures.exists() else []
    if interrupted:
        return Outcome(script.stem, "interrupted", took, figures=found)
    if code == 0:
        return Outcome(script.stem, "ok", took, figures=found)
    last = lines[-1] if lines else ""
    reason = reason_to_skip(code, last)
    if reason is not None:
        return Outcome(script.stem, "skipped", took, reason, found)
    return Outcome(script.stem, "failed", took, last or f"exit code {code}", found)


def end(process: subprocess.Popen[str]) -> int:
    """End a script and the processes it has started: as ctrl-C does, and by force if that does not help."""
    for number in (signal.SIGINT, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # ctrl-C again: by force at once
            process.wait(PATIENCE)
    return process.wait()


def table(rows: Iterable[Sequence[str]]) -> str:
    """Align columns; numbers to the right."""
    whole = [HEADINGS, *rows]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    right = {HEADINGS.index("value"), HEADINGS.index("seconds")}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in whole
    )


def main(folder: Path) -> int:
    """Run the scripts of a folder; the exit code."""
    scripts = {path.stem: path for path in scripts_of(folder)}
    parser = argparse.ArgumentParser(
        prog=f"python benchmarks/{folder.name}",
        description=f"Run the scripts of {folder.name} and print one table: {', '.join(scripts)}.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are then only noise")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(scripts), help="some scripts instead of all")
    options = parser.parse_args()
    chosen = list(dict.fromkeys(options.only or scripts))
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as figures, contextlib.suppress(KeyboardInterrupt):  # also between two scripts
        for number, name in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {name} is running", file=sys.stderr, flush=True)
            outcomes.append(run(scripts[name], ["--quick"] if options.quick else [], Path(figures)))
            if outcomes[-1].word == "interrupted":
                break
    print(table(row for outcome in outcomes for row in outcome.rows()), flush=True)
    if options.quick:
        print("Small sizes: the figures show that the scripts work, and nothing else.", flush=True)
    counts = collections.Counter(outcome.word for outcome in outcomes)
    left = len(chosen) - len(outcomes)
    said = [f"{count} {word}" for word, count in counts.items()] + [f"{left} not run"] * bool(left)
    print(f"{', '.join(said)} in {sum(outcome.seconds for outcome in outcomes):.0f} s", flush=True)
    return 130 if left or counts["interrupted"] else int(bool(counts["failed"]))
