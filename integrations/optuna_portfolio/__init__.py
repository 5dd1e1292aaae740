"""Optuna's samplers and pruners as algorithms that race on boxes and configuration spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polarbear_plugins.integrations.optuna_portfolio.multifidelity import MultifidelityAlgorithm, optuna_multifidelity
from polarbear_plugins.integrations.optuna_portfolio.samplers import NAMES, SamplerAlgorithm, optuna_samplers
from polarbear_plugins.options import Reader, flag, names, read_options, whole_number
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
        return optuna_samplers(read_options(options, {"samplers": names}, who).get("samplers"))
    if name == "optuna-multifidelity":
        readers: dict[str, Reader] = {
            "algorithms": names,
            "samplers": names,
            "eta": whole_number(2, 100),
            "resume": flag,
        }
        given = read_options(options, readers, who)
        # For comparison: samplers that only evaluate at full fidelity.
        plain = optuna_samplers(given.pop("samplers", None) or ("random", "tpe"))
        return [*optuna_multifidelity(given.pop("algorithms", None), **given), *plain]
    return None
