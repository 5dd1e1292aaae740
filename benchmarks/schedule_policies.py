"""Other answers to the question which run comes next, to be compared with that of the package."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from schedule_replays import Policy, Setup, default_policy

from polarbear_plugins.racing.state import Order, RaceState

_WINDOW = 500  # runs that are put in order at once
#: Given a run, which batch after the plan it belongs to, the probability that its algorithm is dominated, and the mean
#: seconds of its algorithm: what to sort by, or whether to begin it at all.
Key: TypeAlias = Callable[[Order, int, float, float], object]


def reordered(key: Key | None = None, keep: Key | None = None) -> Policy:
    """The runs of the package in another order, or only some of them."""

    def policy(
        state: RaceState, planned: Iterable[Order], available: int, seconds: Mapping[str, float]
    ) -> Iterator[Order]:
        dominated = {name: p for name, (_, p) in state.rounds[-1].rivals.items()} if state.rounds else {}
        later = default_policy(state, planned, available, seconds)
        first: int | None = None
        while window := list(itertools.islice(later, _WINDOW)):
            first = window[0].instance if first is None else first
            seen = [
                (order, (order.instance - first) // state.batch, dominated.get(order.algorithm, 0.0), takes)
                for order in window
                for takes in (seconds.get(order.algorithm, 0.0) * order.until,)
            ]
            kept = [one for one in seen if keep is None or keep(*one)]
            if key is not None:
                kept.sort(key=lambda one: key(*one))  # type: ignore[arg-type, return-value]
            yield from (order for order, *_ in kept)

    return policy


def setups(rule: Setup) -> dict[str, Setup]:
    """What is compared with the rule of the package, which is the first."""
    policies: dict[str, Policy] = {
        "by batch, least likely dominated first": reordered(lambda _, batch, p, __: (batch, p)),
        "least likely dominated first": reordered(lambda _, batch, p, __: (p, batch)),
        "P(dominated) >= 0.5 last": reordered(lambda _, __, p, ___: p >= 0.5),
        "P(dominated) >= 0.9 last": reordered(lambda _, __, p, ___: p >= 0.9),
        "P(dominated) >= 0.5 never": reordered(keep=lambda _, __, p, ___: p < 0.5),
        "P(dominated) >= 0.9 never": reordered(keep=lambda _, __, p, ___: p < 0.9),
        "by batch, longest first": reordered(lambda _, batch, __, takes: (batch, -takes)),
        "by batch, P >= 0.9 last, longest first": reordered(lambda _, batch, p, takes: (p >= 0.9, batch, -takes)),
        "longest first": reordered(lambda _, batch, __, takes: (-takes, batch)),
        "by batch, shortest first": reordered(lambda _, batch, __, takes: (batch, takes)),
        "by batch, shortest horizon first": reordered(lambda order, batch, *_: (batch, order.until)),
        "shortest horizon first": reordered(lambda order, batch, *_: (order.until, batch)),
        "algorithm by algorithm": reordered(lambda order, *_: order.algorithm),
        "at most 1 batch ahead": reordered(keep=lambda _, batch, *__: batch < 1),
        "at most 2 batches ahead": reordered(keep=lambda _, batch, *__: batch < 2),
        "at most 4 batches ahead": reordered(keep=lambda _, batch, *__: batch < 4),
    }
    return {
        "instance by instance (the rule)": rule,
        "plan in its own order": replace(rule, long_first=False),
        "runs of the eliminated finish": replace(rule, ends=False),
        **{name: replace(rule, policy=policy) for name, policy in policies.items()},
    }
