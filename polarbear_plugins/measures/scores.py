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
from polarbear_plugins.measures.score_parts import pooled_quantile
from polarbear_plugins.names import as_name

if TYPE_CHECKING:
    import pandas as pd


#: For each algorithm and instance, an array whose first axes are ``[study, iteration]``.
StudyArrays: TypeAlias = Mapping[tuple[str, str], FloatArray]


def incumbents(visible: FloatArray, scored: FloatArray) -> FloatArray:
    """Scored values of what each study would return after each iteration, chosen by the visible values.

    Ties as in Bayesmark: the first of the best suggestions of an iteration, the last of equally good iterations.

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
    """All evaluations of several algorithms on the same instances; numbers of studies may differ.

    Parameters
    ----------
    visible
        ``visible[algorithm, instance][study, iteration, suggestion]``: the values that the algorithm saw, minimised;
        ``inf`` for a failed evaluation.
    scored
        The values that it is scored by, in the same shape; by default the visible ones.
    random
        The algorithms that are random search.
    """

    visible: StudyArrays
    scored: StudyArrays
    random: tuple[str, ...]
    algorithms: tuple[str, ...]
    instances: tuple[str, ...]

    def __init__(self, *, visible: StudyArrays, random: Sequence[str], scored: StudyArrays | None = None) -> None:
        seen = {_as_key(key): _as_cell(values, key) for key, values in visible.items()}
        if not seen:
            raise InvalidInputError("visible: expected the values of at least one study, got none.")
        scores = seen if scored is None else {_as_key(key): _as_cell(values, key) for key, values in scored.items()}
        if seen.keys() != scores.keys():
            raise InvalidInputError("visible and scored: expected the same algorithms and instances in both.")
        first = next(iter(seen))
        for key, values in seen.items():
            if values.shape != scores[key].shape:
                raise InvalidInputError(
                    f"{' on '.join(key)}: visible has the shape {values.shape}, scored {scores[key].shape}."
                )
            if values.shape[1:] != seen[first].shape[1:]:
                raise InvalidInputError(
                    f"{' on '.join(key)}: expected {seen[first].shape[1]} iterations of {seen[first].shape[2]} "
                    f"suggestions, as of {' on '.join(first)}, got {values.shape[1]} of {values.shape[2]}."
                )
        for field, value in (
            ("visible", seen),
            ("scored", scores),
            ("random", tuple(random)),
            ("algorithms", tuple(sorted({algorithm for algorithm, _ in seen}))),
            ("instances", tuple(sorted({instance for _, instance in seen}))),
        ):
            object.__setattr__(self, field, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of algorithms, as losses: smaller is better.  Returned by :func:`score_studies`.

    Attributes
    ----------
    random
        The algorithms that are random search.
    losses
        ``losses[algorithm, instance][study, iteration]``: 0 for the best value known, 1 for the median of a single
        random evaluation and everything worse.
    by_instance
        ``by_instance[iteration, algorithm, instance]``: mean of the losses over the studies.
    mean, error
        ``mean[iteration, algorithm]``: mean over the instances, and half the width of its 95 % interval by Student's
        t over them.
    normed_mean
        ``mean`` divided by the expected loss of random search at that iteration.
    by_visible
        Whether algorithms are scored by the visible values, not by others.
    median
        ``median[iteration, algorithm]``: median over the instances of medians over the studies, on a scale on which the
        median of random search is 1 at every iteration.
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    random: tuple[str, ...]
    baseline: RandomBaseline
    by_visible: bool
    losses: StudyArrays
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
        """The same with the median over all studies of all instances instead of the mean; instances weigh the same."""
        return np.array([100.0 * (1.0 - self._median_loss(algorithm)) for algorithm in self.algorithms])

    @property
    def equivalents(self) -> tuple[int | None, ...]:
        """Number of random evaluations expected to score as well; ``None`` for more than there are to pool.

        Random search is worth exactly the evaluations that it made; see :attr:`random_as_scored`.  Only for scores by
        visible values: random search that chooses by another value does not return its best one.
        """
        made = dict.fromkeys(self.random, self.baseline.evaluations)
        return tuple(made.get(name, self._equivalent(row)) for row, name in enumerate(self.algorithms))

    @property
    def random_as_scored(self) -> dict[str, int | None]:
        """Random evaluations expected to score as the studies of random search did: chance alone makes a difference."""
        return {name: self._equivalent(self.algorithms.index(name)) for name in self.random}

    @property
    def efficiencies(self) -> tuple[float | None, ...]:
        """How many times as many evaluations random search needs."""
        return tuple(None if m is None else m / self.baseline.evaluations for m in self.equivalents)

    def summary(self) -> pd.DataFrame:
        """Table of the scores after the last iteration, the best first: a row for each algorithm."""
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
        """The loss of every study after every iteration in long form.

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
        """Resample the studies; the instances and their scales are fixed."""
        final = {key: losses[:, -1] for key, losses in self.losses.items()}
        return bootstrap_scores(final, self.algorithms, self.instances, resamples, seed)

    def _median_loss(self, algorithm: str) -> float:
        return pooled_quantile([self.losses[algorithm, instance][:, -1] for instance in self.instances], 0.5)

    def _equivalent(self, row: int) -> int | None:
        if not self.by_visible:
            raise InvalidInputError(
                "Random-search equivalents need scores by the visible values; these scores are by other values."
            )
        return self.baseline.equivalent(float(self.mean[-1, row]))


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
    baseline = _random_baseline(studies)
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
    error = _half_interval(by_instance)
    random = normalise(baseline.mean, baseline.best, baseline.clip).mean(axis=1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # random search that is next to the best
        normed = mean / random[:, None]
    return Scores(
        algorithms=studies.algorithms,
        instances=studies.instances,
        random=studies.random,
        baseline=baseline,
        by_visible=all(np.array_equal(values, studies.scored[key]) for key, values in studies.visible.items()),
        losses=losses,
        by_instance=by_instance,
        mean=mean,
        error=error,
        normed_mean=normed,
        median=_lower_median(np.moveaxis(medians, -1, 0)),
    )


def _random_baseline(studies: Studies) -> RandomBaseline:
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
    """Lower median along the first axis, which is always one of the values."""
    return np.quantile(values, 0.5, axis=0, method="inverted_cdf")


def _half_interval(values: FloatArray) -> FloatArray:
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
            f"{who}: expected a non-empty array [study, iteration, suggestion], got the shape {array.shape}."
        )
    if np.isnan(array).any():
        raise InvalidInputError(f"{who}: a value is nan. Use inf for failed evaluations.")
    return array
