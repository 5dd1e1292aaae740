from __future__ import annotations

import numpy as np
import pytest
from builders import run_of

from polarbear_plugins import UNRANKED, Trajectory
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.run_pairs import RunPairs, pair_runs

AT = np.array([1.0])


def runs(values: dict[tuple[str, int], float], **more: object) -> list[Trajectory]:
    """Runs of one algorithm by instance and seed, each with one value."""
    return [run_of("a", instance, [value], seed=seed, **more) for (instance, seed), value in values.items()]


def paired(base: dict[tuple[str, int], float], new: dict[tuple[str, int], float], **options: object) -> RunPairs:
    return pair_runs(runs(base), runs(new), AT, **options)  # type: ignore[arg-type]


def test_runs_of_one_seed_are_paired_before_all_others() -> None:
    found = paired({("f", 1): 1, ("f", 2): 5}, {("f", 2): 4, ("f", 3): 2})
    assert found.outcomes.ravel().tolist() == [1, -1]  # 5 against 4 by seed, then 1 against 2
    assert (found.pairing.by_seed, found.pairing.by_instance) == (1, 1)


def test_runs_without_a_partner_are_left_out_and_counted() -> None:
    base = {("f", 0): 1, ("f", 1): 1, ("f", 2): 1, ("g", 0): 1}
    new = {("f", 0): 2, ("h", 0): 1, ("h", 1): 1}
    pairing = paired(base, new).pairing
    assert (pairing.pairs, pairing.instances, pairing.one_sided) == (1, 1, 2)
    assert (pairing.base_left_out, pairing.new_left_out) == (3, 2)


def test_pairs_of_an_instance_count_together_as_one() -> None:
    base = {("f", seed): 1 for seed in range(4)} | {("g", 0): 1}
    new = {("f", 0): 0, ("f", 1): 0, ("f", 2): 0, ("f", 3): 2, ("g", 0): 2}
    found = paired(base, new)
    assert found.pairing.unit == "instances"
    assert found.leads().ravel().tolist() == [0.5, -1]
    alone = paired(base, new, repetitions="independent")
    assert (alone.pairing.unit, len(alone.leads())) == ("pairs", 5)


def test_with_one_instance_every_pair_counts() -> None:
    found = paired({("f", seed): 1 for seed in range(3)}, {("f", seed): seed for seed in range(3)})
    assert found.pairing.unit == "pairs"
    assert found.leads().ravel().tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("groups", "fixed", "unit"),
    [("auto", False, "groups"), ("auto", True, "instances"), ("new", True, "groups"), ("same", False, "instances")],
)
def test_a_group_counts_as_one_where_the_certainty_is_about_new_groups(groups: str, fixed: bool, unit: str) -> None:
    base = [run_of("a", f"f{k}", [1.0], group=f"g{k // 3}", fixed_group=fixed) for k in range(6)]
    new = [run_of("a", f"f{k}", [[0.0, 0.0, 2.0][k % 3]], group=f"g{k // 3}", fixed_group=fixed) for k in range(6)]
    found = pair_runs(base, new, AT, groups=groups)  # type: ignore[arg-type]
    assert (found.pairing.unit, found.pairing.groups) == (unit, 2)
    assert len(found.leads()) == (2 if unit == "groups" else 6)
    assert found.leads().mean() == pytest.approx(1 / 3)


def test_an_instance_has_the_same_weight_in_its_group_however_often_it_was_run() -> None:
    base = [
        run_of("a", f"f{k}", [1.0], seed=s, group=f"g{k // 2}") for k in range(4) for s in range(5 if k == 0 else 1)
    ]
    new = [
        run_of("a", run.instance, [0.0 if run.instance == "f0" else 2.0], seed=run.seed, group=run.group)
        for run in base
    ]
    assert pair_runs(base, new, AT).leads().ravel().tolist() == [0, -1]


def test_runs_without_a_value_tie_and_lose_to_any_value() -> None:
    nothing, failed = [np.inf], [np.nan]
    base = [run_of("a", f"f{k}", value) for k, value in enumerate((nothing, nothing, [1.0], failed))]
    new = [run_of("a", f"f{k}", value) for k, value in enumerate((failed, [1.0], nothing, [-np.inf]))]
    assert pair_runs(base, new, AT).outcomes.ravel().tolist() == [0, 1, -1, 1]


def test_between_two_unranked_runs_nothing_is_known() -> None:
    base = [run_of("a", f"f{k}", [value]) for k, value in enumerate((UNRANKED, UNRANKED, 1.0))]
    new = [run_of("a", f"f{k}", [value]) for k, value in enumerate((UNRANKED, 1.0, UNRANKED))]
    np.testing.assert_array_equal(pair_runs(base, new, AT).outcomes.ravel(), [np.nan, 1, -1])


def test_values_within_the_tolerance_tie() -> None:
    base, new = {("f", 0): 1.0, ("g", 0): 1.0}, {("f", 0): 0.95, ("g", 0): 0.8}
    assert paired(base, new, tolerance=0.1).outcomes.ravel().tolist() == [0, 1]


def test_past_the_end_of_a_run_nothing_is_compared_unless_it_is_held() -> None:
    base = [run_of("a", "f", [3.0], horizon=10), run_of("a", "g", [3.0], horizon=100)]
    new = [run_of("a", "f", [2.0], horizon=100), run_of("a", "g", [2.0], horizon=100)]
    grid = np.array([5.0, 50.0, 500.0])
    np.testing.assert_array_equal(pair_runs(base, new, grid).outcomes, [[1, np.nan, np.nan], [1, 1, np.nan]])
    held = pair_runs(base, new, grid, ended="hold")
    np.testing.assert_array_equal(held.outcomes, [[1, 1, np.nan], [1, 1, np.nan]])
    [early] = held.early_ends
    assert (early.algorithm, early.rule, early.runs) == ("base", "hold", 1)


def test_a_run_that_was_stopped_is_never_held() -> None:
    base, new = [run_of("a", "f", [3.0], horizon=10, end="stopped")], [run_of("a", "f", [2.0])]
    assert np.isnan(pair_runs(base, new, np.array([50.0]), ended="hold").outcomes).all()


def test_without_a_common_instance_there_is_an_error_that_names_some() -> None:
    with pytest.raises(InvalidInputError, match="no instance in common; base has 'f1', 'f2', 'f3' and 1 more, new has"):
        paired({(f"f{k}", 0): 1 for k in (1, 2, 3, 10)}, {("g", 0): 1})


def test_two_runs_of_one_seed_are_refused() -> None:
    twice = [run_of("a", "f", [1.0]), run_of("a", "f", [2.0])]
    with pytest.raises(InvalidInputError, match="in new on instance 'f' have the seed 0"):
        pair_runs(twice[:1], twice, AT)
