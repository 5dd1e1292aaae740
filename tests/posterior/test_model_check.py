"""What a check of the model and the groups of instances leave in a posterior and its file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import column_kinds, posterior_of, table_of

from polarbear_plugins import Posterior, fit
from polarbear_plugins.errors import SourceError
from polarbear_plugins.files import write_arrays
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.model_check import Gap, ModelCheck

CHECK = ModelCheck(
    algorithms=("a", "b"),
    timepoints=np.array([1.0, 10.0]),
    p=0.004,
    p_first=np.array([0.002, 1.0]),
    p_pairs=np.array([0.5, 1.0]),
    observed=np.array([[0.5, 0.5], [np.nan, np.nan]]),
    modelled=np.array([[0.7, 0.3], [np.nan, np.nan]]),
    first_gap=Gap(1.0, "a", None, 0.5, 0.7),
    pair_gap=Gap(1.0, "a", "b", 0.5, 0.6),
)
EFFECT = GroupEffect(
    scope="new", groups=3, instances=9, p=0.002, inflation=np.array([1.5, 2.0]), spread=np.array([0.5, 1.0])
)
POSTERIOR = replace(
    posterior_of([[[0.4, 0.6], [0.5, 0.5]]], timepoints=[1, 10]), check=CHECK, groups=EFFECT, likelihood="first-places"
)

Change = Callable[[dict[str, Any]], object]


def read_check(data: dict[str, Any]) -> ModelCheck:
    return ModelCheck.from_json(data, CHECK.algorithms, CHECK.timepoints)


def test_a_check_survives_json() -> None:
    data = json.loads(json.dumps(CHECK.to_json(), allow_nan=False))
    assert data["fits"] is False
    assert data["observed"] == [[0.5, 0.5], [None, None]]
    again = read_check(data)
    assert again.algorithms == CHECK.algorithms
    assert again.timepoints.tolist() == CHECK.timepoints.tolist()
    assert (again.p, again.first_gap, again.pair_gap) == (CHECK.p, CHECK.first_gap, CHECK.pair_gap)
    for name in ("p_first", "p_pairs", "observed", "modelled"):
        np.testing.assert_array_equal(getattr(again, name), getattr(CHECK, name))
    assert again.to_json() == CHECK.to_json()


def test_a_check_without_gaps_survives_json() -> None:
    nothing = replace(CHECK, first_gap=None, pair_gap=None)
    assert read_check(json.loads(json.dumps(nothing.to_json()))).to_json() == nothing.to_json()


@pytest.mark.parametrize("scope", ["new", "same"])
def test_an_effect_survives_json(scope: Any) -> None:
    effect = replace(EFFECT, scope=scope)
    data = json.loads(json.dumps(effect.to_json(), allow_nan=False))
    assert GroupEffect.from_json(data, 2).to_json() == effect.to_json()


def test_a_posterior_with_check_likelihood_and_groups_survives_its_file(tmp_path: Path) -> None:
    loaded = Posterior.load(POSTERIOR.save(tmp_path / "posterior.npz"))
    assert loaded.check is not None
    assert loaded.groups is not None
    assert loaded.check.to_json() == CHECK.to_json()
    assert loaded.groups.to_json() == EFFECT.to_json()
    assert loaded.likelihood == "first-places"


def test_a_posterior_of_an_earlier_version_has_neither_check_nor_groups(tmp_path: Path) -> None:
    path = tmp_path / "posterior.npz"
    arrays = replace(POSTERIOR, check=None, groups=None).arrays()
    about = json.loads(str(arrays["about"]))
    assert "check" not in about
    assert "groups" not in about
    del about["likelihood"]
    write_arrays(path, {**arrays, "about": np.array(json.dumps(about))})
    loaded = Posterior.load(path)
    assert (loaded.check, loaded.groups, loaded.likelihood) == (None, None, "rankings")


def test_what_a_fit_finds_survives_its_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = table_of(rng.random((24, 2, 3)), groups=[f"g{row % 4}" for row in range(24)])
    posterior = fit(table, seed=1, groups="new", draws=200)
    loaded = Posterior.load(posterior.save(tmp_path / "posterior.npz"))
    assert posterior.check is not None
    assert posterior.groups is not None
    assert loaded.check is not None
    assert loaded.groups is not None
    assert loaded.check.to_json() == posterior.check.to_json()
    assert loaded.groups.to_json() == posterior.groups.to_json()


def test_a_share_of_all_first_places_survives_its_file(tmp_path: Path) -> None:
    # Seven instances of three runs each: sums of 1/3 differ in their last digit.
    table = table_of(np.tile(np.arange(3.0), (21, 1, 1)), instances=[f"i{row // 3}" for row in range(21)])
    posterior = fit(table, seed=1, draws=200)
    assert posterior.check is not None
    assert posterior.check.observed[0].tolist() == [1, 0, 0]
    assert Posterior.load(posterior.save(tmp_path / "posterior.npz")).check is not None


DAMAGED_CHECKS: list[Change] = [
    lambda data: data["p_first"].pop(),
    lambda data: data.update(p_pairs=[[0.5, 1.0]]),
    lambda data: data["observed"].pop(),
    lambda data: data.update(modelled=[[0.7, 0.3, 0.1]] * 2),
    lambda data: data.update(observed="much"),
    lambda data: data.update(p=1.5),
    lambda data: data.update(p=-0.1),
    lambda data: data.update(p=None),
    lambda data: data.update(p="small"),
    lambda data: data["p_first"].__setitem__(0, 1.5),
    lambda data: data["p_pairs"].__setitem__(0, None),
    lambda data: data["observed"][0].__setitem__(0, -0.5),
    lambda data: data["modelled"][0].__setitem__(0, 2.0),
    lambda data: data["first_gap"].update(why=""),
    lambda data: data["first_gap"].pop("observed"),
    lambda data: data["first_gap"].update(observed=1.5),
    lambda data: data["first_gap"].update(modelled=None),
    lambda data: data["pair_gap"].update(other=3),
    lambda data: data["pair_gap"].update(timepoint="early"),
    lambda data: data["pair_gap"].update(algorithm="stranger"),
    lambda data: data["pair_gap"].update(other="stranger"),
]
DAMAGED_EFFECTS: list[Change] = [
    lambda data: data.update(scope="old"),
    lambda data: data.update(groups=1),
    lambda data: data.update(groups=2.5),
    lambda data: data.update(instances=0),
    lambda data: data.update(p=2),
    lambda data: data["inflation"].pop(),
    lambda data: data.update(spread=1.0),
    lambda data: data.update(spread=["a", "b"]),
    lambda data: data["inflation"].__setitem__(0, None),
    lambda data: data["inflation"].__setitem__(0, 0.0),
    lambda data: data["spread"].__setitem__(0, -1.0),
]


@pytest.mark.parametrize("place", range(len(DAMAGED_CHECKS)))
def test_a_damaged_check_is_refused(place: int, tmp_path: Path) -> None:
    data = copy.deepcopy(CHECK.to_json())
    DAMAGED_CHECKS[place](data)
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_check(data)
    refused_in_a_file(tmp_path, check=data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.5}, "p: expected a number from 0 to 1, got 1.5"),
        ({"p_first": [0.5]}, r"p_first: expected the shape \(2,\), got \(1,\)"),
        ({"observed": [[2.0, 0.5], [0.5, 0.5]]}, "observed: expected numbers from 0 to 1"),
        ({"first_gap": {"why": ""}}, r"expected a gap, got the fields \['why'\]"),
    ],
)
def test_what_is_wrong_with_a_check_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_check({**CHECK.to_json(), **change})


@pytest.mark.parametrize("place", range(len(DAMAGED_EFFECTS)))
def test_a_damaged_effect_is_refused(place: int, tmp_path: Path) -> None:
    data = copy.deepcopy(EFFECT.to_json())
    DAMAGED_EFFECTS[place](data)
    with pytest.raises((ValueError, TypeError, KeyError)):
        GroupEffect.from_json(data, 2)
    refused_in_a_file(tmp_path, groups=data)


def refused_in_a_file(folder: Path, **damaged: object) -> None:
    path, arrays = folder / "posterior.npz", POSTERIOR.arrays()
    about = {**json.loads(str(arrays["about"])), **damaged}
    write_arrays(path, {**arrays, "about": np.array(json.dumps(about))})
    with pytest.raises(SourceError, match=r"posterior\.npz"):
        Posterior.load(path)


def test_the_telling_gap_is_of_the_kind_that_speaks_more_against_the_model() -> None:
    assert CHECK.telling_gap is CHECK.first_gap
    assert replace(CHECK, p_pairs=np.array([0.001, 1.0])).telling_gap is CHECK.pair_gap


@pytest.mark.parametrize(("p", "fits"), [(0.0, False), (0.02, False), (0.0201, True), (1.0, True)])
def test_the_model_is_called_wrong_at_two_percent(p: float, fits: bool) -> None:
    assert replace(CHECK, p=p).fits is fits


def test_a_check_reads_as_a_sentence() -> None:
    assert str(CHECK) == (
        "The model does not fit (p = 0.004): a is first on 50% of the instances at 1, and by the model on 70%."
    )
    assert str(CHECK.pair_gap) == "a beats b on 50% of the instances at 1, and by the model on 60%"
    assert str(replace(CHECK, first_gap=None)) == "The model does not fit (p = 0.004)."
    assert str(replace(CHECK, p=0.4)) == "The rankings do not contradict the model (p = 0.4)."
    assert repr(CHECK) == "ModelCheck(DOES NOT FIT, p = 0.004)"
    assert Gap(1.0, "a", None, 0.25, 0.75).size == 0.5


def test_an_effect_reads_as_a_sentence() -> None:
    assert str(EFFECT) == (
        "Certainty is about an instance of a new group, judged by 3 groups (permutation test p = 0.002, variance "
        "inflation 1.5 to 2.0)."
    )
    same = replace(EFFECT, scope="same", inflation=np.array([1.5, 1.52]))
    assert str(same).startswith("Certainty is about further instances of the same 3 groups (")
    assert str(same).endswith("inflation 1.5).")


def test_a_check_gives_its_shares_as_a_table() -> None:
    frame = CHECK.to_pandas()
    assert column_kinds(frame) == {
        "timepoint": "float",
        "algorithm": "names",
        "observed": "float",
        "modelled": "float",
    }
    assert frame["observed"].tolist()[:2] == [0.5, 0.5]
    assert frame["modelled"].tolist()[:2] == [0.7, 0.3]
