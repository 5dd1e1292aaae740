"""A small web server for one reader: on this computer only, and only for whoever knows its address.

It listens on 127.0.0.1.  The address has a random token, without which everything is "not found"; so is everything
that was asked for under another host name, as a page elsewhere could that has its name lead here.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from polarbear_plugins.errors import InvalidInputError, PolarBearError

_HOST = "127.0.0.1"
_MOST_CONNECTIONS = 16
_SILENCE = 5.0  # seconds that a client may be silent
_LONGEST = 30.0  # seconds for all of a request
_PLAIN = "default-src 'none'; frame-ancestors 'none'"


class Site(Protocol):
    """What is served."""

    def page(self) -> tuple[str, str]:
        """HTML of the page, and its Content-Security-Policy."""
        ...

    def status(self) -> Mapping[str, Any]:
        """What the page polls, ready for JSON."""
        ...

    def stop(self) -> str:
        """Ask the race to stop after its round; returns what to tell whoever asked."""
        ...


class PageServer:
    """Serves a site in threads of its own until :meth:`close`.

    Attributes
    ----------
    address
        Where the page is, including the token.
    """

    def __init__(self, site: Site, port: int = 0) -> None:
        token = secrets.token_urlsafe(24)
        try:
            self._server = _Server(site, token, port)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise InvalidInputError(
                f"The page cannot be served on port {port} of {_HOST} ({reason}). Use another port; 0 takes a free one."
            ) from None
        self.address = f"http://{_HOST}:{self._server.server_port}/{token}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="polarbear-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and end what is going on."""
        self._server.shutdown()
        self._thread.join()
        self._server.end_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # a port that another program listens on stays its own
    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, site: Site, token: str, port: int) -> None:
        self.site, self.token = site, token
        self._connections: dict[threading.Thread, tuple[Any, float]] = {}
        super().__init__((_HOST, port), _Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in (_HOST, "localhost")}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless there are too many."""
        if len(self._connections) >= _MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="polarbear-request", daemon=True
        )
        self._connections[thread] = request, time.monotonic()
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.pop(threading.current_thread(), None)

    def service_actions(self) -> None:
        """End connections that take too long; called several times a second."""
        now = time.monotonic()
        for request, began in list(self._connections.values()):
            if now - began > _LONGEST:
                _end(request)

    def end_connections(self) -> None:
        """End all connections, and wait for their threads."""
        for thread, (request, _) in list(self._connections.items()):
            _end(request)
            thread.join(1.0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that have gone."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _end(request: Any) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENCE

    def do_GET(self) -> None:
        """Answer with the page or the status."""
        what = self._asked_for()
        if what == "":
            page, policy = self.server.site.page()
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page, policy)
        elif what == "status":
            self._answer_json(self.server.site.status())
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Stop the race after its round, for the page itself alone: it sends its origin, and no content."""
        origin, length = self.headers.get("Origin"), self.headers.get("Content-Length", "0")
        same = origin in {f"http://{host}" for host in self.server.hosts}
        same = same and self.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
        if self._asked_for() != "stop" or not same or length != "0" or "Transfer-Encoding" in self.headers:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            self._answer_json({"problem": self.server.site.stop()})
        except PolarBearError as problem:
            self._answer_json({"problem": str(problem)})

    def _asked_for(self) -> str | None:
        """What of the site is asked for; ``None`` without the token, or under another host name."""
        _, token, *rest = [*self.path.split("/"), ""][:4]
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        hosts = self.headers.get_all("Host") or []
        if not known or len(hosts) != 1 or hosts[0].lower() not in self.server.hosts or self.path.count("/") != 2:
            return None
        return rest[0]

    def _answer_json(self, data: Mapping[str, Any]) -> None:
        self._answer(HTTPStatus.OK, "application/json", json.dumps(data, allow_nan=False), _PLAIN)

    def _answer(self, code: HTTPStatus, kind: str, content: str, policy: str) -> None:
        body = content.encode("utf-8", "replace")
        self.send_response_only(code)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Everything that is not answered is "not found", whatever is wrong with it."""
        self.close_connection = True
        self.request_version = self.request_version or "HTTP/1.0"
        self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "Not found.\n", _PLAIN)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is that of the race."""
