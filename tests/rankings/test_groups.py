"""Groups of instances in ranking tables."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from builders import run_of, table_of
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import RankingStream, RankingTable, Trajectory, rank, stream_rankings
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings import add_virtual_algorithms


@st.composite
def grouped_tables(draw: st.DrawFn) -> RankingTable:
    """Tables with repetitions, in which instance k is in one of three groups."""
    instances = draw(st.lists(st.integers(0, 6), min_size=1, max_size=12))
    group = draw(st.lists(st.sampled_from(["f10", "f2", "f1"]), min_size=7, max_size=7))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return table_of(
        rng.integers(0, 4, (len(instances), 2, 3)),
        instances=instances,
        groups=[group[instance] for instance in instances],
        fixed_groups=draw(st.booleans()),
        weights=rng.integers(1, 5, len(instances)),
        repetitions=draw(st.sampled_from(["weight", "independent"])),
        tolerance=draw(st.sampled_from([0.0, 1.5])),
    )


def rows_of(table: RankingTable) -> list[tuple[Any, ...]]:
    names, groups = table.instances, table.groups
    return [
        (names[place], groups[place], weight, values.tolist(), ranks.tolist())
        for place, weight, values, ranks in zip(
            table.instance_index, table.weights, table.values, table.ranks, strict=True
        )
    ]


def empty_like(table: RankingTable) -> RankingTable:
    return RankingTable(table.algorithms, table.timepoints, repetitions=table.repetitions, tolerance=table.tolerance)


def test_the_groups_are_those_of_the_instances_in_their_order() -> None:
    table = table_of([[[1, 2]]] * 3, instances=["x", "y", "x"], groups=[7, "g", 7])
    assert table.instances == ("x", "y")
    assert table.groups == ("7", "g")
    assert not table.fixed_groups
    assert table_of([[[1, 2]]], groups=["g"], fixed_groups=True).fixed_groups


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_all_there_are_and_a_sample_are_a_sample(fixed: list[bool]) -> None:
    table = RankingTable(["a", "b"], [1])
    tables = [
        table := table.append(table_of([[[1, 2]]], instances=[place], groups=["g"], fixed_groups=each))
        for place, each in enumerate(fixed)
    ]
    given_runs = [
        run_of(algorithm, place, group="g", fixed_group=each) for place, each in enumerate(fixed) for algorithm in "ab"
    ]
    expected = [all(fixed[: place + 1]) for place in range(len(fixed))]
    assert [each.fixed_groups for each in tables] == expected
    assert [rank(given_runs[: 2 * place + 2], [1]).fixed_groups for place in range(len(fixed))] == expected


def test_a_table_without_groups_says_so() -> None:
    for table in (table_of([[[1, 2]]]), RankingTable(["a", "b"], [1])):
        assert table.groups == ()
        assert not table.fixed_groups
        assert "group" not in repr(table)
        with pytest.raises(InvalidInputError, match="split_by_group: the instances of this table have no groups"):
            table.split_by_group()
    assert "group" not in table_of([[[1, 2]]]).to_pandas()


@given(grouped_tables(), st.data())
def test_appending_blocks_gives_the_groups_of_the_whole(whole: RankingTable, data: st.DataObject) -> None:
    *_, values, instances, weights, groups, fixed, _ = whole.parts()
    assert groups is not None
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    by_rows = by_blocks = empty_like(whole)
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        rows = slice(start, stop)
        block = empty_like(whole).extended(
            values[rows], instances[rows], weights[rows], groups[rows], fixed and stop > start
        )
        by_blocks = by_blocks.append(block)
        by_rows = by_rows.extended(values[rows], instances[rows], weights[rows], groups[rows], fixed and stop > start)
    assert by_blocks == by_rows == whole
    assert (by_blocks.groups, by_blocks.fixed_groups) == (whole.groups, whole.fixed_groups)


@given(grouped_tables())
def test_copies_pickles_and_parts_keep_the_groups(table: RankingTable) -> None:
    again = [copy.deepcopy(table), pickle.loads(pickle.dumps(table)), RankingTable.from_parts(*table.parts())]  # noqa: S301
    for other in again:
        assert other == table
        assert (other.groups, other.fixed_groups) == (table.groups, table.fixed_groups)


def test_parts_of_before_there_were_groups_make_a_table_without() -> None:
    table = table_of([[[1, 2]], [[2, 1]]])
    assert RankingTable.from_parts(*table.parts()[:7]) == table


def test_tables_that_differ_in_their_groups_are_different() -> None:
    tables = [
        table_of([[[1, 2]]], **more)
        for more in ({}, {"groups": ["g"]}, {"groups": ["h"]}, {"groups": ["h"], "fixed_groups": True})
    ]
    for place, table in enumerate(tables):
        assert [other == table for other in tables] == [other == place for other in range(4)]


@given(grouped_tables())
def test_splitting_by_group_loses_and_changes_no_row(table: RankingTable) -> None:
    parts = table.split_by_group()
    assert list(parts) == [name for name in ("f1", "f2", "f10") if name in table.groups]
    for group, part in parts.items():
        assert (part.algorithms, part.repetitions, part.tolerance) == (
            table.algorithms,
            table.repetitions,
            table.tolerance,
        )
        assert part.timepoints.tolist() == table.timepoints.tolist()
        assert part.fixed_groups == table.fixed_groups
        assert rows_of(part) == [row for row in rows_of(table) if row[1] == group]


def test_branches_of_a_table_do_not_see_the_groups_of_each_other() -> None:
    trunk = RankingTable(["a", "b"], [1]).append(table_of([[[1, 2]]], instances=["x"], groups=["g"]))
    one = trunk.append(table_of([[[1, 2]]], instances=["y"], groups=["g"]))
    other = trunk.append(table_of([[[1, 2]]], instances=["y"], groups=["h"]))
    assert (trunk.groups, one.groups, other.groups) == (("g",), ("g", "g"), ("g", "h"))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"instances": ["x"], "groups": ["h"]}, "instance 'x' has the groups 'g' and 'h'. An instance has one group"),
        ({"instances": ["y"]}, "instance 'x' has the group 'g', and 'y' has none"),
        ({"instances": ["x"]}, "instance 'x' has the group 'g', and 'x' has none in other rows"),
    ],
)
def test_a_block_that_contradicts_the_groups_is_refused_and_leaves_the_table_alone(
    block: dict[str, Any], message: str
) -> None:
    table = RankingTable(["a", "b"], [1]).append(table_of([[[1, 2]]], instances=["x"], groups=["g"]))
    with pytest.raises(InvalidInputError, match=message):
        table.append(table_of([[[1, 2]]], **block))
    assert table.append(table_of([[[1, 2]]], instances=["z"], groups=["h"])).groups == ("g", "h")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"instances": ["x", "x"], "groups": ["g", "h"]}, "instance 'x' has the groups 'g' and 'h'"),
        ({"instances": ["x", "y"], "groups": [None, "h"]}, "instance 'y' has the group 'h', and 'x' has none"),
        ({"groups": ["g"]}, "groups: expected one for each of 2 rows, got 1"),
        ({"groups": "gh"}, "groups: expected a list of names, got 'gh'"),
        ({"groups": ["g", 1.5]}, r"groups\[1\]: expected a name"),
        ({"fixed_groups": True}, "fixed_groups=True says something about groups, and there are none"),
    ],
)
def test_groups_of_rows_that_mean_nothing_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        table_of([[[1, 2]], [[2, 1]]], **more)


def test_an_ungrouped_table_takes_no_groups() -> None:
    table = table_of([[[1, 2]]], instances=["x"])
    with pytest.raises(InvalidInputError, match="instance 'y' has the group 'g', and 'x' has none"):
        table.append(table_of([[[1, 2]]], instances=["y"], groups=["g"]))


def test_the_number_of_groups_is_told() -> None:
    table = table_of([[[1, 2]]] * 3, groups=["g", "h", "g"])
    assert repr(table).endswith("3 instances in 3 rows, 2 groups)")


@given(grouped_tables())
def test_the_data_frame_tells_the_group_of_each_row(table: RankingTable) -> None:
    frame = table.to_pandas()
    assert list(frame)[:4] == ["instance", "repetition", "group", "timepoint"]
    group = dict(zip(table.instances, table.groups, strict=True))
    assert frame["group"].tolist() == [group[instance] for instance in frame["instance"]]


@given(grouped_tables())
def test_virtual_algorithms_leave_the_groups_and_weights(table: RankingTable) -> None:
    longer = add_virtual_algorithms(table, {"a+b": ["a", "b"]})
    assert (longer.groups, longer.fixed_groups) == (table.groups, table.fixed_groups)
    assert longer.weights.tolist() == table.weights.tolist()


# From trajectories


def runs(group: Callable[[int], str | None], fixed: bool = False) -> list[Trajectory]:
    return [
        run_of(algorithm, f"i{place}", place + level, group=group(place), fixed_group=fixed)
        for place in range(5)
        for level, algorithm in enumerate("ab")
    ]


@pytest.mark.parametrize("fixed", [False, True])
@given(order=st.permutations(range(10)))
def test_rankings_have_the_groups_of_the_runs_in_any_order(fixed: bool, order: list[int]) -> None:
    given_runs = runs(lambda place: f"g{place % 2}", fixed)
    table = rank([given_runs[place] for place in order], [1])
    assert table.groups == ("g0", "g1", "g0", "g1", "g0")
    assert table.fixed_groups == fixed


def joined(stream: Any) -> RankingTable:
    blocks = list(stream)
    table = blocks[0]
    for block in blocks[1:]:
        table = table.append(block)
    return table


def test_a_stream_gives_the_groups_that_ranking_at_once_gives() -> None:
    given_runs = runs(lambda place: f"g{place % 2}", fixed=True)
    assert joined(stream_rankings(given_runs[:-1], ["a", "b"], [1])) == rank(given_runs[:-1], [1])
    assert joined(stream_rankings(runs(lambda _: None), ["a", "b"], [1])).groups == ()


def collect_in_stream(given_runs: list[Trajectory]) -> None:
    stream = RankingStream(["a", "b"], [1], runs=2)
    for run in given_runs:
        stream.add(run)


@pytest.mark.parametrize("collect", [lambda given_runs: rank(given_runs, [1]), collect_in_stream])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (run_of("b", "x", group="h"), "'a' on instance 'x' has the group 'g', and that of 'b' on it has 'h'"),
        (run_of("b", "x"), "'a' on instance 'x' has the group 'g', and that of 'b' on instance 'x' has none"),
        (run_of("b", "y"), "'a' on instance 'x' has the group 'g', and that of 'b' on instance 'y' has none"),
    ],
)
def test_runs_that_contradict_each_other_are_refused(
    collect: Callable[[list[Trajectory]], object], other: Trajectory, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        collect([run_of("a", "x", group="g"), other])
    with pytest.raises(InvalidInputError, match="group"):
        collect([other, run_of("a", "x", group="g")])
