"""Bayesmark's scores, from arrays: losses on a scale between the best known value and random search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.measures.bootstrap import Bootstrap, bootstrap_scores
from polarbear_plugins.measures.random_baseline import RandomBaseline, make_baseline, normalise
from polarbear_plugins.names import as_name

if TYPE_CHECKING:
    import pandas as pd


#: For each algorithm and instance an array ``[study, iteration, suggestion]``.
Cells: TypeAlias = Mapping[tuple[str, str], FloatArray]


def incumbents(visible: FloatArray, scored: FloatArray) -> FloatArray:
    """Values of what each study would return after each iteration, chosen by the visible values.

    As Bayesmark chooses: the first of the best suggestions of an iteration, the last of equally good iterations.

    Parameters
    ----------
    visible, scored
        Arrays ``[..., iteration, suggestion]`` of the same shape, minimised.

    Examples
    --------
    >>> incumbents(np.array([[3.0, 2.0], [5.0, 4.0], [1.0, 6.0]]), np.array([[0.3, 0.7], [0.5, 0.4], [0.9, 0.6]]))
    array([0.7, 0.7, 0.9])
    """
    choice = np.argmin(visible, axis=-1)[..., None]
    keys = np.take_along_axis(visible, choice, axis=-1)[..., 0]
    values = np.take_along_axis(scored, choice, axis=-1)[..., 0]
    iterations = np.arange(keys.shape[-1])
    best = keys <= np.minimum.accumulate(keys, axis=-1)
    return np.take_along_axis(values, np.maximum.accumulate(np.where(best, iterations, 0), axis=-1), axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Studies:
    """All evaluations of several algorithms on the same instances; the numbers of studies may differ.

    Parameters
    ----------
    visible
        ``visible[algorithm, instance][study, iteration, suggestion]``: what the algorithm was told, minimised; ``inf``
        for an evaluation that failed.
    scored
        What it is scored by, in the same shape; by default what it was told.
    random
        Which algorithms are random search.
    """

    visible: Cells
    scored: Cells
    random: tuple[str, ...]
    algorithms: tuple[str, ...]
    instances: tuple[str, ...]

    def __init__(self, *, visible: Cells, random: Sequence[str], scored: Cells | None = None) -> None:
        told = {_as_key(key): _as_cell(values, key) for key, values in visible.items()}
        if not told:
            raise InvalidInputError("visible: expected the values of at least one study, got none.")
        judged = told if scored is None else {_as_key(key): _as_cell(values, key) for key, values in scored.items()}
        if told.keys() != judged.keys():
            raise InvalidInputError("visible and scored: expected the same algorithms and instances in both.")
        first = next(iter(told))
        for key, values in told.items():
            if values.shape != judged[key].shape:
                raise InvalidInputError(
                    f"{' on '.join(key)}: visible has the shape {values.shape}, scored {judged[key].shape}."
                )
            if values.shape[1:] != told[first].shape[1:]:
                raise InvalidInputError(
                    f"{' on '.join(key)}: expected {told[first].shape[1]} iterations of {told[first].shape[2]} "
                    f"suggestions, as of {' on '.join(first)}, got {values.shape[1]} of {values.shape[2]}."
                )
        for field, value in (
            ("visible", told),
            ("scored", judged),
            ("random", tuple(random)),
            ("algorithms", tuple(sorted({algorithm for algorithm, _ in told}))),
            ("instances", tuple(sorted({instance for _, instance in told}))),
        ):
            object.__setattr__(self, field, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of algorithms; made by :func:`score_studies`.  All are losses: smaller is better.

    Attributes
    ----------
    losses
        ``losses[algorithm, instance][study, iteration]``: 0 for the best value known, 1 for the median of a single
        random evaluation and everything worse.
    by_instance
        ``by_instance[iteration, algorithm, instance]``: mean of the losses over the studies.
    mean, error
        ``mean[iteration, algorithm]``: mean over the instances, and half the width of its 95 % interval by Student's
        t over them.
    normed_mean
        ``mean``, divided by what random search is expected to have at that iteration.
    by_visible
        Whether algorithms are scored by what they were told, not by another value.
    median
        ``median[iteration, algorithm]``: of medians over the studies, on a scale on which the median of random search
        is 1 at every iteration, the median over the instances.
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    baseline: RandomBaseline
    by_visible: bool
    losses: Cells
    by_instance: FloatArray
    mean: FloatArray
    error: FloatArray
    normed_mean: FloatArray
    median: FloatArray

    @property
    def leaderboard(self) -> FloatArray:
        """Score of each algorithm after the last iteration: 100 for the best values known, 0 for the clip."""
        return 100.0 * (1.0 - self.mean[-1])

    @property
    def leaderboard_median(self) -> FloatArray:
        """The same with the median over all studies of all instances in place of the mean; instances weigh alike."""
        return np.array([100.0 * (1.0 - self._median_loss(algorithm)) for algorithm in self.algorithms])

    @property
    def equivalents(self) -> tuple[int | None, ...]:
        """How many random evaluations are expected to score as well; ``None`` for more than there are to pool.

        Only for scores by what algorithms were told: the least value of random search is not what it would return if
        it chooses by another value.
        """
        if not self.by_visible:
            raise InvalidInputError("Random-search equivalents are of scores by the visible values; these are others.")
        return tuple(self.baseline.equivalent(float(loss)) for loss in self.mean[-1])

    @property
    def efficiencies(self) -> tuple[float | None, ...]:
        """How many times as many evaluations random search needs."""
        return tuple(None if m is None else m / self.baseline.evaluations for m in self.equivalents)

    def summary(self) -> pd.DataFrame:
        """Tabulate the scores after the last iteration, the best first: a row for each algorithm."""
        import pandas as pd

        columns = {
            "leaderboard": self.leaderboard,
            "leaderboard_median": self.leaderboard_median,
            "mean": self.mean[-1],
            "error": self.error[-1],
            "normed_mean": self.normed_mean[-1],
            "median": self.median[-1],
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.algorithms, name="algorithm"))
        return frame.iloc[np.argsort(-self.leaderboard, kind="stable")]

    def to_pandas(self) -> pd.DataFrame:
        """Give the loss of every study after every iteration in long form.

        Columns: ``algorithm``, ``instance``, ``study``, ``iteration`` (the first is 1) and ``loss``.
        """
        import pandas as pd

        parts = []
        for (algorithm, instance), losses in self.losses.items():
            studies, iterations = losses.shape
            axes = {"study": np.arange(studies), "iteration": np.arange(1, iterations + 1)}
            part = long_frame(axes, {"loss": losses})
            part.insert(0, "algorithm", algorithm)
            part.insert(1, "instance", instance)
            parts.append(part)
        names = {"algorithm": self.algorithms, "instance": self.instances}
        kinds = {column: pd.CategoricalDtype(list(known)) for column, known in names.items()}
        return pd.concat(parts, ignore_index=True).astype(kinds)

    def _repr_html_(self) -> str:
        what = f"Scores of {len(self.algorithms)} algorithms on {len(self.instances)} instances"
        return f"<p>{text(what)}</p>{summary_table(self.summary(), 'After the last iteration')}"

    def bootstrap(self, resamples: int = 10_000, seed: int = 0) -> Bootstrap:
        """Resample the studies; the instances, and the scale of each, stay as they are."""
        final = {key: losses[:, -1] for key, losses in self.losses.items()}
        return bootstrap_scores(final, self.algorithms, self.instances, resamples, seed)

    def _median_loss(self, algorithm: str) -> float:
        finals = [self.losses[algorithm, instance][:, -1] for instance in self.instances]
        losses = np.concatenate(finals)
        weights = np.concatenate([np.full(len(final), 1.0 / len(final)) for final in finals]) / len(finals)
        order = np.argsort(losses, kind="stable")
        share = np.cumsum(weights[order])
        # Half of the weight may end exactly at a study: then the median lies between it and the next one.
        low, high = np.searchsorted(share, [0.5 - 1e-9, 0.5 + 1e-9])
        return float(losses[order[[low, min(high, losses.size - 1)]]].mean())


def score_studies(studies: Studies) -> Scores:
    """Score algorithms as ``bayesmark-anal`` does.

    Raises
    ------
    InvalidInputError
        There is no random search, some algorithm was not run on some instance, or an instance has no scale.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> visible = {("RandomSearch", "f1"): rng.random((5, 10, 2)), ("better", "f1"): 0.5 * rng.random((5, 10, 2))}
    >>> score_studies(Studies(visible=visible, random=["RandomSearch"])).leaderboard.round(1)
    array([94.8, 95.3])
    """
    _check_complete(studies)
    baseline = _baseline(studies)
    losses: dict[tuple[str, str], FloatArray] = {}
    shape = (baseline.mean.shape[0], len(studies.algorithms), len(studies.instances))
    by_instance, medians = np.empty(shape), np.empty(shape)
    for place, instance in enumerate(studies.instances):
        best, clip = baseline.best[place], baseline.clip[place]
        for row, algorithm in enumerate(studies.algorithms):
            key = algorithm, instance
            values = incumbents(studies.visible[key], studies.scored[key])
            losses[key] = np.clip(normalise(values, best, clip), -1.0, 1.0)
            by_instance[:, row, place] = losses[key].mean(axis=0)
            medians[:, row, place] = normalise(_lower_median(values), best, baseline.median[:, place])
    mean = by_instance.mean(axis=-1)
    error = _error_of_mean(by_instance)
    random = normalise(baseline.mean, baseline.best, baseline.clip).mean(axis=1)
    return Scores(
        algorithms=studies.algorithms,
        instances=studies.instances,
        baseline=baseline,
        by_visible=all(np.array_equal(values, studies.scored[key]) for key, values in studies.visible.items()),
        losses=losses,
        by_instance=by_instance,
        mean=mean,
        error=error,
        normed_mean=mean / random[:, None],
        median=_lower_median(np.moveaxis(medians, -1, 0)),
    )


def _baseline(studies: Studies) -> RandomBaseline:
    _, iterations, suggestions = next(iter(studies.scored.values())).shape
    random = {
        instance: np.concatenate([studies.scored[name, instance].ravel() for name in studies.random])
        for instance in studies.instances
    }
    best = {
        instance: min(float(studies.scored[name, instance].min()) for name in studies.algorithms)
        for instance in studies.instances
    }
    return make_baseline(random, best, [suggestions * (k + 1) for k in range(iterations)])


def _check_complete(studies: Studies) -> None:
    names = ", ".join(studies.algorithms)
    if not studies.random:
        raise InvalidInputError(
            f"There is no random search among the algorithms ({names}), and the scores are relative to it. "
            "Run it on the same instances, or say which algorithm it is."
        )
    for name in studies.random:
        if name not in studies.algorithms:
            raise InvalidInputError(f"random: there is no algorithm {name!r}. There are {names}.")
    missing = [
        f"{algorithm} on {instance}"
        for algorithm in studies.algorithms
        for instance in studies.instances
        if (algorithm, instance) not in studies.visible
    ]
    if missing:
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InvalidInputError(
            f"Scores need every algorithm on every instance; {len(missing)} of them are missing ({some})."
        )


def _lower_median(values: FloatArray) -> FloatArray:
    """Median along the first axis that is a value itself, the lower one of two."""
    return np.quantile(values, 0.5, axis=0, method="inverted_cdf")


def _error_of_mean(values: FloatArray) -> FloatArray:
    from scipy.special import stdtrit

    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.inf)
    return stdtrit(n - 1, 0.975) * values.std(axis=-1, ddof=1) / np.sqrt(n)


def _as_key(key: object) -> tuple[str, str]:
    if not isinstance(key, tuple) or len(key) != 2:
        raise InvalidInputError(f"Expected keys (algorithm, instance), got {short(key)}.")
    return as_name(key[0], "algorithm"), as_name(key[1], "instance")


def _as_cell(values: FloatArray, key: tuple[str, str]) -> FloatArray:
    who = " on ".join(map(str, key))
    array = as_array(values, who)
    if array.ndim != 3 or not array.size:
        raise InvalidInputError(
            f"{who}: expected an array [study, iteration, suggestion] with something in it, got the shape "
            f"{array.shape}."
        )
    if np.isnan(array).any():
        raise InvalidInputError(f"{who}: a value is nan; an evaluation that failed is inf.")
    return array
