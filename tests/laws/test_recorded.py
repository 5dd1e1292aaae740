"""Seeds, files and names stay what they were: compared with what was written down when they were recorded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laws import fingerprints

from polarbear_plugins import Posterior, RaceResult
from polarbear_plugins.errors import PolarBearWarning
from polarbear_plugins.journal.replay import load_result

RECORDED = fingerprints.RECORDED
NO_CHECKSUM = "has no checksum"  # they were recorded by a version that wrote none
EXPECTED = json.loads((RECORDED / "fingerprints.json").read_text())


@pytest.fixture(scope="module")
def work() -> dict[str, Any]:
    return json_data(fingerprints.seeded_work())


def json_data(found: Any) -> Any:
    return json.loads(json.dumps(found))


def differences(found: Any, expected: Any, where: str = "") -> Iterator[str]:
    """Where two JSON values differ, numbers by more than another processor's arithmetic explains."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            yield f"{where}: keys {sorted(found)}, not {sorted(expected)}"
        for key in found.keys() & expected.keys():
            yield from differences(found[key], expected[key], f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            yield f"{where}: {len(found)} entries, not {len(expected)}"
        for place, (one, other) in enumerate(zip(found, expected, strict=False)):
            yield from differences(one, other, f"{where}/{place}")
    elif isinstance(expected, float) and isinstance(found, int | float):
        if not np.isclose(found, expected, rtol=1e-4, atol=1e-9, equal_nan=True):
            yield f"{where}: {found}, not {expected}"
    elif found != expected:
        yield f"{where}: {found!r}, not {expected!r}"


@pytest.mark.parametrize("what", sorted(EXPECTED["work"]))
def test_the_same_seed_gives_what_it_gave_when_it_was_recorded(work: dict[str, Any], what: str) -> None:
    assert not list(differences(work[what], EXPECTED["work"][what]))


def test_nothing_that_was_recorded_is_left_out(work: dict[str, Any]) -> None:
    assert work.keys() == EXPECTED["work"].keys()


@pytest.mark.parametrize("what", sorted(EXPECTED["surface"]))
def test_hooks_entry_points_and_commands_are_still_called_what_they_were(what: str) -> None:
    found, expected = json_data(fingerprints.surface())[what], EXPECTED["surface"][what]
    assert not list(differences(found, expected))


@pytest.mark.parametrize("name", ["finished.db", "interrupted.db"])
def test_a_recorded_journal_is_read_as_it_was(tmp_path: Path, name: str) -> None:
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUM):
        result = load_result(shutil.copy(RECORDED / name, tmp_path))
    assert not list(differences(fingerprints.fingerprint_of_result(result), EXPECTED["files"][name]))


@pytest.mark.filterwarnings("ignore:.*not everything is as it was:polarbear_plugins.errors.PolarBearWarning")
def test_a_recorded_interrupted_journal_goes_on_to_the_recorded_end(tmp_path: Path) -> None:
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUM):
        result = fingerprints.resumed(Path(shutil.copy(RECORDED / "interrupted.db", tmp_path)))
    expected = EXPECTED["files"]["interrupted.db resumed"]
    assert not list(differences(fingerprints.fingerprint_of_result(result), expected))


def test_a_recorded_result_and_posterior_are_read_as_they_were() -> None:
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUM):
        result, posterior = RaceResult.load(RECORDED / "result.npz"), Posterior.load(RECORDED / "posterior.npz")
    assert not list(differences(fingerprints.fingerprint_of_result(result), EXPECTED["files"]["result.npz"]))
    assert np.array_equal(posterior.ratings, result.posterior.ratings)


def test_a_saved_result_has_the_arrays_that_it_had(tmp_path: Path) -> None:
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUM):
        again = RaceResult.load(RECORDED / "result.npz").save(tmp_path / "again.npz")
    with np.load(RECORDED / "result.npz") as before, np.load(again) as after:
        assert {*before.files, "checksum"} == set(after.files)
        texts = {"result", "posterior_about"}
        for name in set(before.files) - texts:
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)
        for name in texts:  # later versions say more, and what was said stays
            assert_contained(json.loads(str(before[name])), json.loads(str(after[name])))


def assert_contained(before: Any, after: Any) -> None:
    """Everything that JSON data said is still there, with the same values."""
    if isinstance(before, dict):
        assert before.keys() <= after.keys()
        for key, value in before.items():
            assert_contained(value, after[key])
    elif isinstance(before, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_contained(one, other)
    else:
        assert before == after


def test_a_recorded_race_in_an_optuna_storage_is_read_as_it_was(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    from polarbear_plugins.integrations.optuna_sampler import race_result

    storage = f"sqlite:///{shutil.copy(RECORDED / 'study.db', tmp_path)}"
    study = optuna.load_study(study_name="race", storage=storage)
    assert not list(differences(fingerprints.fingerprint_of_result(race_result(study)), EXPECTED["files"]["study.db"]))


def test_the_same_race_in_an_optuna_storage_gives_the_same_trials(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    before = optuna.load_study(study_name="race", storage=f"sqlite:///{shutil.copy(RECORDED / 'study.db', tmp_path)}")
    after = fingerprints.optuna_race(f"sqlite:///{tmp_path / 'again.db'}")
    assert [trial.params for trial in after.trials] == [trial.params for trial in before.trials]
    assert [trial.system_attrs for trial in after.trials] == [trial.system_attrs for trial in before.trials]
