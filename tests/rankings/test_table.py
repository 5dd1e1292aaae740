from __future__ import annotations

import contextlib
import math
import pickle

import numpy as np
import pytest
from builders import column_kinds, table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.rankings import UNRANKED
from polarbear_plugins.rankings.table import RankingTable

INF, NAN = math.inf, math.nan

numbers = st.sampled_from([-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
numbers_or_nothing = st.sampled_from([-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, NAN, NAN, INF, -INF])


@st.composite
def value_arrays(
    draw: st.DrawFn,
    *,
    min_rows: int = 1,
    min_algorithms: int = 2,
    elements: st.SearchStrategy[float] = numbers_or_nothing,
) -> np.ndarray:
    """Values in which the first two algorithms meet on every instance."""
    timepoints, algorithms = draw(st.integers(1, 2)), draw(st.integers(min_algorithms, 5))
    rows = draw(st.integers(min_rows, 5))
    values = draw(arrays(np.float64, (rows, timepoints, algorithms), elements=elements, fill=st.nothing()))
    met = values[:, 0, :2]
    met[np.isnan(met)] = 0.0
    return values


# Tables from values


def test_a_table_holds_what_it_was_made_from() -> None:
    values = [[[3.0, 1.0, NAN], [0.5, 0.7, 0.5]], [[1.0, 1.0, INF], [NAN, 2.0, 1.0]]]
    table = RankingTable.from_values(
        values, algorithms=["csa", "msr", 3], timepoints=[10, 100], instances=["f1", 2], tolerance=0.1
    )
    assert table.algorithms == ("csa", "msr", "3")
    assert table.instances == ("f1", "2")
    assert (len(table), table.repetitions, table.tolerance) == (2, "weight", 0.1)
    np.testing.assert_array_equal(table.timepoints, [10, 100])
    np.testing.assert_array_equal(table.values, values)
    np.testing.assert_array_equal(table.ranks, [[[2, 1, 0], [1, 3, 1]], [[1, 1, 3], [0, 2, 1]]])


def test_instances_are_numbered_by_default() -> None:
    assert table_of([[[1, 2]], [[2, 1]]]).instances == ("0", "1")


def test_values_closer_than_the_tolerance_are_tied() -> None:
    assert table_of([[[1.0, 1.4, 1.8]]], tolerance=0.5).ranks.tolist() == [[[1, 1, 3]]]
    assert table_of([[[1.0, 1.4, 1.8]]]).ranks.tolist() == [[[1, 2, 3]]]


def test_larger_values_rank_first_when_maximised() -> None:
    table = table_of([[[1.0, 5.0, -INF, NAN]]], maximize=True)
    assert table.ranks.tolist() == [[[2, 1, 3, 0]]]
    np.testing.assert_array_equal(table.values, [[[-1.0, -5.0, INF, NAN]]])


@given(value_arrays())
def test_maximising_is_minimising_the_negative(values: np.ndarray) -> None:
    assert table_of(values, maximize=True) == table_of(-values)


@pytest.mark.parametrize("maximize", [False, True])
def test_a_table_does_not_share_the_arrays_it_was_made_from(maximize: bool) -> None:
    values, weights, timepoints = np.array([[[1.0, 2.0]]]), np.array([3.0]), np.array([4.0])
    table = table_of(values, weights=weights, timepoints=timepoints, maximize=maximize)
    twin = table_of(values.copy(), weights=[3.0], timepoints=[4.0], maximize=maximize)
    np.testing.assert_array_equal(values, [[[1, 2]]])
    values[:], weights[:], timepoints[:] = 9, 9, 9
    assert table == twin
    np.testing.assert_array_equal(table.ranks, twin.ranks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithms": ["a"]}, "A ranking needs at least two algorithms, got only 'a'"),
        ({"algorithms": []}, "A ranking needs at least two algorithms, got none"),
        ({"algorithms": ["a", "b", "a", "b"]}, "algorithms: 'a', 'b' are named more than once"),
        ({"algorithms": [1, "1"]}, "algorithms: '1' is named more than once"),
        ({"algorithms": "ab"}, "algorithms: expected a list of names, got 'ab'"),
        ({"algorithms": ["a", ""]}, r"algorithms\[1\]: the name is empty"),
        ({"algorithms": ["a", None]}, r"algorithms\[1\]: expected a name .*, got None"),
        ({"timepoints": []}, "timepoints: expected at least one, got none"),
        ({"timepoints": [2, 1]}, "timepoints: times must increase strictly, got 1 after 2"),
        ({"tolerance": -0.5}, r"tolerance: must not be negative, got -0\.5"),
        ({"tolerance": NAN}, "tolerance: expected a finite number, got nan"),
        ({"tolerance": INF}, "tolerance: expected a finite number, got inf"),
        ({"tolerance": "small"}, "tolerance: expected a finite number, got 'small'"),
        ({"repetitions": "sum"}, 'repetitions: expected "weight" or "independent", got \'sum\''),
        ({"repetitions": None}, 'repetitions: expected "weight" or "independent", got None'),
    ],
)
def test_tables_that_mean_nothing_are_refused_even_without_rows(change: dict[str, object], message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        RankingTable(**{"algorithms": ["a", "b"], "timepoints": [1, 2], **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [[1, 2]]}, r"expected the shape \[instances, 1 timepoints, 2 algorithms\], got \[1, 2\]"),
        ({"values": [[[1, 2, 3]]]}, r"expected the shape \[instances, 1 timepoints, 2 algorithms\], got \[1, 1, 3\]"),
        ({"values": [[[1, 2], [1, 2]]]}, r"expected the shape .*, got \[1, 2, 2\]"),
        ({"values": 1.0}, r"expected the shape .*, got \[\]"),
        ({"values": np.empty((0, 1, 2))}, "values: expected at least one instance, got none"),
        ({"values": [[["low", "high"]]]}, r"values: expected numbers, got \[\[\['low', 'high'\]\]\]"),
        ({"values": [[["1", "2"]]]}, r"values: expected numbers, got \[\[\['1', '2'\]\]\]"),
        ({"values": [[[10**400, 1]]]}, r"values: expected numbers, got \[\[\[1000.*too large"),
        ({"values": [[[10**5000, 1]]]}, "values: expected numbers, got a huge list"),
        ({"values": [[[1, 2]], [[1]]]}, "values: expected numbers"),
        ({"values": [[[1, NAN]], [[NAN, 2]]]}, "The algorithms a, b have no instance in common at any timepoint"),
        ({"values": [[[NAN, NAN]]]}, "The algorithms a, b have no instance in common at any timepoint"),
        ({"values": [[[UNRANKED, UNRANKED]]]}, "The algorithms a, b are all unranked"),
        ({"instances": ["f1", "f2"]}, "instances: 2 names for 1 rows of values"),
        ({"instances": [" "]}, r"instances\[0\]: the name is empty"),
        ({"instances": [1.5]}, r"instances\[0\]: expected a name .*, got 1\.5"),
        ({"weights": [1, 2]}, r"weights: expected one for each of 1 rows, got the shape \[2\]"),
        ({"weights": ["1"]}, r"weights: expected numbers, got \['1'\]"),
        ({"weights": 1.0}, r"weights: expected one for each of 1 rows, got the shape \[\]"),
        ({"weights": [0.0]}, "weights: expected positive finite numbers"),
        ({"weights": [-1.0]}, "weights: expected positive finite numbers"),
        ({"weights": [NAN]}, "weights: expected positive finite numbers"),
        ({"weights": [INF]}, "weights: expected positive finite numbers"),
        ({"algorithms": ["a", "a"]}, "algorithms: 'a' is named more than once"),
        ({"repetitions": "sum"}, "repetitions: expected"),
        ({"tolerance": -1}, "tolerance: must not be negative, got -1"),
    ],
)
def test_values_that_mean_nothing_are_refused(change: dict[str, object], message: str) -> None:
    good = {"values": [[[1.0, 2.0]]], "algorithms": ["a", "b"], "timepoints": [1]}
    with pytest.raises(InvalidInputError, match=message):
        RankingTable.from_values(**{**good, **change})


def test_algorithms_that_meet_at_a_single_timepoint_can_be_compared() -> None:
    assert len(table_of([[[1, NAN], [1, NAN]], [[NAN, 2], [3, 2]]])) == 2


# Instances, repetitions and weights


def test_rows_of_a_repeated_instance_are_its_repetitions() -> None:
    table = table_of(np.ones((5, 1, 2)), instances=["g", "f", "g", "g", "f"])
    assert table.instances == ("g", "f")
    assert table.instance_index.tolist() == [0, 1, 0, 0, 1]
    assert table.repetition_index.tolist() == [0, 0, 1, 2, 1]


def test_repetitions_share_the_weight_of_their_instance() -> None:
    table = table_of(np.ones((4, 1, 2)), instances=["g", "f", "g", "h"])
    assert table.weights.tolist() == [0.5, 1, 0.5, 1]


def test_independent_repetitions_count_in_full() -> None:
    table = table_of(np.ones((4, 1, 2)), instances=["g", "f", "g", "h"], repetitions="independent")
    assert table.weights.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(("repetitions", "weights"), [("weight", [1, 3, 2]), ("independent", [2, 3, 4])])
def test_explicit_weights_are_shared_among_the_repetitions_only_if_wanted(
    repetitions: str, weights: list[float]
) -> None:
    table = table_of(np.ones((3, 1, 2)), instances=["g", "f", "g"], weights=[2, 3, 4], repetitions=repetitions)
    assert table.weights.tolist() == weights


@given(st.lists(st.sampled_from("fgh"), min_size=1, max_size=12))
def test_every_instance_counts_as_one_however_often_it_was_repeated(instances: list[str]) -> None:
    table = table_of(np.ones((len(instances), 1, 2)), instances=instances)
    for name in instances:
        rows = [row for row, other in enumerate(instances) if other == name]
        assert sum(table.weights[rows]) == pytest.approx(1)
        assert table.repetition_index[rows].tolist() == list(range(len(rows)))
        assert {table.instances[index] for index in table.instance_index[rows]} == {name}


def test_a_table_without_rows_has_empty_columns() -> None:
    table = RankingTable(["a", "b"], [1, 2, 3])
    assert len(table) == 0
    assert table.instances == ()
    assert table.values.shape == table.ranks.shape == (0, 3, 2)
    for column in (table.weights, table.instance_index, table.repetition_index):
        assert column.shape == (0,)


@pytest.mark.parametrize("name", ["values", "ranks", "instance_index", "timepoints"])
def test_what_a_table_shows_is_read_only(name: str) -> None:
    array = getattr(table_of([[[1, 2]], [[3, 1]]]), name)
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


@pytest.mark.parametrize("repetitions", ["weight", "independent"])
@pytest.mark.parametrize("name", ["weights", "repetition_index"])
def test_writing_into_a_column_never_changes_the_table(name: str, repetitions: str) -> None:
    table = table_of([[[1, 2]], [[3, 1]]], instances=["f", "f"], repetitions=repetitions)
    before = getattr(table, name).copy()
    with contextlib.suppress(ValueError):
        getattr(table, name)[...] = 7
    np.testing.assert_array_equal(getattr(table, name), before)


# Appending


@st.composite
def blocks_and_whole(draw: st.DrawFn) -> tuple[list[RankingTable], RankingTable]:
    """A table, and the same rows as the tables of consecutive blocks."""
    values = draw(value_arrays(min_rows=2))
    rows = len(values)
    names = draw(st.lists(st.sampled_from("fgh"), min_size=rows, max_size=rows))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=rows, max_size=rows))
    options = {
        "repetitions": draw(st.sampled_from(["weight", "independent"])),
        "tolerance": draw(st.sampled_from([0.0, 1.0])),
    }
    ends = sorted({*draw(st.sets(st.integers(1, rows - 1))), rows})
    blocks = [
        table_of(values[start:end], instances=names[start:end], weights=weights[start:end], **options)
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return blocks, table_of(values, instances=names, weights=weights, **options)


@given(blocks_and_whole())
def test_appending_blocks_equals_building_everything_at_once(
    blocks_and_whole: tuple[list[RankingTable], RankingTable],
) -> None:
    blocks, whole = blocks_and_whole
    table = RankingTable(whole.algorithms, whole.timepoints, repetitions=whole.repetitions, tolerance=whole.tolerance)
    for block in blocks:
        table = table.append(block)
    assert table == whole
    np.testing.assert_array_equal(table.ranks, whole.ranks)
    np.testing.assert_array_equal(table.repetition_index, whole.repetition_index)


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from("fgh"), st.lists(numbers, min_size=2, max_size=2)), max_size=30
    )
)
def test_tables_that_branch_from_one_another_keep_their_own_rows(
    steps: list[tuple[int, str, list[float]]],
) -> None:
    tables = [(table_of([[[0, 1]]], instances=["f"]), [("f", [0.0, 1.0])])]
    for parent, name, values in steps:
        table, rows = tables[parent % len(tables)]
        longer = table.append(table_of([[values]], instances=[name]))
        tables.append((longer, [*rows, (name, values)]))
    for table, rows in tables:
        alone = table_of([[values] for _, values in rows], instances=[name for name, _ in rows])
        assert table == alone
        np.testing.assert_array_equal(table.ranks, alone.ranks)


def test_appending_returns_a_longer_table_and_leaves_both_as_they_were() -> None:
    table, block = table_of([[[1, 2]]], instances=["f"]), table_of([[[2, 1]], [[3, 3]]], instances=["f", "g"])
    longer = table.append(block)
    assert (len(longer), longer.instances, longer.weights.tolist()) == (3, ("f", "g"), [0.5, 0.5, 1])
    assert table == table_of([[[1, 2]]], instances=["f"])
    assert block == table_of([[[2, 1]], [[3, 3]]], instances=["f", "g"])


def test_two_tables_may_go_on_from_the_same_one() -> None:
    trunk = RankingTable(["a", "b"], [1]).append(table_of([[[1, 2]]], instances=["f"]))
    left = trunk.append(table_of([[[5, 4]]], instances=["left"]))
    right = trunk.append(table_of([[[7, 7]]], instances=["right"]))
    assert trunk == table_of([[[1, 2]]], instances=["f"])
    assert left == table_of([[[1, 2]], [[5, 4]]], instances=["f", "left"])
    assert right == table_of([[[1, 2]], [[7, 7]]], instances=["f", "right"])


def test_views_taken_before_an_append_do_not_change() -> None:
    table = RankingTable(["a", "b"], [1]).append(table_of([[[1, 2]]], instances=["f"]))
    values, ranks, weights = table.values, table.ranks, table.weights
    table.append(table_of([[[5, 4]]], instances=["f"]))
    assert (values.tolist(), ranks.tolist(), weights.tolist()) == ([[[1, 2]]], [[[1, 2]]], [1])
    assert table.weights.tolist() == [1]


def test_a_table_may_be_appended_to_itself() -> None:
    table = table_of([[[1, 2]], [[2, 1]]], instances=["f", "g"])
    assert table.append(table) == table_of([[[1, 2]], [[2, 1]]] * 2, instances=["f", "g"] * 2)


def test_appending_a_table_without_rows_changes_nothing() -> None:
    table = table_of([[[1, 2]]])
    assert table.append(RankingTable(["a", "b"], [1])) == table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithms": ["a", "c"]}, r"append: the tables differ in their algorithms: \('a', 'b'\) and \('a', 'c'\)"),
        ({"algorithms": ["b", "a"]}, r"append: the tables differ in their algorithms: \('a', 'b'\) and \('b', 'a'\)"),
        ({"repetitions": "independent"}, "append: the tables differ in their repetitions: 'weight' and 'independent'"),
        ({"tolerance": 0.5}, r"append: the tables differ in their tolerance: 0\.0 and 0\.5"),
        ({"timepoints": [2]}, "append: the tables have different timepoints: 1 from 1 to 1 and 1 from 2 to 2"),
        (
            {"timepoints": [1, 2], "values": [[[1, 2], [1, 2]]]},
            "append: the tables have different timepoints: 1 from 1 to 1 and 2 from 1 to 2",
        ),
    ],
)
def test_appending_refuses_tables_that_do_not_fit(change: dict[str, object], message: str) -> None:
    table = table_of([[[1, 2]]])
    with pytest.raises(InvalidInputError, match=message):
        table.append(table_of(**{"values": [[[1, 2]]], **change}))
    assert table == table_of([[[1, 2]]])


# Equality and pickling


@pytest.mark.parametrize(
    "change",
    [
        {"algorithms": ["a", "c"]},
        {"timepoints": [2]},
        {"instances": ["f", "g"]},
        {"instances": ["0", "0"]},
        {"weights": [1, 2]},
        {"tolerance": 0.1},
        {"repetitions": "independent"},
        {"values": [[[1, 2]], [[3, 4]]]},
        {"values": [[[1, 2]]]},
    ],
)
def test_tables_that_differ_in_one_thing_are_not_equal(change: dict[str, object]) -> None:
    values = [[[1, 2]], [[3, NAN]]]
    assert table_of(values) == table_of(values)
    assert table_of(values) != table_of(**{"values": values, **change})


def test_tables_that_differ_only_in_whose_repetition_a_row_is_are_not_equal() -> None:
    values = np.ones((3, 1, 2))
    one, other = (table_of(values, instances=names, repetitions="independent") for names in (list("fgf"), list("fgg")))
    assert one != other


def test_a_table_is_equal_to_nothing_but_tables_and_has_no_hash() -> None:
    table = table_of([[[1, 2]]])
    assert table != "table"
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)


@given(blocks_and_whole())
def test_a_pickled_table_comes_back_equal_and_can_grow(
    blocks_and_whole: tuple[list[RankingTable], RankingTable],
) -> None:
    blocks, whole = blocks_and_whole
    loaded = pickle.loads(pickle.dumps(blocks[0]))  # noqa: S301
    assert loaded == blocks[0]
    for block in blocks[1:]:
        loaded = loaded.append(block)
    assert loaded == whole
    np.testing.assert_array_equal(loaded.ranks, whole.ranks)


def test_the_timepoints_of_a_pickled_table_are_read_only() -> None:
    loaded = pickle.loads(pickle.dumps(table_of([[[1, 2]]])))  # noqa: S301
    with pytest.raises(ValueError, match="read-only"):
        loaded.timepoints[0] = 9


def test_a_table_pickled_after_others_grew_from_it_comes_back_with_its_own_rows() -> None:
    table = RankingTable(["a", "b"], [1]).append(table_of([[[1, 2]]], instances=["f"]))
    table.append(table_of([[[5, 4]]], instances=["g"]))
    loaded = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert loaded == table == table_of([[[1, 2]]], instances=["f"])
    assert loaded.append(table).instances == ("f",)


def test_a_table_tells_its_size() -> None:
    described = repr(table_of(np.ones((3, 2, 4)), instances=["f", "g", "f"]))
    assert described == "RankingTable(4 algorithms, timepoints 2 from 1 to 2, 2 instances in 3 rows)"


# Laws


@given(
    value_arrays(elements=st.sampled_from([*map(float, range(8)), NAN])),
    *2 * [st.lists(st.floats(allow_nan=False), min_size=8, max_size=8, unique=True).map(sorted)],
)
def test_a_monotone_transform_of_the_values_changes_no_ranking(
    places: np.ndarray, before: list[float], after: list[float]
) -> None:
    present = ~np.isnan(places)
    tables = []
    for ladder in (before, after):
        values = places.copy()
        values[present] = np.array(ladder)[places[present].astype(int)]
        tables.append(table_of(values))
    np.testing.assert_array_equal(tables[0].ranks, tables[1].ranks)


@given(st.data(), value_arrays(), st.sampled_from([0.0, 1.0]))
def test_permuting_the_algorithms_permutes_the_ranks(data: st.DataObject, values: np.ndarray, tolerance: float) -> None:
    order = data.draw(st.permutations(range(values.shape[-1])))
    table, permuted = table_of(values, tolerance=tolerance), table_of(values[..., order], tolerance=tolerance)
    np.testing.assert_array_equal(permuted.ranks, table.ranks[..., order])


@given(value_arrays())
def test_renaming_the_algorithms_changes_no_ranking(values: np.ndarray) -> None:
    names = [f"renamed {10 - place}" for place in range(values.shape[-1])]
    np.testing.assert_array_equal(table_of(values, algorithms=names).ranks, table_of(values).ranks)


@given(value_arrays(min_algorithms=3))
def test_adding_an_algorithm_leaves_the_pairwise_order_of_the_others_alone(values: np.ndarray) -> None:
    without, among_more = table_of(values[..., :-1]).ranks.astype(int), table_of(values).ranks[..., :-1].astype(int)
    np.testing.assert_array_equal(without == 0, among_more == 0)
    for ours in range(without.shape[-1]):
        met = (without[..., [ours]] > 0) & (without > 0)
        np.testing.assert_array_equal(
            np.sign(without - without[..., [ours]])[met], np.sign(among_more - among_more[..., [ours]])[met]
        )


@given(st.data(), value_arrays(), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_better_value_never_worsens_its_own_rank(data: st.DataObject, values: np.ndarray, tolerance: float) -> None:
    ours = data.draw(st.integers(0, values.shape[-1] - 1))
    better = values.copy()
    better[..., ours] -= data.draw(
        arrays(np.float64, values.shape[:2], elements=st.sampled_from([0.0, 0.25, 1.0, 5.0]), fill=st.nothing())
    )
    before, after = table_of(values, tolerance=tolerance), table_of(better, tolerance=tolerance)
    assert (after.ranks[..., ours] <= before.ranks[..., ours]).all()


def test_the_rankings_have_a_row_for_each_observation() -> None:
    values = np.random.default_rng(1).random((6, 4, 3))
    values[2, 3, 1] = np.nan
    table = table_of(values, instances=["f1", "f1", "f2", "f3", "f4", "f5"])
    frame = table.to_pandas()
    assert column_kinds(frame) == {
        "instance": "names",
        "repetition": "int",
        "timepoint": "float",
        "algorithm": "names",
        "value": "float",
        "rank": "int",
        "weight": "float",
    }
    assert len(frame) == 6 * 4 * 3 - 1
    # The table can be made again from it.
    cells = frame.pivot_table(
        index=["instance", "repetition"], columns=["timepoint", "algorithm"], values="value", observed=True
    )
    np.testing.assert_array_equal(cells.to_numpy().reshape(6, 4, 3), table.values)
    assert frame.groupby("instance", observed=True)["weight"].sum().eq(12).sum() == 4  # f2 lacks a value
    assert list(frame["algorithm"].cat.categories) == ["a", "b", "c"]
