from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from polarbear_plugins.watch.reports import Reports

REPORT = (
    '<!DOCTYPE html>\n<html>\n<head>\n<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'sha256-abc'\">\n<title>t</title>\n</head>\n<body>\n<main>report of round {rounds}</main>\n</body>\n"
    "</html>\n"
)


class Reader:
    """Reads a page as a browser would, but says whatever it is told to."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.port, self.path = parts.port, parts.path

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def page(self) -> str:
        status, _, text = self.ask("GET", self.path)
        assert status == 200
        return text

    def status(self) -> dict[str, Any]:
        status, _, text = self.ask("GET", f"{self.path}status")
        assert status == 200
        found: dict[str, Any] = json.loads(text)
        return found

    def stop(self) -> dict[str, Any]:
        status, _, text = self.ask("POST", f"{self.path}stop", Origin=f"http://127.0.0.1:{self.port}")
        assert status == 200
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture
def reader() -> type[Reader]:
    return Reader


@pytest.fixture
def wait() -> Callable[[Callable[[], Any]], Any]:
    """Wait until something is true, and return it."""

    def wait(until: Callable[[], Any]) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if found := until():
                return found
            time.sleep(0.02)
        raise AssertionError("it never became true")

    return wait


@pytest.fixture
def quick_reports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have reports that take no time, and return what they were made of."""
    made: list[str] = []

    def run(_: Reports, arguments: list[str]) -> None:
        source, target, options = arguments
        made.append(source)
        data = {"html": REPORT.format(rounds=len(made)), "rounds": len(made), "cost": 1.0, "forecast": None}
        assert set(json.loads(options)) == {"unit", "title", "running"}
        Path(target).write_text(json.dumps({**data, "why": "by hand", "processor": 0.0}))

    monkeypatch.setattr(Reports, "_run", run)
    return made


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + 5
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.02)
    assert not [thread.name for thread in left if thread.name.startswith("polarbear")]
