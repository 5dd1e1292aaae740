"""Ctrl-C in tests; pyproject.toml puts this folder on the path.

A process that is started with SIGINT ignored, by ``nohup ... &`` or ``trap '' INT``, keeps ignoring it, and so do its
children.  The package does not change that: a user who starts a race this way wants it to go on.  But a test that sends
SIGINT must not depend on how pytest was started.
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
