"""The clock of the other scripts."""

import time
from collections.abc import Callable


def seconds(action: Callable[[], object], repetitions: int, clock: Callable[[], float] = time.process_time) -> float:
    """Least processor time of an action, or what another clock says."""
    times = []
    for _ in range(repetitions):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)
