"""What a run may change in its process, undone after it, so that the next run does not notice."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

if sys.platform != "win32":
    import resource

    _LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}

# Those that a run may handle; looking at all of them would take longer than many a run.
_SIGNALS = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGALRM", "SIGCHLD") if hasattr(signal, name)
]


@dataclass
class Restored:
    """Whether everything could be undone."""

    complete: bool = True


@contextlib.contextmanager
def restore_process_state() -> Iterator[Restored]:
    """End a child that the block has forked; restore the folder, signal handlers, a timer and resource limits."""
    process, restored = os.getpid(), Restored()
    try:
        folder = os.getcwd()  # noqa: PTH109 - a string, passed to chdir unchanged
    except OSError:  # it was removed
        folder = None
    handlers, timer, limits = _handlers(), _timer(), _limits()
    try:
        yield restored
    finally:
        if os.getpid() != process:
            os._exit(1)
        if folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(folder)
        if not timer and _timer():  # an alarm that was set and not stopped would end another run
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in _handlers().items():
            before = handlers.get(number)
            if before is not None and handler is not before:  # None: it was not installed from Python
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, before)
        restored.complete = _restore_limits(limits)


def _handlers() -> Mapping[int, Any]:
    """Signal handlers; none outside the main thread, which alone may change them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in _SIGNALS}


def _timer() -> float:
    """Seconds until SIGALRM; 0 for never."""
    return signal.getitimer(signal.ITIMER_REAL)[0] if hasattr(signal, "getitimer") else 0.0


def _limits() -> Mapping[str, tuple[int, int]]:
    return {} if sys.platform == "win32" else {name: resource.getrlimit(kind) for name, kind in _LIMITS.items()}


def _restore_limits(before: Mapping[str, tuple[int, int]]) -> bool:
    """Whether the limits are as before; a hard limit that was lowered stays so, unless for root."""
    now = _limits()
    if now == before:
        return True
    for name, limits in before.items():
        if limits != now[name]:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(_LIMITS[name], limits)
    return _limits() == before
