"""What journals and saved results say about rounds and origins, checked as it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polarbear_plugins.checks import as_name, as_number, as_whole_number, parse_json, short
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.options import flag
from polarbear_plugins.racing.settings import MOST_INSTANCES
from polarbear_plugins.racing.state import Elimination, Round

__all__ = ["check_about", "check_rounds", "round_from_json"]


def round_from_json(data: Mapping[str, Any]) -> Round:
    """Round from the data that ``dataclasses.asdict`` made of it; numbers that are none are refused."""
    whole = {name: as_whole_number(data[name], name, at_least=0) for name in ("number", "batch", "instances")}
    batch = as_whole_number(data["next_batch"], "next_batch", at_least=0)
    if batch > MOST_INSTANCES:  # the plan of the next round makes room for it
        raise InvalidInputError(f"next_batch: expected at most {MOST_INSTANCES:,}, got {short(batch)}.")
    return Round(
        **{
            **data,
            **whole,
            "cost": as_number(data["cost"], "cost"),
            "eliminations": tuple(_elimination(**elimination) for elimination in data["eliminations"]),
            "resolved": tuple((str(one), str(other)) for one, other in data["resolved"]),
            "resolved_share": as_number(data["resolved_share"], "resolved_share"),
            "good": flag(data["good"], "good"),
            "next_batch": batch,
            "newcomers": tuple(map(str, data["newcomers"])),
            "rivals": {name: (str(rival), as_number(p, "rivals")) for name, (rival, p) in data["rivals"].items()},
        }
    )


def _elimination(*, algorithm: str, by: str, probability: float, round: int) -> Elimination:  # noqa: A002 - its name
    return Elimination(
        as_name(algorithm, "algorithm"),
        as_name(by, "by"),
        as_number(probability, "probability"),
        as_whole_number(round, "round"),
    )


def check_about(about: object) -> None:
    """Refuse what does not tell where a race came from.

    :raises ValueError: something is of another kind than a race writes.
    """
    if not isinstance(about, dict):
        raise ValueError(f"about: expected an object, got {short(about)}")
    for what in ("portfolio", "suite"):
        source = about.get(what)
        if source is not None:
            texts = [source.get(key) for key in ("name", "options")] if isinstance(source, dict) else [None]
            if not all(isinstance(text, str) for text in texts) or not isinstance(parse_json(source["options"]), dict):
                raise ValueError(f"about: expected name and options of the {what}, got {short(source)}")
    for what, kind in (("sources", list), ("options", dict)):
        if not isinstance(about.get(what), kind | None):
            raise ValueError(f"about: expected other {what}, got {short(about[what])}")


def check_rounds(rounds: Sequence[Round], algorithms: Sequence[str]) -> None:
    """Refuse rounds of other algorithms than these, and such that leave none.

    :raises ValueError: they do not belong together.
    """
    out = {elimination.algorithm for finished in rounds for elimination in finished.eliminations}
    named = {elimination.by for finished in rounds for elimination in finished.eliminations} | out
    named |= {name for finished in rounds for name, (rival, _) in finished.rivals.items() for name in (name, rival)}
    named |= {name for finished in rounds for name in finished.newcomers}
    strangers = sorted(named - set(algorithms))
    if strangers:
        raise ValueError(f"a round has {short(strangers[0])}, which is none of the algorithms")
    if out >= set(algorithms):
        raise ValueError("every algorithm was eliminated")
