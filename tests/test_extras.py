from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polarbear_plugins import PolarBearError
from polarbear_plugins.errors import MissingExtraError
from polarbear_plugins.extras import require


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, for the length of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for path in tmp_path.iterdir():
        sys.modules.pop(path.stem, None)


def test_a_module_that_is_there_is_returned() -> None:
    assert require("json", extra="optuna", who="Somebody") is json


def test_a_missing_module_is_named_with_who_needs_it_and_how_to_install_it() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_module", extra="optuna", who="PolarBearPruner")
    assert str(caught.value) == (
        "PolarBearPruner needs 'no_such_module', which is not installed. "
        "Install it with: pip install 'polarbear-plugins[optuna]'"
    )
    assert caught.value.name == "no_such_module"


def test_a_missing_module_is_a_mistake_the_user_can_mend_and_an_import_error() -> None:
    with pytest.raises(PolarBearError) as caught:
        require("no_such_module", extra="optuna", who="Somebody")
    assert isinstance(caught.value, ImportError)


def test_a_submodule_of_a_missing_package_is_missing_by_the_name_of_the_package() -> None:
    with pytest.raises(MissingExtraError, match="Somebody needs 'no_such_package', which is not installed"):
        require("no_such_package.inner", extra="parquet", who="Somebody")


def test_a_missing_submodule_of_a_package_that_is_there_is_missing(folder: Path) -> None:
    (folder / "half_a_package").mkdir()
    (folder / "half_a_package" / "__init__.py").touch()
    with pytest.raises(MissingExtraError, match=r"needs 'half_a_package\.inner'"):
        require("half_a_package.inner", extra="parquet", who="Somebody")


def test_a_module_whose_own_dependency_is_missing_keeps_its_error(folder: Path) -> None:
    (folder / "broken_library.py").write_text("import its_missing_dependency\n")
    with pytest.raises(ModuleNotFoundError) as caught:
        require("broken_library", extra="optuna", who="Somebody")
    assert not isinstance(caught.value, PolarBearError)
    assert caught.value.name == "its_missing_dependency"


def test_a_module_that_fails_on_import_keeps_its_error(folder: Path) -> None:
    (folder / "failing_library.py").write_text("raise OSError('no GPU')\n")
    with pytest.raises(OSError, match="no GPU"):
        require("failing_library", extra="optuna", who="Somebody")
