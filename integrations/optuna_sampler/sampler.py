"""The sampler: which candidate meets which instance next."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.integrations.optuna_sampler.candidate_study import update_companion
from polarbear_plugins.integrations.optuna_sampler.proposals import propose, suggest
from polarbear_plugins.integrations.optuna_sampler.rules import Parameters, Rules, as_candidates
from polarbear_plugins.integrations.optuna_sampler.study_memory import StudyMemories, StudyMemory
from polarbear_plugins.integrations.optuna_sampler.study_storage import (
    Assignment,
    as_ended,
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


@dataclass(frozen=True, slots=True)
class _Options:
    """What a trial may do: candidates and positions of instances to choose from.

    Trials with different numbers choose differently, even if they see the same.

    Attributes
    ----------
    founder
        If the candidate is a newcomer, the round in which it enters.
    alone
        Whether no other trial may do the same.
    """

    places: list[tuple[str, int]]
    founder: int | None = None
    alone: bool = False

    def include(self, assignment: Assignment) -> bool:
        """Whether the assignment is one of these."""
        return (assignment["candidate"], assignment["instance"]) in self.places and (
            assignment["founder"] == self.founder
        )


class PolarBearSampler(optuna.samplers.BaseSampler):
    """Race candidates over instances (folds, seeds, problems): a trial is one candidate on one instance.

    The objective asks for its instance with ``trial.suggest_int("instance", 0, n - 1)`` or ``suggest_categorical``; the
    sampler answers that with the instance on which the race needs this candidate next, and everything else with the
    parameters of the candidate.  When all pairs of given candidates are settled, or the instances are used up, the
    study is stopped.  A failed trial is repeated once, then the candidate ranks last on that instance; so does a
    pruned one.  A trial that was abandoned, because its process was killed, is repeated by another process.

    A study goes on under the rules it began with: only ``max_rounds`` and ``max_cost`` may change when it is resumed,
    and ``study.enqueue_trial`` adds a candidate.

    Parameters
    ----------
    candidates
        Parameters of each candidate, in a list or by name; or a list of values for each parameter, as for Optuna's
        ``GridSampler``: all combinations are candidates.  Without them candidates come from the base sampler, new ones
        whenever others are eliminated, and the race continues for as long as there are trials.
    base
        The sampler that new candidates come from; it sees one trial for each candidate, with its estimated rating.
        ``TPESampler`` by default.  It also takes over if the objective does not ask for an instance, which is an
        error with given candidates.
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
    companion
        Keep a study with one trial for each candidate beside this one, brought up to date after each round: see
        :func:`candidate_study`.
    seed
        Of the race and of the default base sampler.
    """

    def __init__(
        self,
        candidates: Sequence[Parameters] | Mapping[str, Parameters | Sequence[Any]] | None = None,
        *,
        base: optuna.samplers.BaseSampler | None = None,
        instance: str = "instance",
        settings: RaceSettings | None = None,
        timepoints: Sequence[float] | None = None,
        n_candidates: int = 8,
        companion: bool = False,
        seed: int | None = None,
    ) -> None:
        settings = settings or _DEFAULTS
        if seed is not None:
            seed = as_whole_number(seed, "seed", at_least=0)
            settings = replace(settings, seed=seed)
        if settings.seed is None:  # the same in all processes
            settings = replace(settings, seed=0)
        if base is not None and not isinstance(base, optuna.samplers.BaseSampler):
            raise InvalidInputError(f"base: expected a sampler of Optuna, got {base!r}.")
        room = as_whole_number(n_candidates, "n_candidates", at_least=2)
        instance = as_name(instance, "instance")
        given = None if candidates is None else as_candidates(candidates, instance)
        grid = None if timepoints is None else tuple(as_timepoints(timepoints).tolist())
        self.rules = Rules(settings, instance, grid, room, given)
        self.race = self.rules.race()
        self._base = base if base is not None else optuna.samplers.TPESampler(seed=seed)
        self._companion = companion
        self._memories = StudyMemories()

    def reseed_rng(self) -> None:
        """Reseed the base sampler; the race itself has no randomness that threads could share."""
        self._base.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the candidate and the instance of a trial, and claim them."""
        memory = self._recall(study)
        again = assignment_of(trial)
        if again is not None:  # a trial that is run again
            memory.assignments[trial_id(trial)] = again
            return
        self._write_rules_once(study, memory)
        view = memory.view
        if view is None or _is_left_to_base(view):
            view = memory.look(study)
        if _is_left_to_base(view):
            memory.assignments[trial_id(trial)] = None
            self._base.before_trial(study, trial)
            return
        assignment = self._claim(study, trial, memory)
        memory.assignments[trial_id(trial)] = assignment
        view = memory.view or view
        if not view.racing:
            return
        standing = self._standing(view)
        if standing.over:
            _stop(study)
            self._show(study, memory, standing)  # where two trials end at once, neither sees that the race is over
        if assignment["founder"] is not None:
            memory.proposals[trial_id(trial)] = propose(self._base, view, standing)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Search space of the base sampler while there is no race; a race answers parameters one by one."""
        if not self._asks_base(study, trial):
            return {}
        space = dict(self._base.infer_relative_search_space(study, trial))
        space.pop(self.rules.instance, None)
        return space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Parameters from the base sampler while there is no race."""
        if not self._asks_base(study, trial):
            return {}
        return self._base.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Answer with the instance, or with the candidate's value of the parameter."""
        memory = self._recall(study)
        assignment = _assignment_in(memory, study, trial)
        if assignment is None:
            return self._base.sample_independent(study, trial, param_name, param_distribution)
        if param_name == self.rules.instance:
            return self.rules.instance_at(assignment["instance"], param_distribution)
        proposal = memory.proposals.get(trial_id(trial))
        if proposal is not None:
            return suggest(proposal, param_name, param_distribution)
        name = assignment["candidate"]
        known = self._parameters_of(name, memory, study)
        if param_name in known:
            self._check_allowed(known[param_name], param_name, param_distribution, name)
            return known[param_name]
        if name in (self.rules.candidates or ()):
            raise InvalidInputError(
                f"The candidate {name!r} has no {param_name!r}, which the objective asks for; it has "
                f"{', '.join(known)}."
            )
        return self._base.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Stop the study if this was the last trial that the race needed."""
        memory = self._recall(study)
        memory.forget(trial)
        assignment = assignment_of(trial)
        if assignment is None:
            self._base.after_trial(study, trial, state, values)
            return
        if state == TrialState.FAIL:  # the objective failed; a trial whose process was killed does not get here
            assignment = {**assignment, "failed": True}
            write_assignment(study, trial, assignment)
        ended = as_ended(trial, assignment, state, values)
        view = memory.lay_over(ended)
        if state == TrialState.COMPLETE:
            self._check_what_was_asked(trial, assignment["candidate"], memory, view)
        if view.is_hopeless():
            self._give_up(study, memory, view)
        if view.racing:
            standing = self._standing(view)
            if standing.over:
                _stop(study)
            self._show(study, memory, standing, ended)

    def _show(
        self, study: optuna.Study, memory: StudyMemory, standing: Standing, ended: FrozenTrial | None = None
    ) -> None:
        """Bring the study of candidates up to date, if there is one and a round has ended since."""
        rounds = 0 if standing.state is None else len(standing.state.rounds)
        if self._companion and (rounds > memory.rounds_shown or standing.over):
            memory.rounds_shown = rounds
            update_companion(study, ended)

    def _recall(self, study: optuna.Study) -> StudyMemory:
        check_one_objective(study)
        return self._memories.of(study, self.rules)

    def _asks_base(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether a trial is left to the base sampler.

        That of a newcomer is not, not even before the race begins: some samplers remember the first study that they are
        asked about a search space in, and newcomers are proposed in another.
        """
        return _assignment_in(self._recall(study), study, trial) is None

    def _parameters_of(self, name: str, memory: StudyMemory, study: optuna.Study) -> dict[str, Any]:
        """Parameters of a candidate; the study is looked at only if a trial of another process was handed over."""
        given = (self.rules.candidates or {}).get(name)
        if given is not None:
            return dict(given)
        view = memory.view
        return (view if view is not None and view.knows(name) else memory.look(study)).parameters_of(name)

    def _check_allowed(self, value: object, name: str, distribution: BaseDistribution, candidate: str) -> None:
        """Refuse a value that the objective does not allow."""
        try:
            optuna.trial.create_trial(params={name: value}, distributions={name: distribution}, value=0.0)
        except ValueError:
            given = candidate in (self.rules.candidates or ())
            raise InvalidInputError(
                f"The candidate {candidate!r} has {name} = {value!r}, but the objective asks for {distribution}. "
                + ("Change one of the two." if given else "For another search space, make a new study.")
            ) from None

    def _check_what_was_asked(self, trial: FrozenTrial, name: str, memory: StudyMemory, view: StudyView) -> None:
        """Refuse a complete trial that did not ask for its instance, and warn of parameters that nobody asks for."""
        key = self.rules.instance
        if key not in trial.params and (self.rules.candidates is not None or view.racing):
            raise InvalidInputError(
                f"Trial {trial.number} is complete and has not asked for its instance {key!r}, so its value cannot be "
                f'compared with others. Call trial.suggest_int("{key}", 0, n - 1) in the objective, for n instances; '
                "if there are none and the objective is noisy, take it as the number of the repetition."
            )
        unused = frozenset((self.rules.candidates or {}).get(name, {})) - frozenset(trial.params)
        if unused and unused not in memory.said:
            memory.said.add(unused)
            warnings.warn(
                f"Trial {trial.number} of the candidate {name!r} has not asked for {', '.join(sorted(unused))}, so "
                "that candidates which differ in nothing else are the same. Check the names of the parameters.",
                PolarBearWarning,
                stacklevel=2,
            )

    def _give_up(self, study: optuna.Study, memory: StudyMemory, view: StudyView) -> None:
        """Stop a study all of whose trials fail before a race can begin."""
        _stop(study)
        if "hopeless" not in memory.said:
            memory.said.add("hopeless")
            warnings.warn(
                f"All {len(view.ended)} trials failed before any of them asked for its instance "
                f"{self.rules.instance!r}, so that there is nothing to race, and the study is stopped. Optuna's log "
                "has the errors.",
                PolarBearWarning,
                stacklevel=2,
            )

    def _write_rules_once(self, study: optuna.Study, memory: StudyMemory) -> None:
        """Write the rules into the study, and refuse those that differ from what the study was begun with."""
        if memory.has_rules:
            return
        written, rules = read_rules(study), self.rules.to_json()
        if written is not None:
            self.rules.check_same_race(written, study.study_name)
        if rules is not None and rules != written:
            write_rules(study, rules)
        memory.has_rules = True

    def _standing(self, view: StudyView) -> Standing:
        if view.standing is None:
            view.standing = self.race.standing(view.cells, view.instances, view.entrants)
        return view.standing

    def _claim(self, study: optuna.Study, trial: FrozenTrial, memory: StudyMemory) -> Assignment:
        """Write what the trial is to do, and choose again if that is no longer open.

        The first choice rests on the last view, which is usually right, and always if this process is alone: then one
        look at the study is enough.  Of two trials that chose the same at the same time, the one with the lower number
        keeps it; a choice that rests on an old view gives way to all others.
        """
        view, is_new = memory.view or memory.look(study), False
        for _ in range(10):
            options = self._options(view, trial)
            candidate, place = options.places[trial.number % len(options.places)]
            assignment: Assignment = {"candidate": candidate, "instance": place, "founder": options.founder}
            write_assignment(study, trial, assignment)
            if is_new and not options.alone:
                break
            view, was_new, is_new = memory.look(study), is_new, True
            if self._options(view, trial, claimed=was_new).include(assignment):
                if options.alone:
                    assignment = {**assignment, "sure": True}
                    write_assignment(study, trial, assignment)
                break
        return assignment

    def _options(self, view: StudyView, trial: FrozenTrial, *, claimed: bool = False) -> _Options:
        """What a trial may do.

        :param claimed: the trial has chosen, by a new view: only those with a lower number or sure ones are in its way.
        """
        number, names = trial.number, list(self.rules.candidates or ())
        enqueued = "fixed_params" in trial.system_attrs
        if not view.racing:
            if names and not enqueued:
                promising = [name for name in names if not view.has_failed_at_once(name)] or names
                return _Options([(promising[number % len(promising)], 0)])
            return _Options([(f"t{number}", 0)], founder=1)
        standing = self._standing(view)
        newcomer = _Options([(f"t{number}", 0)], founder=standing.round + (not standing.newcomers))
        if enqueued or standing.newcomers > view.newcomers_on_their_way(standing.round, number):
            return newcomer
        taken = view.claimed_places(number, claimed)
        open_places = [(order.algorithm, order.instance) for order in standing.orders]
        free = [place for place in open_places if place not in taken]
        if free:
            return _Options(free, alone=True)
        stale = [place for place in open_places if view.is_stale(place, number)]
        # Every open cell is claimed: continue with what will probably be asked for next.
        waiting = view.entrants.get(standing.round, []) if standing.newcomers else []
        ahead = standing.ahead(len(view.instances), waiting)
        next_ones = (place for place in ahead if place not in taken and not view.is_done(place))
        soonest = list(itertools.islice(next_ones, 8))
        if soonest and not stale:
            return _Options(soonest, alone=True)
        if not names and not stale and not standing.over:
            return newcomer
        return _Options((stale or open_places or view.least_done(standing))[:1])


def _is_left_to_base(view: StudyView) -> bool:
    """Whether trials are complete without an instance, so that there is no race."""
    return view.without_instance and not view.racing and view.rules.candidates is None


def _assignment_in(memory: StudyMemory, study: optuna.Study, trial: FrozenTrial) -> Assignment | None:
    """Assignment of a running trial; read from the storage if another process has asked for the trial."""
    if trial_id(trial) not in memory.assignments:
        return read_assignment(study, trial)
    return memory.assignments[trial_id(trial)]


def check_one_objective(study: optuna.Study) -> None:
    """Refuse a study with several objectives, whose trials have no single value to compare."""
    if len(study.directions) > 1:
        raise InvalidInputError(
            f"A race needs a study with one objective, this one has {len(study.directions)}. Race one of them, or make "
            "a study for each."
        )


def _stop(study: optuna.Study) -> None:
    with suppress(RuntimeError):  # with ask and tell there is no loop to stop
        study.stop()
