from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

import polarbear_plugins

# The same examples every time: a failure can be repeated, and the suite does not fail by chance.
hypothesis.settings.register_profile("polarbear", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("polarbear")

ROOT = Path(__file__).parent.parent


def pytest_report_header() -> str:
    return f"polarbear_plugins from {Path(polarbear_plugins.__file__).parent}"


@pytest.fixture
def root() -> Path:
    """The top folder of the repository."""
    return ROOT


@pytest.fixture
def worker_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], ModuleType]]:
    """Make a module from its text that processes can import too, which test modules are not."""
    made = []

    def make(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        sys.modules.pop(name, None)
        made.append(name)
        return importlib.import_module(name)

    yield make
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def shared() -> Path:
    """Real data beside the repository; a test that wants it is skipped where there is none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside the repository")
    return folder


@pytest.fixture(scope="session")
def tiny_yahpo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of yahpo_data with two tiny surrogates, made by the example that makes them."""
    pytest.importorskip("onnx")
    spec = importlib.util.spec_from_file_location("make_surrogate", ROOT / "examples" / "make_surrogate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("yahpo_data")
    for scenario in module.SPACES:
        module.build(folder, scenario)
    return folder
