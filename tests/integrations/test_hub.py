from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

optuna = pytest.importorskip("optuna")
from polarbear_plugins.integrations import optuna_pruner, optuna_sampler  # noqa: E402

PACKAGES = {
    "pruners": (optuna_pruner, ["PolarBearPruner"]),
    "samplers": (optuna_sampler, ["PolarBearSampler", "likely_best", "race_result"]),
}


@pytest.mark.parametrize("kind", PACKAGES)
def test_a_package_is_what_the_hub_expects(kind: str, root: Path) -> None:
    folder = root / "hub" / kind / "polarbear"
    spec = importlib.util.spec_from_file_location("hub_package", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    module, names = PACKAGES[kind]
    assert package.__all__ == names
    assert all(getattr(package, name) is getattr(module, name) for name in names)
    front = (folder / "README.md").read_text().split("---")[1]
    for key in ("author", "title", "description", "tags", "optuna_versions", "license"):
        assert f"\n{key}:" in front
    assert (folder / "LICENSE").read_text() == (root / "LICENSE").read_text()


@pytest.mark.parametrize(("kind", "module"), [(kind, module) for kind, (module, _) in PACKAGES.items()])
def test_an_example_runs_with_the_package_beside_it(kind: str, module: ModuleType, root: Path) -> None:
    example = (root / "hub" / kind / "polarbear" / "example.py").read_text()
    download = f'optunahub.load_module("{kind}/polarbear")'
    assert download in example
    code = example.replace("import optunahub\n", "").replace(download, "installed")
    made: dict[str, object] = {"installed": module}
    exec(compile(code, "example.py", "exec"), made)  # noqa: S102 - our own
    study = made["study"]
    assert study.trials  # type: ignore[attr-defined]
