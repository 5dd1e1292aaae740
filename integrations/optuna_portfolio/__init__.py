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
        return optuna_samplers(read_options(options, {"samplers": _read_names}, who).get("samplers"))
    if name == "optuna-multifidelity":
        readers: dict[str, Reader] = {
            "algorithms": _read_names,
            "samplers": _read_names,
            "eta": whole_number(2, 100),
            "resume": flag,
        }
        given = read_options(options, readers, who)
        # For comparison: samplers that only evaluate at full fidelity.
        plain = optuna_samplers(given.pop("samplers", None) or ("random", "tpe"))
        return [*optuna_multifidelity(given.pop("algorithms", None), **given), *plain]
    return None


def _read_names(value: object, what: str) -> Sequence[str] | None:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if names is not None and not (isinstance(names, Sequence) and names):
        raise InvalidInputError(f"{what}: expected names such as tpe,random, got {value!r}.")
    return names
