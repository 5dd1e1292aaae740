"""irace (the R package) on a given portfolio: one categorical parameter, all of whose values are in the first race."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from rivals.contest import Contest, Verdict, log_uniform

# The runs of a contest are known, so the target runner looks them up.  irace itself returns only its elites; who was
# still alive at the end of the race, and how many experiments it took, is what its function `race` returns.
_SCRIPT = """
suppressPackageStartupMessages(library(irace))
arguments <- commandArgs(trailingOnly = TRUE)
costs <- as.matrix(read.csv(arguments[[1]], header = FALSE))
names <- paste0("a", seq_len(ncol(costs)))
suppressMessages(trace("race", where = asNamespace("irace"), print = FALSE,
                       exit = quote(assign("raced", returnValue(), envir = globalenv()))))
look_up <- function(experiment, scenario)
  list(cost = costs[[experiment$id.instance, match(experiment$configuration[["algorithm"]], names)]])
scenario <- list(
  targetRunner = look_up, instances = seq_len(nrow(costs)), sampleInstances = 0, deterministic = 1,
  initConfigurations = data.frame(algorithm = names), nbConfigurations = length(names), nbIterations = 1,
  maxExperiments = length(costs), elitist = as.integer(arguments[[3]]), seed = as.integer(arguments[[4]]),
  quiet = 1, logFile = "")
parameters <- readParameters(text = paste0('algorithm "" c (', paste(names, collapse = ","), ')'))
best <- suppressWarnings(irace(scenario, parameters))$algorithm[[1]]
alive <- raced$configurations$algorithm[raced$configurations$.ALIVE.]
writeLines(paste(c(match(best, names), raced$experimentsUsed, match(alive, names)), collapse = " "), arguments[[2]])
"""


@cache
def version() -> str:
    """Version of irace and of R.

    :raises ModuleNotFoundError: there is no Rscript, or no irace.
    """
    program = shutil.which("Rscript")
    if program is None:
        raise ModuleNotFoundError("Rscript is not installed")
    ask = 'cat(as.character(packageVersion("irace")), "with R", as.character(getRversion()))'
    answer = subprocess.run([program, "-e", ask], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if answer.returncode:
        raise ModuleNotFoundError("the R package irace is not installed")
    return f"irace {answer.stdout}"


def irace(contest: Contest, seed: int, *, most: int = 300, elitist: bool, anytime: bool) -> Verdict:
    """Race once with irace's defaults (Friedman test at 0.95 from the fifth instance on) on instances in their order.

    The cost of an experiment is the value at the last timepoint or, with ``anytime``, the area under the values over
    the logarithm of time.  irace's guide asks for normalised values; its test only sees how runs on an instance are
    ordered, which a normalisation of each instance does not change.  One iteration: there are no further candidates
    to sample.  Survivors are what is alive at the end of the race; irace's best one is the choice for every budget.
    """
    program = shutil.which("Rscript")
    if program is None:
        raise ModuleNotFoundError("Rscript is not installed")
    values = contest.values[:most]
    costs = np.einsum("nti,t->ni", values, log_uniform(contest.timepoints)) if anytime else values[:, -1]
    with tempfile.TemporaryDirectory() as folder:
        script, table, answer = (Path(folder) / name for name in ("race.R", "costs.csv", "answer.txt"))
        script.write_text(_SCRIPT, encoding="utf-8")
        np.savetxt(table, costs, fmt="%.17g", delimiter=",")
        command = [program, str(script), str(table), str(answer), str(int(elitist)), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603 - ours
        if done.returncode:
            raise RuntimeError(f"irace failed: {done.stderr[-500:]}")
        best, experiments, *alive = (int(word) for word in answer.read_text(encoding="utf-8").split())
    kept = np.isin(np.arange(values.shape[2]) + 1, alive)
    return Verdict(kept, np.full(len(contest.timepoints), best - 1), experiments * float(contest.timepoints[-1]))
