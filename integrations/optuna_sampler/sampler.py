"""The sampler: which candidate meets which instance next."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_sampler.rules import Parameters, Rules, as_candidates
from polarbear_plugins.integrations.optuna_sampler.study_storage import (
    Assignment,
    assignment_of,
    read_assignment,
    read_rules,
    trial_id,
    write_assignment,
    write_rules,
)
from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView
from polarbear_plugins.names import as_name
from polarbear_plugins.racing.asynchronous import Standing
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.trajectories.timepoints import as_timepoints

_DEFAULTS = RaceSettings(batch_size=4, batch_min=1, batch_max=16, draws=2000)


class PolarBearSampler(optuna.samplers.BaseSampler):
    """Race candidates over instances (folds, seeds, problems): a trial is one candidate on one instance.

    The objective asks for its instance with ``trial.suggest_int("instance", 0, n - 1)`` or ``suggest_categorical``; the
    sampler answers that with the instance on which the race needs this candidate next, and everything else with the
    parameters of the candidate.  When all pairs of given candidates are settled, or the instances are used up, the
    study is stopped.  A failed trial is repeated once, then the candidate ranks last on that instance; so does a
    pruned one.  A trial that was abandoned, because its process was killed, is repeated by another process.

    Parameters
    ----------
    candidates
        Parameters of each candidate, in a list or by name.  Without them candidates come from the base sampler, new
        ones whenever others are eliminated, and the race continues for as long as there are trials.
    base
        The sampler that new candidates come from; it sees one trial for each candidate, with its estimated rating.
        ``TPESampler`` by default.  It also takes over if the objective does not ask for an instance.
    instance
        Name of the parameter that is the instance.
    settings
        When to eliminate and stop.  Costs are counted in trials, or in units of the timepoints.
    timepoints
        If given, candidates are compared over time: the objective reports its trajectory with
        ``trial.report(value, step)``, and these are the steps at which trajectories are compared.  Otherwise the
        returned value is what counts.
    n_candidates
        How many candidates from the base sampler are in the race at once.
    seed
        Of the race and of the default base sampler.
    """

    def __init__(
        self,
        candidates: Sequence[Parameters] | Mapping[str, Parameters] | None = None,
        *,
        base: optuna.samplers.BaseSampler | None = None,
        instance: str = "instance",
        settings: RaceSettings | None = None,
        timepoints: Sequence[float] | None = None,
        n_candidates: int = 8,
        seed: int | None = None,
    ) -> None:
        settings = settings or _DEFAULTS
        if seed is not None:
            settings = replace(settings, seed=as_whole_number(seed, "seed", at_least=0))
        if settings.seed is None:  # the same in all processes
            settings = replace(settings, seed=0)
        if base is not None and not isinstance(base, optuna.samplers.BaseSampler):
            raise InvalidInputError(f"base: expected a sampler of Optuna, got {base!r}.")
        as_whole_number(n_candidates, "n_candidates", at_least=2)
        given = None if candidates is None else as_candidates(candidates, instance)
        grid = None if timepoints is None else tuple(as_timepoints(timepoints).tolist())
        self.rules = Rules(settings, as_name(instance, "instance"), grid, n_candidates, given)
        self.race = self.rules.race()
        self._base = base if base is not None else optuna.samplers.TPESampler(seed=seed)
        # For each running trial of a newcomer, a trial of another study: its parameters come from the base sampler.
        self._proposals: dict[int, optuna.Trial] = {}
        self._studies_with_rules: set[str] = set()

    def reseed_rng(self) -> None:
        """Reseed the base sampler; the race itself has no randomness that threads could share."""
        self._base.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the candidate and the instance of a trial, and claim them."""
        check_one_objective(study)
        if assignment_of(trial) is not None:  # a trial that is run again
            return
        self._write_rules_once(study)
        view = StudyView.of(study, self.rules)
        if not view.racing and view.without_instance:
            self._base.before_trial(study, trial)
            return
        self._claim(study, trial, view)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Search space of the base sampler while there is no race; a race answers parameters one by one."""
        if not self._is_left_to_base(study, trial):
            return {}
        space = dict(self._base.infer_relative_search_space(study, trial))
        space.pop(self.rules.instance, None)
        return space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Parameters from the base sampler while there is no race."""
        check_one_objective(study)
        if not self._is_left_to_base(study, trial):
            return {}
        return self._base.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Answer with the instance, or with the candidate's value of the parameter."""
        check_one_objective(study)
        assignment = read_assignment(study, trial)
        if assignment is None:
            return self._base.sample_independent(study, trial, param_name, param_distribution)
        if param_name == self.rules.instance:
            values = self.rules.order_instances(param_distribution)
            return values[assignment["instance"] % len(values)]
        proposal = self._proposals.get(trial_id(trial))
        if proposal is not None:
            return _suggest(proposal, param_name, param_distribution)
        name = assignment["candidate"]
        given = (self.rules.candidates or {}).get(name)
        known = StudyView.of(study, self.rules).parameters.get(name, {}) if given is None else given
        if param_name in known:
            _check_allowed(known[param_name], param_name, param_distribution, name)
            return known[param_name]
        if given is not None:
            raise InvalidInputError(
                f"The candidate {name!r} has no {param_name!r}, which the objective asks for; it has "
                f"{', '.join(given)}."
            )
        return self._base.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Stop the study if this was the last trial that the race needed."""
        self._proposals.pop(trial_id(trial), None)
        assignment = assignment_of(trial)
        if assignment is None:
            self._base.after_trial(study, trial, state, values)
            return
        if state == TrialState.FAIL:  # the objective failed; a trial whose process was killed does not get here
            write_assignment(study, trial, {**assignment, "failed": True})
        view = StudyView.of(study, self.rules, ending=(trial.number, state, values))
        if view.racing and self._standing(view).over:
            _stop(study)

    def _is_left_to_base(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        assignment = read_assignment(study, trial)
        return assignment is None or (assignment["founder"] is not None and trial_id(trial) not in self._proposals)

    def _write_rules_once(self, study: optuna.Study) -> None:
        """Write the rules into the study, and refuse candidates that differ from those of the study."""
        if study.study_name in self._studies_with_rules:
            return
        written = read_rules(study)
        for name, parameters in ((written or {}).get("candidates") or {}).items():
            if self.rules.candidates is not None and self.rules.candidates.get(name, parameters) != parameters:
                raise InvalidInputError(
                    f"The study was begun with {parameters} for the candidate {name!r}, now it has "
                    f"{self.rules.candidates[name]}. Give candidates that differ different names."
                )
        rules = self.rules.to_json()
        if rules is not None and rules != written:
            write_rules(study, rules)
        self._studies_with_rules.add(study.study_name)

    def _standing(self, view: StudyView) -> Standing:
        return self.race.standing(view.cells, view.instances, view.entrants)

    def _claim(self, study: optuna.Study, trial: FrozenTrial, view: StudyView) -> None:
        """Write what the trial is to do, and choose again if a trial with a lower number has the same assignment."""
        for _ in range(10):
            assignment, alone = self._choose(study, trial, view)
            write_assignment(study, trial, assignment)
            view = StudyView.of(study, self.rules)
            if not alone:
                return
            cell = assignment["candidate"], assignment["instance"]
            others = [number for number in view.claims.get(cell, ()) if number != trial.number]
            if not view.is_done(cell) and not any(other < trial.number or other in view.sure for other in others):
                write_assignment(study, trial, {**assignment, "sure": True})
                return

    def _choose(self, study: optuna.Study, trial: FrozenTrial, view: StudyView) -> tuple[Assignment, bool]:
        """Choose an assignment; the second value says whether no other trial may have the same one."""
        number, enqueued = trial.number, "fixed_params" in trial.system_attrs
        names = list(self.rules.candidates or ())
        if not view.racing:
            if names and not enqueued:
                return _assign(names[number % len(names)], 0), False
            return _assign(f"t{number}", 0, founder=1), False
        standing = self._standing(view)
        if standing.over:
            _stop(study)
        newcomers = standing.newcomers - view.founding.get(standing.round, 0)
        if enqueued or newcomers > 0:
            return self._found(trial, view, standing), False
        taken = {cell for cell, numbers in view.claims.items() if set(numbers) != {number}}
        open_cells = [(order.algorithm, order.instance) for order in standing.orders]
        free = [cell for cell in open_cells if cell not in taken]
        if free:
            # Trials with different numbers choose differently, even if they see the same.
            return _assign(*free[number % len(free)]), True
        stale = [cell for cell in open_cells if view.is_stale(cell)]
        # Every open cell is claimed: continue with what will probably be asked for next.
        waiting = view.entrants.get(standing.round, []) if standing.newcomers else []
        ahead = [
            cell
            for cell in standing.ahead(len(view.instances), waiting)
            if cell not in taken and not view.is_done(cell)
        ]
        if ahead and not stale:
            return _assign(*ahead[number % min(len(ahead), 8)]), True
        if not names and not stale and not standing.over:
            return self._found(trial, view, standing), False
        return _assign(*(stale or open_cells or view.least_done(standing))[0]), False

    def _found(self, trial: FrozenTrial, view: StudyView, standing: Standing) -> Assignment:
        """Make the trial the first one of a new candidate, whose parameters come from the base sampler."""
        self._proposals[trial_id(trial)] = self._propose(view, standing)
        return _assign(f"t{trial.number}", 0, founder=standing.round + (not standing.newcomers))

    def _propose(self, view: StudyView, standing: Standing) -> optuna.Trial:
        """Ask the base sampler for a new candidate, in a study with one trial for each candidate."""
        with _silence_optuna():
            study = optuna.create_study(sampler=self._base)
            if standing.posterior is not None:
                estimates = standing.posterior.log_ratings.mean(axis=(0, 1))
                for name, estimate in zip(standing.posterior.algorithms, estimates, strict=True):
                    parameters = view.parameters.get(name, {})
                    distributions = {key: view.distributions[name][key] for key in parameters}
                    study.add_trial(
                        optuna.trial.create_trial(
                            params=dict(parameters), distributions=distributions, value=float(-estimate)
                        )
                    )
            return study.ask()


def check_one_objective(study: optuna.Study) -> None:
    """Refuse a study with several objectives, whose trials have no single value to compare."""
    if len(study.directions) > 1:
        raise InvalidInputError(f"A race needs a study with one objective, this one has {len(study.directions)}.")


def _assign(candidate: str, place: int, founder: int | None = None) -> Assignment:
    return {"candidate": candidate, "instance": place, "founder": founder}


def _suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for a parameter with a given distribution."""
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    raise AssertionError(distribution)  # Optuna has no others


def _check_allowed(value: object, name: str, distribution: BaseDistribution, candidate: str) -> None:
    """Refuse a value that the objective does not allow."""
    try:
        optuna.trial.create_trial(params={name: value}, distributions={name: distribution}, value=0.0)
    except ValueError:
        raise InvalidInputError(
            f"The candidate {candidate!r} has {name} = {value!r}, but the objective asks for {distribution}."
        ) from None


def _stop(study: optuna.Study) -> None:
    with suppress(RuntimeError):  # with ask and tell there is no loop to stop
        study.stop()


@contextmanager
def _silence_optuna() -> Iterator[None]:
    """Keep Optuna from logging the studies that only the base sampler sees."""
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
