"""The group of an instance, as trajectories carry it and tables in long form name it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import run
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Trajectory, read_trajectories
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.trajectories.runs import hold_last_value
from polarbear_plugins.trajectories.trajectory import _rebuild

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda name: bool(name.strip()))


@given(NAMES, st.booleans())
def test_copies_and_pickles_keep_the_group(group: str, fixed: bool) -> None:
    labelled = run([1, 4], [8, 2], group=group, fixed_group=fixed)
    for again in (copy.deepcopy(labelled), pickle.loads(pickle.dumps(labelled))):  # noqa: S301
        assert again == labelled
        assert (again.group, again.fixed_group) == (group, fixed)
        assert not again.times.flags.writeable


def test_a_pickle_of_before_there_were_groups_has_none() -> None:
    before = run([1, 4], [8, 2])
    fields = (before.algorithm, before.instance, before.seed, before.times, before.best, before.horizon)
    assert _rebuild(*fields) == before


def test_runs_that_differ_in_the_group_are_different() -> None:
    runs = [run(1, 2), run(1, 2, group="g"), run(1, 2, group="h"), run(1, 2, group="h", fixed_group=True)]
    assert len(set(runs)) == 4


def test_values_of_evaluations_take_a_group_too() -> None:
    made = Trajectory.from_evaluations([3, 2], algorithm="a", instance="f", group=7, fixed_group=True)
    assert (made.group, made.fixed_group) == ("7", True)


@given(NAMES, st.booleans())
def test_another_group_changes_nothing_else_and_copies_no_array(group: str, fixed: bool) -> None:
    one = run([1, 4], [8, 2], seed=3)
    labelled = one.in_group(group, fixed)
    assert labelled == run([1, 4], [8, 2], seed=3, group=group, fixed_group=fixed)
    assert labelled.times is one.times
    assert labelled.best is one.best
    assert labelled.in_group(None) == one


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"group": None, "fixed_group": True}, "'a' on 'f1': fixed_group=True says something about its group"),
        ({"group": " "}, "'a' on 'f1': group: the name is empty"),
        ({"group": 1.5}, "'a' on 'f1': group: expected a name"),
        ({"group": "g", "fixed_group": 1}, "'a' on 'f1': fixed_group: expected true or false, got 1"),
    ],
)
def test_a_group_without_meaning_is_refused(labels: dict[str, Any], message: str) -> None:
    for make in (
        lambda: run(1, 2, **labels),
        lambda: Trajectory.from_evaluations([1], algorithm="a", instance="f1", **labels),
        lambda: run(1, 2).in_group(**labels),
    ):
        with pytest.raises(InvalidInputError, match=message):
            make()


def test_only_runs_with_a_group_mention_it() -> None:
    assert "group" not in repr(run(1, 2))
    assert "group" not in run(1, 2).to_pandas()
    labelled = run(1, 2, group="f1", fixed_group=True)
    assert "group='f1'" in repr(labelled)
    assert list(labelled.to_pandas()) == ["algorithm", "instance", "group", "seed", "time", "value", "horizon"]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_run_is_read_from_its_own_table_with_its_group(fixed: bool) -> None:
    runs = [run([1, 4], [8, 2], instance=f"i{k}", group=f"g{k % 2}", fixed_group=fixed) for k in range(4)]
    frame = pd.concat([each.to_pandas() for each in runs])
    assert list(read_trajectories(frame, fixed_groups=fixed)) == runs


def test_a_run_that_is_held_on_stays_in_its_group() -> None:
    [held] = hold_last_value([run(1, 2, group="g", fixed_group=True)], until=500)
    assert (held.group, held.fixed_group, held.horizon) == ("g", True, 500)


# Tables in long form


ROWS = "algorithm,instance,group,time,value\na,x,01,1,3\nb,x,01,1,2\na,y,1,1,3\nb,y,1,1,2\n"


def table(folder: Path, text: str) -> Path:
    path = folder / "runs.csv"
    path.write_text(text)
    return path


def test_a_column_names_the_groups_as_text(tmp_path: Path) -> None:
    found = list(read_trajectories(table(tmp_path, ROWS)))
    assert [(each.instance, each.group) for each in found] == [("x", "01"), ("x", "01"), ("y", "1"), ("y", "1")]
    assert not any(each.fixed_group for each in found)


def test_users_say_that_groups_are_all_there_are(tmp_path: Path) -> None:
    assert all(each.fixed_group for each in read_trajectories(table(tmp_path, ROWS), fixed_groups="true"))


def test_several_columns_make_up_a_group(tmp_path: Path) -> None:
    text = ROWS.replace("group", "space").replace("\n", ",d\n").replace("value,d", "value,data")
    found = list(read_trajectories(table(tmp_path, text), columns="group=space+data"))
    assert found[0].group == "space=01,data=d"


def test_rows_of_an_instance_in_two_groups_are_named_with_both(tmp_path: Path) -> None:
    text = ROWS.replace("b,x,01", "b,x,02")
    with pytest.raises(SourceError, match=r"runs.csv, line 3: expected the group '01', .* 'x' .* line 2, got '02'"):
        list(read_trajectories(table(tmp_path, text)))


def test_a_row_without_a_group_among_others_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"runs.csv, line 4: expected a name in 'group', got ''"):
        list(read_trajectories(table(tmp_path, ROWS.replace("a,y,1", "a,y,"))))


def test_fixed_groups_need_a_column_of_groups(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"runs.csv: fixed_groups says something .* there is no column"):
        list(read_trajectories(table(tmp_path, ROWS.replace("group", "other")), fixed_groups=True))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_instances_in_a_table_changes_no_group(groups: list[int], random: Any) -> None:
    rows = [("a", f"i{place}", f"g{group}", time, -time) for place, group in enumerate(groups) for time in (1, 2)]
    random.shuffle(rows)
    frame = pd.DataFrame(rows, columns=["algorithm", "instance", "group", "time", "value"]).sort_values("time")
    found = {each.instance: each.group for each in read_trajectories(frame)}
    assert found == {f"i{place}": f"g{group}" for place, group in enumerate(groups)}
