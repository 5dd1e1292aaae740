from __future__ import annotations

import dataclasses
import gc
import math
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from builders import run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.stream import RankingStream, default_timepoints, rank, rank_cells, stream_rankings
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.trajectory import Trajectory, best_at

INF, NAN = math.inf, math.nan


@st.composite
def trajectories(draw: st.DrawFn, *, algorithm: str, instance: str, seed: int = 0) -> Trajectory:
    times = draw(st.lists(st.integers(1, 50), max_size=3, unique=True).map(sorted))
    best = draw(st.lists(st.integers(-3, 3), min_size=len(times), max_size=len(times)).map(sorted))[::-1]
    horizon = draw(st.integers(times[-1] if times else 0, 60))
    return run_of(algorithm, instance, best, times, seed=seed, horizon=horizon)


@st.composite
def experiments(draw: st.DrawFn, *, runs: int = 2) -> list[Trajectory]:
    """Some runs of a, b and c on some instances, in any order; two that begin at time 0 make them comparable."""
    found = [run_of("a", "f10", times=0, seed=-1), run_of("b", "f10", times=0, seed=-1)]
    found.append(draw(trajectories(algorithm="c", instance="f2", seed=-1)))
    for instance in ("f2", "f10"):
        for algorithm in "abc":
            more = draw(st.integers(0, runs)) - sum((r.algorithm, r.instance) == (algorithm, instance) for r in found)
            found += [draw(trajectories(algorithm=algorithm, instance=instance, seed=seed)) for seed in range(more)]
    return draw(st.permutations(found))


grids = st.lists(st.integers(0, 60), min_size=1, max_size=6, unique=True).map(sorted)


# Ranking everything at once


def test_algorithms_are_ranked_at_every_timepoint() -> None:
    runs = [run_of("csa", best=[5, 2], times=[1, 10]), run_of("msr", best=[4, 3], times=[4, 12])]
    table = rank(runs, [2, 5, 20])
    assert table.algorithms == ("csa", "msr")
    assert table.ranks.tolist() == [[[1, 2], [2, 1], [1, 2]]]


def test_a_run_with_nothing_yet_ranks_last() -> None:
    runs = [run_of("a", times=10), run_of("b", best=9.0), run_of("c", times=[], best=[])]
    assert rank(runs, [5, 10]).ranks.tolist() == [[[2, 1, 2], [1, 2, 3]]]


def test_a_run_that_was_not_watched_so_far_is_absent_if_cut() -> None:
    runs = [run_of("a", best=1.0, horizon=10), run_of("b", best=2.0), run_of("c", best=3.0)]
    assert rank(runs, [10, 11], ended="cut").ranks.tolist() == [[[1, 2, 3], [0, 1, 2]]]


def test_an_algorithm_without_runs_on_an_instance_is_absent_there() -> None:
    runs = [run_of("a", "f1"), run_of("b", "f1", 2.0), run_of("b", "f2", 2.0), run_of("c", "f2", 1.0)]
    assert rank(runs, [10]).ranks.tolist() == [[[1, 2, 0]], [[0, 2, 1]]]


@settings(max_examples=50)
@given(experiments(runs=1), grids)
def test_each_row_holds_the_best_values_at_the_timepoints(runs: list[Trajectory], grid: list[int]) -> None:
    table = rank(runs, grid, ended="cut")
    assert table.instances == ("f2", "f10")
    expected = np.full((2, len(grid), 3), NAN)
    for r in runs:
        expected[table.instances.index(r.instance), :, "abc".index(r.algorithm)] = best_at(r, grid)
    np.testing.assert_array_equal(table.values, expected)


@settings(max_examples=50)
@given(experiments(), grids, st.sampled_from(["weight", "independent"]))
def test_the_order_of_the_trajectories_does_not_matter(
    runs: list[Trajectory], grid: list[int], repetitions: str
) -> None:
    in_order = sorted(runs, key=lambda r: (r.instance, r.algorithm, r.seed))
    assert rank(iter(runs), grid, repetitions) == rank(in_order, grid, repetitions)


@settings(max_examples=50)
@given(st.data(), experiments(), grids)
def test_a_better_trajectory_never_worsens_its_own_rank(
    data: st.DataObject, runs: list[Trajectory], grid: list[int]
) -> None:
    ours = data.draw(st.sampled_from(runs))
    gain = np.cumsum(data.draw(st.lists(st.integers(0, 2), min_size=ours.times.size, max_size=ours.times.size)))
    earlier = data.draw(st.integers(0, int(ours.times[0]))) if ours.times.size else 0
    better = dataclasses.replace(ours, best=ours.best - gain, times=ours.times - earlier)
    before, after = rank(runs, grid), rank([better if r is ours else r for r in runs], grid)
    column = before.algorithms.index(ours.algorithm)
    assert (after.ranks[..., column] <= before.ranks[..., column]).all()


@settings(max_examples=50)
@given(experiments(runs=1), grids)
def test_adding_an_algorithm_leaves_the_pairwise_order_of_the_others_alone(
    runs: list[Trajectory], grid: list[int]
) -> None:
    # With ended="hold", a third algorithm that was watched longer lets the others meet past their ends.
    pair, among_three = rank(runs, grid, algorithms=["a", "b"], ended="cut"), rank(runs, grid, ended="cut")
    rows = [among_three.instances.index(name) for name in pair.instances]
    alone, among = pair.ranks, among_three.ranks[rows][..., :2]
    np.testing.assert_array_equal(among > 0, alone > 0)
    met = (alone > 0).all(axis=-1)
    np.testing.assert_array_equal(np.sign(np.diff(among[met])), np.sign(np.diff(alone[met])))


@settings(max_examples=50)
@given(experiments(), grids, st.permutations("xyz"))
def test_renaming_the_algorithms_permutes_the_ranks(runs: list[Trajectory], grid: list[int], names: list[str]) -> None:
    new = dict(zip("abc", names, strict=True))
    renamed = [dataclasses.replace(r, algorithm=new[r.algorithm]) for r in runs]
    columns = ["xyz".index(new[name]) for name in "abc"]
    np.testing.assert_array_equal(rank(renamed, grid).ranks[..., columns], rank(runs, grid).ranks)


def test_instances_and_algorithms_come_in_their_natural_order() -> None:
    runs = [run_of(algorithm, instance) for algorithm in ("es10", "es9") for instance in ("f10", "f2", 3)]
    table = rank(runs, [10])
    assert table.algorithms == ("es9", "es10")
    assert table.instances == ("3", "f2", "f10")


@given(st.lists(st.text("a01 29", min_size=1, max_size=5), unique=True))
def test_the_natural_order_tells_all_names_apart(names: list[str]) -> None:
    assert len({natural_key(name) for name in names}) == len(names)


def test_a_name_comes_before_the_longer_names_that_begin_with_it() -> None:
    in_order = ["a", "a1", "a1 ", "a1b", "a2", "a10", "a ", "ab", "b"]
    assert sorted(in_order, key=natural_key) == in_order


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_numbers_inside_names_count_as_numbers(one: int, other: int) -> None:
    assert (natural_key(f"f{one}_d") < natural_key(f"f{other}_d")) == (one < other)


# Repetitions


def constant_runs(algorithm: str, by_seed: dict[int, float]) -> list[Trajectory]:
    return [run_of(algorithm, best=value, seed=seed) for seed, value in by_seed.items()]


def test_repetitions_are_paired_in_the_order_of_their_seeds() -> None:
    runs = [*constant_runs("a", {30: 3.0, 10: 1.0, 20: 2.0}), *constant_runs("b", {-1: 4.0, 7: 6.0, 5: 5.0})]
    for repetitions in ("weight", "independent"):
        assert rank(runs, [10], repetitions).values.tolist() == [[[1, 4]], [[2, 5]], [[3, 6]]]


def test_an_algorithm_with_fewer_runs_meets_the_others_again_under_weight() -> None:
    runs = [*constant_runs("a", {1: 1.0, 2: 2.0, 3: 3.0}), *constant_runs("b", {1: 4.0, 2: 5.0})]
    table = rank([*runs, *constant_runs("c", {8: 9.0})], [10])
    assert table.values.tolist() == [[[1, 4, 9]], [[2, 5, 9]], [[3, 4, 9]]]
    assert table.weights.sum() == pytest.approx(1)


def test_no_run_is_used_twice_when_repetitions_are_independent() -> None:
    runs = [*constant_runs("a", {1: 1.0, 2: 2.0, 3: 3.0}), *constant_runs("b", {1: 4.0, 2: 5.0})]
    table = rank([*runs, *constant_runs("c", {8: 9.0})], [10], "independent")
    np.testing.assert_array_equal(table.values, [[[1, 4, 9]], [[2, 5, NAN]], [[3, NAN, NAN]]])
    assert table.ranks.tolist() == [[[1, 2, 3]], [[1, 2, 0]], [[1, 0, 0]]]
    assert table.weights.tolist() == [1, 1, 1]


def test_instances_may_have_different_numbers_of_repetitions() -> None:
    runs = [run_of(name, "f1", seed=seed) for name in "ab" for seed in range(3)]
    table = rank([*runs, run_of("a", "f2"), run_of("b", "f2")], [10])
    assert table.instances == ("f1", "f2")
    assert table.instance_index.tolist() == [0, 0, 0, 1]
    assert table.weights.tolist() == [1 / 3, 1 / 3, 1 / 3, 1]


def test_two_runs_with_the_same_seed_are_refused() -> None:
    message = "Two trajectories of 'a' on instance 'f1' have the seed 4"
    with pytest.raises(InvalidInputError, match=message):
        rank([run_of("a", seed=4), run_of("b"), run_of("a", best=2.0, seed=4)], [10])
    assert len(rank([run_of("a", "f1", seed=4), run_of("a", "f2", seed=4), run_of("b", "f1", seed=4)], [10])) == 2


# Selection, tolerance and timepoints


def test_the_algorithms_asked_for_are_ranked_in_the_order_asked_for() -> None:
    runs = [run_of("a", best=1.0), run_of("b", best=2.0), run_of("c", best=3.0), run_of("b", "f2")]
    table = rank(runs, [10], algorithms=["c", "a"])
    assert table.algorithms == ("c", "a")
    assert table.values.tolist() == [[[3, 1]]]


def test_values_closer_than_the_tolerance_are_tied() -> None:
    runs = [run_of("a", best=1.0), run_of("b", best=1.25)]
    assert rank(runs, [10], tolerance=0.5).ranks.tolist() == [[[1, 1]]]
    assert rank(runs, [10]).ranks.tolist() == [[[1, 2]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timepoints": [5, 101]}, r"timepoints: 1 of 2 lie outside every run \(101\).*from 1 to 100"),
        ({"timepoints": [0, 0.5, 5]}, r"timepoints: 2 of 3 lie outside every run \(0, 0\.5\).*from 1 to 100"),
        ({"timepoints": range(200, 205)}, r"timepoints: 5 of 5 lie outside every run \(200, 201, 202, \.\.\.\)"),
        ({"timepoints": [2, 1]}, "timepoints: times must increase strictly, got 1 after 2"),
        ({"timepoints": []}, "timepoints: expected at least one, got none"),
        (
            {"algorithms": ["a", "z", "y"]},
            r"algorithms: there is no trajectory of z, y\. There are trajectories of a, b\.",
        ),
        ({"algorithms": "ab"}, r"algorithms: expected a list of names, got 'ab'\."),
        ({"algorithms": 5}, r"algorithms: expected a list of names, got 5\."),
        ({"algorithms": ["a"]}, "at least two algorithms, got only 'a'"),
        ({"algorithms": ["a", "a"]}, "algorithms: 'a' is named more than once"),
        ({"repetitions": "mean"}, 'repetitions: expected "weight" or "independent", got \'mean\''),
        ({"tolerance": -1}, "tolerance: must not be negative, got -1"),
        ({"trajectories": []}, "There are no trajectories to rank"),
        ({"trajectories": [], "algorithms": ["a", "b"]}, "There are no trajectories to rank"),
        ({"trajectories": [run_of("a"), run_of("a", "f2")]}, "at least two algorithms, got only 'a'"),
        ({"trajectories": [run_of("a", "f1"), run_of("b", "f2")]}, "The algorithms a, b have no instance in common"),
        (
            {"trajectories": [run_of("a", horizon=9), run_of("b", times=[], best=[], horizon=9), run_of("b", "f2")]},
            "The algorithms a, b have no instance in common at any timepoint",
        ),
        (
            {"trajectories": [run_of(name, times=[], best=[]) for name in "ab"]},
            r"1 of 1 lie outside every run \(10\)\. The runs have values nowhere: none of them found a value",
        ),
        ({"trajectories": ["a.csv"]}, r"Expected Trajectory objects, got str\..*read_trajectories"),
    ],
)
def test_what_cannot_be_ranked_is_refused(arguments: dict[str, object], message: str) -> None:
    good = {"trajectories": [run_of("a"), run_of("b")], "timepoints": [10]}
    with pytest.raises(PolarBearError, match=message):
        rank(**{**good, **arguments})


def test_timepoints_inside_a_single_run_are_allowed() -> None:
    runs = [run_of("a", times=1, horizon=10), run_of("b", times=5, horizon=20)]
    assert rank(runs, [1, 5, 10, 20], ended="cut").ranks.tolist() == [[[1, 2], [1, 1], [1, 1], [0, 1]]]
    assert rank(runs, [1, 5, 10, 20]).ranks.tolist() == [[[1, 2], [1, 1], [1, 1], [1, 1]]]


def test_the_default_timepoints_are_those_of_the_trajectories() -> None:
    runs = [run_of("a", times=[3, 20], best=[2, 1]), run_of("b", times=5, horizon=80)]
    table = rank(iter(runs))
    np.testing.assert_array_equal(table.timepoints, default_timepoints(runs))


def test_default_timepoints_span_the_time_in_which_every_algorithm_has_values() -> None:
    of_b = [(7.5, 50), (5.5, 80), (6.5, 60)]
    runs = [run_of("b", name, [2, 1], [first, 40], horizon=last) for name, (first, last) in enumerate(of_b)]
    runs.append(run_of("a", times=3.5))
    assert [*default_timepoints(runs, count=2)] == [5.5, 100]
    grid = default_timepoints(runs, count=10, ended="cut")
    assert (grid[0], grid[-1], grid.size) == (5.5, 80, 10)
    np.testing.assert_allclose(grid[1:] / grid[:-1], (80 / 5.5) ** (1 / 9))


def test_default_timepoints_are_whole_where_all_times_are() -> None:
    runs = [run_of("a", times=3, horizon=50), run_of("b", times=5, horizon=99.5)]
    grid = default_timepoints(runs, count=30)
    assert (grid[0], grid[-1], grid.size) == (5, 99, 30)
    assert (grid == np.rint(grid)).all()


def test_there_are_fewer_default_timepoints_where_there_are_fewer_whole_times() -> None:
    for horizon, expected in ((6, [3, 4, 5, 6]), (3.5, [3])):
        runs = [run_of("a", times=3), run_of("b", times=2, horizon=horizon)]
        assert default_timepoints(runs, ended="cut").tolist() == expected


def test_default_timepoints_pass_over_runs_without_a_value() -> None:
    runs = [run_of("a", times=3), run_of("b", times=2), run_of("a", "f2", best=[], times=[])]
    assert default_timepoints(runs)[0] == 3


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            [run_of(name, times=[], best=[]) for name in ("a10", "a9")],
            r"timepoints: no run ever found a value\. Say which timepoints to compare",
        ),
        (
            [run_of("a", times=50), run_of("b", times=1, horizon=20)],
            "timepoints: no time suits all algorithms: one has its first value at 50, another was .* until 20",
        ),
    ],
)
def test_where_no_time_suits_all_there_are_no_default_timepoints(runs: list[Trajectory], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        rank(runs, ended="cut")


def test_an_algorithm_that_never_found_a_value_has_no_say_in_the_default_timepoints() -> None:
    runs = [run_of("a", times=3), run_of("b", times=5), run_of("failed", times=[], best=[], horizon=7)]
    for ended in ("hold", "cut"):
        assert [*default_timepoints(runs, 2, ended=ended)] == [5, 100]


def test_without_trajectories_there_are_no_default_timepoints() -> None:
    with pytest.raises(InvalidInputError, match="timepoints: there are no trajectories to choose them from"):
        default_timepoints([])


@pytest.mark.parametrize("count", [0, 2.5, "3"])
def test_a_number_of_default_timepoints_that_means_nothing_is_refused(count: object) -> None:
    message = f"default_timepoints: count must be a whole number of at least 1, got {count!r}"
    with pytest.raises(InvalidInputError, match=message):
        default_timepoints([run_of("a"), run_of("b")], count=count)


@pytest.mark.parametrize("last", [80, 80.5])
def test_a_single_default_timepoint_is_the_last(last: float) -> None:
    runs = [run_of("a", times=3, horizon=9), run_of("b", times=2, horizon=last)]
    assert default_timepoints(runs, count=1).tolist() == [last]
    assert default_timepoints(runs, count=1, ended="cut").tolist() == [9]


@pytest.mark.parametrize("time", [0, 1, 2.5])
def test_where_only_one_time_suits_all_it_is_the_default_timepoint(time: float) -> None:
    runs = [run_of("a", times=time), run_of("b", times=time, horizon=time)]
    assert default_timepoints(runs, ended="cut").tolist() == [time]
    assert rank(runs, ended="cut").timepoints.tolist() == [time]


@pytest.mark.parametrize(
    ("times", "horizon", "first"),
    [([0, 4], 100, 4), ([0], 100, 50), ([0], 1, 1), ([0, 0.5], 100, 0.5), ([0], 0.5, 0.25)],
)
def test_default_timepoints_of_runs_with_values_at_time_0_begin_after_it(
    times: list[float], horizon: float, first: float
) -> None:
    grid = default_timepoints([run_of(name, times=times, best=-np.array(times), horizon=horizon) for name in "ab"])
    assert (grid[0], grid[-1]) == (first, horizon)


def test_algorithms_that_are_not_ranked_have_no_say_in_the_default_timepoints() -> None:
    ranked = [run_of("a", times=3, horizon=80), run_of("b", times=5)]
    others = [run_of("late", times=90.5), run_of("short", horizon=6), run_of("failed", times=[], best=[])]
    table = rank([*others, *ranked], algorithms=["a", "b"])
    np.testing.assert_array_equal(table.timepoints, default_timepoints(ranked))


# Ranking block by block


def collected(blocks: list[RankingTable], like: RankingTable) -> RankingTable:
    table = RankingTable(like.algorithms, like.timepoints, repetitions=like.repetitions, tolerance=like.tolerance)
    for block in sorted(blocks, key=lambda block: natural_key(block.instances[0])):
        table = table.append(block)
    return table


@settings(max_examples=50)
@given(experiments(), grids, st.sampled_from(["weight", "independent"]), st.sampled_from([0.0, 1.0]))
def test_the_blocks_of_a_stream_together_are_the_table(
    runs: list[Trajectory], grid: list[int], repetitions: str, tolerance: float
) -> None:
    table = rank(runs, grid, repetitions, tolerance=tolerance)
    blocks = list(stream_rankings(runs, ["a", "b", "c"], grid, runs=2, repetitions=repetitions, tolerance=tolerance))
    together = collected(blocks, like=table)
    assert together == table
    np.testing.assert_array_equal(together.ranks, table.ranks)


@given(st.permutations([(name, instance, seed) for name in "ab" for instance in ("f1", "f2", "f3") for seed in (1, 2)]))
def test_a_block_comes_exactly_when_its_instance_is_complete(order: list[tuple[str, str, int]]) -> None:
    stream = RankingStream(["a", "b"], [10], runs=2)
    missing: dict[str, int] = {}
    for name, instance, seed in order:
        missing[instance] = missing.get(instance, 4) - 1
        block = stream.add(run_of(name, instance, seed + 10 * (name == "b"), seed=seed))
        if missing[instance]:
            assert block is None
        else:
            assert block.instances == (instance,)
            assert block.values.tolist() == [[[1, 11]], [[2, 12]]]
        assert stream.waiting == tuple(name for name, left in missing.items() if left)
    assert list(stream.finish()) == []


def test_a_stream_gives_a_block_before_it_asks_for_the_next_run() -> None:
    asked = []

    def runs() -> Iterator[Trajectory]:
        for name, instance in (("a", "f2"), ("b", "f1"), ("b", "f2"), ("a", "f1")):
            asked.append(name + instance)
            yield run_of(name, instance)

    blocks = stream_rankings(runs(), ["a", "b"], [10])
    assert next(blocks).instances == ("f2",)
    assert asked == ["af2", "bf1", "bf2"]
    assert next(blocks).instances == ("f1",)
    assert list(blocks) == []


def test_incomplete_instances_come_at_the_end_as_partial_rankings() -> None:
    runs = [
        run_of("c", "f9", 3.0),
        run_of("a", "f1"),
        run_of("a", "f9", 5.0),
        run_of("b", "f1", 2.0),
        run_of("c", "f1", 3.0),
    ]
    complete, partial = stream_rankings(runs, ["a", "b", "c"], [10])
    assert (complete.instances, complete.ranks.tolist()) == (("f1",), [[[1, 2, 3]]])
    assert (partial.instances, partial.ranks.tolist()) == (("f9",), [[[2, 0, 1]]])


def test_an_instance_short_of_a_run_is_ranked_with_the_runs_it_has() -> None:
    runs = [run_of("a", best=1.0, seed=1), run_of("b", best=2.0, seed=1), run_of("a", best=3.0, seed=2)]
    (block,) = stream_rankings(runs, ["a", "b"], [10], runs=2)
    assert block.values.tolist() == [[[1, 2]], [[3, 2]]]
    (block,) = stream_rankings(runs, ["a", "b"], [10], runs=2, repetitions="independent")
    np.testing.assert_array_equal(block.values, [[[1, 2]], [[3, NAN]]])


def test_finishing_a_stream_leaves_nothing_waiting() -> None:
    stream = RankingStream(["a", "b"], [10])
    for instance in ("f2", "f1"):
        stream.add(run_of("a", instance))
    assert stream.waiting == ("f2", "f1")
    assert [block.instances for block in stream.finish()] == [("f2",), ("f1",)]
    assert stream.waiting == ()
    assert list(stream.finish()) == []


def test_a_late_extra_run_is_refused() -> None:
    stream = RankingStream(["a", "b"], [10])
    stream.add(run_of("a"))
    with pytest.raises(InvalidInputError, match=r"'a' already has 1 run\(s\) on instance 'f1', got .* seed 5"):
        stream.add(run_of("a", seed=5))
    stream.add(run_of("b"))
    with pytest.raises(InvalidInputError, match=r"'f1' have been returned already; .*'b'.*seed=6.* too late\..*runs="):
        stream.add(run_of("b", seed=6))
    assert stream.waiting == ()


def test_a_refused_run_leaves_the_stream_as_it_was() -> None:
    stream = RankingStream(["a", "b"], [10], runs=2)
    stream.add(run_of("a", best=1.0, seed=1))
    with pytest.raises(InvalidInputError, match="Two trajectories of 'a' on instance 'f1' have the seed 1"):
        stream.add(run_of("a", best=7.0, seed=1))
    with pytest.raises(InvalidInputError, match=r"The stream ranks a, b; got a trajectory of 'c'\."):
        stream.add(run_of("c", "f2"))
    with pytest.raises(InvalidInputError, match=r"Expected Trajectory objects, got dict\."):
        stream.add({"algorithm": "a"})
    assert stream.waiting == ("f1",)
    (block,) = stream.finish()
    np.testing.assert_array_equal(block.values, [[[1, NAN]]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithms": ["a"]}, "at least two algorithms, got only 'a'"),
        ({"timepoints": []}, "timepoints: expected at least one, got none"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"runs": 1.5}, r"runs must be a whole number of at least 1, got 1\.5"),
        ({"repetitions": "mean"}, "repetitions: expected"),
        ({"tolerance": -1}, "tolerance: must not be negative, got -1"),
    ],
)
def test_streams_that_mean_nothing_are_refused(arguments: dict[str, object], message: str) -> None:
    good = {"algorithms": ["a", "b"], "timepoints": [10]}
    with pytest.raises(InvalidInputError, match=message):
        RankingStream(**{**good, **arguments})
    with pytest.raises(InvalidInputError, match=message):
        stream_rankings([], **{**good, **arguments})  # immediately, before the first block


def arrays_held_by(thing: object) -> list[np.ndarray]:
    found, seen, left = [], set(), [thing]
    while left:
        here = left.pop()
        if id(here) not in seen and not isinstance(here, type | ModuleType):
            seen.add(id(here))
            left += [here.base] if isinstance(here, np.ndarray) else gc.get_referents(here)
            found += [here] if isinstance(here, np.ndarray) else []
    return found


def test_of_a_waiting_run_only_the_values_at_the_timepoints_are_held() -> None:
    grid, steps = [10, 20, 30], np.arange(1, 1001)
    stream = RankingStream(["a", "b"], grid, runs=2)
    for instance in ("f1", "f2"):
        stream.add(run_of("a", instance, -steps, steps, horizon=1000))
        stream.add(run_of("b", instance, -steps, steps, horizon=1000))
    held = arrays_held_by(stream)
    assert len([array for array in held if array.tolist() == [-10, -20, -30]]) == 4
    assert max(array.size for array in held) == len(grid)


def test_of_a_complete_instance_nothing_is_held() -> None:
    stream = RankingStream(["a", "b"], [10, 20, 30])
    before = len(arrays_held_by(stream))
    for name in ("a", "b"):
        stream.add(run_of(name))
        assert len(arrays_held_by(stream)) == before + (name == "a")


def test_runs_in_cells_are_paired_and_share_the_weight_of_their_instance() -> None:
    cells = {("a", "f0"): [np.array([1.0]), np.array([3.0])], ("b", "f0"): [np.array([2.0])]}
    table = rank_cells(["a", "b"], [1.0], cells, ["f0"])
    assert table.ranks[:, 0].tolist() == [[1, 2], [2, 1]]
    assert table.weights.tolist() == [0.5, 0.5]


def test_an_instance_without_runs_in_cells_has_an_empty_row() -> None:
    table = rank_cells(
        ["a", "b"], [1.0], {("a", "f1"): [np.array([1.0])], ("b", "f1"): [np.array([2.0])]}, ["f0", "f1"]
    )
    assert table.instances == ("f0", "f1")
    assert np.isnan(table.values[0]).all()
    assert table.ranks[:, 0].tolist() == [[0, 0], [1, 2]]
