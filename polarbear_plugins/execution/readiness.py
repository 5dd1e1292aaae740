"""Waiting for many connections and processes at once, at a cost that does not grow with their number."""

from __future__ import annotations

import selectors
import socket
import sys
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Readiness(Generic[T]):
    """What to wait for, and what each thing stands for.

    Examples
    --------
    >>> here, there = socket.socketpair()
    >>> readiness = Readiness[str]()
    >>> readiness.add(here, "an answer")
    >>> readiness.wait(0), there.send(b"!"), readiness.wait(None)
    ([], 1, ['an answer'])
    >>> readiness.close(), here.close(), there.close()
    (None, None, None)
    """

    def __init__(self) -> None:
        # Windows can wait for a process only in its own way, which takes all of the things each time.
        self._selector = None if sys.platform == "win32" else selectors.DefaultSelector()
        self._meanings: dict[Any, T] = {}

    def add(self, thing: socket.socket | int, meaning: T) -> None:
        """Wait for a socket, or for the sentinel of a process, from now on."""
        self._meanings[thing] = meaning
        if self._selector is not None:
            self._selector.register(thing, selectors.EVENT_READ, meaning)

    def remove(self, thing: socket.socket | int) -> None:
        """Do not wait for it any more; nothing happens if it was removed before."""
        if thing in self._meanings:
            del self._meanings[thing]
            if self._selector is not None:
                self._selector.unregister(thing)

    def wait(self, timeout: float | None) -> list[T]:
        """Wait, at most so many seconds; returns what the things that are ready stand for."""
        if self._selector is None:
            return [self._meanings[thing] for thing in wait(list(self._meanings), timeout)]
        return [key.data for key, _ in self._selector.select(timeout)]

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._selector is not None:
            self._selector.close()
