"""The stand-in for the data of YAHPO Gym that the package contains."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems.protocols import ObjectivesProblem
from polarbear_plugins.problems.spaces import Categorical, Float, Integer
from polarbear_plugins.testing import check_suite

pytest.importorskip("onnxruntime")
yahpo = pytest.importorskip("polarbear_plugins.adapters.yahpo")
from polarbear_plugins.adapters.yahpo.files import data_folder, read_statistics  # noqa: E402


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YAHPO_DATA", raising=False)


def suite(name: str = "yahpo:demo", **options: object) -> Any:
    plugins = Plugins()
    plugins.register(yahpo, "yahpo")
    return plugins.suite(name, **options)


@pytest.mark.parametrize("name", ["yahpo:demo", "yahpo:demo:d03:d01"])
def test_it_needs_no_data_and_keeps_the_promises_of_a_suite(name: str) -> None:
    check_suite(yahpo, name)


def test_another_folder_does_not_replace_it_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YAHPO_DATA", str(tmp_path))
    assert suite().folder == data_folder(None, "demo")
    with pytest.raises(InvalidInputError, match="no scenario 'demo'"):
        suite(data=str(tmp_path))


def test_it_has_what_real_scenarios_have() -> None:
    surrogate = yahpo.load_surrogate("demo")
    kinds = {type(parameter) for parameter in surrogate.space.parameters.values()}
    assert kinds == {Float, Integer, Categorical}
    assert surrogate.space.conditions
    assert len(surrogate.instances) == 24
    assert list(surrogate.fidelities) == ["epoch"]
    assert surrogate.targets == ("val_accuracy", "time")
    assert suite().budget == yahpo.full_budget(6)


def test_a_low_fidelity_is_cheaper_worse_and_another_order() -> None:
    surrogate, rng = yahpo.load_surrogate("demo"), np.random.default_rng(1)
    drawn = [surrogate.space.sample(rng) for _ in range(300)]
    for instance in surrogate.instances:
        low, full = (surrogate.predict(drawn, instance, {"epoch": epoch}) for epoch in (5, 50))
        assert (low < full).all()
        assert 0.5 < np.corrcoef(low[:, 0], full[:, 0])[0, 1] < 0.99


def test_its_statistics_bound_the_targets_of_random_configurations() -> None:
    surrogate, rng = yahpo.load_surrogate("demo"), np.random.default_rng(2)
    drawn = [surrogate.space.sample(rng) for _ in range(1000)]
    statistics = read_statistics(surrogate.folder)
    for instance in surrogate.instances:
        values = surrogate.predict(drawn, instance, {"epoch": 50})
        for column, target in enumerate(surrogate.targets):
            least, greatest = statistics["demo", instance, target]
            assert least <= values[:, column].min() < values[:, column].max() <= greatest
    both = suite(target="val_accuracy,time")
    assert isinstance(both.build(next(both.identities(0))), ObjectivesProblem)


def test_the_files_are_those_that_the_tool_makes(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    spec = importlib.util.spec_from_file_location("make_demo", root / "tools" / "make_demo.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    made, kept = tool.build(tmp_path / "made"), data_folder(None, "demo")
    files = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    for file in files:
        if file.suffix == ".json":
            assert json.loads((made / file).read_text()) == json.loads((kept / file).read_text())
    assert read_statistics(made) == read_statistics(kept)
    ours, theirs = yahpo.load_surrogate("demo"), yahpo.load_surrogate("demo", made)
    drawn = [ours.space.sample(np.random.default_rng(seed)) for seed in range(50)]
    np.testing.assert_allclose(*(each.predict(drawn, "d07", {"epoch": 9}) for each in (ours, theirs)), rtol=1e-5)


def test_replications_are_an_option_of_the_suite_and_count_as_one_instance() -> None:
    assert suite().replications == 1
    assert suite(replications="30").replications == 30
    with pytest.raises(InvalidInputError, match="replications"):
        suite(replications="0")
    result = race(
        [RandomSearch("one"), RandomSearch("other")],
        "yahpo:demo:d01:d02",
        [2, 4],
        RaceSettings(seed=1, draws=200),
        workers=0,
        suite_options={"replications": 4},
    )
    assert len(result.state.table) == 8
    assert result.rounds[-1].instances == 2
