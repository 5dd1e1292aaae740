"""The race's side of a worker: its process, and the call that it is performing."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from polarbear_plugins.errors import PolarBearError, describe_exception
from polarbear_plugins.execution.channel import GarbledError, channel_pair
from polarbear_plugins.execution.memory import MEGABYTE, used_bytes
from polarbear_plugins.execution.starting import start_process
from polarbear_plugins.execution.worker import STATE, RemoteError, end_group, serve, unpickle

MEMORY_CHECKS = 0.2  #: seconds between checks of the memory of a call
_EXIT_SECONDS = 1.0  # for a process to exit after it has closed its connection


class ProcessDiedError(PolarBearError):
    """The process of a call ended before the call did."""


class RunTimeoutError(PolarBearError, TimeoutError):
    """A call took longer than allowed, and its process was ended."""


class RunEndedError(PolarBearError):
    """A call was ended because nobody needs its result any more."""


class RunMemoryError(PolarBearError, MemoryError):
    """A call used more memory than allowed, and its process was ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a call, and of the life of a process.

    Attributes
    ----------
    timeout
        Seconds that a call may take; ``None`` for any number.
    memory
        Megabytes that a call may use; ``None`` for any number.
    most_calls
        Calls after which a process is replaced by a new one.
    most_growth
        Megabytes that a process may have grown since its first call; one that has grown more is replaced.
    """

    timeout: float | None
    memory: float | None
    most_calls: int
    most_growth: float


class WorkerProcess:
    """A process, and the call that it is performing.

    Only one thread may use it, except for :meth:`end` and :meth:`kill`.
    """

    def __init__(self, context: Any, with_main: bool, limits: Limits, core: int | None = None) -> None:
        self.channel, theirs = channel_pair()
        self.ready = False
        self.gone = False
        self.sending = False
        self.deadline: float | None = None
        self.began = 0.0
        self.core = core
        self._limits = limits
        self._future: Future[Any] | None = None
        self._ended = False
        self._calls, self._first_size, self._size = 0, 0, 0
        self._worn = False
        self._used_before, self._next_check = 0, 0.0
        try:
            self.process = start_process(context, serve, (theirs.end, theirs.secret, core), with_main)
        except BaseException:
            self.channel.close()
            raise
        finally:
            theirs.close()  # so that ours reports the end of the process
        self._leader: int | None = self.process.pid  # of its process group
        #: Ready when the process has ended, which the connection may not tell: a child of it may keep that open.
        self.sentinel: int = self.process.sentinel

    @property
    def idle(self) -> bool:
        """Whether it can accept a call."""
        return self.ready and not self.gone and self._future is None

    @property
    def call(self) -> Future[Any] | None:
        """The call that it is performing."""
        return self._future

    @property
    def busy(self) -> bool:
        """Whether it is performing a call."""
        return self._future is not None

    @property
    def worn(self) -> bool:
        """Whether it should be replaced: it has performed many calls, has grown, or was changed by one for good."""
        grown = self._size - self._first_size > self._limits.most_growth * MEGABYTE
        return self._worn or grown or self._calls >= self._limits.most_calls

    def begin(self, future: Future[Any], message: bytes) -> None:
        """Begin a call, unless it was cancelled."""
        if not future.set_running_or_notify_cancel():
            return
        self._future, self.began = future, time.monotonic()
        if self._limits.memory is not None:
            self._used_before = self._used(0)
            self._next_check = time.monotonic() + MEMORY_CHECKS
        self.deadline = None if self._limits.timeout is None else self.began + self._limits.timeout
        self.channel.begin_send(message)
        self.send_more()

    def send_more(self) -> None:
        """Go on sending the call."""
        try:
            self.sending = self.channel.send_more()
        except OSError:
            self.gone, self.sending = True, False

    def receive(self, ended: bool) -> None:
        """Handle everything that the process has sent, also if its sentinel says that it has ended."""
        try:
            ended = ended and not _process_exists(self._leader)  # its sentinel is ready also if the fork server died
            for message in () if self.gone else self.channel.received():
                if not self.ready:
                    self.ready = True
                    continue
                self._handle_answer(message)
            self.gone = self.gone or ended
        except GarbledError as problem:
            self.fail(ProcessDiedError(f"its process sent something else than an answer and was ended ({problem})"))
            self.kill()
        except (EOFError, OSError):
            self.gone = True

    def _handle_answer(self, message: bytes) -> None:
        self._size, unchanged = STATE.unpack_from(message)
        self._worn = not unchanged
        self._calls += 1
        if self._calls == 1:  # by now it has imported what its calls need
            self._first_size = self._size
        try:
            problem, answer = unpickle(message[STATE.size :])
        except Exception as reason:  # unpickling runs the user's code, which may raise anything
            problem, answer = RemoteError, f"its answer cannot be read ({describe_exception(reason)})"
        future, self._future, self.deadline = self._future, None, None
        if future is not None:
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem(answer))

    def check_limits(self) -> None:
        """End a call that takes too long or uses too much memory."""
        limits = self._limits
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.fail(RunTimeoutError(f"it ran for more than {limits.timeout:g} s and was ended"))
            self.kill()
        elif self.busy and limits.memory is not None and time.monotonic() > self._next_check:
            self._next_check = time.monotonic() + MEMORY_CHECKS
            most = limits.memory * MEGABYTE + self._used_before
            if self._used(most) > most:
                self.fail(RunMemoryError(f"it used more than {limits.memory:g} MB of memory and was ended"))
                self.kill()

    def _used(self, most: float) -> int:
        return 0 if self._leader is None else used_bytes(self._leader, most)

    def fail(self, problem: Exception) -> None:
        """End the call with an error, if there is one."""
        future, self._future, self.deadline = self._future, None, None
        if future is not None:
            future.set_exception(RunEndedError("it was not needed any more and was ended") if self._ended else problem)

    def end(self) -> None:
        """Kill the process because nobody needs the result of its call any more."""
        self._ended = True
        self.kill()

    def kill(self) -> None:
        """Kill the process and those that it has started."""
        self.gone = True
        end_group(self._leader)
        with contextlib.suppress(OSError, ValueError):
            self.process.kill()

    def stop(self) -> int | None:
        """End the process and return its exit code."""
        self.channel.close()
        if self.gone:  # either it has exited, or a call has closed the connection and is still running
            self.process.join(_EXIT_SECONDS)
        self.kill()
        self.process.join()
        code: int | None = self.process.exitcode
        self.process.close()
        return code


def _process_exists(pid: int | None) -> bool:
    if pid is None or sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
