"""Who gets an answer, and who does not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.watch import server
from polarbear_plugins.watch.server import PageServer


class Site:
    """What is served: a page of a few words."""

    def __init__(self) -> None:
        self.stopped = 0
        self.problem = ""

    def page(self) -> tuple[str, str]:
        return "<p>the page</p>", "default-src 'none'"

    def status(self) -> dict[str, Any]:
        return {"phase": "running"}

    def stop(self) -> str:
        if self.problem:
            raise SourceError(self.problem)
        self.stopped += 1
        return ""


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def reading(site: Site, reader: Any) -> Iterator[Any]:
    served = PageServer(site)
    yield reader(served.address)
    served.close()


def test_the_address_leads_to_the_page_and_its_status(reading: Any) -> None:
    assert reading.page() == "<p>the page</p>"
    assert reading.status() == {"phase": "running"}


def test_answers_are_not_kept_and_leave_no_trace_elsewhere(reading: Any) -> None:
    for path in (reading.path, f"{reading.path}status", "/"):
        _, headers, _ = reading.ask("GET", path)
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "Server" not in headers


@pytest.mark.parametrize("path", ["/", "/status", "/{wrong}/", "/{wrong}/status", "/{token}", "/{token}/other", "//"])
def test_without_the_token_there_is_nothing(reading: Any, path: str) -> None:
    token = reading.path.strip("/")
    wrong = f"{'a' if token[0] != 'a' else 'b'}{token[1:]}"
    status, _, text = reading.ask("GET", path.format(token=token, wrong=wrong))
    assert (status, text) == (404, "Not found.\n")


def test_a_path_below_or_beside_the_page_is_not_found(reading: Any) -> None:
    for path in (f"{reading.path}status/", f"{reading.path}status?x", f"{reading.path}../", f"/x{reading.path}"):
        assert reading.ask("GET", path)[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}.x"]
)
def test_another_host_name_is_refused(reading: Any, host: str) -> None:
    """A page elsewhere can have its own name lead to 127.0.0.1, and would then share our origin."""
    assert reading.ask("GET", reading.path, Host=host.format(port=reading.port))[0] == 404
    assert reading.ask("GET", f"{reading.path}status", Host=host.format(port=reading.port))[0] == 404


def test_localhost_is_a_name_of_this_computer(reading: Any) -> None:
    assert reading.ask("GET", reading.path, Host=f"localhost:{reading.port}")[0] == 200


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_not_found(reading: Any, method: str) -> None:
    assert reading.ask(method, reading.path)[0] == 404


def test_the_page_can_stop_the_race(reading: Any, site: Site) -> None:
    assert reading.stop() == {"problem": ""}
    assert site.stopped == 1


def test_a_race_that_cannot_be_stopped_says_why(reading: Any, site: Site) -> None:
    site.problem = "the folder is write-protected"
    assert reading.stop() == {"problem": "the folder is write-protected"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:{port}", "Content-Length": "5"},
        {"Origin": "http://127.0.0.1:{port}", "Content-Length": "x"},
        {"Origin": "http://127.0.0.1:{port}", "Transfer-Encoding": "chunked"},
        {"Origin": "http://127.0.0.1:{port}", "Host": "evil.example"},
    ],
)
def test_nobody_else_can_stop_the_race(reading: Any, site: Site, headers: dict[str, str]) -> None:
    given = {name: value.format(port=reading.port) for name, value in headers.items()}
    assert reading.ask("POST", f"{reading.path}stop", **given)[0] == 404
    assert not site.stopped


def test_stopping_needs_the_token_and_is_not_a_get(reading: Any, site: Site) -> None:
    origin = {"Origin": f"http://127.0.0.1:{reading.port}"}
    assert reading.ask("POST", "/wrong/stop", **origin)[0] == 404
    assert reading.ask("POST", reading.path, **origin)[0] == 404
    assert reading.ask("GET", f"{reading.path}stop", **origin)[0] == 404
    assert not site.stopped


def test_only_this_computer_is_listened_to(reading: Any) -> None:
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        other.connect(("127.0.0.2", reading.port))


def test_each_page_has_a_token_of_its_own(site: Site) -> None:
    pages = [PageServer(site) for _ in range(2)]
    tokens = {page.address.rsplit("/", 2)[1] for page in pages}
    for page in pages:
        page.close()
    assert len(tokens) == 2
    assert all(len(token) >= 32 for token in tokens)


def test_what_is_not_http_is_not_found_and_the_next_request_is_answered(reading: Any) -> None:
    for line in (b"\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70_000 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", reading.port), timeout=20) as raw:
            raw.sendall(line)
            raw.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while raw.recv(65_536):
                    pass
    assert reading.status() == {"phase": "running"}


def test_silent_clients_do_not_keep_others_from_an_answer(reading: Any) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", reading.port)))
        assert reading.status() == {"phase": "running"}


def test_more_clients_than_allowed_are_sent_away(
    site: Site, reader: Any, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    served = PageServer(site)
    reading = reader(served.address)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", reading.port)))
        wait(lambda: len(served._server._connections) == 2)
        with pytest.raises(OSError):  # noqa: PT011 - the connection ends in one way or another
            reading.status()
    wait(lambda: not served._server._connections)
    assert reading.status() == {"phase": "running"}
    served.close()


def test_a_client_that_drips_is_sent_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LONGEST", 0.3)
    served = PageServer(site)
    with socket.create_connection(("127.0.0.1", served._server.server_port), timeout=20) as raw:
        raw.sendall(b"GET / HT")
        assert raw.recv(100) == b""
    served.close()


def test_closing_ends_connections_threads_and_the_socket(site: Site, wait: Any) -> None:
    served = PageServer(site)
    port = served._server.server_port
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        wait(lambda: served._server._connections)
        served.close()
        assert raw.recv(100) == b""
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("polarbear")]
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        other.connect(("127.0.0.1", port))


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(site: Site) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InvalidInputError, match=rf"port {port} of 127\.0\.0\.1 .* Use another port"):
            PageServer(site, port)
