from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from types import ModuleType

import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution import local_processes
from polarbear_plugins.execution.local_processes import LocalProcesses, UnsendableError
from polarbear_plugins.execution.worker import RemoteError, UnloadableError
from polarbear_plugins.execution.worker_process import ProcessDiedError, RunEndedError, RunTimeoutError

# Seconds after which a call is ended: enough for one that does nothing, however much else the machine has to do.
PATIENCE = 3.0

# Workers import what they call; test modules are not importable, so this one is written to a file.
CALLS = """
import os
import signal
import time
from pathlib import Path


def hang(marker=None):
    if marker is not None:
        Path(marker).write_text(str(os.getpid()))
    time.sleep(600)


def linger(seconds):
    time.sleep(seconds)
    return os.getpid()


def interrupt_yourself():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    return "still here"


def kill_yourself(number):
    os.kill(os.getpid(), number)
    time.sleep(600)


def kill_the_fork_server():
    server = os.getppid()
    assert b"multiprocessing.forkserver" in Path(f"/proc/{server}/cmdline").read_bytes()
    os.kill(server, signal.SIGKILL)
    return server


def complain(text):
    raise ValueError(text)


def something_unpicklable():
    return lambda: None


class Trap:
    '''Can be pickled, but not unpickled.'''

    def __reduce__(self):
        return explode, ()


def explode():
    raise OSError("no such licence")


def threads():
    return {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
"""

TWO_THAT_HANG = """
import sys
from polarbear_plugins.execution.local_processes import LocalProcesses
import calls

if __name__ == "__main__":
    with LocalProcesses(2) as executor:
        futures = [executor.submit(calls.hang, marker) for marker in sys.argv[1:]]
        [future.result() for future in futures]
"""


@pytest.fixture
def calls(worker_module: Callable[[str, str], ModuleType]) -> ModuleType:
    """Functions for workers."""
    return worker_module("calls", CALLS)


def soon(condition: Callable[[], object]) -> bool:
    """Whether a condition becomes true within 300 seconds."""
    for _ in range(6000):
        if condition():
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_in(marker: Path) -> int:
    assert soon(lambda: marker.exists() and marker.read_text())
    return int(marker.read_text())


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    with LocalProcesses(workers) as executor:
        futures = [executor.submit(math.gcd, 360, number) for number in range(1, 41)]
        assert [future.result() for future in futures] == [math.gcd(360, number) for number in range(1, 41)]


def test_calls_happen_in_other_processes_no_more_than_asked_for() -> None:
    with LocalProcesses(2) as executor:
        pids = {future.result() for future in [executor.submit(os.getpid) for _ in range(30)]}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2


def test_keyword_arguments_arrive() -> None:
    with LocalProcesses(1) as executor:
        assert executor.submit(int, "ff", base=16).result() == 255


def test_map_works_as_for_any_executor() -> None:
    with LocalProcesses(2) as executor:
        assert list(executor.map(abs, [-3, -2, 1])) == [3, 2, 1]


def test_an_exception_says_what_and_where(calls: ModuleType) -> None:
    with LocalProcesses(1) as executor:
        with pytest.raises(RemoteError, match=r"ValueError: not today, calls\.py line \d+"):
            executor.submit(calls.complain, "not today").result()
        assert executor.submit(abs, -1).result() == 1


def test_a_result_that_cannot_be_pickled_is_an_exception(calls: ModuleType) -> None:
    with LocalProcesses(1) as executor:
        with pytest.raises(RemoteError, match="local object"):
            executor.submit(calls.something_unpicklable).result()
        assert executor.submit(abs, -1).result() == 1


@pytest.mark.slow
def test_a_call_that_hangs_is_ended_and_the_others_go_on(calls: ModuleType, tmp_path: Path) -> None:
    with LocalProcesses(2, timeout=PATIENCE) as executor:
        stuck = executor.submit(calls.hang, str(tmp_path / "stuck"))
        others = [executor.submit(abs, -number) for number in range(20)]
        with pytest.raises(RunTimeoutError, match=f"it ran for more than {PATIENCE:g} s and was ended"):
            stuck.result()
        assert [future.result() for future in others] == list(range(20))
        assert executor.submit(abs, -1).result() == 1


@pytest.mark.slow
@needs_proc
def test_the_process_of_a_call_that_hangs_is_gone(calls: ModuleType, tmp_path: Path) -> None:
    with LocalProcesses(1, timeout=PATIENCE) as executor:
        stuck = executor.submit(calls.hang, str(tmp_path / "stuck"))
        with pytest.raises(RunTimeoutError):
            stuck.result()
        assert soon(lambda: not alive(pid_in(tmp_path / "stuck")))


@pytest.mark.slow
def test_the_time_of_a_call_counts_from_its_start(calls: ModuleType) -> None:
    # All of them together take longer than the time limit of one.
    with LocalProcesses(1, timeout=PATIENCE) as executor:
        futures = [executor.submit(calls.linger, 0.3 * PATIENCE) for _ in range(4)]
        assert len({future.result() for future in futures}) == 1


@needs_signals
def test_a_process_that_dies_fails_its_own_call_only(calls: ModuleType) -> None:
    with LocalProcesses(2) as executor:
        before = [executor.submit(abs, -number) for number in range(10)]
        killed = executor.submit(calls.kill_yourself, signal.SIGKILL)
        crashed = executor.submit(calls.kill_yourself, signal.SIGSEGV)
        left = executor.submit(os._exit, 7)
        after = [executor.submit(abs, -number) for number in range(10)]
        assert [future.result() for future in before + after] == [*range(10), *range(10)]
        for future, reason in ((killed, "killed by SIGKILL"), (crashed, "killed by SIGSEGV"), (left, "exit code 7")):
            with pytest.raises(ProcessDiedError, match=rf"its process died \({reason}\)"):
                future.result()


def test_many_dead_processes_are_not_mistaken_for_workers_that_cannot_start() -> None:
    with LocalProcesses(1) as executor:
        for future in [executor.submit(os._exit, 1) for _ in range(5)]:
            with pytest.raises(ProcessDiedError):
                future.result()
        assert executor.submit(abs, -1).result() == 1


def test_what_cannot_be_sent_raises_at_once() -> None:
    with LocalProcesses(1) as executor, pytest.raises(UnsendableError, match="local object"):
        executor.submit(lambda: 1)


def test_what_cannot_be_loaded_says_so(calls: ModuleType) -> None:
    with LocalProcesses(1) as executor:
        with pytest.raises(UnloadableError, match=r"OSError: no such licence.*put it in a module, or race with"):
            executor.submit(repr, calls.Trap()).result()
        assert executor.submit(abs, -1).result() == 1


@needs_proc
def test_shutting_down_at_once_leaves_no_process_and_no_open_call(calls: ModuleType, tmp_path: Path) -> None:
    executor = LocalProcesses(2)
    markers = [tmp_path / "one", tmp_path / "two"]
    stuck = [executor.submit(calls.hang, str(marker)) for marker in markers]
    waiting = [executor.submit(abs, -1) for _ in range(5)]
    pids = [pid_in(marker) for marker in markers]
    executor.shutdown(cancel_futures=True)
    assert all(future.done() for future in stuck + waiting)
    assert not any(alive(pid) for pid in pids)
    assert not [child for child in multiprocessing.active_children() if child.name == "polarbear-worker"]
    for future in stuck:
        with pytest.raises(ProcessDiedError):
            future.result()
    for future in waiting:
        with pytest.raises(CancelledError):
            future.result()


def test_shutting_down_waits_for_what_is_scheduled(calls: ModuleType) -> None:
    executor = LocalProcesses(1)
    futures = [executor.submit(calls.linger, 0.05) for _ in range(4)]
    executor.shutdown()
    assert all(future.done() for future in futures)
    assert all(future.result() for future in futures)


def test_shutting_down_ends_workers_that_disappear_meanwhile() -> None:
    # A worker that is killed may be removed from the list before the loop reaches the next one.
    executor = LocalProcesses(3)

    class Stub:
        def __init__(self) -> None:
            self.killed = False

        def kill(self) -> None:
            self.killed = True
            executor._workers.remove(self)  # type: ignore[arg-type]

    stubs = [Stub() for _ in range(3)]
    executor._workers[:] = stubs  # type: ignore[assignment]
    executor.shutdown(cancel_futures=True)
    assert [stub.killed for stub in stubs] == [True] * 3


def test_no_call_is_accepted_after_shutdown() -> None:
    executor = LocalProcesses(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, -1)


def test_a_cancelled_call_never_begins(calls: ModuleType, tmp_path: Path) -> None:
    with LocalProcesses(1) as executor:
        first = executor.submit(calls.linger, 0.5)
        second = executor.submit(calls.hang, str(tmp_path / "begun"))
        assert second.cancel()
        assert first.result()
        assert executor.submit(abs, -1).result() == 1
    assert not (tmp_path / "begun").exists()


@needs_proc
def test_a_call_can_be_ended_with_its_process_and_no_other_call_is_touched(calls: ModuleType, tmp_path: Path) -> None:
    with LocalProcesses(2) as executor:
        stuck = [executor.submit(calls.hang, str(tmp_path / name)) for name in ("one", "two")]
        waiting = executor.submit(abs, -1)
        pids = [pid_in(tmp_path / name) for name in ("one", "two")]
        assert executor.end({stuck[0]: 1000.0, waiting: 0.0}) == {}  # it has not taken so long, or not begun
        assert list(executor.end({stuck[0]: 0.0})) == [stuck[0]]
        with pytest.raises(RunEndedError, match="not needed any more"):
            stuck[0].result(timeout=60)
        assert waiting.result(timeout=60) == 1
        assert soon(lambda: not alive(pids[0]))
        assert alive(pids[1])
        assert executor.end({stuck[0]: 0.0, waiting: 0.0}) == {}
        assert list(executor.end({stuck[1]: 0.0})) == [stuck[1]]


@needs_signals
def test_workers_ignore_ctrl_c(calls: ModuleType) -> None:
    with LocalProcesses(1) as executor:
        assert executor.submit(calls.interrupt_yourself).result() == "still here"


def test_workers_tell_libraries_to_use_one_thread(calls: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    with LocalProcesses(1) as executor:
        variables = executor.submit(calls.threads).result()
    assert {variables[f"{library}_NUM_THREADS"] for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")} == {"1"}


@needs_proc
@needs_signals
@pytest.mark.usefixtures("calls")
def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(TWO_THAT_HANG)
    markers = [tmp_path / "one", tmp_path / "two"]
    driver = subprocess.Popen([sys.executable, script, *markers])
    try:
        pids = [pid_in(marker) for marker in markers]
        assert all(alive(pid) for pid in pids)
    finally:
        driver.kill()
        driver.wait()
    assert soon(lambda: not any(alive(pid) for pid in pids))


@pytest.mark.parametrize(
    "options",
    [{"workers": -1}, {"workers": 1.5}, {"timeout": "long"}, {"memory": 0}, {"most_calls": 0}, {"most_growth": 0}],
)
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        LocalProcesses(**options)  # type: ignore[arg-type]


def test_what_is_too_large_to_be_sent_raises_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "LARGEST", 100)
    with LocalProcesses(1) as executor, pytest.raises(UnsendableError, match="at most 100 can be sent"):
        executor.submit(len, bytes(200))


def test_a_large_call_and_a_large_answer_arrive() -> None:
    with LocalProcesses(2) as executor:
        futures = [executor.submit(bytes.upper, b"x" * 20_000_000) for _ in range(3)]
        assert all(future.result() == b"X" * 20_000_000 for future in futures)


@needs_proc
@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="has no fork server")
def test_the_loss_of_the_fork_server_costs_nothing(calls: ModuleType) -> None:
    with LocalProcesses(2, most_calls=2) as executor:
        assert executor.submit(calls.kill_the_fork_server).result(timeout=120)
        others = [executor.submit(abs, -number) for number in range(10)]
        assert [future.result(timeout=120) for future in others] == list(range(10))
