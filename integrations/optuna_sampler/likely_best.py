"""The configuration of a noisy study that is probably the best, and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import optuna
from scipy.special import expit, logit, ndtr, ndtri

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.integrations.optuna_sampler.sampler import check_one_objective
from polarbear_plugins.integrations.optuna_sampler.similarity import parameter_correlations
from polarbear_plugins.integrations.optuna_sampler.study_values import (
    Configuration,
    Steps,
    StudyValues,
    check_repeated,
    losses_of,
    read_values,
)
from polarbear_plugins.integrations.optuna_sampler.study_view import sign_of
from polarbear_plugins.measures.mean_losses import MeanModel
from polarbear_plugins.rankings.stream import rank_cells

#: What makes a configuration the best: the lowest mean, or winning on most instances.
Criterion: TypeAlias = Literal["mean", "rank"]

_DRAWS = 4000
# Shares of the noise that configurations with similar parameters may have in common on an instance, beside none.
_COMMON_NOISE = (0.5, 0.9, 0.99)
# Another configuration is noticeably better if it wins on more than this share of the instances.
_NOTICEABLE = 0.55
_SUPPORTED = 0.95  # as in selection.Choice
_NEARLY_ALL = 0.9
_MOST_RANKED = 64  # rankings of more take minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyBest:
    """The configuration that is probably the best, and the evidence for it.

    Attributes
    ----------
    parameters
        Of the configuration.
    probability
        That it is the best of all: has the lowest mean (highest if the study maximises), or the highest rating.
    support
        Probability that no other is noticeably better: better on more than 55 of 100 new instances.
    beats
        Probability that it is better than another configuration on a new instance, averaged over the others.
    regret
        By how much its mean is expected to be worse than the best one; ``None`` under the criterion "rank".
    mean, spread
        Posterior mean and standard deviation of its mean over the instances of the study; ``None`` as above.
    evaluations
        How many values of it there are.
    instances, configurations
        How many were compared; the instances of unpaired values are the repetitions.
    left_out
        How many configurations were not compared; ``basis`` says why.
    criterion
        "mean" or "rank".
    basis
        What counts as an instance, and what was assumed.
    rivals
        The next ones: parameters, and the probability that they are the best.
    """

    parameters: Mapping[str, Any]
    probability: float
    support: float
    beats: float
    regret: float | None
    mean: float | None
    spread: float | None
    evaluations: int
    instances: int
    configurations: int
    left_out: int
    criterion: Criterion
    basis: str = field(repr=False)
    rivals: tuple[tuple[Mapping[str, Any], float], ...] = field(repr=False)

    @property
    def supported(self) -> bool:
        """Whether the data support the choice: :attr:`support` is at least 0.95."""
        return self.support >= _SUPPORTED

    def __str__(self) -> str:
        mean = "" if self.mean is None else f", mean {self.mean:.4g} ± {self.spread:.2g}"
        best = (
            f"{dict(self.parameters)}: the best of {self.configurations} with probability {self.probability:.2f}{mean}"
        )
        return "\n".join([best, self._support(), self.basis])

    def _support(self) -> str:
        if self.supported:
            return f"No other is noticeably better (support {self.support:.2f})."
        others = ", ".join(f"{dict(parameters)} ({probability:.2f})" for parameters, probability in self.rivals[:3])
        return (
            f"No choice is supported (support {self.support:.2f}): the best may also be {others}. "
            f"Evaluate these on more instances."
        )


def likely_best(
    study: optuna.Study,
    *,
    instance: str = "instance",
    steps: Steps | None = None,
    n_timepoints: int | None = None,
    criterion: Criterion | None = None,
    most: int = 300,
    seed: int = 0,
) -> LikelyBest:
    """Configuration of a noisy study that is probably the best; ``study.best_trial`` is the luckiest one.

    Trials with the same parameters are one configuration.  It needs values on several instances, which are

    1. the values of the parameter ``instance``, as in the race of a :class:`PolarBearSampler`;
    2. otherwise the steps that trials report, if they are declared to be instances: by ``steps`` or ``n_timepoints``,
       or by the study's pruner, a PolarBearPruner or WilcoxonPruner; pruned trials count with what they reported;
    3. otherwise repeated trials of a configuration, by the values that they returned.

    Epochs are not instances: where each configuration has one value, the question is refused.  All configurations are
    weighed, but only one that was seen on nearly all instances is the answer.

    Parameters
    ----------
    instance
        Name of the parameter that is the instance.
    steps
        What the steps of trials are: ``"instances"`` (folds, seeds, problems) or ``"times"`` (epochs).
    n_timepoints
        How many steps there are on each instance, as in PolarBearPruner; the value at the last of them counts.
    criterion
        ``"mean"``: the lowest mean is the best.  Means are drawn towards each other by as much as they are noisy, and
        towards those of configurations with similar parameters by as much as that explains the values.
        ``"rank"``: winning on most instances is best; for values that cannot be compared between instances.
        By default that of the study's pruner, or the mean.
    most
        How many configurations are compared at most: those with most values, and of these the better ones.  By ranks
        64 at most.
    seed
        Of the draws behind the probabilities.

    Examples
    --------
    >>> study = optuna.create_study()
    >>> uniform = {"x": optuna.distributions.FloatDistribution(0, 1)}
    >>> for x, folds in {0.2: [1.0, 2.1, 2.9], 0.4: [1.9, 3.0, 4.1], 0.9: [0.9, 9.0, 9.0]}.items():
    ...     study.add_trial(
    ...         optuna.trial.create_trial(
    ...             params={"x": x}, distributions=uniform, value=sum(folds), intermediate_values=dict(enumerate(folds))
    ...         )
    ...     )
    >>> best = likely_best(study, steps="instances")
    >>> best.parameters, best.instances, best.supported
    ({'x': 0.2}, 3, False)

    :raises InvalidInputError: each configuration has one value, or nothing says what the steps of trials are.
    """
    check_one_objective(study)
    as_whole_number(most, "most", at_least=2)
    values = read_values(study, instance, steps, n_timepoints)
    if _criterion_of(study, criterion) == "rank":
        return _by_rank(study, values, min(most, _MOST_RANKED), seed)
    return _by_mean(study, values, most, seed)


def _criterion_of(study: optuna.Study, given: Criterion | None) -> Criterion:
    if given is not None:
        return as_choice(given, Criterion, "criterion")
    return "rank" if getattr(study.pruner, "criterion", None) == "rank" else "mean"


def _by_mean(study: optuna.Study, values: StudyValues, most: int, seed: int) -> LikelyBest:
    finite = [one for one in values.configurations if one.finite]
    check_repeated(study, values, finite)
    far = _far_worse(losses_of(finite), values.paired)
    near = [one for one, worse in zip(finite, far, strict=True) if not worse]
    chosen = _with_most_values(near, most)
    correlations = parameter_correlations(chosen)
    losses = losses_of(chosen)
    model = MeanModel(losses, correlations, common=_COMMON_NOISE, paired=values.paired, resolution=_resolution(losses))
    means = model.draw(_DRAWS, np.random.default_rng(seed))
    first = _lowest(model.means, chosen, values.paired)
    gaps = np.delete(means, first, axis=1) - means[:, [first]]
    noise = np.delete(model.noise_of_differences(first), first)
    of_what = "over {} instances" if values.paired else "of up to {} repetitions"
    assumed = [f"means {of_what.format(len(losses))}, with normal noise of the same size for all"]
    if not values.paired and all(len(set(one.numbers)) == 1 for one in chosen):
        assumed.append("repeated trials returned the same values, so that the noise is taken for that of rounding")
    if correlations:
        assumed.append("configurations with similar parameters may have similar means and similar noise")
    without_mean, much_worse = len(values.configurations) - len(finite), len(finite) - len(near)
    if without_mean:
        assumed.append(f"{without_mean} configurations that failed on an instance are left out")
    if much_worse:
        assumed.append(f"{much_worse} configurations that are far worse than most are left out")
    return LikelyBest(
        **_about(values, chosen, first, means, assumed + _unseen(near, chosen)),
        support=float((gaps >= -noise * ndtri(_NOTICEABLE)).all(axis=1).mean()),
        beats=float(ndtr(gaps / noise).mean()),
        regret=float(np.maximum(-gaps.min(axis=1), 0.0).mean()),
        mean=sign_of(study) * float(model.means[first]),
        spread=float(model.spread[first]),
        instances=len(losses),
        criterion="mean",
    )


def _by_rank(study: optuna.Study, values: StudyValues, most: int, seed: int) -> LikelyBest:
    chosen = _with_most_values(values.configurations, most)
    check_repeated(study, values, chosen)
    cells = {
        (str(place), repr(where)): [np.array([value]) for value in repeated]
        for place, one in enumerate(chosen)
        for where, repeated in one.values.items()
    }
    table = rank_cells([str(place) for place in range(len(chosen))], [1.0], cells, dict.fromkeys(i for _, i in cells))
    ratings = fit(table, draws=_DRAWS, seed=seed).log_ratings[:, -1, :]
    first = _lowest(-ratings.mean(axis=0), chosen, values.paired)
    gaps = ratings[:, [first]] - np.delete(ratings, first, axis=1)
    instances = len({where for _, where in cells})
    assumed = [f"ranks on {instances} instances, whatever the differences", "last where a configuration failed"]
    return LikelyBest(
        **_about(values, chosen, first, -ratings, assumed + _unseen(values.configurations, chosen)),
        support=float((gaps.min(axis=1) >= -logit(_NOTICEABLE)).mean()),
        beats=float(expit(gaps).mean()),
        regret=None,
        mean=None,
        spread=None,
        instances=instances,
        criterion="rank",
    )


def _about(
    values: StudyValues, chosen: Sequence[Configuration], first: int, draws: FloatArray, assumed: Sequence[str]
) -> dict[str, Any]:
    """What the answer says under both criteria; the lowest of a draw is the best."""
    p_best = np.bincount(draws.argmin(axis=1), minlength=len(chosen)) / len(draws)
    others = [place for place in np.argsort(-p_best, kind="stable").tolist() if place != first]
    unused = [f"{values.unused} finished trials without a value there do not count"] if values.unused else []
    return {
        "parameters": chosen[first].parameters,
        "probability": float(p_best[first]),
        "evaluations": len(chosen[first].numbers),
        "configurations": len(chosen),
        "left_out": len(values.configurations) - len(chosen),
        "basis": "; ".join([values.source, *assumed, *unused]) + ".",
        "rivals": tuple((chosen[place].parameters, float(p_best[place])) for place in others[:5]),
    }


def _lowest(estimates: FloatArray, configurations: Sequence[Configuration], paired: bool) -> int:
    """Place of the lowest estimate among configurations that were seen on nearly all instances.

    What others would do on the rest follows from the model alone.  Repetitions are no instances: any number will do.
    """
    seen = np.array([len(one.values) for one in configurations])
    advised = seen >= _NEARLY_ALL * seen.max() if paired else np.ones(seen.size, dtype=bool)
    return int(np.where(advised, estimates, np.inf).argmin())


def _with_most_values(configurations: Sequence[Configuration], most: int) -> list[Configuration]:
    """Configurations with most values, and of these the better ones, the first first."""
    return sorted(configurations, key=lambda one: (-len(one.numbers), float(np.mean(one.numbers))))[:most]


def _unseen(configurations: Sequence[Configuration], chosen: Sequence[Configuration]) -> list[str]:
    count = len(configurations) - len(chosen)
    return [f"{count} configurations with fewer or worse values are left out"] if count else []


def _resolution(losses: FloatArray) -> float:
    """Smallest difference between losses: equal ones do not show that there is no noise, but that it is smaller."""
    gaps = np.diff(np.unique(losses[~np.isnan(losses)]))
    real = gaps[gaps > 1e-12 * np.nanmax(np.abs(losses))]
    return float(real.min()) if real.size else 0.0


def _far_worse(losses: FloatArray, paired: bool) -> BoolArray:
    """Configurations that are usually worse than most by far, as if they had diverged.

    They are never the best, and their noise, often as large as their losses, would hide all differences between others.
    """
    usual = np.nanmedian(losses - np.nanmedian(losses, axis=1 if paired else None, keepdims=True), axis=0)
    low, middle = np.quantile(usual, [0.1, 0.5])
    # Of normal values this is at 6.4 standard deviations.  Of a few configurations no quantile is known.
    return (usual > middle + 5 * (middle - low)) & (low < middle) & (len(usual) >= 20)
