from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

optuna = pytest.importorskip("optuna")
pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")

from polarbear_plugins.integrations.optuna_sampler import likely_best  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler.similarity import parameter_correlations  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler.study_values import Configuration  # noqa: E402

TrialState = optuna.trial.TrialState

pytestmark = pytest.mark.usefixtures("quiet_optuna")
PolarBearPruner = pytest.importorskip("polarbear_plugins.integrations.optuna_pruner").PolarBearPruner
UNIFORM = optuna.distributions.FloatDistribution(0, 1)
X = {"x": UNIFORM}


def study_of(*trials: Any, **options: Any) -> Any:
    study = optuna.create_study(study_name="study", **options)
    study.add_trials(trials)
    return study


def trial(x: float, reports: Sequence[float] = (), value: float = 0.0, **options: Any) -> Any:
    """A trial that reports values at the steps 0, 1, ..."""
    options.setdefault("params", {"x": x})
    options.setdefault("distributions", X)
    if options.get("state") == TrialState.FAIL:
        return optuna.trial.create_trial(intermediate_values=dict(enumerate(reports)), **options)
    return optuna.trial.create_trial(value=value, intermediate_values=dict(enumerate(reports)), **options)


def repeated(values: dict[float, list[float]], **options: Any) -> Any:
    """A study with repeated trials of configurations."""
    return study_of(*(trial(x, value=value) for x, own in values.items() for value in own), **options)


def folds(values: dict[float, Sequence[float]], **options: Any) -> Any:
    """A study whose steps are declared to be folds."""
    options.setdefault("pruner", PolarBearPruner())
    return study_of(*(trial(x, own) for x, own in values.items()), **options)


# Epochs are not instances


def epochs(final: float) -> FloatArray:
    """A learning curve that starts high; the one with the better end is worse at most epochs."""
    return np.concatenate([np.linspace(3 + (final < 1), 2.5 + (final < 1), 49), [final]])


def test_two_trials_of_fifty_epochs_are_not_fifty_instances() -> None:
    study = study_of(trial(0.1, epochs(1.02), 1.02), trial(0.2, epochs(0.50), 0.50))
    with pytest.raises(InvalidInputError, match=r'up to 50 steps, .* pass steps="instances"; if they are epochs'):
        likely_best(study)
    with pytest.raises(InvalidInputError, match=r"2 configurations with one value each, and nothing tells luck"):
        likely_best(study, steps="times")


@pytest.mark.parametrize("how", ["pruner", "argument"])
def test_only_the_last_epoch_on_each_fold_counts(how: str) -> None:
    rng = np.random.default_rng(1)

    def curves(final: float) -> list[float]:
        ends = final + 0.01 * rng.normal(size=5)
        return [value for end in ends for value in (*epochs(final)[:19], end)]

    trials = trial(0.1, curves(1.02)), trial(0.2, curves(0.50))
    if how == "pruner":
        best = likely_best(study_of(*trials, pruner=PolarBearPruner(n_timepoints=20)))
        assert "Each 20 steps are an instance, whose last value counts (declared by PolarBearPruner)" in best.basis
    else:
        best = likely_best(study_of(*trials), n_timepoints=20)
        assert "(as given)" in best.basis
    assert (best.parameters, best.instances, best.evaluations) == ({"x": 0.2}, 5, 5)
    assert best.mean == pytest.approx(0.5, abs=0.02)
    assert best.probability > 0.99


def test_a_fold_without_its_last_epoch_has_no_value() -> None:
    whole, cut = [3.0, 1.0, 3.0, 1.1, 3.0, 0.9], [3.0, 2.0, 3.0, 2.1, 0.0]
    best = likely_best(
        study_of(trial(0.1, whole), trial(0.2, cut, state=TrialState.PRUNED), pruner=PolarBearPruner(n_timepoints=2))
    )
    assert (best.parameters, best.evaluations, best.instances) == ({"x": 0.1}, 3, 3)
    assert likely_best(
        study_of(trial(0.1, whole), trial(0.2, [9, 0.5, 9, 0.4, 9]), pruner=PolarBearPruner(n_timepoints=2))
    ).evaluations in (2, 3)


def test_epochs_of_one_fold_are_one_value() -> None:
    study = study_of(trial(0.1, epochs(1.02)), trial(0.2, epochs(0.5)), pruner=PolarBearPruner(n_timepoints=50))
    with pytest.raises(InvalidInputError, match="no two have values on two instances that they share"):
        likely_best(study)


def test_two_configurations_must_share_two_instances() -> None:
    def at(x: float, reports: dict[int, float]) -> Any:
        return optuna.trial.create_trial(params={"x": x}, distributions=X, value=0.0, intermediate_values=reports)

    study = study_of(at(0.1, {0: 1.0, 1: 2.0}), at(0.2, {1: 2.5, 2: 3.5, -1: 0.0}), pruner=PolarBearPruner())
    with pytest.raises(InvalidInputError, match="no two have values on two instances that they share"):
        likely_best(study)
    study.add_trial(at(0.3, {-1: 0.0, 1: 3.0, 2: 3.6}))
    assert likely_best(study).instances == 3  # a negative step is not an instance


def test_the_last_epoch_may_never_be_reached() -> None:
    study = study_of(trial(0.1, epochs(1.02)), trial(0.2, epochs(0.5)))
    with pytest.raises(InvalidInputError, match=r"0 configurations with usable values.*Each 51 steps"):
        likely_best(study, n_timepoints=51)


@pytest.mark.filterwarnings("ignore:WilcoxonPruner is experimental")
def test_the_steps_of_a_wilcoxon_pruner_are_instances() -> None:
    best = likely_best(folds({0.1: [1.0, 2.1, 3.0], 0.2: [2.0, 3.0, 4.1]}, pruner=optuna.pruners.WilcoxonPruner()))
    assert best.parameters == {"x": 0.1}
    assert "Steps are instances (declared by WilcoxonPruner); means over 3 instances" in best.basis


def test_steps_that_are_declared_and_never_reported_leave_the_returned_values() -> None:
    study = repeated({0.1: [1.0, 1.1, 0.9], 0.2: [3.0, 2.9, 3.1]}, pruner=PolarBearPruner())
    assert likely_best(study).basis.startswith("Repeated trials")


def test_what_steps_are_is_said_in_one_way() -> None:
    study = folds({0.1: [1.0, 2.0], 0.2: [2.0, 3.1]})
    with pytest.raises(InvalidInputError, match='n_timepoints is for steps="instances"'):
        likely_best(study, steps="times", n_timepoints=2)
    with pytest.raises(InvalidInputError, match='steps: expected "instances" or "times", got \'folds\''):
        likely_best(study, steps="folds")
    with pytest.raises(InvalidInputError, match="n_timepoints must be a whole number of at least 1, got 0"):
        likely_best(study, n_timepoints=0)
    with pytest.raises(InvalidInputError, match='criterion: expected "mean" or "rank", got \'median\''):
        likely_best(study, criterion="median")


# Luck and merit


def test_the_likely_best_is_not_the_luckiest() -> None:
    study = repeated({0.1: [1.0, 1.1, 0.9, 1.0, 1.2, 0.8], 0.2: [0.5, 3.0, 4.0, 3.5, 3.2, 2.8]})
    assert study.best_trial.params == {"x": 0.2}
    best = likely_best(study)
    assert best.parameters == {"x": 0.1}
    assert best.evaluations == 6
    assert 0.7 < best.probability < 1
    assert best.rivals[0][0] == {"x": 0.2}
    assert best.probability + best.rivals[0][1] == pytest.approx(1)


def test_one_value_each_is_refused() -> None:
    study = repeated({x / 10: [float(x)] for x in range(10)})
    with pytest.raises(InvalidInputError, match=r"10 configurations with one value each, .*PolarBearSampler"):
        likely_best(study)


def test_configurations_with_one_repetition_take_part() -> None:
    rng = np.random.default_rng(2)
    values = {x / 20: list(1 + rng.normal(size=1)) for x in range(1, 20)}
    best = likely_best(repeated({**values, 0.99: list(-5 + rng.normal(size=8)), 0.001: [-5.0]}))
    assert best.configurations == 21
    assert best.parameters in ({"x": 0.99}, {"x": 0.001})
    assert {best.parameters["x"], best.rivals[0][0]["x"]} == {0.99, 0.001}


def test_the_number_of_a_repetition_means_nothing() -> None:
    values = {0.1: [1.0, 2.0, 3.0, 4.0], 0.2: [2.0, 3.0, 4.0, 5.0]}
    shuffled = {0.1: [4.0, 1.0, 3.0, 2.0], 0.2: [2.0, 3.0, 5.0, 4.0]}
    one, other = likely_best(repeated(values)), likely_best(repeated(shuffled))
    assert (one.probability, one.spread) == (other.probability, pytest.approx(other.spread))
    # On shared instances the same values would show the same difference four times.
    assert likely_best(folds(values)).probability > one.probability + 0.1


def test_more_evaluations_make_it_surer() -> None:
    few, many = (likely_best(repeated({0.1: [1.0] * n, 0.2: [2.0] * n})) for n in (2, 20))
    assert 0.5 < few.probability < 0.95 < many.probability
    assert "repeated trials returned the same values" in few.basis
    assert "the same values" not in likely_best(repeated({0.1: [1.0, 1.1], 0.2: [2.0, 2.0]})).basis


def test_a_single_repetition_of_a_deterministic_objective_settles_nothing() -> None:
    once = {x / 10: [value] for x, value in enumerate(np.random.default_rng(16).normal(size=10).tolist())}
    least = min(once, key=once.__getitem__)
    best = likely_best(repeated({**once, least: 2 * once[least]}))
    assert best.parameters == {"x": least}
    assert best.probability < 0.9


def test_the_choice_does_not_depend_on_the_seed() -> None:
    rng = np.random.default_rng(3)
    study = folds({float(x): list(rng.normal(size=4)) for x in rng.random(12)})
    for criterion in ("mean", "rank"):
        answers = [likely_best(study, criterion=criterion, seed=seed) for seed in range(4)]
        assert len({answer.parameters["x"] for answer in answers}) == 1
        assert np.ptp([answer.probability for answer in answers]) < 0.05
        assert answers[0] == likely_best(study, criterion=criterion, seed=0)


def test_a_pruned_trial_with_a_lucky_start_does_not_win() -> None:
    rng = np.random.default_rng(4)
    steady = {x / 10: (x / 10 + rng.normal(scale=0.5, size=12)).tolist() for x in range(8)}
    finished = [trial(x, own) for x, own in steady.items()]
    start = min(np.mean(own) for own in steady.values()) - 0.1
    lucky = trial(0.95, [start, start], state=TrialState.PRUNED)
    best = likely_best(study_of(*finished, lucky, pruner=PolarBearPruner()))
    assert best.parameters == {"x": 0.0}
    assert any(parameters == {"x": 0.95} for parameters, _ in best.rivals)


def test_a_pruned_trial_counts_with_what_it_reported() -> None:
    rng = np.random.default_rng(5)
    level = 100 * rng.random(12)
    values = {x / 10: x / 10 + level + 0.01 * rng.normal(size=12) for x in range(1, 9)}
    finished = [trial(x, own) for x, own in values.items()]
    pruned = trial(0.05, level[:6] - 1, state=TrialState.PRUNED)
    best = likely_best(study_of(*finished, pruned, pruner=PolarBearPruner()))
    assert (best.parameters, best.evaluations, best.instances) == ({"x": 0.1}, 12, 12)
    assert best.rivals[0][0] == {"x": 0.05}  # weighed, but not seen on all instances
    assert not best.supported
    assert best.mean == pytest.approx(level.mean() + 0.1, abs=0.1)


# The criterion


NINES, TENS = [9.0] * 7 + [100.0], [10.0] * 8


def test_the_better_mean_wins_by_the_mean_and_more_wins_by_ranks() -> None:
    study = folds({0.1: NINES, 0.2: TENS})
    by_mean, by_rank = likely_best(study), likely_best(study, criterion="rank")
    assert (by_mean.criterion, by_mean.parameters) == ("mean", {"x": 0.2})
    assert (by_rank.criterion, by_rank.parameters) == ("rank", {"x": 0.1})
    assert by_rank.beats > 0.5
    assert (by_rank.mean, by_rank.spread, by_rank.regret) == (None, None, None)


def test_the_pruner_has_the_criterion() -> None:
    assert likely_best(folds({0.1: NINES, 0.2: TENS}, pruner=PolarBearPruner(criterion="rank"))).criterion == "rank"
    study = folds({0.1: NINES, 0.2: TENS}, pruner=PolarBearPruner(criterion="rank"))
    assert likely_best(study, criterion="mean").criterion == "mean"


def test_ranks_within_an_instance_do_not_see_the_scale_of_values() -> None:
    rng = np.random.default_rng(6)
    values = {x / 5: rng.normal(loc=x / 5, size=6) for x in range(5)}
    stretched = {x: np.exp(own) * 10.0 ** np.arange(6) for x, own in values.items()}
    plain, other = (likely_best(folds(table), criterion="rank") for table in (values, stretched))
    assert plain.parameters == other.parameters
    assert plain.probability == pytest.approx(other.probability, abs=0.03)


# Maximisation, units


def test_the_likely_best_of_a_maximised_study_is_the_highest() -> None:
    best = likely_best(repeated({0.1: [1.0, 1.1] * 5, 0.2: [2.0, 2.1] * 5}, direction="maximize"))
    assert best.parameters == {"x": 0.2}
    assert best.mean == pytest.approx(2.05, abs=0.05)
    ranked = repeated({0.1: [1.0] * 5, 0.2: [2.0] * 5}, direction="maximize")
    assert likely_best(ranked, criterion="rank").parameters == {"x": 0.2}


def test_maximisation_is_minimisation_with_the_other_sign() -> None:
    rng = np.random.default_rng(7)
    values = {float(x): rng.normal(size=5) for x in rng.random(8)}
    low = likely_best(folds(values))
    high = likely_best(folds({x: -own for x, own in values.items()}, direction="maximize"))
    assert (low.parameters, low.probability, low.support, low.regret) == (
        high.parameters,
        high.probability,
        high.support,
        high.regret,
    )
    assert low.mean == -high.mean


def test_regret_mean_and_spread_are_in_the_units_of_the_values() -> None:
    rng = np.random.default_rng(8)
    values = {float(x): rng.normal(size=5) for x in rng.random(8)}
    one, thousand = likely_best(folds(values)), likely_best(folds({x: 1000 * own for x, own in values.items()}))
    assert one.regret > 0
    for name in ("regret", "mean", "spread"):
        assert getattr(thousand, name) == pytest.approx(1000 * getattr(one, name))
    for name in ("probability", "support", "beats"):
        assert getattr(thousand, name) == pytest.approx(getattr(one, name), abs=0.01)


# Instances that are a parameter


def race(values: dict[float, dict[int, float]], extra: Sequence[Any] = ()) -> Any:
    distributions = {**X, "instance": optuna.distributions.IntDistribution(0, 99)}
    return study_of(
        *(
            trial(x, value=value, params={"x": x, "instance": where}, distributions=distributions)
            for x, own in values.items()
            for where, value in own.items()
        ),
        *extra,
    )


def test_values_are_compared_on_the_same_instance() -> None:
    easy, hard = {k: 0.1 * k for k in range(6)}, {k: 100.0 + k for k in range(6, 12)}
    both = {**easy, **hard}
    better = {k: value - 1 + 0.1 * (k % 3) for k, value in hard.items()}
    best = likely_best(race({0.1: both, 0.2: easy, 0.3: better}))
    assert (best.instances, best.rivals[0]) == (12, ({"x": 0.3}, 1 - best.probability))
    assert "Instances are the values of the parameter 'instance'" in best.basis


def test_the_parameter_goes_before_declared_steps() -> None:
    study = race({0.1: {0: 1.0, 1: 1.1}, 0.2: {0: 2.0, 1: 2.2}}, extra=[trial(0.3, [0.0, 0.0])])
    best = likely_best(study, steps="instances")
    assert (best.parameters, best.configurations) == ({"x": 0.1}, 2)
    assert "1 finished trials without a value there do not count" in best.basis


def test_repeated_runs_on_an_instance_are_not_more_instances() -> None:
    once = {0.1: {0: 1.0, 1: 1.5}, 0.2: {0: 1.2, 1: 1.4}}
    one = likely_best(race(once))
    study = race(once)
    study.add_trials(race(once).trials)
    twice = likely_best(study)
    assert (twice.probability, twice.instances, twice.evaluations) == (one.probability, 2, 2 * one.evaluations)


def test_the_instance_may_have_another_name() -> None:
    distributions = {**X, "fold": optuna.distributions.CategoricalDistribution(["a", "b", "c"])}
    study = study_of(
        *(
            trial(x, value=x + noise, params={"x": x, "fold": fold}, distributions=distributions)
            for x in (0.1, 0.9)
            for fold, noise in {"a": 0.0, "b": 0.1, "c": -0.1}.items()
        )
    )
    assert likely_best(study, instance="fold").parameters == {"x": 0.1}


# Failures


def test_a_configuration_that_failed_on_a_fold_has_no_mean_and_is_counted() -> None:
    study = folds({0.1: [0.0, 0.0, np.nan, 0.0], 0.2: [1.0, 1.1, 0.9, 1.0], 0.3: [2.0, 2.1, 2.2, 1.9]})
    best = likely_best(study)
    assert (best.parameters, best.configurations, best.left_out) == ({"x": 0.2}, 2, 1)
    assert "1 configurations that failed on an instance are left out" in best.basis
    by_rank = likely_best(study, criterion="rank")
    assert (by_rank.configurations, by_rank.left_out) == (3, 0)
    with pytest.raises(InvalidInputError, match="1 configurations with usable values"):
        likely_best(folds({0.1: [0.0, np.inf], 0.2: [1.0, 2.0]}))


def test_a_failure_is_the_last_rank() -> None:
    wins = folds({0.1: [0.0, 0.0] + [np.nan] * 6, 0.2: [1.0] * 8, 0.3: [2.0] * 8})
    assert likely_best(wins, criterion="rank").parameters == {"x": 0.2}


def test_failed_trials_are_counted_in_words() -> None:
    study = folds({0.1: [1.0, 1.1, 1.0], 0.2: [2.0, 2.1, 1.9]})
    study.add_trial(trial(0.3, [0.0, 0.0], state=TrialState.FAIL))
    best = likely_best(study)
    assert best.configurations == 2
    assert "1 finished trials without a value there do not count" in best.basis


def test_configurations_that_diverged_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(9)
    good = {x / 100: x / 10 + 0.05 * rng.normal(size=6) for x in range(30)}
    diverged = {0.9 + x / 1000: 1000 * np.exp(rng.normal(size=6)) for x in range(10)}
    best = likely_best(folds({**good, **diverged}))
    assert (best.parameters["x"], best.left_out) == (0.0, 10)
    assert best.probability > 0.9
    assert "10 configurations that are far worse than most are left out" in best.basis


def test_a_few_configurations_or_ties_have_not_diverged() -> None:
    assert likely_best(folds({0.1: [1.0, 2.0, 3.0], 0.2: [1.01, 2.02, 3.01], 0.3: [1.5, 2.6, 3.5]})).left_out == 0
    ties = {x / 100: [1.0, 2.0, 3.0] for x in range(25)}
    assert likely_best(folds({**ties, 0.5: [1.1, 2.2, 2.8]})).left_out == 0


# What is compared


def test_those_with_most_values_are_compared() -> None:
    rng = np.random.default_rng(10)
    values = {x / 20: rng.normal(size=3 + x) for x in range(20)}
    best = likely_best(folds(values), most=5)
    assert (best.configurations, best.left_out) == (5, 15)
    assert best.parameters["x"] >= 15 / 20
    assert "15 configurations with fewer or worse values are left out" in best.basis


def test_at_most_64_are_ranked() -> None:
    rng = np.random.default_rng(17)
    best = likely_best(folds({float(x): rng.normal(size=3) for x in rng.random(70)}), criterion="rank")
    assert (best.configurations, best.left_out) == (64, 6)


def test_the_likely_best_needs_several_configurations() -> None:
    with pytest.raises(InvalidInputError, match="has 1 configurations"):
        likely_best(repeated({0.1: [1.0, 2.0]}))
    with pytest.raises(InvalidInputError, match="one objective"):
        likely_best(optuna.create_study(directions=["minimize", "minimize"]))
    with pytest.raises(InvalidInputError, match="most must be a whole number of at least 2"):
        likely_best(folds({0.1: [1.0, 2.0], 0.2: [2.0, 3.1]}), most=1)


def test_configurations_that_never_differ_are_equally_likely() -> None:
    for study in (folds({x / 10: [1.0, 2.0, 3.0] for x in range(3)}), repeated({x / 10: [1.0] * 3 for x in range(3)})):
        best = likely_best(study)
        assert best.probability == pytest.approx(1 / 3, abs=0.05)
        assert [probability for _, probability in best.rivals] == pytest.approx([1 / 3, 1 / 3], abs=0.05)


# In words


def test_it_says_that_no_choice_is_supported_and_what_would_settle_it() -> None:
    unsure = likely_best(folds({0.1: [1.0, 2.0, 1.5], 0.2: [1.1, 1.9, 1.4], 0.3: [1.2, 1.8, 1.6]}))
    assert not unsure.supported
    first, second, third = str(unsure).splitlines()
    assert first.startswith("{'x': 0.2}: the best of 3 with probability 0.")
    assert second.startswith(f"No choice is supported (support {unsure.support:.2f}): the best may also be {{'x': 0.")
    assert second.endswith("Evaluate these on more instances.")
    assert third == unsure.basis


def test_it_says_what_supports_a_choice() -> None:
    sure = likely_best(folds({0.1: [1.0, 2.1, 1.5, 1.0], 0.2: [9.1, 9.9, 9.4, 9.2]}))
    assert sure.supported
    assert str(sure).splitlines()[1] == f"No other is noticeably better (support {sure.support:.2f})."


def test_support_is_at_least_the_probability() -> None:
    rng = np.random.default_rng(11)
    study = folds({float(x): rng.normal(size=4) for x in rng.random(12)})
    for criterion in ("mean", "rank"):
        best = likely_best(study, criterion=criterion)
        assert best.probability < best.support < 1
        assert 0.5 < best.beats < 1


# Configurations with similar parameters


def configuration(**parameters: Any) -> Configuration:
    distributions = {
        name: {
            "x": UNIFORM,
            "rate": optuna.distributions.FloatDistribution(1e-4, 1e-2, log=True),
            "layers": optuna.distributions.IntDistribution(1, 5),
            "kind": optuna.distributions.CategoricalDistribution(["a", "b", None]),
        }[name]
        for name in parameters
    }
    return Configuration(parameters, distributions)


def distances(*configurations: Configuration) -> FloatArray:
    """Distances that the first correlation stands for, in the order of the configurations, from the first."""
    [correlation, *_] = parameter_correlations([*configurations, *[configurations[0]] * 4])
    grid = np.linspace(0, 3, 30_001)
    scaled = np.sqrt(5) * grid / 0.1
    matern = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return np.interp(-correlation[0, 1 : len(configurations)], -matern, grid)


def test_a_range_is_a_distance_of_one_also_on_a_log_scale() -> None:
    assert distances(configuration(x=0.0), configuration(x=0.2), configuration(x=0.5)) == pytest.approx(
        [0.2, 0.5], abs=1e-3
    )
    assert distances(configuration(rate=1e-4), configuration(rate=1e-3)) == pytest.approx([0.5], abs=1e-3)
    assert distances(configuration(layers=1), configuration(layers=2)) == pytest.approx([0.25], abs=1e-3)


def test_another_choice_is_a_distance_of_one() -> None:
    a, b = configuration(x=0.5, kind="a"), configuration(x=0.5, kind="b")
    missing, none = configuration(x=0.5), configuration(x=0.5, kind=None)
    assert distances(a, b, missing, none) == pytest.approx([1, 1, 1], abs=1e-3)
    assert distances(missing, none) == pytest.approx([1], abs=1e-3)


def test_a_missing_number_is_far_from_all_and_near_to_other_missing_ones() -> None:
    missing = configuration(x=0.5)
    near_one = distances(missing, configuration(x=0.5, rate=1e-4), configuration(x=0.5, rate=1e-3), missing)
    assert near_one == pytest.approx([1, np.sqrt(0.75), 0], abs=2e-3)


def test_correlations_are_correlations() -> None:
    rng = np.random.default_rng(12)
    some = [
        configuration(x=rng.random(), **({"rate": 10 ** rng.uniform(-4, -2)} if k % 2 else {"kind": "ab"[k % 4 // 2]}))
        for k in range(20)
    ]
    correlations = parameter_correlations(some)
    assert len(correlations) == 5
    for one in correlations:
        assert np.diag(one) == pytest.approx(1)
        assert np.linalg.eigvalsh(one).min() > -1e-9


def test_few_configurations_and_those_without_numbers_are_not_correlated() -> None:
    assert parameter_correlations([configuration(x=x) for x in (0.1, 0.2, 0.3)]) == []
    assert parameter_correlations([configuration(kind="a"), configuration(kind="b")] * 3) == []
    assert parameter_correlations([configuration(kind="a")] * 5) == []


def test_a_parameter_with_one_value_or_changing_ranges_is_no_problem() -> None:
    single = Configuration({"x": 0.5}, {"x": optuna.distributions.FloatDistribution(0.5, 0.5)})
    assert all((one == 1).all() for one in parameter_correlations([single] * 4))
    wide = Configuration({"x": 2.0}, {"x": optuna.distributions.FloatDistribution(0, 2)})
    assert distances(wide, configuration(x=1.0)) == pytest.approx([0.5], abs=1e-3)
    mixed = Configuration({"x": "auto"}, {"x": optuna.distributions.CategoricalDistribution(["auto"])})
    layers = configuration(layers=3)
    assert len(parameter_correlations([mixed, configuration(x=1.0), layers, layers])) == 5


def test_conditional_parameters_and_choices_are_compared() -> None:
    rng = np.random.default_rng(13)
    trials = []
    for kind in ("tree", "net"):
        for x in rng.random(6):
            distributions = {"kind": optuna.distributions.CategoricalDistribution(["tree", "net"])}
            parameters = {"kind": kind, "depth" if kind == "tree" else "rate": float(x)}
            distributions[list(parameters)[1]] = UNIFORM
            reports = (kind == "tree") + x + 0.05 * rng.normal(size=6)
            trials.append(trial(0.0, reports, params=parameters, distributions=distributions))
    best = likely_best(study_of(*trials, pruner=PolarBearPruner()))
    assert best.parameters["kind"] == "net"
    assert set(best.parameters) == {"kind", "rate"}
    assert "similar parameters may have similar means" in best.basis


def test_neighbours_settle_what_a_configuration_alone_does_not() -> None:
    rng = np.random.default_rng(14)
    places = np.linspace(0, 1, 41)
    values = {float(x): 4 * (x - 0.6) ** 2 + rng.normal(scale=0.4, size=4) for x in places}
    best = likely_best(folds(values))
    assert abs(best.parameters["x"] - 0.6) < 0.1
    assert best.spread < 0.7 * 0.4 / np.sqrt(4)


@pytest.mark.parametrize("criterion", ["mean", "rank"])
def test_a_configuration_that_has_not_seen_nearly_all_instances_is_a_rival_and_not_the_answer(criterion: Any) -> None:
    rng = np.random.default_rng(3)
    whole = [trial(x, (x + 0.1 * rng.normal(size=20)).tolist()) for x in (0.3, 0.5)]
    for seen, answer in ((17, 0.3), (18, 0.1)):
        cut = trial(0.1, (0.1 * rng.normal(size=seen) - 5).tolist(), state=TrialState.PRUNED)
        best = likely_best(study_of(*whole, cut, pruner=PolarBearPruner(criterion=criterion)))
        assert best.parameters["x"] == answer
        assert (best.probability < 0.1) == (answer == 0.3)
        assert best.supported == (answer == 0.1)
        assert seen == 18 or best.rivals[0][0] == {"x": 0.1}


def test_errors_that_neighbours_make_together_do_not_hide_their_difference() -> None:
    rng = np.random.default_rng(2)
    places = np.linspace(0, 1, 15)
    scaled = np.sqrt(5) * np.abs(places[:, None] - places) / 0.4
    smooth = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    together = np.linalg.cholesky(smooth + 1e-9 * np.eye(15)) @ rng.normal(size=(15, 6))
    means = 0.3 * (places - 0.3) ** 2 - 0.6 * (np.arange(15) == 10)  # far below its neighbours, not below all
    values = means[:, None] + together + 0.1 * rng.normal(size=(15, 6))
    best = likely_best(folds(dict(zip(places.tolist(), values, strict=True))))
    assert best.parameters["x"] == places[10] == places[values.mean(axis=1).argmin()]


# Calibration


def simulated(rng: np.random.Generator, smooth: bool, heavy: bool = False) -> tuple[Any, float]:
    """A study with means drawn from the model, and the place of the best."""
    n, n_folds = 12, 5
    places = rng.random(n)
    scaled = np.sqrt(5) * np.abs(places[:, None] - places) / 0.4
    correlation = (1 + scaled + scaled**2 / 3) * np.exp(-scaled) if smooth else np.eye(n)
    share = rng.random()
    means = np.sqrt((1 / share - 1) / n_folds) * (
        np.linalg.cholesky(correlation + 1e-9 * np.eye(n)) @ rng.normal(size=n)
    )
    noise = rng.standard_t(3, size=(n_folds, n)) if heavy else rng.normal(size=(n_folds, n))
    losses = means + noise + 3 * rng.normal(size=(n_folds, 1))
    return folds(dict(zip(places.tolist(), losses.T, strict=True))), float(places[means.argmin()])


def probabilities_and_hits(studies: int, **options: bool) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(15)
    found = []
    for _ in range(studies):
        study, place = simulated(rng, **options)
        best = likely_best(study)
        found.append((best.probability, best.parameters["x"] == place))
    probabilities, hits = np.array(found, dtype=np.float64).T
    return probabilities, hits


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [False, True])
def test_the_probability_is_how_often_the_choice_is_the_best(smooth: bool) -> None:
    probabilities, hits = probabilities_and_hits(60, smooth=smooth)
    error = np.sqrt((probabilities * (1 - probabilities)).mean() / len(hits))
    assert abs(probabilities.mean() - hits.mean()) < 3 * error


@pytest.mark.slow
def test_folds_with_heavy_tails_do_not_make_it_grossly_overconfident() -> None:
    probabilities, hits = probabilities_and_hits(60, smooth=False, heavy=True)
    assert probabilities.mean() < hits.mean() + 0.1
