from __future__ import annotations

import io
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import pytest

from polarbear_plugins.cli import browser
from polarbear_plugins.cli.output import Terminal

SETTINGS = ("CI", "DISPLAY", "WAYLAND_DISPLAY")


def on(monkeypatch: pytest.MonkeyPatch, system: str, *, terminal: bool = True) -> None:
    """Pretend to run on a system, with standard output on a terminal or elsewhere."""
    stdout = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(browser, "sys", SimpleNamespace(platform=system, stdout=stdout))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that a browser was asked to open; on a Linux terminal with a display."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    on(monkeypatch, "linux")
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return found


def test_on_a_terminal_with_a_display_the_report_opens(opened: list[str], tmp_path: Path) -> None:
    page = tmp_path / "a page.html"
    browser.show_report(page, None)
    assert opened == [page.as_uri()]
    assert "%20" in opened[0]


@pytest.mark.parametrize("name", ["WAYLAND_DISPLAY", "DISPLAY"])
def test_either_kind_of_display_counts(opened: list[str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("DISPLAY")
    browser.show_report(Path("page.html"), None)
    assert not opened
    monkeypatch.setenv(name, ":1")
    browser.show_report(Path("page.html"), None)
    assert len(opened) == 1


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_always_have_a_display(opened: list[str], monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.delenv("DISPLAY")
    on(monkeypatch, system)
    browser.show_report(Path("page.html"), None)
    assert opened


def test_nothing_opens_on_a_build_server_in_a_pipe_or_beside_json(
    opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser.show_report(Path("page.html"), None, quiet=True)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("CI", "true")
    browser.show_report(Path("page.html"), None)
    monkeypatch.delenv("CI")
    on(monkeypatch, "linux", terminal=False)
    browser.show_report(Path("page.html"), None)
    assert not opened


def test_what_is_asked_for_decides(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    browser.show_report(Path("page.html"), wanted=False)
    assert not opened
    monkeypatch.setenv("CI", "true")
    browser.show_report(Path("page.html"), wanted=True, quiet=True)
    assert opened


def test_a_browser_that_fails_is_not_an_error(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    browser.show_report(Path("page.html"), wanted=True)
    assert not opened


def test_the_address_is_a_hyperlink_on_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Path("page.html").resolve().as_uri()
    texts = []
    for terminal in (True, False):
        file = io.StringIO()
        out = Terminal(file=file, width=500, force_terminal=terminal, color_system="standard" if terminal else None)
        monkeypatch.setattr(browser, "console", lambda out=out: out)
        browser.show_report(Path("page.html"), wanted=False)
        texts.append(file.getvalue())
    assert "\x1b]8;" in texts[0]
    assert f";{address}\x1b\\{address}\x1b]8;;\x1b\\" in texts[0]
    assert texts[1] == f"Open {address} in a browser.\n"
