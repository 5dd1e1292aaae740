"""The sampler: which candidate meets which instance next."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.optuna_sampler.rules import Parameters, Rules, as_candidates
from polarbear_plugins.integrations.optuna_sampler.study_view import CELL, Look, new_cell
from polarbear_plugins.names import as_name
from polarbear_plugins.racing.asynchronous import Standing
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.trajectories.timepoints import as_timepoints

# Without Optuna the module can be imported all the same; making a sampler then says what to install.
if TYPE_CHECKING:
    BaseSampler = object
elif importlib.util.find_spec("optuna"):
    from optuna.samplers import BaseSampler
else:
    BaseSampler = object


RACE = "polarbear:race"  # attribute of a study: the rules of its race
_DEFAULTS = RaceSettings(batch_size=4, batch_min=1, batch_max=16, draws=2000)


class PolarBearSampler(BaseSampler):
    """Race candidates over instances (folds, seeds, problems): a trial is one candidate on one instance.

    The objective asks for its instance with ``trial.suggest_int("instance", 0, n - 1)`` or ``suggest_categorical``; the
    sampler answers that with the instance on which the race needs this candidate next, and everything else with the
    parameters of the candidate.  When all pairs of given candidates are settled, or the instances are used up, the
    study is stopped.  A failed trial is repeated once, then the candidate ranks last on that instance; so does a
    pruned one.  A trial that was abandoned, because its process was killed, is done again by somebody else.

    Parameters
    ----------
    candidates
        Parameters of each candidate, in a list or by name.  Without them candidates come from the base sampler, new
        ones whenever others are eliminated, and the race goes on for as long as there are trials.
    base
        The sampler that new candidates come from; it sees one trial for each candidate, with its estimated rating.
        ``TPESampler`` by default.  It also takes over if the objective asks for no instance.
    instance
        Name of the parameter that is the instance.
    settings
        When to eliminate and stop.  Costs are counted in trials, or in units of the timepoints.
    timepoints
        If given, candidates are compared over time: the objective reports its curve with ``trial.report(value, step)``,
        and these are the steps at which curves are compared.  Otherwise the returned value is what counts.
    n_candidates
        How many candidates from the base sampler are in the race at once.
    seed
        Of the race and of the default base sampler.
    """

    def __init__(
        self,
        candidates: Sequence[Parameters] | Mapping[str, Parameters] | None = None,
        *,
        base: Any = None,
        instance: str = "instance",
        settings: RaceSettings | None = None,
        timepoints: Sequence[float] | None = None,
        n_candidates: int = 8,
        seed: int | None = None,
    ) -> None:
        optuna = require("optuna", extra="optuna", who="PolarBearSampler")
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
        self._founding: dict[int, Any] = {}
        self._announced: set[str] = set()

    def reseed_rng(self) -> None:
        """Reseed the base sampler; the race itself has no randomness that threads could share."""
        self._base.reseed_rng()

    def before_trial(self, study: Any, trial: Any) -> None:
        """Choose the candidate and the instance of a trial, and claim them."""
        refuse_several_objectives(study)
        if CELL in trial.system_attrs:  # a trial that is run again
            return
        self._announce(study)
        look = Look.at(study, self.rules)
        if not look.racing and look.without_instance:
            self._base.before_trial(study, trial)
            return
        self._claim(study, trial, look)

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Leave it to the base sampler while there is no race; in a race parameters are answered one by one."""
        if not self._is_left_to_base(study, trial):
            return {}
        space = dict(self._base.infer_relative_search_space(study, trial))
        space.pop(self.rules.instance, None)
        return space

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        """Leave it to the base sampler while there is no race."""
        refuse_several_objectives(study)
        if not self._is_left_to_base(study, trial):
            return {}
        return self._base.sample_relative(study, trial, search_space)

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Answer with the instance, or with what the candidate has for the parameter."""
        refuse_several_objectives(study)
        cell = study._storage.get_trial_system_attrs(trial._trial_id).get(CELL)
        if cell is None:
            return self._base.sample_independent(study, trial, param_name, param_distribution)
        if param_name == self.rules.instance:
            values = self.rules.values_of(param_distribution)
            return values[cell["instance"] % len(values)]
        if trial._trial_id in self._founding:
            return self._founding[trial._trial_id]._suggest(param_name, param_distribution)
        name = cell["candidate"]
        given = (self.rules.candidates or {}).get(name)
        known = Look.at(study, self.rules).parameters.get(name, {}) if given is None else given
        if param_name in known:
            return _checked(known[param_name], param_name, param_distribution, name)
        if given is not None:
            raise InvalidInputError(
                f"The candidate {name!r} has no {param_name!r}, which the objective asks for; it has "
                f"{', '.join(given)}."
            )
        return self._base.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Sequence[float] | None) -> None:
        """Stop the study if this was the last trial that the race needed."""
        self._founding.pop(trial._trial_id, None)
        if CELL not in trial.system_attrs:
            self._base.after_trial(study, trial, state, values)
            return
        if state.name == "FAIL":  # by itself, not because its process is gone
            study._storage.set_trial_system_attr(trial._trial_id, CELL, trial.system_attrs[CELL] | {"failed": True})
        look = Look.at(study, self.rules, ending=(trial.number, state, values))
        if look.racing and self._progress(look).over:
            _stop(study)

    def _is_left_to_base(self, study: Any, trial: Any) -> bool:
        cell = study._storage.get_trial_system_attrs(trial._trial_id).get(CELL)
        return cell is None or (cell["founder"] is not None and trial._trial_id not in self._founding)

    def _announce(self, study: Any) -> None:
        """Write the rules into the study, once, and refuse candidates that are not those of the study."""
        if study.study_name in self._announced:
            return
        written = study._storage.get_study_system_attrs(study._study_id).get(RACE)
        for name, parameters in ((written or {}).get("candidates") or {}).items():
            if self.rules.candidates is not None and self.rules.candidates.get(name, parameters) != parameters:
                raise InvalidInputError(
                    f"The study was begun with {parameters} for the candidate {name!r}, now it has "
                    f"{self.rules.candidates[name]}. Give candidates that differ different names."
                )
        rules = self.rules.to_json()
        if rules is not None and rules != written:
            study._storage.set_study_system_attr(study._study_id, RACE, rules)
        self._announced.add(study.study_name)

    def _progress(self, look: Look) -> Standing:
        return self.race.standing(look.cells, look.instances, look.entrants)

    def _claim(self, study: Any, trial: Any, look: Look) -> None:
        """Write what the trial shall do, and look whether somebody with a lower number had the same idea."""
        for _ in range(10):
            cell, alone = self._choose(study, trial, look)
            study._storage.set_trial_system_attr(trial._trial_id, CELL, cell)
            look = Look.at(study, self.rules)
            if not alone:
                return
            where = cell["candidate"], cell["instance"]
            rivals = [number for number in look.claims.get(where, ()) if number != trial.number]
            if not look.is_done(where) and not any(rival < trial.number or rival in look.sure for rival in rivals):
                study._storage.set_trial_system_attr(trial._trial_id, CELL, cell | {"sure": True})
                return

    def _choose(self, study: Any, trial: Any, look: Look) -> tuple[dict[str, Any], bool]:
        """Choose a cell, and say whether it shall be done once only."""
        number, enqueued = trial.number, "fixed_params" in trial.system_attrs
        names = list(self.rules.candidates or ())
        if not look.racing:
            if names and not enqueued:
                return new_cell(names[number % len(names)], 0), False
            return new_cell(f"t{number}", 0, founder=1), False
        progress = self._progress(look)
        if progress.over:
            _stop(study)
        founders = progress.newcomers - look.founding.get(progress.round, 0)
        if enqueued or founders > 0:
            self._founding[trial._trial_id] = self._ask_base(look, progress)
            return new_cell(f"t{number}", 0, founder=progress.round + (not progress.newcomers)), False
        taken = {cell for cell, numbers in look.claims.items() if set(numbers) != {number}}
        open_cells = [(order.algorithm, order.instance) for order in progress.orders]
        free = [cell for cell in open_cells if cell not in taken]
        if free:
            # Trials of different numbers choose differently, even if they know the same.
            return new_cell(*free[number % len(free)]), True
        stuck = [cell for cell in open_cells if look.is_stale(cell)]
        # Everything is being done: go ahead with what will probably be asked for next.
        waiting = look.entrants.get(progress.round, []) if progress.newcomers else []
        ahead = [
            cell
            for cell in progress.ahead(len(look.instances), waiting)
            if cell not in taken and not look.is_done(cell)
        ]
        if ahead and not stuck:
            return new_cell(*ahead[number % min(len(ahead), 8)]), True
        if not names and not stuck and not progress.over:
            self._founding[trial._trial_id] = self._ask_base(look, progress)
            return new_cell(f"t{number}", 0, founder=progress.round + (not progress.newcomers)), False
        return new_cell(*(stuck or open_cells or look.least_done(progress))[0]), False

    def _ask_base(self, look: Look, progress: Standing) -> Any:
        """Ask the base sampler for a new candidate, in a study with one trial for each candidate."""
        optuna = require("optuna", extra="optuna", who="PolarBearSampler")
        with _quiet():
            study = optuna.create_study(sampler=self._base)
            if progress.posterior is not None:
                estimates = progress.posterior.log_ratings.mean(axis=(0, 1))
                for name, estimate in zip(progress.posterior.algorithms, estimates, strict=True):
                    parameters = look.parameters.get(name, {})
                    distributions = {key: look.distributions[name][key] for key in parameters}
                    study.add_trial(
                        optuna.trial.create_trial(
                            params=dict(parameters), distributions=distributions, value=float(-estimate)
                        )
                    )
            return study.ask()


def refuse_several_objectives(study: Any) -> None:
    """Refuse a study whose trials have no one value to be compared by."""
    if len(study.directions) > 1:
        raise InvalidInputError(f"A race needs a study with one objective, this one has {len(study.directions)}.")


def _checked(value: Any, name: str, distribution: Any, candidate: str) -> Any:
    """Refuse a value that the objective does not allow."""
    try:
        inside = distribution._contains(distribution.to_internal_repr(value))
    except ValueError:
        inside = False
    if not inside:
        raise InvalidInputError(
            f"The candidate {candidate!r} has {name} = {value!r}, but the objective asks for {distribution}."
        )
    return value


def _stop(study: Any) -> None:
    with suppress(RuntimeError):  # under ask and tell there is no loop to stop
        study.stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from telling of studies that only the base sampler sees."""
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
