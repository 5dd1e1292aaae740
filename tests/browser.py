"""Chromium, driven through a pipe by its DevTools protocol: nothing to install beside the browser itself."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--mute-audio"),
    *("--hide-scrollbars", "--force-device-scale-factor=1", "--disable-dev-shm-usage"),
)
_PATIENCE = 120.0  # seconds


class Browser:
    """A browser with one page; ``problems`` holds what its console and its Content-Security-Policy complain about."""

    def __init__(self, to_browser: int, from_browser: int, downloads: Path) -> None:
        self._write, self._read, self._rest = to_browser, from_browser, b""
        self._number, self._answers = 0, dict[int, dict[str, Any]]()
        self._session: str | None = None
        self._loaded = 0
        self.problems: list[str] = []
        self.downloads = downloads
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Answer of the browser to a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        self._until(lambda: self._number in self._answers)
        answer = self._answers.pop(self._number)
        assert "error" not in answer, (method, answer)
        found: dict[str, Any] = answer["result"]
        return found

    def open(self, path: Path, fragment: str = "", *, width: int = 1300, scripts: bool = True) -> None:
        """Load a file in a window of this width, with or without running its scripts."""
        self.problems.clear()
        self.resize(width)
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        for address in (
            "about:blank",
            f"{path.as_uri()}{fragment}",
        ):  # the same page with another fragment is not loaded
            loaded = self._loaded
            self.send("Page.navigate", url=address)
            self._until(lambda loaded=loaded: self._loaded > loaded)  # type: ignore[misc]
        if scripts:
            self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width: int, height: int = 900) -> None:
        """Change the size of the window."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """Value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Text of the first element that matches."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def wait(self, script: str) -> Any:
        """Value of an expression once it is true."""
        end = time.monotonic() + _PATIENCE
        while not (found := self.run(script)):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return found

    def middle(self, selector: str) -> tuple[float, float]:
        """Middle of an element, after scrolling to it."""
        x, y = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            " one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return x, y

    def mouse(self, kind: str, x: float, y: float, *, held: bool = False) -> None:
        """A mouse event: moved, pressed or released."""
        down = kind != "moved" or held
        names = {"button": "left" if down else "none", "buttons": int(held or kind == "pressed")}
        clicks = int(kind != "moved")
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind.capitalize()}", x=x, y=y, clickCount=clicks, **names)

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        x, y = self.middle(selector)
        for kind in ("moved", "pressed", "released"):
            self.mouse(kind, x, y)

    def drag(self, start: tuple[float, float], *stops: tuple[float, float]) -> None:
        """Press, move along, release."""
        self.mouse("moved", *start)
        self.mouse("pressed", *start)
        for stop in stops:
            self.mouse("moved", *stop, held=True)
        self.mouse("released", *stops[-1])

    def key(self, name: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def media(self, kind: str = "", **features: str) -> None:
        """Pretend to be paper, or to have a preference such as a dark colour scheme."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", media=kind, features=named)

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """Picture of the window, or of the whole page."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
        return path

    def print_to(self, path: Path) -> Path:
        """The page as PDF."""
        path.write_bytes(base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"]))
        return path

    def downloaded(self, name: str) -> bytes:
        """Content of a file that the page has handed over, once it is complete."""
        end, path = time.monotonic() + _PATIENCE, self.downloads / name
        while not path.is_file() or not path.stat().st_size:
            assert time.monotonic() < end, f"{name} was not downloaded"
            self.run("0")
            time.sleep(0.05)
        found = path.read_bytes()
        path.unlink()
        return found

    def _until(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not done():
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            *messages, self._rest = (self._rest + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, parameters = message["method"], message["params"]
        self._loaded += method == "Page.loadEventFired"
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(parameters["args"]))
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own, which ends with the context."""
    assert CHROMIUM is not None
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}/profile", "about:blank"]
        # The browser reads commands from the descriptor 3 and answers on 4.
        shell = f'exec "$@" 3<&{command_read} 4>&{answer_write}'
        process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", *words],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(command_read)
        os.close(answer_write)
        downloads = Path(folder, "downloads")
        downloads.mkdir()
        try:
            yield Browser(command_write, answer_read, downloads)
        finally:
            os.close(command_write)
            os.close(answer_read)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
