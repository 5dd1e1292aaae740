"""Protection from ctrl-C while a race saves its results."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ignore_sigint(enabled: bool = True) -> Iterator[None]:
    """Ignore ctrl-C inside the block; does nothing outside the main thread, which alone receives signals.

    >>> with ignore_sigint():
    ...     signal.raise_signal(signal.SIGINT)
    """
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        # None stands for a handler that was not installed from Python and cannot be restored.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
