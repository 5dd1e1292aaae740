"""Outputs are checked before any work, and no result is lost because it cannot be saved."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from builders import synthetic_race
from command_line import Command

from polarbear_plugins import RaceResult
from polarbear_plugins.cli import main
from polarbear_plugins.cli.outputs import FileOrFolder, InputPath, OutputFile
from polarbear_plugins.errors import SourceError

if sys.platform == "win32":
    pytest.skip("needs pipes and devices", allow_module_level=True)

OUTPUTS = {"output", "journal", "figure", "figures", "ioh_output", "markdown", "junit"}
POLARBEAR = Command()
SHORT = ("race", "synthetic", "synthetic", "--budget", "5", "--seed", "1", "--workers", "0", "--draws", "100")
TWO_ROUNDS = (*SHORT, "--max-rounds", "2")


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    for name, command in main.commands.items():
        for parameter in command.params:
            yield name, parameter


def checked_options(*, folders: bool) -> list[tuple[str, str]]:
    """Commands, each with one of its options that name a file, or a folder."""
    return [
        (name, parameter.opts[-1])
        for name, parameter in parameters()
        if isinstance(parameter, click.Option)
        and isinstance(parameter.type, OutputFile)
        and not isinstance(parameter.type, FileOrFolder)
        and (parameter.type.name == "directory") == folders
    ]


def names_here() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def required(command: str) -> list[str]:
    arguments = [each for each in main.commands[command].params if isinstance(each, click.Argument) and each.required]
    return ["missing"] * len(arguments)


def test_every_option_that_names_an_output_is_checked_by_its_type() -> None:
    for command, parameter in parameters():
        written = parameter.name in OUTPUTS and (command, parameter.name) != ("watch", "journal")  # which it only reads
        assert isinstance(parameter.type, OutputFile) == written, (command, parameter.name)
        if isinstance(parameter.type, click.Path):
            assert isinstance(parameter.type, OutputFile | InputPath), (command, parameter.name)


@pytest.mark.parametrize(("command", "option"), checked_options(folders=False))
@pytest.mark.parametrize(
    "name", ["", ".", "/", "-", "new/", "nowhere/x.png", "/dev/null", "pipe", "/dev/stdout", "x" * 300]
)
def test_a_file_that_could_not_be_written_is_refused_before_any_work(
    command: str, option: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    if (option, name) == ("--markdown", "-"):  # prints it instead of the table
        return
    error = POLARBEAR.fail(command, *required(command), option, name)
    assert "cannot be written" in error or "expected" in error or "standard output" in error
    assert names_here() == ["pipe"]


@pytest.mark.parametrize(("command", "option"), checked_options(folders=True))
@pytest.mark.parametrize("name", ["", "-", "/dev/null", "pipe", "file", "file/inside"])
def test_a_folder_that_could_not_be_written_is_refused_before_any_work(
    command: str, option: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("file").touch()
    error = POLARBEAR.fail(command, *required(command), option, name)
    assert "cannot be written" in error or "expected" in error or "standard output" in error
    assert names_here() == ["file", "pipe"]


@pytest.mark.parametrize("name", ["", "-", "nowhere/x.csv", "pipe.csv", "pipe", "/dev/null", "file/inside"])
def test_an_export_that_could_not_be_written_is_refused_before_anything_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    os.mkfifo("pipe")
    Path("file").touch()
    assert "No plugin knows" not in POLARBEAR.fail("export", "missing", "-o", name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SHORT, "--output", "x.npz", "--journal", "./x.npz"], "--journal x.npz: it is also --output"),
        ([*SHORT, "--output", "x.npz", "--ioh-output", "x.npz"], "--ioh-output x.npz: it is also --output"),
        ([*SHORT, "--journal", "x.db", "--output", "x.db-wal"], "--output x.db-wal: it is also --journal (-wal)"),
        ([*SHORT, "--output", "link.npz", "--journal", "file.npz"], "it is also --output"),
        ([*SHORT, "--output", "file.npz", "--against", "file.npz"], "--output file.npz: it is also --against"),
        (["resume", "file.npz", "--output", "file.npz"], "JOURNAL file.npz: it is also --output"),
        (["analyze", "file.npz", "--output", "link.npz"], "--output link.npz: it is also SOURCE"),
        (["report", "file.npz", "-o", "file.npz"], "--output file.npz: it is also RESULT"),
        (["export", "file.npz", "-o", "file.npz", "--force"], "it is also SOURCE"),
        (["demo", "-o", "x.html", "--journal", "x.html"], "--journal x.html: it is also --output"),
    ],
)
def test_an_output_that_is_another_file_of_the_command_is_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.npz").touch()
    Path("link.npz").symlink_to("file.npz")
    assert message in POLARBEAR.fail(*arguments)


def test_files_whose_names_are_not_utf_8_are_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("bad\udcff.npz", "bad\udcff.db")
    shown = POLARBEAR.succeed(*TWO_ROUNDS, "--output", names[0], "--journal", names[1])
    assert "saved bad\\udcff.db, bad\\udcff.npz" in shown
    for name in names:
        assert "Expected regret" in POLARBEAR.succeed("select", name)


@pytest.fixture
def raced() -> RaceResult:
    return synthetic_race(draws=200, max_rounds=2)


@pytest.fixture
def lost_folder(raced: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is removed while the race runs, and another one where the command is given."""
    folder, here = tmp_path / "folder", tmp_path / "here"
    folder.mkdir()
    here.mkdir()

    def run(*_: object, **__: object) -> RaceResult:
        shutil.rmtree(folder)
        return raced

    monkeypatch.setattr(sys.modules["polarbear_plugins.cli.race"], "run_race", run)
    monkeypatch.chdir(here)
    return folder


def test_a_result_that_cannot_be_saved_is_printed_and_saved_elsewhere(lost_folder: Path, raced: RaceResult) -> None:
    Path("x.npz").write_text("mine")
    found = POLARBEAR.run(*SHORT, "--output", str(lost_folder / "x.npz"), "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout) == raced.to_dict()
    elsewhere = Path("x-2.npz").absolute()
    assert found.stderr == (
        f"Error: {lost_folder / 'x.npz'}: cannot be written, since there is no folder {lost_folder}. Make it first. "
        f"It was saved as {elsewhere} instead.\n"
    )
    assert RaceResult.load(elsewhere).to_dict() == raced.to_dict()
    assert Path("x.npz").read_text() == "mine"


def test_a_result_is_saved_in_the_folder_for_temporary_files_if_need_be(
    lost_folder: Path, raced: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    save = RaceResult.save

    def full(result: RaceResult, path: Path) -> Path:
        if temporary not in path.parents:
            raise SourceError(f"{path}: cannot be written (No space left on device).")
        return save(result, path)

    monkeypatch.setattr(RaceResult, "save", full)
    found = POLARBEAR.run(*SHORT, "--output", str(lost_folder / "x.npz"))
    [elsewhere] = temporary.rglob("x.npz")
    assert found.exit_code == 2
    assert f"It was saved as {elsewhere} instead." in found.stderr
    assert f"saved {elsewhere}" in found.stdout
    assert RaceResult.load(elsewhere).to_dict() == raced.to_dict()


def test_a_result_is_printed_even_if_it_can_be_saved_nowhere(
    lost_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: RaceResult, path: Path) -> Path:
        raise SourceError(f"{path}: cannot be written (No space left on device).")

    monkeypatch.setattr(RaceResult, "save", full)
    found = POLARBEAR.run(*SHORT, "--output", str(lost_folder / "x.npz"))
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert "(No space left on device). No other place was found." in found.stderr
    assert "on which each would be the best of all" in found.stdout
    assert not names_here()


def test_an_analysis_is_printed_if_it_cannot_be_saved(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    module = sys.modules["polarbear_plugins.cli.analyze"]
    infer = module.analyze_table

    def lose(*arguments: Any) -> RaceResult:
        shutil.rmtree(folder)
        return infer(*arguments)

    monkeypatch.setattr(module, "analyze_table", lose)
    found = POLARBEAR.run(
        "analyze", str(root / "examples" / "runs.csv"), "--timepoints", "2", "--output", str(folder / "x.npz")
    )
    assert found.exit_code == 2
    assert "runs of" in found.stdout
    assert names_here() == ["x.npz"]


def test_a_link_given_as_output_stays_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link.npz").symlink_to("file.npz")
    POLARBEAR.succeed(*TWO_ROUNDS, "--output", "link.npz")
    assert Path("link.npz").is_symlink()
    assert RaceResult.load("file.npz").rounds
