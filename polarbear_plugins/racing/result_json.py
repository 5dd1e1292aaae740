"""A result as JSON, and the arrays of a saved one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import short
from polarbear_plugins.files import NUMBERS, TEXT, Arrays
from polarbear_plugins.posterior.posterior import ARRAYS as POSTERIOR_ARRAYS
from polarbear_plugins.rankings.comparable import instances_seen

if TYPE_CHECKING:
    from polarbear_plugins.racing.result import RaceResult

FORMAT = 1
#: The arrays of a result in a file.
ARRAYS: Arrays = {
    "result": TEXT,
    "timepoints": (NUMBERS, 1),
    "values": (NUMBERS, 3),
    "weights": (NUMBERS, 1),
    "resolved": ("b", 3),
    **{f"posterior_{name}": expected for name, expected in POSTERIOR_ARRAYS.items()},
}


def dict_of_result(result: RaceResult) -> dict[str, Any]:
    """JSON-ready dict of everything but the draws; see ``RaceResult.to_dict``."""
    table = result.state.table
    data: dict[str, Any] = {
        "format": FORMAT,
        "about": {"version": version("polarbear-plugins"), **result.about},
        "settings": result.settings.to_json(),
        "stopped": result.stopped,
        "resolved": result.resolved,
        "algorithms": list(result.algorithms),
        **({"stored": list(result.state.stored)} if result.state.stored else {}),
        "timepoints": result.timepoints.tolist(),
        "pareto_set": list(result.pareto_set),
        "eliminations": [asdict(elimination) for elimination in result.eliminations],
        "instances": list(table.instances),
        **({"groups": list(table.groups)} if table.groups else {}),
        "early_ends": [each.to_json() for each in table.early_ends],
        "cost": result.cost,
        **({"unused_cost": result.unused_cost} if result.unused_cost else {}),
        "full_cost": result.full_cost,
        "rounds": [asdict(finished) for finished in result.rounds],
        "open_pairs": [{"pair": [one, other], "timepoints": list(times)} for one, other, times in result.open_pairs],
        "failures": [asdict(failure) for failure in result.failures],
    }
    if result._posterior is not None:
        data |= _of_posterior(result)
    return _plain(data)


def _of_posterior(result: RaceResult) -> dict[str, Any]:
    relations, posterior = result.relations, result.posterior
    check, groups = posterior.check, posterior.groups
    return {
        "ratings": _with_gaps(posterior.mean_ratings),
        "instances_seen": instances_seen(result.state.table).tolist(),
        "relations": {
            "p_better": relations.p_better.tolist(),
            "p_equivalent": relations.p_equivalent.tolist(),
            "p_anytime": relations.p_anytime.tolist() if relations.joint else None,
        },
        "check": None if check is None else check.to_json(),
        "scope": None if groups is None else groups.to_json(),
        "p_any_wrong": result.p_any_wrong,
        "second_opinion": {
            "log_e_values": result.second_opinion().log_e_values.round(4).tolist(),
            "certain": list(result.certain_without_model),
        },
        # The k-hat of weights without a fit is inf, which JSON does not have.
        "diagnostics": {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(posterior.diagnostics).items()
        },
    }


def _with_gaps(ratings: FloatArray) -> list[list[float | None]]:
    """Ratings, ``None`` where nothing was observed: JSON has no nan."""
    return [[None if math.isnan(rating) else rating for rating in row] for row in ratings.tolist()]


def _plain(value: Any) -> Any:
    """JSON data with lists and dicts only, as if parsed from JSON text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def stored_from_json(data: Mapping[str, Any], algorithms: Sequence[str]) -> tuple[str, ...]:
    """Stored rivals; results of earlier versions have none."""
    stored = tuple(map(str, data.get("stored", ())))
    if not set(stored) < set(algorithms):
        raise ValueError(f"stored: expected some of the algorithms, got {short(stored)}")
    return stored


def groups_from_json(data: Mapping[str, Any]) -> tuple[list[str] | None, bool]:
    """Group of each row, and whether the groups are all there are; files without groups have neither."""
    groups, fixed = data.get("groups"), data.get("fixed_groups", False)
    if groups is not None and not (isinstance(groups, list) and all(isinstance(group, str) for group in groups)):
        raise ValueError(f"groups: expected a name for each row, got {short(groups)}")
    if not isinstance(fixed, bool):
        raise ValueError(f"fixed_groups: expected true or false, got {short(fixed)}")
    return groups, fixed
