"""References for the cases of ``ranking_cases.py``: made by quadrature or NUTS, and kept in one file.

Making them takes more than an hour, so they are stored.  Each carries the digest of its case: one that was made for
other data or another prior is refused.
"""

import json
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from exact_posteriors import exact_posterior, has_exact
from ranking_cases import ONE_SIDED, Case, case

from polarbear_plugins import Posterior, fit
from polarbear_plugins.errors import PolarBearError

LONGEST = 240  # processor seconds for one reference
CHAINS = 4
_BATCHES = 20  # in each chain, for standard errors
# A NUTS run whose standard errors are larger than these is repeated with more draws.
_LARGEST_ERRORS = {"p": 0.006, "hyperparameters": 0.02}
# Of all draws.  With more of them a run is no reference, even if another one agrees.
_MOST_DIVERGENCES = 0.01
_SCALE = 65535  # probabilities are stored in two bytes


@dataclass(frozen=True)
class Reference:
    """What is known about the posterior of a case.

    Attributes
    ----------
    how
        ``"exact"``; ``"nuts"``, by a good NUTS run; ``"diverged"``, by two NUTS runs that agree and are good but for
        their divergences; or ``"none"``.  What is wrong is said in ``about``.
    hyperparameters
        Mean, standard deviation, and standard error of the mean, by name.
    p_error
        Largest standard error of a probability.
    """

    number: int
    digest: str
    how: str
    about: str
    seconds: float = 0.0
    p_better: np.ndarray | None = None
    p_anytime: np.ndarray | None = None
    hyperparameters: Mapping[str, tuple[float, float, float]] | None = None
    p_error: float = 0.0

    @property
    def hyperparameter_error(self) -> float:
        """Largest standard error of a mean, in standard deviations."""
        return max((error / sd for _, sd, error in (self.hyperparameters or {}).values()), default=0.0)


def make(of: Case) -> Iterable[Reference]:
    """References of growing quality; the last one is the best."""
    if has_exact(of.prior, of.n, of.timepoints):
        exact = exact_posterior(of.table, of.prior)
        moments = {name: (*pair, 0.0) for name, pair in exact.hyperparameters.items()}
        yield Reference(of.number, of.digest, "exact", "quadrature", 0.0, exact.p_better, exact.p_anytime, moments)
        return
    most = 12_000 if of.prior == "dirichlet" else 24_000
    draws = int(np.clip(most * 60 / of.size, 6400, most)) // 800 * 800
    target = 0.995 if of.kind in ONE_SIDED else 0.95
    first = _nuts(of, draws, 1000, target, seed=of.number)
    yield first if first.how == "nuts" else replace(first, how="none")
    worst = max(first.p_error / _LARGEST_ERRORS["p"], first.hyperparameter_error / _LARGEST_ERRORS["hyperparameters"])
    if first.how == "nuts" and worst <= 1:
        return
    more = int(draws * np.clip(1.2 * worst**2, 1.5, 3.0)) // 800 * 800
    second = _nuts(of, more, 2000, target if first.how == "nuts" else 0.998, seed=of.number + 1000)
    if second.how == "nuts" or (first.how == second.how == "diverged" and _agree(first, second)):
        yield second
    elif first.how != "nuts":
        yield replace(second, how="none")


def _agree(first: Reference, second: Reference) -> bool:
    """Whether two runs differ by no more than four standard errors."""
    assert first.p_better is not None  # noqa: S101 - both ran
    assert second.p_better is not None  # noqa: S101
    pairs = [(np.abs(first.p_better - second.p_better).max(), math.hypot(first.p_error, second.p_error))]
    if first.p_anytime is not None and second.p_anytime is not None:
        pairs.append((np.abs(first.p_anytime - second.p_anytime).max(), pairs[0][1]))
    for name, (mean, _, error) in (first.hyperparameters or {}).items():
        other, _, its_error = (second.hyperparameters or {})[name]
        pairs.append((abs(mean - other), math.hypot(error, its_error)))
    return all(difference <= 4 * error + 1e-3 for difference, error in pairs)


def _nuts(of: Case, draws: int, tune: int, target_accept: float, seed: int) -> Reference:
    """Reference by one NUTS run; ``"diverged"`` or ``"none"`` if its own diagnostics are poor."""
    options = {"sampler": "nutpie", "chains": CHAINS, "tune": tune, "target_accept": target_accept, "cores": 1}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reference says what is wrong with its run
            posterior = fit(of.table, of.prior, "nuts", draws, seed, dependence="none", engine_options=options)
    except (PolarBearError, RuntimeError, ValueError, FloatingPointError, KeyboardInterrupt) as problem:
        return Reference(of.number, of.digest, "none", f"{type(problem).__name__}: {problem}"[:200])
    found = posterior.diagnostics
    about = (
        f"{draws} draws, R-hat {found.r_hat:.4f}, {found.effective_draws:.0f} effective, "
        f"{found.divergences} diverged, target_accept {target_accept:g}"
    )
    reference = Reference(of.number, of.digest, "nuts", about, 0.0, **_summaries(posterior))
    if found.good:
        return reference
    only_divergences = len(found.problems) == 1 and 0 < (found.divergences or 0) <= _MOST_DIVERGENCES * draws
    how = "diverged" if only_divergences and "diverged" in found.problems[0] else "none"
    return replace(reference, how=how, about=f"{about}: {'; '.join(found.problems)}")


def _summaries(posterior: Posterior) -> dict[str, Any]:
    """Probabilities and moments of a NUTS run with their standard errors, by the means of batches."""
    timepoints, n = posterior.log_ratings.shape[1:]
    better, anytime = np.zeros((timepoints, n, n)), np.zeros((n, n))
    columns = np.ascontiguousarray(posterior.log_ratings.transpose(2, 0, 1))
    largest = 0.0

    def average(values: np.ndarray) -> np.ndarray:
        nonlocal largest
        mean, error = _batch_mean(values)
        largest = max(largest, float(np.max(error)))
        return mean

    for i in range(n):
        for j in range(i):
            above = columns[i] > columns[j]
            better[:, i, j] = average(above)
            better[:, j, i] = 1 - better[:, i, j]
            if posterior.joint:
                anytime[i, j], anytime[j, i] = average(above.all(axis=1)), average(~above.any(axis=1))
    moments = {}
    for name, values in posterior.hyperparameters.items():
        mean, error = _batch_mean(np.asarray(values))
        moments[name] = (float(mean), float(np.std(values)), float(error))
    return {
        "p_better": better,
        "p_anytime": anytime if posterior.joint else None,
        "hyperparameters": moments,
        "p_error": largest,
    }


def _batch_mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over draws, which alternate between the chains, and its standard error."""
    batches = values.reshape(_BATCHES, -1, CHAINS, *values.shape[1:]).mean(axis=1)
    batches = batches.reshape(_BATCHES * CHAINS, *values.shape[1:])
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / math.sqrt(len(batches))


def make_all(cases: Iterable[Case], path: Path) -> None:
    """Make the references that the file lacks, in another process, and save each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"  # read by the other process
    known = load(path) if path.exists() else {}
    missing = [of for of in cases if of.number not in known or known[of.number].digest != of.digest]
    # The quick ones first.
    missing.sort(key=lambda of: 0 if has_exact(of.prior, of.n, of.timepoints) else of.n * of.timepoints)
    worker = _Worker()
    try:
        for place, of in enumerate(missing, 1):
            known[of.number] = found = worker.make(of)
            save(known.values(), path)
            errors = f"errors {found.p_error:.4f} {found.hyperparameter_error:.4f}"
            clock = time.strftime("%H:%M:%S")
            print(
                f"{clock} {place}/{len(missing)} {of} {found.how:5s} {found.seconds:5.1f} s  {errors}  {found.about}",
                flush=True,
            )
    finally:
        worker.end()


class _Worker:
    """A process that makes references, and is ended when one takes too long."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def make(self, of: Case) -> Reference:
        """Best reference that the process sends before it is done or has used up its time."""
        self._pipe.send(of.number)
        best = Reference(of.number, of.digest, "none", f"nothing within {LONGEST} s", LONGEST)
        try:
            while (answer := self._pipe.recv()) is not None:
                best = answer
        except EOFError:
            self.end()
            self._start()
        return best

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    """Make references by their numbers; the system ends the process if one takes too long."""
    import resource  # not on Windows

    while True:
        number, began = pipe.recv(), time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + LONGEST, resource.RLIM_INFINITY))
        for reference in make(case(number)):
            pipe.send(replace(reference, seconds=round(time.process_time() - began, 1)))
        pipe.send(None)


def save(references: Iterable[Reference], path: Path) -> None:
    """Write the file anew, in one step."""
    entries, probabilities = [], [np.zeros(0, dtype=np.uint16)]
    for reference in sorted(references, key=lambda reference: reference.number):
        usable = reference.how != "none"
        entry = asdict(replace(reference, p_better=None, p_anytime=None))
        del entry["p_better"], entry["p_anytime"]
        if usable:
            assert reference.p_better is not None  # noqa: S101 - it is usable
            n = reference.p_better.shape[1]
            entry["shape"] = reference.p_better.shape
            entry["joint"] = reference.p_anytime is not None
            probabilities.append(_quantised(reference.p_better[:, *np.triu_indices(n, 1)]))
            if reference.p_anytime is not None:
                probabilities.append(_quantised(reference.p_anytime))
        else:
            entry["hyperparameters"] = None
        entries.append(entry)
    about = np.frombuffer(json.dumps(entries).encode(), dtype=np.uint8)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, about=about, probabilities=np.concatenate(probabilities))
    partial.replace(path)


def _quantised(probabilities: np.ndarray) -> np.ndarray:
    return np.round(probabilities * _SCALE).astype(np.uint16).ravel()


def load(path: Path) -> dict[int, Reference]:
    """References by the number of their case."""
    with np.load(path) as file:
        entries = json.loads(file["about"].tobytes())
        probabilities = file["probabilities"] / _SCALE
    references, at = {}, 0
    for entry in entries:
        shape, joint = entry.pop("shape", None), entry.pop("joint", False)
        arrays: dict[str, np.ndarray] = {}
        if shape is not None:
            timepoints, n, _ = shape
            upper = np.triu_indices(n, 1)
            better = np.zeros(shape)
            size = timepoints * upper[0].size
            better[:, *upper] = probabilities[at : at + size].reshape(timepoints, -1)
            better[:, upper[1], upper[0]] = 1 - better[:, *upper]
            arrays["p_better"] = better
            at += size
            if joint:
                arrays["p_anytime"] = probabilities[at : at + n * n].reshape(n, n)
                at += n * n
        references[entry["number"]] = Reference(**entry, **arrays)
    return references
