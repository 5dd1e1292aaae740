from __future__ import annotations

import contextlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from builders import change_journal, change_json, table_of

from polarbear_plugins import RaceResult, RaceSettings, analyze, race, resume
from polarbear_plugins.environment import installed_versions, versions_text
from polarbear_plugins.errors import PolarBearWarning
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.report.sections import repeat

SETTINGS = RaceSettings(seed=3, max_rounds=1, draws=200)


def raced(**options: Any) -> RaceResult:
    return race("synthetic", "synthetic", [1, 2], SETTINGS, workers=0, **options)


def change_versions(path: Path, versions: dict[str, str] | None) -> None:
    """Make it one of a race that began with other versions, or that noted none."""
    if versions is None:
        change_journal(path, "DELETE FROM about WHERE key = 'versions'")
    else:
        change_journal(path, ("UPDATE about SET json = ? WHERE key = 'versions'", (json.dumps(versions),)))


def is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def test_versions_are_those_of_what_is_installed() -> None:
    found = installed_versions()
    assert {"python", "polarbear-plugins", "numpy", "scipy", "pandas"} <= set(found)
    assert all(number == version(name) for name, number in found.items() if name != "python")
    assert set(found) & {"ioh", "modcma", "optuna"} == {n for n in ("ioh", "modcma", "optuna") if is_installed(n)}
    assert "pymc" not in found
    assert ("pymc" in installed_versions("nuts")) == is_installed("pymc")


def test_a_race_an_analysis_and_a_journal_tell_their_versions(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    result = raced(journal=journal)
    assert result.about["versions"] == installed_versions()
    assert load_result(journal).to_json() == result.to_json()
    table = table_of([[[1.0, 2.0]]] * 5, timepoints=[10])
    analyzed = analyze(table, SETTINGS, {"sources": ["runs.csv"]})
    assert analyzed.to_dict()["about"] == {
        "version": version("polarbear-plugins"),
        "versions": installed_versions(),
        "sources": ["runs.csv"],
    }


def test_what_was_not_noted_is_not_invented(tmp_path: Path) -> None:
    result = raced()
    path = result.save(tmp_path / "old.npz")
    change_json(path, "result", lambda data: data["about"].pop("versions"))
    old = RaceResult.load(path)
    assert "versions" not in old.about
    page = repeat(old)
    assert f"<dt>run with polarbear-plugins</dt><dd>{version('polarbear-plugins')}</dd>" in page
    assert f"<dt>this page was written with</dt><dd>{versions_text(installed_versions())}</dd>" in page


def test_a_report_tells_the_versions_of_the_race() -> None:
    page = repeat(raced())
    assert f"<dt>run with</dt><dd>{versions_text(installed_versions())}</dd>" in page
    assert "this page was written with" not in page  # the same


@pytest.mark.parametrize("then", [{"python": "3.9.1", "numpy": "2.0.0"}, None])
def test_a_race_that_goes_on_with_other_versions_tells_both(tmp_path: Path, then: dict[str, str] | None) -> None:
    journal = tmp_path / "race.db"
    raced(journal=journal)
    change_versions(journal, then)
    with pytest.warns(PolarBearWarning, match=r"numpy 2\.0\.0 then, .* now") if then else contextlib.nullcontext():
        result = resume(journal, max_rounds=2, workers=0)
    assert result.about.get("versions") == then
    assert result.about["resumed_with"] == installed_versions()
    assert load_result(journal).to_json() == result.to_json()
    page = repeat(result)
    assert f"<dt>resumed with</dt><dd>{versions_text(installed_versions())}</dd>" in page
    if then:
        assert "<dt>run with</dt><dd>Python 3.9.1, numpy 2.0.0</dd>" in page


def test_a_race_that_goes_on_with_the_same_versions_tells_them_once(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    raced(journal=journal)
    assert "resumed_with" not in resume(journal, max_rounds=2, workers=0).about
