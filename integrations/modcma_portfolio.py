"""Portfolios of variants of the modular CMA-ES (modcma): those of the paper's case studies, and any others.

Every box is mapped onto [-5, 5]^d, the box of the paper, so that step sizes mean the same everywhere.
"""

from __future__ import annotations

import itertools
import json
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError, RunWarning, short
from polarbear_plugins.extras import require
from polarbear_plugins.names import as_name
from polarbear_plugins.options import Reader, flag, one_of, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems.protocols import Algorithm, BoxProblem, Problem, refusal
from polarbear_plugins.trajectories.recording import HorizonReached, Recorder, as_axis
from polarbear_plugins.trajectories.trajectory import Trajectory

_NO_BOX = "it needs a box (lower, upper, evaluate)"
_APPENDIX_B: Mapping[str, Any] = {
    "sigma0": 2.0,
    "active": True,
    "repelling_restart": True,
    "threshold_convergence": False,
    "bound_correction": "COTN",
    "restart_strategy": "IPOP",
    "center_placement": "UNIFORM",
    "ssa": "CSA",
    "matrix_adaptation": "COVARIANCE",
}

# What the authors' runs must have been, since only this gives their result: no point outside the box.  In modcma 1.1
# and 1.2 the correction COTN leaves most points outside, some farther than before, and UNIFORM draws restarts from
# [-15, 5]^d.
_PAPER: Mapping[str, Any] = {**_APPENDIX_B, "bound_correction": "SATURATE", "center_placement": "BOX"}

#: Configurations to start from.  ``paper``: appendix B of the paper with all points inside the box, as in its case
#: studies.  ``appendix-b``: appendix B to the letter.  ``bounded``: an earlier name of ``paper``.
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "paper": MappingProxyType({**_PAPER}),
        "appendix-b": MappingProxyType({**_APPENDIX_B}),
        "bounded": MappingProxyType({**_PAPER}),
    }
)

_STEP_SIZES = ("CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES")
_MATRICES = {
    "COV": "COVARIANCE",
    "SEP": "SEPARABLE",
    "MAT": "MATRIX",
    "CHO": "CHOLESKY",
    "CMSA": "CMSA",
    "NAT": "NATURAL_GRADIENT",
    "NONE": "NONE",
}
_WHOLE_NUMBERS = ("lambda0", "mu0", "budget")
_NUMBERS = ("sigma0", "cs", "cc", "cmu", "c1", "damps", "acov")

_EDGE = 5.0  # of modcma's box, [-5, 5] in each dimension
_UNLIMITED = 2**62  # evaluations: modcma's own budget stops early or late, so the recorder counts
# modcma's repelling restarts need the volume of the box.  From 10^309 on it overflows, and they draw for hours.
_TOO_LARGE_TO_REPEL = 309
# Seen with modcma 1.2.0, whatever the seed: PSR differs from the third generation on in about one run in two hundred,
# sequential selection in many.
_NOT_REPEATABLE = {"ssa": "PSR", "sequential_selection": True}

# modcma has one random generator for the whole process.
_GENERATOR_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class ModularCMAES:
    """One configuration of modcma's CMA-ES.

    Parameters
    ----------
    name
        Of the algorithm.
    configuration
        What differs from the preset ``paper``: modcma's modules by the names of their options, and ``sigma0``,
        ``lambda0``, ``mu0``, ``cs``, ``cc``, ``cmu``, ``c1``, ``damps``, ``acov``, ``always_compute_eigv``, ``budget``.
        The additional ``center_placement`` ``BOX`` restarts anywhere in the box.
    axis
        What the horizon of a run counts: ``evaluations`` or ``seconds``.
    """

    name: str
    configuration: Mapping[str, Any]
    axis: str = "evaluations"

    def __post_init__(self) -> None:
        as_name(self.name, "name of an algorithm")
        as_axis(self.axis)
        object.__setattr__(self, "configuration", _check_configuration({**_PAPER, **self.configuration}))
        for key, value in _NOT_REPEATABLE.items():
            if self.configuration.get(key) == value:
                warnings.warn(
                    f"{self.name!r}: modcma's {key}={_text(value)} reads memory that was never set, so that some runs "
                    "cannot be repeated with their seed.",
                    RunWarning,
                    stacklevel=3,
                )

    def refuses(self, problem: Problem, /) -> str | None:
        """Why it cannot run on a problem; ``None`` if it can."""
        return None if isinstance(problem, BoxProblem) else _NO_BOX

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run until the horizon; all random numbers derive from the seed, whatever ran before in this process."""
        library = _require_modcma()
        if not isinstance(problem, BoxProblem):
            raise refusal(self, problem, _NO_BOX)
        lower, upper = _check_bounds(problem, self.name)
        evaluate = self._on_standard_box(problem.evaluate, lower, upper)
        rng = np.random.default_rng(as_whole_number(seed, "seed", at_least=0))
        with _GENERATOR_LOCK:
            recorder = Recorder(self.axis, horizon)
            if not recorder.over:
                set_seed(library, int(rng.integers(2**31)))
                start = rng.uniform(-_EDGE, _EDGE, lower.size)
                optimizer = library.ModularCMAES(library.Parameters(_make_settings(library, self.configuration, start)))
                objective = recorder.watch(evaluate)
                try:
                    if {"BOX", "SATURATE"} & {
                        self.configuration[key] for key in ("center_placement", "bound_correction")
                    }:
                        self._run_inside(optimizer, objective, rng)
                    else:
                        optimizer.run(objective)
                except HorizonReached:
                    pass
        return recorder.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)

    def _on_standard_box(
        self, evaluate: Callable[[FloatArray], float], lower: FloatArray, upper: FloatArray
    ) -> Callable[[FloatArray], float]:
        """Function on [-5, 5]^d from a function on a box, with as few operations as possible."""
        mapped = evaluate
        if (lower != -_EDGE).any() or (upper != _EDGE).any():
            middle, scale = lower / 2 + upper / 2, upper / (2 * _EDGE) - lower / (2 * _EDGE)
            saturated = self.configuration["bound_correction"] == "SATURATE"

            def mapped(z: FloatArray) -> float:
                x = z * scale + middle
                return evaluate(_clip(x, lower, upper) if saturated else x)

        if self.configuration["matrix_adaptation"] != "NATURAL_GRADIENT":
            return mapped

        def guarded(z: FloatArray) -> float:
            # This variant samples nan, restarts and continues; problems are not evaluated at such points.
            square = z.dot(z)
            return mapped(z) if square == square else math.nan

        return guarded

    def _run_inside(self, optimizer: Any, objective: Callable[[FloatArray], float], rng: np.random.Generator) -> None:
        """Run step by step, and choose a new start when the coming step is a restart.

        modcma corrects the points that it samples, but not those that it evaluates at a restart and for TPA.
        """
        settings, step, restarts = optimizer.p.settings, optimizer.step, optimizer.p.criteria.any
        saturated = self.configuration["bound_correction"] == "SATURATE"
        anywhere = self.configuration["center_placement"] == "BOX"

        def inside(z: FloatArray) -> float:
            return objective(_clip(z, -_EDGE, _EDGE))

        usual = inside if saturated and self.configuration["ssa"] == "TPA" else objective
        running = True
        while running:
            if restarts():
                if anywhere:
                    settings.x0 = rng.uniform(-_EDGE, _EDGE, settings.dim)
                running = step(inside if saturated else objective)
            else:
                running = step(usual)


def modcma_portfolio(
    configuration: Mapping[str, Any], *, preset: str = "paper", axis: str = "evaluations"
) -> tuple[ModularCMAES, ...]:
    """Algorithms for a configuration of modcma, or for a grid of them: all combinations of the lists in it.

    The names contain what differs: ``{"ssa": ["CSA", "TPA"], "lambda0": 20}`` gives ``ssa=CSA`` and ``ssa=TPA``.
    Without a list, the name contains everything that is given.
    """
    _require_modcma()
    as_choice(preset, PRESETS, "preset")
    grid = {key: value if isinstance(value, list | tuple) else [value] for key, value in configuration.items()}
    for key, values in grid.items():
        if not values:
            raise InvalidInputError(f"modcma: the list of values of {key!r} is empty.")
    differing = [key for key, value in configuration.items() if isinstance(value, list | tuple)] or list(grid)
    algorithms = []
    for values in itertools.product(*grid.values()):
        chosen = _check_configuration({**PRESETS[preset], **dict(zip(grid, values, strict=True))})
        name = " ".join(f"{key}={_text(chosen[key])}" for key in differing) or "modcma"
        algorithms.append(ModularCMAES(name, chosen, axis))
    return tuple(algorithms)


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """modcma-ssa, modcma-matrix, modcma:{JSON}: variants of CMA-ES; options preset, axis, random_search."""
    if name not in ("modcma-ssa", "modcma-matrix") and not name.startswith("modcma:"):
        return None
    who, any_configuration = f"The portfolio {name!r}", name.startswith("modcma:")
    readers: dict[str, Reader] = {
        "preset": one_of(PRESETS),
        "axis": lambda value, _: as_axis(value),
        "random_search": flag,
    }
    given: dict[str, Any] = {"preset": "paper", "axis": "evaluations", "random_search": not any_configuration}
    preset, axis, with_random_search = (given | read_options(options, readers, who)).values()
    portfolio: list[Algorithm]
    if any_configuration:
        portfolio = [*modcma_portfolio(_parse_configuration(name), preset=preset, axis=axis)]
    else:
        key, variants = (
            ("ssa", dict.fromkeys(_STEP_SIZES)) if name == "modcma-ssa" else ("matrix_adaptation", _MATRICES)
        )
        algorithms = modcma_portfolio({key: list(variants)}, preset=preset, axis=axis)
        portfolio = [
            ModularCMAES(short_name, algorithm.configuration, axis)
            for short_name, algorithm in zip(variants, algorithms, strict=True)
        ]
    if with_random_search:
        portfolio.append(RandomSearch("RS", axis))
    return portfolio


def _require_modcma() -> ModuleType:
    return require("modcma.c_maes", extra="ioh", who="A portfolio of CMA-ES variants")


def set_seed(library: ModuleType, seed: int) -> None:
    """Seed modcma and clear the normal number that it may have stored.

    Normal numbers are drawn in pairs, and the second of a pair survives ``set_seed``.  A draw with a known seed shows
    whether one was stored; if none was, this draw has stored one, and a second draw removes it.
    """
    utils = library.utils
    utils.set_seed(0)
    one, two = utils.random_uniform(), utils.random_uniform()
    first = math.sqrt(-2 * math.log(one)) * math.sin(2 * math.pi * two)
    utils.set_seed(0)
    if math.isclose(utils.random_normal(), first, abs_tol=1e-9):
        utils.random_normal()
    utils.set_seed(seed)


def _make_settings(library: ModuleType, configuration: Mapping[str, Any], start: FloatArray) -> Any:
    modules = library.Modules()
    numbers: dict[str, Any] = {"budget": _UNLIMITED}
    for key, value in configuration.items():
        if not hasattr(modules, key):
            numbers[key] = value
        elif isinstance(value, bool):
            setattr(modules, key, value)
        else:
            # A new start in the box is the x0 that is set before each restart.
            option = "X0" if (key, value) == ("center_placement", "BOX") else value
            setattr(modules, key, type(getattr(modules, key))[option])
    if start.size >= _TOO_LARGE_TO_REPEL:
        modules.repelling_restart = False
    edge = np.full(start.size, _EDGE)
    return library.Settings(start.size, modules=modules, x0=start, lb=-edge, ub=edge, **numbers)


def _clip(x: FloatArray, lower: FloatArray | float, upper: FloatArray | float) -> FloatArray:
    """``numpy.clip``, in a third of the time."""
    return np.minimum(np.maximum(x, lower), upper)


def _check_bounds(problem: BoxProblem, who: str) -> tuple[FloatArray, FloatArray]:
    name = problem.identity.name
    lower, upper = as_vector(problem.lower, f"{name!r}: lower"), as_vector(problem.upper, f"{name!r}: upper")
    if lower.shape != upper.shape or not lower.size or not np.isfinite([lower, upper]).all() or (lower >= upper).any():
        raise InvalidInputError(f"{name!r}: {who!r} needs finite bounds, each lower one below its upper one.")
    return lower, upper


def _check_configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse options and values that modcma does not have; returns the values as modcma spells them."""
    library = _require_modcma()
    modules = {key: getattr(library.Modules(), key) for key in dir(library.Modules) if not key.startswith("_")}
    checked: dict[str, Any] = {}
    for key, value in configuration.items():
        what = f"modcma: {key}"
        if key in _WHOLE_NUMBERS:
            checked[key] = as_whole_number(value, what, at_least=1)
        elif key in _NUMBERS:
            checked[key] = as_number(value, what, above=0) if key == "sigma0" else as_number(value, what, at_least=0)
        elif key == "always_compute_eigv" or isinstance(modules.get(key), bool):
            checked[key] = flag(value, what)
        elif key in modules:
            checked[key] = _check_option(modules[key], key, value)
        else:
            known = sorted({*modules, *_WHOLE_NUMBERS, *_NUMBERS, "always_compute_eigv"})
            raise InvalidInputError(f"modcma has no {key!r}. It takes {', '.join(known)}.")
    if (checked["threshold_convergence"] or checked["restart_strategy"] == "BIPOP") and "budget" not in checked:
        raise InvalidInputError(
            "modcma: threshold_convergence and the restart_strategy BIPOP depend on the budget: each budget is "
            "another algorithm. Give one with budget."
        )
    if checked.get("mu0", 1) > checked.get("lambda0", math.inf):
        raise InvalidInputError(f"modcma: mu0 ({checked['mu0']}) must not exceed lambda0 ({checked['lambda0']}).")
    return checked


def _check_option(default: Enum, key: str, value: object) -> str:
    names = [*type(default).__members__, *(["BOX"] if key == "center_placement" else [])]
    name = str(value).upper()
    if key == "matrix_adaptation":
        name = _MATRICES.get(name, name)
    if not isinstance(value, str) or name not in names:
        raise InvalidInputError(f"modcma: {key} must be one of {', '.join(names)}, got {short(value)}.")
    return name


def _parse_configuration(name: str) -> Mapping[str, Any]:
    text = name.partition(":")[2]
    try:
        configuration = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidInputError(
            f"The portfolio {short(name)}: what follows the colon must be JSON ({problem}), such as "
            """'modcma:{"ssa": ["CSA", "TPA"]}'."""
        ) from None
    if not isinstance(configuration, dict):
        raise InvalidInputError(
            f"The portfolio {short(name)}: expected an object {{...}} after the colon, got {short(configuration)}."
        )
    return configuration


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
