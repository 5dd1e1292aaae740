from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import numpy as np
import pytest
from builders import synthetic_race

import polarbear_plugins
from polarbear_plugins import RaceResult
from polarbear_plugins.plugins.manager import installed_plugins

ROOT = Path(__file__).parent.parent
LONGEST = ["test_pymc_engines", "test_dask_executor", "test_fit", "test_plots", "test_races"]


def pytest_configure(config: pytest.Config) -> None:
    # The same examples every time: a failure can be repeated, and the suite does not fail by chance.  The quick half
    # has fewer of them, and tox -e long more.
    quick = "not slow" in config.option.markexpr
    examples = int(os.environ.get("POLARBEAR_EXAMPLES", "20" if quick else "40"))
    hypothesis.settings.register_profile("polarbear", derandomize=True, deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("polarbear")
    # Under nohup ctrl-C is ignored, and processes that tests start and interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # On its first import of a day ArviZ writes a file, and two processes that do so at once get in each other's way.
    if not hasattr(config, "workerinput") and importlib.util.find_spec("arviz") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("arviz")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, since many tests wait for processes of their own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


def pytest_report_header() -> str:
    return f"polarbear_plugins from {Path(polarbear_plugins.__file__).parent}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def _plugins_of_each_test() -> None:
    """A test may announce plugins of its own; those of the one before are forgotten."""
    installed_plugins.cache_clear()


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


@pytest.fixture(scope="session")
def raced() -> RaceResult:
    """The result of a short race of synthetic algorithms, which leaves pairs open."""
    return synthetic_race()


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reports without figures, which take a second to draw, where nothing depends on them."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


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


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """Write a study as Bayesmark does into a database in a temporary folder; returns its file in eval/."""
    folder = tmp_path / "db"

    def write(
        optimizer: str,
        function: str,
        visible: object,
        generalization: object = None,
        *,
        seconds: tuple[object, object, object] | None = None,
        log: str | None = None,
        signature: tuple[float, ...] = (),
    ) -> Path:
        for name in ("derived", "eval", "log", "suggest_log", "time"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        uuid = f"{len(list((folder / 'eval').iterdir())):032x}"
        classifier, data, metric = function.split("_")
        arguments = {"--uuid": uuid, "--opt": optimizer, "--classifier": classifier, "--data": data, "--metric": metric}
        meta = {"args": {**arguments, "opt_rev": "1.0", "rev": "abc"}, "signature": [[{}] * len(signature), signature]}

        def save(key: str, **variables: object) -> Path:
            arrays = {name: np.asarray(values, dtype=float) for name, values in variables.items()}
            dims = [["iter"], ["iter", "suggestion"]]
            content = {
                name: {"dims": dims[array.ndim - 1], "attrs": {}, "data": array.tolist()}
                for name, array in arrays.items()
            }
            path = folder / key / f"{uuid}.json"
            path.write_text(json.dumps({"meta": meta, "data": {"coords": {}, "attrs": {}, "data_vars": content}}))
            return path

        if seconds is not None:
            save("time", **dict(zip(("suggest", "eval", "observe"), seconds, strict=True)))
        if log is not None:
            (folder / "log" / f"{uuid}.log").write_text(log)
        return save(
            "eval", _visible_to_opt=visible, generalization=visible if generalization is None else generalization
        )

    return write
