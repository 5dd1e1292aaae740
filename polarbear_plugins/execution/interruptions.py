"""What ctrl-C must not end: bringing to safety what a race has found."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def undisturbed(really: bool = True) -> Iterator[None]:
    """Ignore ctrl-C for a short while; in other threads than the first it never comes.

    >>> with undisturbed():
    ...     signal.raise_signal(signal.SIGINT)
    """
    if not really or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
