"""Optuna's samplers and pruners as algorithms that race on boxes and configuration spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_portfolio.multifidelity import MultifidelityAlgorithm, optuna_multifidelity
from polarbear_plugins.integrations.optuna_portfolio.samplers import NAMES, SamplerAlgorithm, optuna_samplers
from polarbear_plugins.options import Reader, flag, read_options, whole_number
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import Algorithm

__all__ = [
    "NAMES",
    "MultifidelityAlgorithm",
    "SamplerAlgorithm",
    "optuna_multifidelity",
    "optuna_samplers",
    "polarbear_portfolio",
]


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """optuna-samplers (option samplers=tpe,random), optuna-multifidelity (algorithms, samplers, eta, resume)."""
    who = f"The portfolio {name!r}"
    if name == "optuna-samplers":
        return optuna_samplers(read_options(options, {"samplers": _names}, who).get("samplers"))
    if name == "optuna-multifidelity":
        readers: dict[str, Reader] = {
            "algorithms": _names,
            "samplers": _names,
            "eta": whole_number(2, 100),
            "resume": flag,
        }
        wishes = read_options(options, readers, who)
        # Samplers that only evaluate fully are what the others have to beat.
        plain = optuna_samplers(wishes.pop("samplers", None) or ("random", "tpe"))
        return [*optuna_multifidelity(wishes.pop("algorithms", None), **wishes), *plain]
    return None


def _names(value: object, what: str) -> Sequence[str] | None:
    wanted = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if wanted is not None and not (isinstance(wanted, Sequence) and wanted):
        raise InvalidInputError(f"{what}: expected names such as tpe,random, got {value!r}.")
    return wanted
