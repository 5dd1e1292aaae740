"""The posterior of a round: inferred from the state of a race by its settings."""

from __future__ import annotations

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import find_engine, fit, make_prior, with_check
from polarbear_plugins.inference.task import LikelihoodName
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.priors import TemporalPrior
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.seeds import derived_seed


def infer(state: RaceState, number: int, *, check: bool = False, likelihood: LikelihoodName = "rankings") -> Posterior:
    """Posterior in round ``number``; depends only on the data, the settings and the number.

    Decisions have a guard of their own, so the model is checked only for a result.
    """
    settings = state.settings
    return fit(
        state.table,
        settings.prior,
        settings.engine,
        settings.draws,
        _seed(state, number),
        settings.dependence,
        likelihood=likelihood,
        groups=settings.groups,
        check=check,
        engine_options=settings.engine_options,
        **settings.prior_options,
    )


def checked(state: RaceState, posterior: Posterior | None) -> Posterior | None:
    """The posterior of the last round with a check of the model; inferred again if it is not at hand.

    ``None`` if there was no round yet.
    """
    number = len(state.rounds)
    if not number:
        return None
    if posterior is not None and posterior.check is not None:
        return posterior
    # The check is of the instances there are, and a posterior about a new group has no ratings of theirs any more.
    if posterior is None or (posterior.groups is not None and posterior.groups.scope == "new"):
        return infer(state, number, check=True)
    return with_check(posterior, state.table, _seed(state, number))


def _seed(state: RaceState, number: int) -> int:
    if state.settings.seed is None:
        raise InvalidInputError("infer: the settings need a seed.")
    return derived_seed(state.settings.seed, "inference", number)


def check_inference(settings: RaceSettings) -> None:
    """Refuse an unknown prior or engine, and joint elimination without a joint posterior, before anything runs."""
    prior = make_prior(settings.prior, settings.prior_options)
    if settings.elimination == "joint" and not isinstance(prior, TemporalPrior):
        raise InvalidInputError(
            f'elimination="joint" needs a joint posterior over time, and prior {prior.name!r} has none. Use a temporal '
            'prior (bspline, hsgp, gp, sparse-gp, random-walk) or elimination="pointwise".'
        )
    find_engine(settings.engine)
