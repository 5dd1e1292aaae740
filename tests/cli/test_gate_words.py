"""The words and numbers of a gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polarbear_plugins import Trajectory
from polarbear_plugins.cli.gate_words import caveats, conclusion, row_of
from polarbear_plugins.measures import Gate, gate


def found(wins: int, of: int = 12) -> Gate:
    """A gate of a version that wins on the first instances."""

    def runs(value: float, first: float) -> list[Trajectory]:
        return [
            Trajectory(algorithm="tpe", instance=f"f{k}", times=[1], best=[first if k < wins else value], horizon=10)
            for k in range(of)
        ]

    return gate(runs(2.0, 2.0), runs(3.0, 1.0), [1, 10])


@pytest.mark.parametrize(
    ("p", "says"),
    [(0.9996, "> 0.9995"), (0.9994, "0.999"), (0.5, "0.500"), (0.0006, "0.001"), (0.0004, "< 0.0005")],
)
def test_p_better_is_told_to_three_digits_and_never_as_certain(p: float, says: str) -> None:
    assert row_of(replace(found(6).verdicts[0], p_better=p))[2] == says


def test_what_it_takes_is_told_for_both_sides() -> None:
    made = found(6)
    [comparison] = made.comparisons
    sure = replace(comparison, threshold=0.9975)
    assert " That takes a P(better) of at least 0.9975, or at most 0.0025. " in caveats(sure, made)[0]
    assert "That takes" not in caveats(replace(comparison, threshold=None), made)[0]


@pytest.mark.parametrize(("word", "silent"), [("open", True), ("equivalent", False), ("better", False)])
def test_only_what_is_open_is_no_evidence(word: str, silent: bool) -> None:
    made = found(6)
    verdicts = tuple(replace(each, verdict=word) for each in made.verdicts)
    told = conclusion(replace(made, comparisons=(replace(made.comparisons[0], verdicts=verdicts),)))
    assert told.startswith(f"The gate passes: the new version is not shown to be worse at any budget; it is {word} at ")
    assert told.endswith(" That is no evidence that the two are alike.") == silent
