"""Only regular files are written, completely or not at all."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from polarbear_plugins.errors import SourceError
from polarbear_plugins.regular_files import check_output, check_output_folder, open_regular, write_whole

if sys.platform == "win32":
    pytest.skip("needs pipes, devices and users", allow_module_level=True)


@pytest.fixture(params=["pipe", "socket", "device", "link", "folder"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif request.param in ("device", "link"):
        device = tmp_path / "full"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # that of /dev/full, which must survive this test
        except PermissionError:
            pytest.skip("only root can make a device")
        path = device if request.param == "device" else path
        if path != device:
            path.symlink_to(device)
    else:
        path.mkdir()
    return path


def test_nothing_but_a_regular_file_is_replaced(special: Path) -> None:
    before = special.lstat()
    for attempt in (check_output, lambda path: write_whole(path, lambda file: file.write(b"x"))):
        with pytest.raises(SourceError, match=r"cannot be written, since it is a (pipe|socket|device|folder)"):
            attempt(special)
    assert special.lstat().st_mode == before.st_mode
    assert special.lstat().st_ino == before.st_ino


def test_a_check_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    check_output(path)
    assert not list(tmp_path.iterdir())
    path.write_bytes(b"old")
    check_output(path)
    check_output_folder(tmp_path / "new" / "folder")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("result.npz", b"old")]


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "here" / "link.npz", tmp_path / "there" / "file.npz"
    link.symlink_to(file)
    for content in (b"new", b"newer"):  # a link to nothing, and to a file
        assert write_whole(link, lambda out, content=content: out.write(content)) == link
        assert link.is_symlink()
        assert file.read_bytes() == content
    assert not list((tmp_path / "here").glob("*.unfinished"))


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "private.npz"
    path.touch(0o600)
    write_whole(path, lambda file: file.write(b"x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("no")])
def test_what_breaks_leaves_the_old_file_and_no_other(tmp_path: Path, problem: BaseException) -> None:
    path = tmp_path / "result.npz"
    path.write_bytes(b"old")

    def breaks(_: object) -> None:
        raise problem

    with pytest.raises(SourceError if isinstance(problem, OSError) else type(problem)):
        write_whole(path, breaks)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("result.npz", b"old")]


def test_a_pipe_in_the_place_of_the_unfinished_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "result.npz.unfinished")
    write_whole(tmp_path / "result.npz", lambda file: file.write(b"x"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["result.npz", "result.npz.unfinished"]
    assert stat.S_ISFIFO((tmp_path / "result.npz.unfinished").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/x.npz", "since there is no folder .*nowhere. Make it first"),
        ("x" * 300, "File name too long"),
        ("file/x.npz", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("loop/x.npz", "Too many levels of symbolic links"),
    ],
)
def test_what_could_not_be_written_is_refused_with_the_reason(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match=message):
        check_output(tmp_path / name)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder that everybody can read and only its owner can write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "file.npz").touch(0o644)
        yield Path(folder)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("name", ["new.npz", "file.npz", "folder/in/it"])
def test_missing_permission_is_found(as_nobody: Path, name: str) -> None:
    path = as_nobody / name
    child = os.fork()
    if not child:
        os.setuid(65534)
        try:
            check_output_folder(path) if "/" in name else check_output(path)
        except SourceError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_nothing_but_a_regular_file_is_opened(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="Save what it gives to a file first, and give that file"):
        open_regular(tmp_path / name)
