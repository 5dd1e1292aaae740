from __future__ import annotations

import configparser
import importlib.util
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


versions, audit = _tool("versions"), _tool("audit")


def _written(root: Path) -> dict[str, list[str]]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _tox(root: Path) -> configparser.ConfigParser:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(root / "tox.ini")
    return tox


def test_the_lowest_versions_are_exactly_the_bounds_that_are_written(root: Path) -> None:
    written = _written(root)
    for extra, lines in written.items():
        if extra in ("core", "all"):
            continue
        bounds = dict(re.match(r"([\w.-]+)[^>]*>=([\d.]+)", line).groups() for line in [*written["core"], *lines])  # type: ignore[union-attr]
        assert versions.lowest([extra], root) == bounds


def test_of_two_bounds_the_higher_one_counts(root: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        """
        [project]
        name = "own"
        dependencies = ["a>=1.9", "B>=2"]
        [project.optional-dependencies]
        one = ["a>=1.10", "c[more]>=0.3,<1"]
        two = ["a>=1.9.5"]
        all = ["own[one,two]"]
        """
    )
    assert versions.lowest([], tmp_path) == {"a": "1.9", "b": "2"}
    assert versions.lowest(["all"], tmp_path) == {"a": "1.10", "b": "2", "c": "0.3"}
    assert versions.lowest(["two"], tmp_path) == {"a": "1.9.5", "b": "2"}
    # All that users and tests need is installed together.
    assert versions.lowest(["all", "test"], root)["moocore"] == versions.lowest(["eaf"], root)["moocore"]


@pytest.mark.parametrize("line", ["a", "a==1", "a<2", "a~=1.2", "a>=1; python_version < '3.12'"])
def test_a_requirement_without_a_lower_bound_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "own"\ndependencies = ["{line}"]\n[project.optional-dependencies]\n'
    )
    with pytest.raises(SystemExit, match=r"pyproject.toml, core: expected NAME>=VERSION"):
        versions.lowest([], tmp_path)


def test_an_unknown_extra_is_named() -> None:
    with pytest.raises(SystemExit, match="no extra 'optina'; there are core, optuna"):
        versions.lowest(["optina"])


def test_pip_installs_under_these_constraints(capfd: pytest.CaptureFixture[str]) -> None:
    lowest = versions.lowest(["test"])["hypothesis"]
    options = ["--dry-run", "--no-index", "--no-deps", "--ignore-installed", "hypothesis"]
    assert versions.install(["test"], options) != 0  # there is no index to find it in
    assert f"hypothesis=={lowest}" in "".join(capfd.readouterr())


def test_the_minimum_environments_take_the_lowest_versions_of_what_they_install(root: Path) -> None:
    tox = _tox(root)
    for name in ("minimum", "minimum-core"):
        section = f"testenv:{name}"
        extras = tox.get(section, "extras", fallback=tox["testenv"]["extras"]).split()
        assert f"versions.py install {','.join(extras)} {{opts}}" in tox[section]["install_command"]
        assert tox[section]["base_python"] == "python3.11"


def test_one_environment_takes_the_lowest_optuna_and_is_otherwise_as_usual(root: Path) -> None:
    own = dict(_tox(root)["testenv:optuna-lowest"])
    assert own.pop("deps").split() == [f"optuna=={versions.lowest(['optuna'], root)['optuna']}"]
    assert list(own) == ["description"]


def test_the_page_has_the_lower_bounds_of_the_package_and_newer_versions_that_were_tested(root: Path) -> None:
    page = (root / "docs" / "evidence" / "reliability_tests.md").read_text()
    expected = [tuple(row.split(" | ")[:2]) for row in versions.table(root)[2:]]
    rows = re.findall(r"^(\| [\w.-]+) \| (\d.*?\)) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert [(name, minimum) for name, minimum, _ in rows] == expected
    for _, minimum, newest in rows:
        assert all(_parts(bound) <= _parts(newest) for bound in re.findall(r"([\d.]+) \(", minimum))


def test_the_page_names_the_environments_that_tox_has(root: Path) -> None:
    page = (root / "docs" / "evidence" / "reliability_tests.md").read_text()
    named = set(re.findall(r"tox -e ([\w-]+)", page))
    own = {section.partition(":")[2] for section in _tox(root).sections() if ":" in section}
    assert {"minimum", "minimum-core", "optuna-lowest", "newest", "audit"} <= named
    assert {name for name in named if not re.fullmatch(r"py3\d+(-core|-full)?", name)} <= own


def test_another_python_gets_every_extra_but_the_one_without_wheels(root: Path) -> None:
    [everything] = re.findall(r"\[(.*)\]", _written(root)["all"][0])
    own = _tox(root)["testenv:py{312,313}-full"]["extras"]
    assert set(re.findall(r"py313: (\S+)", own)) == set(everything.split(",")) - {"ioh"}
    assert re.findall(r"py312: (\S+)", own) == ["all"]


# The lock file


def _locked(root: Path) -> list[tuple[Requirement, list[str]]]:
    """Pinned versions, each with its hashes."""
    lines = (root / "requirements" / "dev.txt").read_text().replace("\\\n", " ").splitlines()
    entries = [line.split("--hash=") for line in lines if not line.startswith("#")]
    return [(Requirement(pin), [file_hash.strip() for file_hash in hashes]) for pin, *hashes in entries]


def _pythons(root: Path) -> list[str]:
    classifiers = tomllib.loads((root / "pyproject.toml").read_text())["project"]["classifiers"]
    return [found[1] for name in classifiers if (found := re.fullmatch(r"Programming .* :: (3\.\d+)", name))]


def _needed(root: Path) -> Iterator[Requirement]:
    """What the package, its extras and those who work on it need; not what it is compared with, the group rivals."""
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    included = [line["include-group"] for line in groups["dev"] if isinstance(line, dict)]
    assert set(groups) == {"dev", *included, "rivals"}
    lines = itertools.chain.from_iterable([*_written(root).values(), *(groups[name] for name in ("dev", *included))])
    for line in lines:
        if isinstance(line, str) and not line.startswith("polarbear-plugins["):
            yield Requirement(line)


def test_the_lock_file_has_one_version_of_everything_that_is_needed_and_it_fits(root: Path) -> None:
    locked = _locked(root)
    assert _pythons(root) == ["3.11", "3.12", "3.13"]
    for python, needed in itertools.product(_pythons(root), _needed(root)):
        here = {"python_version": python, "python_full_version": f"{python}.9"}
        [pin] = [
            entry
            for entry, _ in locked
            if canonicalize_name(entry.name) == canonicalize_name(needed.name)
            and (entry.marker is None or entry.marker.evaluate(here))
        ]
        [version] = [one.version for one in pin.specifier]
        assert needed.specifier.contains(version), f"{needed} on Python {python}, and the lock file has {version}"


def test_the_lock_file_names_public_releases_by_their_hashes_and_no_place_to_get_them_from(root: Path) -> None:
    for pin, hashes in _locked(root):
        [specifier] = pin.specifier
        assert specifier.operator == "=="
        assert Version(specifier.version).local is None, f"{pin} is not a public release"
        assert pin.url is None
        assert hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", file_hash) for file_hash in hashes), pin.name
    text = (root / "requirements" / "dev.txt").read_text()
    assert not re.search(r"://|^--?\w", text, flags=re.MULTILINE)


# Known vulnerabilities


def _report(*entries: dict[str, Any], known: bool = True) -> dict[str, Any]:
    flaw = {"id": "PYSEC-1", "fix_versions": ["2.0.1"]}
    canary: dict[str, Any] = {"name": "django", "version": "2.0", "vulns": [flaw]}
    if not known:
        canary = {"name": "django", "skip_reason": "Dependency not found on PyPI"}
    return {"dependencies": [*entries, canary], "fixes": []}


FINE: dict[str, Any] = {"name": "numpy", "version": "2.0.0", "vulns": []}
FLAWED: dict[str, Any] = {"name": "pip", "version": "9", "vulns": [{"id": "CVE-1", "fix_versions": []}]}
SKIPPED: dict[str, Any] = {"name": "ioh", "skip_reason": "Dependency not found on PyPI: ioh (9)"}


@pytest.mark.parametrize(
    ("report", "code", "said"),
    [
        (_report(FINE), 0, "1 packages, no known vulnerability."),
        (_report(FINE, FLAWED), 1, "pip 9: CVE-1, mended in no release"),
        (_report(FINE, SKIPPED), 2, "NOT AUDITED: Dependency not found on PyPI: ioh (9)"),
        (_report(FINE, known=False), 2, "NOT AUDITED: PyPI's advisories cannot be reached"),
        ({}, 2, "NOT AUDITED: PyPI's advisories cannot be reached"),
    ],
)
def test_an_audit_that_nobody_answered_does_not_pass(report: dict[str, Any], code: int, said: str) -> None:
    found, lines = audit.verdict(report)
    assert found == code
    assert lines[0].startswith(said)


def test_an_audit_covers_what_is_installed_but_not_ourselves() -> None:
    found = audit.installed()
    assert "numpy" in found
    assert "pytest" in found
    assert "polarbear-plugins" not in found


def test_an_audit_without_its_program_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert audit.main() == 2
    assert "NOT AUDITED" in capsys.readouterr().out
