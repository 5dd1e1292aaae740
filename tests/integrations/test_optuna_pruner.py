from __future__ import annotations

import copy
import itertools
import json
import logging
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

optuna = pytest.importorskip("optuna")

from optuna.trial import Trial, TrialState, create_trial  # noqa: E402

from polarbear_plugins import PolarBearError  # noqa: E402
from polarbear_plugins.errors import PolarBearWarning  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner, explain, report  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

Losses = Mapping[int, float] | Iterable[float]


def by_step(losses: Losses) -> dict[int, float]:
    return dict(losses) if isinstance(losses, Mapping) else dict(enumerate(losses))


def study_of(
    *finished: Losses, pruner: optuna.pruners.BasePruner | None = None, direction: str = "minimize"
) -> optuna.Study:
    """A study in memory with trials that finished."""
    study = optuna.create_study(pruner=pruner or PolarBearPruner(), direction=direction)
    for losses in finished:
        add(study, losses)
    return study


def add(
    study: optuna.Study, losses: Losses, value: float | None = None, state: TrialState = TrialState.COMPLETE
) -> None:
    steps = by_step(losses)
    if value is None:
        finite = [loss for loss in steps.values() if math.isfinite(loss)]
        value = float(np.mean(finite)) if finite else 0.0
    study.add_trial(create_trial(value=value, intermediate_values=steps, state=state))


def running(study: optuna.Study, losses: Losses) -> Trial:
    trial = study.ask()
    for step, loss in by_step(losses).items():
        trial.report(loss, step)
    return trial


def judged(study: optuna.Study, losses: Losses) -> bool:
    return running(study, losses).should_prune()


GOOD = [1.0 * i + (i * i % 7) / 16 for i in range(12)]


def worse(by: float) -> list[float]:
    """Losses above the good ones; no two differences tie, which WilcoxonPruner is slow at."""
    return [loss + by + i / 32 * (1 + by) for i, loss in enumerate(GOOD, start=1)]


BAD = worse(1.0)


def quietly(make: Callable[[], optuna.pruners.BasePruner]) -> Callable[[], optuna.pruners.BasePruner]:
    """Optuna warns of its experimental pruners."""

    def made() -> optuna.pruners.BasePruner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return make()

    return made


MAKERS = {
    "polarbear": PolarBearPruner,
    "polarbear-two-timepoints": lambda: PolarBearPruner(n_timepoints=2),
    "nop": optuna.pruners.NopPruner,
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=1),
    "percentile": lambda: optuna.pruners.PercentilePruner(25.0, n_startup_trials=1),
    "threshold": lambda: optuna.pruners.ThresholdPruner(lower=-50.0, upper=50.0),
    "patient": quietly(
        lambda: optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(n_startup_trials=1), patience=1)
    ),
    "successive-halving": lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9),
    "wilcoxon": quietly(lambda: optuna.pruners.WilcoxonPruner(p_threshold=0.05)),
}
# They note in the trial which rung it is on, or why it is pruned.
WRITES_TO_STORAGE = {"successive-halving", "hyperband", "polarbear", "polarbear-two-timepoints"}
# Which bracket a trial is in depends on the name of the study, and added trials stand on no rung.
NEVER_PRUNES_THIS = {"nop", "hyperband", "successive-halving"}
NOT_SYMMETRIC = {"hyperband"}
# They warn of nan or infinite values, themselves or through numpy.
NOISY = {"wilcoxon", "median", "patient", "percentile"}


def names(*without: set[str]) -> list[str]:
    return sorted(set(MAKERS).difference(*without))


class TestPrunerContract:
    """What every pruner promises to Optuna and its users; Optuna's own are held to it as well."""

    @pytest.mark.parametrize("name", names())
    def test_a_trial_that_has_reported_nothing_is_not_pruned(self, name: str) -> None:
        study = study_of(GOOD, BAD, pruner=MAKERS[name]())
        assert study.ask().should_prune() is False

    @pytest.mark.parametrize("name", names())
    def test_the_first_trial_of_a_study_is_not_pruned(self, name: str) -> None:
        study = study_of(pruner=MAKERS[name]())
        trial = study.ask()
        for step, loss in enumerate(GOOD):
            trial.report(loss, step)
            assert trial.should_prune() is False

    @pytest.mark.parametrize("name", names())
    def test_the_answer_is_true_or_false(self, name: str) -> None:
        study = study_of(GOOD, worse(0.5), worse(2.0), pruner=MAKERS[name]())
        for losses in (worse(-0.9), BAD, worse(100.0)):
            assert isinstance(judged(study, losses), bool | np.bool)  # Optuna's own give both

    @pytest.mark.parametrize("name", names(NEVER_PRUNES_THIS))
    def test_a_trial_that_is_much_worse_everywhere_is_pruned(self, name: str) -> None:
        study = study_of(*(worse(k / 10) for k in range(5)), pruner=MAKERS[name]())
        trial = study.ask()
        answers = []
        for step in range(12):
            trial.report(100.0 + step + step * step / 50, step)
            answers.append(trial.should_prune())
        assert any(answers)

    @pytest.mark.parametrize("name", names({"threshold"}))
    def test_the_best_trial_is_not_pruned(self, name: str) -> None:
        study = study_of(*(worse(5.0 + k) for k in range(5)), pruner=MAKERS[name]())
        trial = study.ask()
        for step, loss in enumerate(sorted(GOOD, reverse=True)):  # improves, for those who look at that
            trial.report(loss - 20.0 - step * step / 50, step)
            assert not trial.should_prune()

    @pytest.mark.parametrize("name", names(WRITES_TO_STORAGE))
    def test_asking_changes_nothing_and_asking_again_gives_the_same_answer(self, name: str) -> None:
        study = study_of(GOOD, BAD, worse(2.0), pruner=MAKERS[name]())
        trial = running(study, worse(3.0))
        before = copy.deepcopy(study.get_trials())
        frozen = study.get_trials()[-1]
        kept = copy.deepcopy(frozen)
        answers = {study.pruner.prune(study, frozen) for _ in range(3)} | {trial.should_prune()}
        assert len(answers) == 1
        assert frozen == kept
        assert study.get_trials() == before

    @pytest.mark.parametrize("name", names(NOT_SYMMETRIC))
    @pytest.mark.parametrize("losses", [worse(0.5), worse(3.0), worse(100.0), worse(-0.5)])
    def test_maximising_the_negative_is_minimising(self, name: str, losses: list[float]) -> None:
        finished = [GOOD, BAD, worse(2.0)]
        low = study_of(*finished, pruner=MAKERS[name]())
        negative = [[-loss for loss in one] for one in finished]
        high = study_of(*negative, pruner=MAKERS[name](), direction="maximize")
        assert judged(low, losses) == judged(high, [-loss for loss in losses])

    @pytest.mark.parametrize("name", names(NOISY))
    @pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
    def test_odd_values_raise_nothing(self, name: str, odd: float) -> None:
        study = study_of(GOOD, [odd, *GOOD[1:]], [odd] * 12, pruner=MAKERS[name]())
        for losses in ([1.0, odd, 3.0, odd], [odd] * 12):
            assert isinstance(judged(study, losses), bool | np.bool)

    @pytest.mark.parametrize("name", names())
    def test_a_copy_judges_alike(self, name: str) -> None:
        study = study_of(GOOD, BAD, worse(2.0), pruner=MAKERS[name]())
        trial = running(study, worse(3.0))
        frozen = study.get_trials()[trial.number]
        clone = pickle.loads(pickle.dumps(study.pruner))  # noqa: S301 - our own
        assert clone.prune(study, frozen) == study.pruner.prune(study, frozen)

    @pytest.mark.parametrize("name", names())
    def test_a_whole_study_ends_in_finished_and_pruned_trials(self, name: str) -> None:
        study = study_of(pruner=MAKERS[name]())
        rng = np.random.default_rng(1)

        def objective(trial: Trial) -> float:
            effect = float(rng.normal())
            losses = []
            for step in range(8):
                losses.append(effect + float(rng.normal()))
                trial.report(losses[-1], step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return float(np.mean(losses))

        study.optimize(objective, n_trials=12)
        assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
        assert study.best_trial.state == TrialState.COMPLETE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"goal": "win"}, 'goal: expected "keep" or "optimize", got \'win\'.'),
        ({"criterion": "best"}, 'criterion: expected "mean" or "rank", got \'best\'.'),
        ({"alpha": 1.0}, "alpha: expected a number between 0.5 and 1, both excluded, got 1."),
        ({"alpha": 0.5}, "alpha: expected a number between 0.5 and 1, both excluded, got 0.5."),
        ({"alpha": math.nan}, "alpha: expected a finite number, got nan."),
        ({"alpha": "0.9"}, "alpha: expected a finite number, got '0.9'."),
        ({"epsilon": -0.1}, "epsilon: expected a number from 0 to below 0.5, got -0.1."),
        ({"epsilon": 0.5}, "epsilon: expected a number from 0 to below 0.5, got 0.5."),
        ({"epsilon": None}, "epsilon: expected a finite number, got None."),
        ({"min_instances": 0}, "min_instances must be a whole number of at least 1, got 0."),
        ({"min_instances": 2.5}, "min_instances must be a whole number of at least 1, got 2.5."),
        ({"max_references": -1}, "max_references must be a whole number of at least 1, got -1."),
        ({"max_references": True}, "max_references must be a whole number of at least 1, got True."),
        ({"n_timepoints": 0}, "n_timepoints must be a whole number of at least 1, got 0."),
    ],
)
def test_a_wrong_setting_is_refused_at_once(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        PolarBearPruner(**arguments)  # type: ignore[arg-type]
    assert isinstance(caught.value, PolarBearError)


def test_settings_are_keywords_only() -> None:
    with pytest.raises(TypeError):
        PolarBearPruner(0.9)  # type: ignore[misc]


def test_the_text_of_a_pruner_makes_it_again() -> None:
    pruner = PolarBearPruner(alpha=0.9, n_timepoints=3)
    assert repr(eval(repr(pruner))) == repr(pruner)  # noqa: S307 - our own


def test_two_trials_are_compared_by_the_beta_posterior() -> None:
    # 6 losses: P(p > 1/2) = 1 - 2^-7 = 0.992; 7 losses: 0.996.
    study = study_of(GOOD, pruner=PolarBearPruner(alpha=0.995, epsilon=0.0))
    assert not judged(study, BAD[:6])
    assert judged(study, BAD[:7])


def test_the_wider_the_region_of_equivalence_the_longer_a_trial_lives() -> None:
    lives = []
    for epsilon in (0.0, 0.1, 0.2):
        study = study_of(range(40), pruner=PolarBearPruner(alpha=0.99, epsilon=epsilon))
        lives.append(next(n for n in range(41) if judged(study, [k + 0.5 for k in range(n)])))
    assert lives == sorted(set(lives))


def test_no_trial_is_pruned_before_it_had_its_instances() -> None:
    study = study_of(*([loss + k / 10 for loss in GOOD] for k in range(8)), pruner=PolarBearPruner(min_instances=7))
    assert not judged(study, [loss + 9 for loss in GOOD[:6]])
    assert judged(study, [loss + 9 for loss in GOOD[:7]])


def test_the_order_of_the_instances_does_not_matter() -> None:
    study = study_of(GOOD, [loss + 0.5 for loss in GOOD])
    backwards = dict(reversed(list(enumerate(BAD))))
    assert judged(study, backwards) == judged(study, BAD)


def test_instances_of_different_scales_count_alike() -> None:
    scale = [10.0 ** (k - 6) for k in range(12)]
    finished = [GOOD, [loss + 0.5 for loss in GOOD]]
    plain, scaled = (
        study_of(*finished),
        study_of(*([a * b for a, b in zip(one, scale, strict=True)] for one in finished)),
    )
    for n in range(3, 13):
        assert judged(plain, BAD[:n]) == judged(scaled, [a * b for a, b in zip(BAD[:n], scale, strict=False)])


def test_a_single_huge_loss_prunes_nothing() -> None:
    study = study_of(GOOD, GOOD)
    assert not judged(study, [1e9, *(loss - 1 for loss in GOOD[1:])])


def test_equal_trials_are_never_pruned() -> None:
    study = study_of(*[GOOD] * 20)
    assert not any(judged(study, GOOD[:n]) for n in range(13))


def test_a_finished_trial_with_other_instances_helps_through_third_trials() -> None:
    def with_help(*others: Losses) -> bool:
        return judged(study_of(GOOD, *others, pruner=PolarBearPruner(alpha=0.98)), BAD[:5])

    assert not with_help()
    assert with_help(*([loss + 0.5 + k / 10 for loss in GOOD] for k in range(6)))


def test_any_overlap_of_instances_is_used() -> None:
    study = study_of({k: float(k) for k in range(0, 40, 2)}, {k: k + 0.1 for k in range(0, 40, 3)})
    assert judged(study, {k: k + 5.0 for k in range(40)})
    assert not judged(study, {k: k - 5.0 for k in range(40)})


def test_trials_that_were_pruned_or_failed_or_run_are_no_references() -> None:
    study = study_of()
    add(study, GOOD, state=TrialState.PRUNED)
    study.add_trial(create_trial(intermediate_values=by_step(GOOD), state=TrialState.FAIL))
    running(study, GOOD)
    assert not judged(study, BAD)


def test_a_finished_trial_is_not_its_own_reference() -> None:
    study = study_of(GOOD, pruner=PolarBearPruner(min_instances=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not study.pruner.prune(study, study.trials[0])


@pytest.mark.parametrize("failure", [math.nan, math.inf])
def test_a_failure_on_an_instance_is_a_loss_there(failure: float) -> None:
    study = study_of(GOOD, GOOD)
    assert judged(study, [failure] * 12)
    assert not judged(study_of([failure] * 12), GOOD)
    assert not judged(study_of([failure] * 12), [failure] * 12)


def test_minus_infinity_is_a_win() -> None:
    assert not judged(study_of(GOOD, GOOD), [-math.inf] * 12)
    assert judged(study_of([-math.inf] * 12), GOOD)


def test_a_failure_is_a_loss_also_when_maximising() -> None:
    study = study_of(GOOD, GOOD, direction="maximize")
    assert judged(study, [math.nan] * 12)
    assert judged(study, [-math.inf] * 12)
    assert not judged(study, [math.inf] * 12)


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], pruner=PolarBearPruner())
    frozen = create_trial(values=[1.0, 2.0], intermediate_values={0: 1.0})
    with pytest.raises(ValueError, match="one objective, got 2"):
        study.pruner.prune(study, frozen)
    with pytest.raises(ValueError, match="one objective, got 2"):
        study.pruner.estimate(study, frozen)


def test_nothing_in_common_is_warned_of_once_and_prunes_nothing() -> None:
    study = study_of(dict.fromkeys(range(10), 1.0))
    trial = running(study, dict.fromkeys(range(20, 30), 9.0))
    with pytest.warns(PolarBearWarning, match="Trial 1 shares no step with any finished trial") as caught:
        answers = [trial.should_prune() for _ in range(3)]
    assert answers == [False] * 3
    assert len(caught) == 1


def test_negative_steps_are_warned_of_once_and_prune_nothing() -> None:
    study = study_of(GOOD)
    bad = create_trial(state=TrialState.RUNNING, intermediate_values={k - 6: loss for k, loss in enumerate(BAD)})
    bad.number = 7
    with pytest.warns(PolarBearWarning, match="Trial 7 has the negative step -6") as caught:
        answers = [study.pruner.prune(study, bad) for _ in range(3)]
    assert answers == [False] * 3
    assert len(caught) == 1


def test_a_finished_trial_with_negative_steps_is_left_out() -> None:
    study = study_of({k - 6: -9.0 for k in range(18)}, GOOD)
    with pytest.warns(PolarBearWarning, match="Trial 0 has the negative step -6"):
        assert not judged(study, GOOD)


def test_only_the_best_finished_trials_are_compared_with() -> None:
    study = study_of(pruner=PolarBearPruner(max_references=1))
    add(study, BAD, value=-1.0)  # what the objective says counts, not what was reported
    add(study, GOOD, value=5.0)
    assert not judged(study, BAD)
    assert not judged(study, [loss + 0.5 for loss in GOOD])


class TestTime:
    """Fold times epoch: a trial goes if one other is better at every timepoint."""

    def study(self) -> optuna.Study:
        study = optuna.create_study(pruner=PolarBearPruner(n_timepoints=3, alpha=0.95, epsilon=0.0))
        trial = study.ask()
        for instance, time in itertools.product(range(10), range(3)):
            study.pruner.report(trial, 10.0 - time, instance=instance, time=time)
        study.tell(trial, 8.0)
        return study

    def judged(self, offset: Callable[[int], float], cells: Iterable[tuple[int, int]]) -> bool:
        study = self.study()
        trial = study.ask()
        for instance, time in cells:
            report(trial, 10.0 - time + offset(time), instance=instance, time=time)
        return trial.should_prune()

    def test_the_step_is_instance_times_timepoints_plus_time(self) -> None:
        assert list(self.study().trials[0].intermediate_values) == list(range(30))

    def test_worse_at_every_timepoint_is_pruned(self) -> None:
        assert self.judged(lambda _: 1.0, itertools.product(range(10), range(3)))

    @pytest.mark.parametrize("good", range(3))
    def test_better_at_one_timepoint_is_kept(self, good: int) -> None:
        assert not self.judged(lambda time: -1.0 if time == good else 1.0, itertools.product(range(10), range(3)))

    def test_a_timepoint_that_was_not_seen_does_not_count(self) -> None:
        assert self.judged(lambda _: 1.0, itertools.product(range(10), range(2)))

    def test_a_timepoint_seen_on_few_instances_is_waited_for(self) -> None:
        assert not self.judged(lambda _: 1.0, [*itertools.product(range(10), range(2)), (0, 2)])

    def test_different_trials_that_are_better_at_different_timepoints_prune_nothing(self) -> None:
        study = optuna.create_study(pruner=PolarBearPruner(n_timepoints=2, alpha=0.95, epsilon=0.0))
        for early, late in ((0.0, 9.0), (9.0, 0.0)):
            add(study, {2 * k + t: (early, late)[t] for k in range(20) for t in range(2)})
        assert not judged(study, {2 * k + t: 5.0 for k in range(20) for t in range(2)})

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ({"instance": 0, "time": 3}, "time must be a whole number of at most 2, got 3."),
            ({"instance": 0, "time": -1}, "time must be a whole number of at least 0, got -1."),
            ({"instance": -1}, "instance must be a whole number of at least 0, got -1."),
            ({"instance": 2**31}, "instance must be a whole number of at most 715,827,882, got 2147483648."),
            ({"instance": 715_827_882, "time": 2}, "instance must be a whole number of at most 715,827,881, got"),
            ({"instance": 0.5}, "instance must be a whole number of at least 0, got 0.5."),
        ],
    )
    def test_a_wrong_place_is_refused(self, where: dict[str, int], message: str) -> None:
        study = self.study()
        trial = study.ask()
        with pytest.raises(ValueError, match=message):
            study.pruner.report(trial, 1.0, **where)
        assert not study.trials[-1].intermediate_values

    def test_reporting_to_another_pruner_is_refused(self) -> None:
        study = optuna.create_study(pruner=optuna.pruners.NopPruner())
        with pytest.raises(ValueError, match="expected a study with a PolarBearPruner, got NopPruner"):
            report(study.ask(), 1.0, instance=0)


class TestEstimate:
    """What a pruned trial would have ended with."""

    def test_hard_and_easy_instances_cancel_out(self) -> None:
        study = study_of(GOOD, [loss + 2 for loss in GOOD])
        trial = running(study, {k: GOOD[k] + 3 for k in (10, 11)})  # 3 worse than the first
        assert study.pruner.estimate(study, trial) == pytest.approx(np.mean(GOOD) + 3)
        assert study.pruner.estimate(study, study.trials[-1]) == pytest.approx(np.mean(GOOD) + 3)

    def test_it_is_in_the_units_of_the_objective_when_maximising(self) -> None:
        study = study_of(GOOD, direction="maximize")
        assert study.pruner.estimate(study, running(study, {11: GOOD[11] - 1})) == pytest.approx(np.mean(GOOD) - 1)

    def test_a_failure_makes_it_at_least_as_bad_as_the_worst(self) -> None:
        study = study_of(GOOD, [loss + 7 for loss in GOOD])
        estimate = study.pruner.estimate(study, running(study, {0: 0.0, 1: math.nan}))
        assert estimate == pytest.approx(np.mean(GOOD) + 7)

    def test_without_finished_trials_it_is_the_mean(self) -> None:
        study = study_of()
        assert study.pruner.estimate(study, running(study, [1.0, 2.0])) == 1.5
        assert study.pruner.estimate(study, running(study, [math.nan])) == math.inf
        assert study.pruner.estimate(study, study.ask()) == math.inf

    def test_the_last_timepoint_of_each_instance_counts(self) -> None:
        study = study_of(pruner=PolarBearPruner(n_timepoints=2))
        add(study, {0: 9.0, 1: 3.0, 2: 8.0, 3: 4.0}, value=3.5)
        assert study.pruner.estimate(study, running(study, {0: 1.0, 1: 4.0, 2: 9.0})) == pytest.approx(4.5)

    def test_samplers_see_returned_estimates_as_finished_trials(self) -> None:
        study = study_of(GOOD)
        trial = running(study, BAD[:8])
        assert trial.should_prune()
        study.tell(trial, study.pruner.estimate(study, trial))
        assert study.trials[-1].state == TrialState.COMPLETE
        assert study.trials[-1].value > study.trials[0].value

    def test_a_trial_that_was_beaten_does_not_become_the_best(self) -> None:
        study = study_of(RUIN, pruner=PolarBearPruner(criterion="rank"))
        trial = running(study, [10.0] * 24)  # its own mean, and the guess from the differences, are lower
        assert trial.should_prune()
        study.tell(trial, study.pruner.estimate(study, trial))
        assert study.best_trial.number == 0
        assert study.trials[-1].value > study.trials[0].value

    def test_a_trial_that_returned_an_estimate_is_no_reference(self) -> None:
        study = study_of(GOOD)
        trial = running(study, BAD[:8])
        assert trial.should_prune()
        study.tell(trial, study.pruner.estimate(study, trial))
        last = running(study, worse(3.0))
        assert last.should_prune()
        assert explain(study)["by"].tolist() == [0, 0]
        rankings = study.pruner._references(study, study.trials[-1], 1.0)
        assert [one.number for one in rankings] == [0]


SEVERAL = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, math.nan, math.inf, -math.inf]), min_size=1, max_size=8), max_size=5
)


@settings(max_examples=50)
@given(SEVERAL, st.lists(st.sampled_from([0.0, 1.0, 2.0, math.nan]), max_size=8))
def test_whatever_was_reported_gives_an_answer(finished: list[list[float]], losses: list[float]) -> None:
    study = study_of(*finished, pruner=PolarBearPruner(alpha=0.6, epsilon=0.0, min_instances=1))
    trial = running(study, losses)
    assert type(trial.should_prune()) is bool
    assert not math.isnan(study.pruner.estimate(study, trial))


# What the objective returns decides

RUIN = [100.0 if k % 8 == 7 else 9.0 for k in range(24)]  # lower in seven of eight, and a mean of 20.4


def test_a_trial_with_the_better_mean_is_not_pruned_however_often_it_loses() -> None:
    study = study_of(RUIN)
    trial = study.ask()
    for step in range(24):
        trial.report(10.0, step)
        if step >= 7:  # the first instance on which the finished trial is ruined
            assert not trial.should_prune()


def test_ranks_alone_prune_a_trial_with_the_better_mean() -> None:
    assert judged(study_of(RUIN, pruner=PolarBearPruner(criterion="rank")), [10.0] * 24)


@pytest.mark.parametrize("criterion", ["mean", "rank"])
def test_an_equal_mean_is_as_good(criterion: str) -> None:
    other = [9.0] * 15 + [25.0]
    assert judged(study_of(other, pruner=PolarBearPruner(criterion=criterion)), [10.0] * 16) == (criterion == "rank")


def test_the_mean_is_taken_over_the_instances_that_both_have() -> None:
    study = study_of([*[9.0] * 16, 1000.0])  # the ruin is on an instance that the trial has not seen
    assert judged(study, [10.0] * 16)


def test_another_trial_with_a_lower_mean_prunes_instead() -> None:
    study = study_of(RUIN, [9.5] * 24)
    trial = running(study, [10.0] * 24)
    assert trial.should_prune()
    assert explain(study).loc[trial.number, "by"] == 1


def test_means_count_at_every_timepoint() -> None:
    study = study_of(pruner=PolarBearPruner(n_timepoints=2))
    add(study, {2 * k + time: 1.0 for k in range(24) for time in range(2)}, value=1.0)
    early = {2 * k: 2.0 for k in range(24)}
    assert judged(study, {**early, **{2 * k + 1: 2.0 for k in range(24)}})
    lucky = {2 * k + 1: 2.0 if k else -100.0 for k in range(24)}  # its mean is lower at the second timepoint
    assert not judged(study, {**early, **lucky})


def at_two_timepoints(early: Iterable[float], late: Iterable[float]) -> dict[int, float]:
    """Reports at two timepoints of each instance; late ones may be missing."""
    return {2 * i: loss for i, loss in enumerate(early)} | {2 * i + 1: loss for i, loss in enumerate(late)}


@pytest.mark.parametrize("criterion", ["mean", "rank"])
def test_a_rival_must_be_better_at_every_timepoint(criterion: Any) -> None:
    pruner = PolarBearPruner(n_timepoints=2, criterion=criterion)
    study = study_of(at_two_timepoints(GOOD, GOOD), pruner=pruner)
    assert judged(study, at_two_timepoints(BAD, BAD))
    assert not judged(study, at_two_timepoints(BAD, worse(-1.0)))
    assert not judged(study, at_two_timepoints(worse(-1.0), BAD))
    # Better at one timepoint each are two rivals, and neither is a reason.
    both = study_of(
        at_two_timepoints(GOOD, worse(2.0)), at_two_timepoints(worse(2.0), GOOD), pruner=PolarBearPruner(n_timepoints=2)
    )
    assert not judged(both, at_two_timepoints(BAD, BAD))


def test_enough_instances_must_be_shared_at_every_timepoint() -> None:
    def study() -> optuna.Study:
        return study_of(
            at_two_timepoints(GOOD, GOOD), pruner=PolarBearPruner(n_timepoints=2, alpha=0.6, min_instances=3)
        )

    assert not judged(study(), at_two_timepoints(BAD, BAD[:2]))
    assert judged(study(), at_two_timepoints(BAD, BAD[:3]))
    # On how many instances both were seen counts, not on how many either was.
    elsewhere = {40 + step: loss for step, loss in at_two_timepoints(BAD, BAD).items()}
    assert not judged(study(), at_two_timepoints(BAD[:2], BAD[:2]) | elsewhere)
    assert judged(study(), at_two_timepoints(BAD[:3], BAD[:3]) | elsewhere)


def test_a_reason_has_the_means_at_the_latest_timepoint_and_every_instance_that_both_have() -> None:
    study = study_of(at_two_timepoints(GOOD, [loss / 2 for loss in GOOD[:8]]), pruner=PolarBearPruner(n_timepoints=2))
    trial = running(study, at_two_timepoints(BAD, BAD[:9]))
    assert trial.should_prune()
    [reason] = explain(study).to_dict("records")
    assert reason["mean_by"] == pytest.approx(np.mean(GOOD[:8]) / 2)
    assert reason["mean"] == pytest.approx(np.mean(BAD[:8]))
    assert reason["instances"] == list(range(12))


def test_infinite_means_say_nothing_and_ranks_decide() -> None:
    assert judged(study_of([math.inf, *GOOD[1:]]), [math.inf, *BAD[1:]])


def test_means_of_a_maximised_study_are_better_if_higher() -> None:
    study = study_of([-loss for loss in RUIN], direction="maximize")
    assert not judged(study, [-10.0] * 24)
    assert judged(study, [-200.0] * 24)


# Goals


def test_a_goal_is_a_level_of_certainty_and_alpha_overrides_it() -> None:
    assert "alpha=0.995" in repr(PolarBearPruner())
    assert "alpha=0.8" in repr(PolarBearPruner(goal="optimize"))
    assert "alpha=0.9," in repr(PolarBearPruner(goal="optimize", alpha=0.9))


def test_to_optimize_is_to_prune_earlier() -> None:
    losses = [loss - 0.2 if k == 3 else loss + 0.4 for k, loss in enumerate(GOOD[:6])]
    assert not judged(study_of(GOOD), losses)
    assert judged(study_of(GOOD, pruner=PolarBearPruner(goal="optimize")), losses)


@pytest.mark.parametrize("alpha", [0.8, 0.95, 0.995])
def test_what_is_left_out_as_hopeless_would_not_have_been_pruned(alpha: float) -> None:
    quick, slow = PolarBearPruner(alpha=alpha), PolarBearPruner(alpha=alpha)
    slow._hopeless = 0.0
    rng = np.random.default_rng(1)
    judgements = []
    for _ in range(150):
        losses = rng.normal(size=(20, rng.integers(2, 9))) + rng.normal(size=1)
        losses[:, -1] += rng.gamma(1.0)
        losses[rng.integers(3, 20) :, -1] = np.nan
        losses = losses.round(int(rng.integers(3)))  # some with ties
        verdicts = [pruner._best_rival(losses, np.zeros(20, dtype=np.int64)) for pruner in (quick, slow)]
        assert verdicts[0] == verdicts[1]
        judgements.append(verdicts[0] is not None)
    assert 20 < sum(judgements) < 140


# Reasons


def test_a_pruned_trial_keeps_by_whom_how_surely_and_on_what() -> None:
    study = study_of(GOOD, BAD)
    trial = running(study, {k: BAD[k] + 1 for k in (1, 3, 4, 7, 8, 9, 10, 11)})
    assert trial.should_prune()
    study.tell(trial, state=TrialState.PRUNED)
    [row] = explain(study).itertuples()
    assert (row.Index, row.state, row.by) == (2, "PRUNED", 0)
    assert 0.995 <= row.probability < 1
    assert row.instances == [1, 3, 4, 7, 8, 9, 10, 11]
    assert row.mean == pytest.approx(np.mean([BAD[k] + 1 for k in row.instances]))
    assert row.mean_by == pytest.approx(np.mean([GOOD[k] for k in row.instances]))


def test_reasons_are_in_the_units_of_the_study() -> None:
    study = study_of([-loss for loss in GOOD], direction="maximize")
    assert judged(study, [-loss for loss in BAD])
    assert explain(study).loc[1, "mean"] == pytest.approx(-np.mean(BAD))


def test_a_reason_is_one_line_in_the_log_of_optuna(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(GOOD)
    trial = running(study, BAD)
    handlers = logging.getLogger("optuna")
    handlers.addHandler(caplog.handler)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        assert trial.should_prune()
    finally:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        handlers.removeHandler(caplog.handler)
    [line] = {record.getMessage() for record in caplog.records if record.levelno == logging.INFO}
    assert "Trial 1 is pruned: trial 0 is better with probability 0.99" in line
    assert f"on 12 instances that both have reported (means {np.mean(BAD):.6g} and {np.mean(GOOD):.6g})." in line


def test_a_failure_has_no_mean_in_a_reason() -> None:
    study = study_of(GOOD)
    assert judged(study, [math.nan] * 12)
    assert explain(study)["mean"].isna().all()


def test_nothing_is_written_about_a_trial_that_goes_on() -> None:
    study = study_of(GOOD)
    assert not judged(study, GOOD)
    assert study.trials[-1].user_attrs == {}
    assert explain(study).empty


def test_a_trial_that_has_ended_is_judged_but_not_written_to() -> None:
    study = study_of(GOOD, BAD)
    assert study.pruner.prune(study, study.trials[1])
    assert study.trials[1].user_attrs == {}


# What is looked up


def count_lookups(study: optuna.Study, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    asked: list[int] = []
    original = study.get_trials
    monkeypatch.setattr(study, "get_trials", lambda *given, **named: asked.append(1) or original(*given, **named))
    return asked


def test_finished_trials_are_looked_up_once_for_a_trial_and_then_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("polarbear_plugins.integrations.optuna_pruner.references.monotonic", lambda: now)
    study = study_of(GOOD)
    asked = count_lookups(study, monkeypatch)
    for _ in range(2):
        trial = study.ask()
        for step, loss in enumerate(GOOD):
            trial.report(loss, step)
            trial.should_prune()
    assert len(asked) == 2
    now = 1.0
    trial.should_prune()
    assert len(asked) == 3


def test_what_finished_in_the_meantime_counts_for_the_next_trial() -> None:
    study = study_of(BAD)
    assert not judged(study, BAD)
    add(study, GOOD)
    assert judged(study, BAD)


def test_studies_of_the_same_name_in_two_storages_are_not_mixed_up() -> None:
    pruner = PolarBearPruner()
    judgements = []
    for finished in (GOOD, worse(9.0)):
        study = optuna.create_study(study_name="same", pruner=pruner)
        add(study, finished)
        judgements.append(judged(study, BAD))
    assert judgements == [True, False]


@pytest.mark.slow
def test_a_report_costs_no_more_queries_than_with_the_wilcoxon_pruner(tmp_path: Path) -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    queries: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        queries.append(statement)

    counts = []
    for name in ("polarbear", "wilcoxon"):
        study = optuna.create_study(storage=f"sqlite:///{tmp_path / name}.db", pruner=MAKERS[name]())
        for k in range(3):
            add(study, worse(k))
        trial = study.ask()
        event.listen(Engine, "before_cursor_execute", note)
        for step, loss in enumerate(worse(0.1)):
            trial.report(loss, step)
            trial.should_prune()
        event.remove(Engine, "before_cursor_execute", note)
        counts.append(sum(query.lstrip().startswith("SELECT") for query in queries))
        queries.clear()
    assert counts[0] <= counts[1]


def storages(folder: Path) -> dict[str, Callable[[], object]]:
    journal = folder / "journal.log"
    return {
        "memory": lambda: optuna.storages.InMemoryStorage(),
        "sqlite": lambda: f"sqlite:///{folder / 'study.db'}",
        "journal": lambda: optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal))),
    }


def fill(study: optuna.Study) -> list[int]:
    """Finished trials, and running ones of all kinds; the numbers of these."""
    rng = np.random.default_rng(3)
    for k in range(5):
        add(study, rng.normal(size=20) + k / 3)
    return [running(study, rng.normal(size=20) + k).number for k in range(5)] + [running(study, [math.nan] * 9).number]


def answers(study: optuna.Study, numbers: list[int]) -> list[bool]:
    trials = {trial.number: trial for trial in study.get_trials()}
    return [study.pruner.prune(study, trials[number]) for number in numbers]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_all_storages_give_the_same_answers(kind: str, tmp_path: Path) -> None:
    study = optuna.create_study(storage=storages(tmp_path)[kind](), pruner=PolarBearPruner())
    expected = study_of()
    numbers = fill(expected)
    assert fill(study) == numbers
    assert answers(study, numbers) == answers(expected, numbers)
    assert {True, False} == set(answers(study, numbers))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_another_process_on_the_same_storage_agrees(kind: str, tmp_path: Path) -> None:
    storage = storages(tmp_path)[kind]()
    study = optuna.create_study(study_name="race", storage=storage, pruner=PolarBearPruner())
    numbers = fill(study)
    where = {"sqlite": "url", "journal": f"JournalStorage(JournalFileBackend({str(tmp_path / 'journal.log')!r}))"}[kind]
    program = f"""
import json, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from polarbear_plugins.integrations import optuna_pruner  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner
url = {storage if isinstance(storage, str) else ""!r}
study = optuna.load_study(study_name="race", storage={where}, pruner=PolarBearPruner())
trials = {{trial.number: trial for trial in study.trials}}
print(json.dumps([study.pruner.prune(study, trials[number]) for number in {numbers}]))
"""
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(other.stdout) == answers(study, numbers)


def test_it_works_inside_a_patient_pruner() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        pruner = optuna.pruners.PatientPruner(PolarBearPruner(), patience=0)
    study = study_of(GOOD, GOOD, pruner=pruner)
    assert judged(study, BAD)


def test_a_missing_extra_says_how_to_install_it() -> None:
    program = """
import sys
sys.modules["optuna"] = None
try:
    import polarbear_plugins.integrations.optuna_pruner
except ImportError as problem:
    print(problem)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == (
        "PolarBearPruner needs 'optuna', which is not installed. "
        "Install it with: pip install 'polarbear-plugins[optuna]'\n"
    )


@pytest.mark.slow
@pytest.mark.long
def test_the_example_runs_and_saves_evaluations(root: Path) -> None:
    pytest.importorskip("sklearn")
    example = [sys.executable, "-W", "error", str(root / "examples" / "optuna_pruner.py"), "--quick"]
    done = subprocess.run(example, capture_output=True, text=True, check=True)
    assert "% fewer fits" in done.stdout
    assert done.stdout.count("C 12.5, gamma 0.0551") == 2  # the choice is the same
