from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from polarbear_plugins.adapters.optuna_study.name_pattern import Label, NamePattern
from polarbear_plugins.errors import InvalidInputError, SourceError

NAMES = st.text(st.characters(exclude_characters="/\n", exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@given(NAMES, NAMES, st.integers())
def test_a_name_that_was_made_by_a_pattern_is_read_back(algorithm: str, instance: str, seed: int) -> None:
    read = NamePattern("{algorithm}/{instance}/{seed}").read(f"{algorithm}/{instance}/{seed}")
    assert read == Label(algorithm, instance, seed)


def test_a_pattern_without_a_seed_gives_the_seed_0() -> None:
    assert NamePattern("{instance}: {algorithm}").read("f1: tpe") == Label("tpe", "f1", 0)


def test_empty_braces_stand_for_what_does_not_matter() -> None:
    assert NamePattern("{}-{algorithm}/{instance}").read("today-tpe/f1") == Label("tpe", "f1", 0)


def test_a_name_that_does_not_follow_the_pattern_has_no_label() -> None:
    assert NamePattern("{algorithm}-{instance}-{seed}").read("tpe-f1-x") is None


def test_a_name_that_can_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(SourceError, match="two ways"):
        NamePattern("{algorithm}-{instance}").read("cma-es-f1")


def test_a_regular_expression_says_which_way() -> None:
    pattern = NamePattern(r"(?P<algorithm>.+)-(?P<instance>f\d+)-(?P<seed>\d+)")
    assert pattern.read("cma-es-f1-3") == Label("cma-es", "f1", 3)


def test_what_separates_is_no_regular_expression() -> None:
    assert NamePattern("{algorithm}.({instance})").read("tpe.(f1)") == Label("tpe", "f1")
    assert NamePattern("{algorithm}.{instance}").read("tpe-f1") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{algorithm}",
        "{instance}-{seed}",
        "{algorithm}-{algorithm}-{instance}",
        "{algorithm}-{instance}-{run}",
        "(?P<algorithm>.+",
        r"(?P<algorithm>.+)-\d+",
        3,
    ],
)
def test_patterns_without_meaning_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="pattern"):
        NamePattern(text)


@pytest.mark.parametrize("parts", [{"algorithm": "a"}, {"algorithm": "a", "instance": 1.5}, {"instance": "f"}])
def test_labels_need_an_algorithm_and_an_instance(parts: dict[str, object]) -> None:
    with pytest.raises(SourceError, match="here"):
        Label.of(parts, "here")


@pytest.mark.parametrize("seed", ["x", 1.5, True])
def test_seeds_are_whole_numbers(seed: object) -> None:
    with pytest.raises(SourceError, match=r"here: .*seed"):
        Label.of({"algorithm": "a", "instance": 1, "seed": seed}, "here")
