"""Messages between a race and a worker process, through a socket that a run may write into, too.

A run has the socket of its worker among its descriptors.  So a message begins with a secret of the worker and has a
digest: whatever else arrives is recognised at its first bytes, and nothing that a run wrote is unpickled by accident.
The side of the race never waits for the socket.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
from collections.abc import Iterator

from polarbear_plugins.errors import PolarBearError

LARGEST = 2**31  #: bytes of a message

_SECRET = 16  # bytes
_HEADER = struct.Struct(f">{_SECRET}sQ{_SECRET}s")  # the secret, the length of the message, its digest
_CHUNK = 2**18  # bytes that are read at once


class GarbledError(PolarBearError):
    """Something else than messages arrived."""


class Channel:
    """One end of a connection.

    Parameters
    ----------
    end
        A connected socket.
    secret
        Known to both ends, and to nobody else.

    Examples
    --------
    >>> here, there = channel_pair()
    >>> there.send(b"hello")
    >>> list(here.received())
    [b'hello']
    >>> here.close(), there.close()
    (None, None)
    """

    def __init__(self, end: socket.socket, secret: bytes) -> None:
        self.end, self.secret = end, secret
        self._incoming, self._outgoing = bytearray(), memoryview(b"")

    def close(self) -> None:
        """Close this end."""
        self.end.close()

    # --- the side of the worker, which waits

    def send(self, message: bytes) -> None:
        """Send a message, and wait until it is sent."""
        self.end.sendall(self._header(message))
        self.end.sendall(message)

    def receive(self) -> bytes:
        """Wait for the next message.

        :raises EOFError: the other end is closed.
        """
        while True:
            for message in self._messages():
                return message
            self._read()

    # --- the side of the race, which does not wait

    def begin_send(self, message: bytes) -> None:
        """Set a message to be sent by :meth:`send_more`; the one before must be sent."""
        self._outgoing = memoryview(self._header(message) + message)

    def send_more(self) -> bool:
        """Send as much as possible without waiting; whether anything is left."""
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[self.end.send(self._outgoing) :]
        except BlockingIOError:
            pass
        return bool(self._outgoing)

    def received(self) -> Iterator[bytes]:
        """Messages that have arrived, without waiting.

        :raises EOFError: the other end is closed.
        :raises GarbledError: something else has arrived.
        """
        more = True
        while more:
            try:
                more = self._read() == _CHUNK
            except BlockingIOError:
                return
            yield from self._messages()

    def _header(self, message: bytes) -> bytes:
        return _HEADER.pack(self.secret, len(message), self._digest(message))

    def _digest(self, message: bytes) -> bytes:
        return hashlib.blake2b(message, digest_size=_SECRET, key=self.secret).digest()

    def _read(self) -> int:
        """Read what is there, once; returns how many bytes."""
        chunk = self.end.recv(_CHUNK)
        if not chunk:
            raise EOFError
        self._incoming += chunk
        return len(chunk)

    def _messages(self) -> Iterator[bytes]:
        """Take the messages that are complete; raises an error as soon as the bytes cannot be those of a message."""
        incoming = self._incoming
        while incoming:
            if not self.secret.startswith(incoming[:_SECRET]):
                raise GarbledError(f"something else than a message arrived: {bytes(incoming[:8])!r}")
            if len(incoming) < _HEADER.size:
                return
            _, length, digest = _HEADER.unpack_from(incoming)
            if length > LARGEST:
                raise GarbledError(f"a message of {length:,} bytes arrived, and the largest may have {LARGEST:,}")
            end = _HEADER.size + length
            if len(incoming) < end:
                return
            message = bytes(incoming[_HEADER.size : end])
            if not hmac.compare_digest(digest, self._digest(message)):
                raise GarbledError("a message arrived with other bytes in it")
            del incoming[:end]
            yield message


def channel_pair() -> tuple[Channel, Channel]:
    """Two connected ends: that of the race, and that of the worker."""
    secret = secrets.token_bytes(_SECRET)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return Channel(ours, secret), Channel(theirs, secret)
