"""Runs that later rounds will probably ask for, so that a free worker need not wait for the end of a round.

They decide nothing: a round rests on the runs of its plan, whatever has finished besides.  So any order of them gives
the same answer, and a good one wastes fewer runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from polarbear_plugins.racing.rules import catch_up, last_unresolved, next_batch
from polarbear_plugins.racing.state import Order, RaceState

# How far ahead, in batches of the largest size, beside as many instances again as there are.  With one, 64 workers have
# nothing to do for a tenth of the time if runs of the same algorithm differ by a factor of 30, too; more cost more and
# gain next to nothing, and a run that hangs must not start thousands.
_BATCHES = 2


def ahead(
    state: RaceState,
    planned: Collection[Order],
    available: int | None = None,
    is_finished: Callable[[Order], bool] = lambda _: False,
) -> Iterator[Order]:
    """Runs after those of the plan, the most urgent first: what newcomers have missed, then instance by instance.

    What comes after the next round is worth running only while a run of that or of the plan is not finished: once all
    are, the race does not wait for runs but for its inference.

    Parameters
    ----------
    planned
        The runs of the current round.
    available
        Number of instances in all; ``None`` if unlimited.
    is_finished
        Whether a run has finished.
    """
    limit = state.settings.max_rounds
    rounds_left = None if limit is None else limit - len(state.rounds) - 1
    if rounds_left is not None and rounds_left <= 0:
        return
    taken = {(order.algorithm, order.instance) for order in planned}
    awaited = list(planned)

    def waits() -> bool:
        while awaited and is_finished(awaited[-1]):
            awaited.pop()
        return bool(awaited)

    for order in catch_up(state, None):
        if (order.algorithm, order.instance) not in taken:
            awaited.append(order)
            yield order
    if state.stored:  # newcomers meet stored rivals on the instances of the archive, and on no others
        return
    until = {name: float(state.timepoints[place]) for name, place in last_unresolved(state).items()}
    first = max((order.instance + 1 for order in planned), default=0)
    first = max(first, len(state.table.instances))
    last = 2 * first + _BATCHES * state.settings.batch_max
    last = last if available is None else min(last, available)
    last = last if rounds_left is None else _reach(state, first, rounds_left, last)
    near = _reach(state, first, 1, last)
    for place in range(first, last):
        for name, time in until.items():
            order = Order(name, place, time)
            if place < near:
                awaited.append(order)
            elif not waits():
                return
            yield order


def _reach(state: RaceState, first: int, rounds: int, most: int) -> int:
    """How many instances, up to ``most``, so many rounds after this one reach: most if nothing is settled."""
    batch, reached = state.batch, first
    for _ in range(rounds):
        if reached >= most:
            return most
        batch = int(next_batch(batch, 1, 1, reached, state.settings))
        reached += batch
    return min(reached, most)
