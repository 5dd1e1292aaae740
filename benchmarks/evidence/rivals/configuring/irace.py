"""irace in R, which asks this process for the losses of each batch of experiments through its standard streams."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fold_tasks import Parameters, Task

from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace, Integer
from rivals.configuring.budget import Meter, Picks, RefusedError, RivalMissingError

_MARK = "@@"  # begins what is for this process; irace itself prints as well
_SCRIPT = """
suppressPackageStartupMessages(library(irace))
arguments <- commandArgs(trailingOnly = TRUE)
answers <- file("stdin", open = "r")
tell <- function(kind, values) cat(paste(c("@@", kind, values), collapse = "\\t"), "\\n", sep = "")
values_of <- function(configuration, parameters) sapply(parameters, function(name) {
  value <- configuration[[name]]
  if (is.numeric(value)) format(value, digits = 15, scientific = TRUE) else as.character(value)
})
parameters <- readParameters(file = "parameters.txt", digits = 8)
run_batch <- function(experiments, exec.target.runner, scenario, target.runner) {
  for (one in experiments) tell("run", c(one$id.instance, values_of(one$configuration, parameters$names)))
  tell("wait", length(experiments))
  flush(stdout())
  lapply(readLines(answers, n = length(experiments)), function(line) list(cost = as.numeric(line), time = 1))
}
scenario <- list(
  targetRunnerParallel = run_batch, instances = seq_len(as.integer(arguments[1])), deterministic = TRUE, digits = 8,
  maxExperiments = as.integer(arguments[2]), seed = as.integer(arguments[3]), logFile = "", execDir = getwd()
)
tryCatch({
  found <- irace(scenario, parameters)
  tell("pick", values_of(found[1, ], parameters$names))
}, error = function(problem) tell("error", gsub("[\\n\\t]+", " ", conditionMessage(problem))))
"""


def configure(task: Task, seed: int, budgets: Sequence[int]) -> Picks:
    """What irace names; a run for each budget, since it plans its iterations by that."""
    if shutil.which("Rscript") is None:
        raise RivalMissingError("Rscript is not installed: irace needs R")
    picks: dict[int, Parameters | None] = {}
    for budget in budgets:
        try:
            picks[budget] = _run(task, seed, Meter(task.draw(seed), budget))
        except RefusedError:
            picks[budget] = None
    return {"irace": picks}


def version() -> str | None:
    """Version of irace, and ``None`` if it or R is missing."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    command = [program, "-e", 'cat(as.character(packageVersion("irace")))']
    asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - nothing from outside
    return asked.stdout.strip() or None


def _run(task: Task, seed: int, meter: Meter) -> Parameters:
    with _started(task, seed, meter.limit) as (questions, answers):
        waiting: list[float] = []
        for line in questions:
            mark, _, rest = line.strip().partition("\t")
            if mark != _MARK:
                continue
            kind, *values = rest.split("\t")
            if kind == "run":
                waiting.append(meter.loss(_decode(task.space, values[1:]), int(values[0]) - 1))
            elif kind == "wait":
                answers.write("".join(f"{loss!r}\n" for loss in waiting))
                answers.flush()
                waiting = []
            elif kind == "pick":
                return _decode(task.space, values)
            else:
                _raise(values[0])
    raise RuntimeError("irace ended without an answer.")


def _raise(message: str) -> None:
    if "budget" in message or "maxExperiments" in message:
        raise RefusedError(message)
    if "no package" in message:
        raise RivalMissingError(message)
    raise RuntimeError(message)


@contextmanager
def _started(task: Task, seed: int, budget: int) -> Iterator[tuple[IO[str], IO[str]]]:
    with tempfile.TemporaryDirectory(prefix="configuring-irace-") as folder:
        Path(folder, "parameters.txt").write_text(describe_space(task.space))
        Path(folder, "run.R").write_text(_SCRIPT)
        command = ["Rscript", "run.R", str(task.n_folds), str(budget), str(seed + 1)]
        with subprocess.Popen(  # noqa: S603 - nothing from outside
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise AssertionError(command)
            try:
                yield process.stdout, process.stdin
            finally:
                process.terminate()


def describe_space(space: ConfigurationSpace) -> str:
    r"""Parameters as irace reads them, with categories by their places.

    >>> describe_space(ConfigurationSpace({"size": Integer(1, 9), "kind": Categorical(("a", "b"))}))
    'size "" i (1, 9)\nkind "" c (0, 1)\n'
    """
    lines = []
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Categorical):
            lines.append(f'{name} "" c ({", ".join(str(place) for place in range(len(parameter.choices)))})')
            continue
        kind = ("i" if isinstance(parameter, Integer) else "r") + (",log" if parameter.log else "")
        lines.append(f'{name} "" {kind} ({parameter.lower}, {parameter.upper})')
    return "\n".join(lines) + "\n"


def _decode(space: ConfigurationSpace, values: Sequence[str]) -> Parameters:
    found: dict[str, object] = {}
    for (name, parameter), text in zip(space.parameters.items(), values, strict=True):
        if isinstance(parameter, Categorical):
            found[name] = parameter.choices[int(text)]
        else:
            found[name] = int(float(text)) if isinstance(parameter, Integer) else float(text)
    return found
