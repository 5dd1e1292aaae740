"""Ctrl-C in tests; pyproject.toml puts this folder on the path.

A process that was started with SIGINT ignored, by ``nohup ... &`` or ``trap '' INT``, ignores it for good, and hands
that on to its children.  The package leaves it at that: who starts a race so wants it to go on.  A test that sends
SIGINT must not depend on who started pytest.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ctrl_c_allowed() -> Iterator[None]:
    """Let SIGINT interrupt this process and the children it starts meanwhile, as at a terminal.

    A child inherits the default action, because a handler does not outlive ``exec``.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
