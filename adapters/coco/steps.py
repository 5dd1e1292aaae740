"""What the rows and the .info file say about a run, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.adapters.coco.info import Problem, Run
from polarbear_plugins.adapters.coco.options import Best
from polarbear_plugins.adapters.coco.rows import Rows
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import SourceError
from polarbear_plugins.trajectories.given import End


@dataclass(frozen=True, slots=True)
class Steps:
    """Best values so far of a run, minimised, where they improved.

    Attributes
    ----------
    past
        Rows lie past the evaluations that the .info file counts, and were left out.
    increases
        Best values increase in the rows; the smallest so far was used.
    better
        The rows have a better value than the final one in the .info file; it was used.
    """

    times: FloatArray
    best: FloatArray
    horizon: float
    end: End
    past: bool = False
    increases: bool = False
    better: bool = False


def join(problem: Problem, run: Run, dat: Rows, tdat: Rows | None, use: Best, who: str) -> Steps:
    """Best values so far of a run of COCO.

    Parameters
    ----------
    dat, tdat
        Its improvements, and its values at fixed evaluations.
    use
        ``rows`` if the .info file is not to be used.
    who
        Name of the file and the run, for messages.
    """
    times, values = _merge([dat] if tdat is None else [dat, tdat])
    if not times.size:
        raise SourceError(f"{who}: expected rows after the names of the columns, got none.")
    horizon, past = float(times[-1]), False
    if use == "info" and run.evaluations is not None:
        _check_end(run, tdat, who)
        past = horizon > run.evaluations
        horizon = float(run.evaluations)
        times, values = times[times <= horizon], values[times <= horizon]
        if not times.size:
            raise SourceError(
                f"{who}: the .info file counts {run.evaluations} evaluations, and the rows begin after them. The files "
                "belong to different runs; best=rows uses the rows alone."
            )
    times, best = _improvements(times, values)
    reached = float(best[-1]) if best.size else np.inf
    better = False
    if use == "info" and run.final is not None and problem.precision is not None:
        shift = problem.precision if problem.shifted else 0.0
        # Older files print the distance to the final target, hand-written ones also that to the optimum.  Where the
        # rows do not tell which it is, the larger of the two was certainly reached.
        agrees = run.final.is_printed(reached - shift) or run.final.is_printed(reached)
        final = run.final.value + shift
        if not agrees and final < reached:
            before = times < horizon
            times, best = np.append(times[before], horizon), np.append(best[before], final)
            reached = final + run.final.half_unit  # what it certainly is
        better = not agrees and reached < run.final.value
    done = problem.precision is not None and reached <= problem.precision
    increases = dat.increases or (tdat is not None and tdat.increases)
    return Steps(times, best, horizon, "done" if done else "unknown", past, increases, better)


def join_ioh(run: Run, files: Sequence[Rows], maximize: bool, who: str) -> Steps:
    """Best values so far of a run of IOHprofiler, whose .info file counts evaluations up to the best value only."""
    times, values = _merge(files)
    if not times.size:
        raise SourceError(f"{who}: expected rows after the names of the columns, got none.")
    horizon = max(float(times[-1]), float(run.evaluations or 0))
    times, best = _improvements(times, -values if maximize else values)
    return Steps(times, best, horizon, "unknown")


def fits(problem: Problem, run: Run, rows: Rows) -> bool:
    """Whether rows are certainly those of a run: they end where it ends, with its value."""
    if run.evaluations is None or run.final is None or not rows.times.size or rows.times[-1] > run.evaluations:
        return False
    best = float(np.fmin.reduce(rows.values))
    shifts = (0.0, problem.precision or 0.0) if problem.shifted else (0.0,)
    return any(run.final.is_printed(best - shift) for shift in shifts)


def _check_end(run: Run, tdat: Rows | None, who: str) -> None:
    """Refuse a .tdat that ends too early: its last row is the last evaluation."""
    if tdat is not None and tdat.times.size and run.evaluations is not None and tdat.times[-1] < run.evaluations:
        raise SourceError(
            f"{who}: the .info file counts {run.evaluations} evaluations, but the .tdat file ends at "
            f"{tdat.times[-1]:g}. It is cut or belongs to other runs; best=rows uses the rows alone."
        )


def _merge(files: Sequence[Rows]) -> tuple[FloatArray, FloatArray]:
    """Rows of several files in the order of evaluations."""
    times, values = (np.concatenate([getattr(rows, column) for rows in files]) for column in ("times", "values"))
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def _improvements(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the best value so far improves; of several rows of one evaluation the best counts."""
    best = np.fmin.accumulate(values)
    best[np.isnan(best)] = np.inf
    last = np.append(times[1:] != times[:-1], True)  # of its evaluation
    times, best = times[last], best[last]
    improved = best < np.concatenate(([np.inf], best[:-1]))
    return times[improved], best[improved]
