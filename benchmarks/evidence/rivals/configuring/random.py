"""Random search: as many random configurations as there is budget for, each on all instances, and the lowest mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fold_tasks import Task, generator_of

from rivals.configuring.budget import Meter, Picks


def configure(task: Task, seed: int, budgets: Sequence[int]) -> Picks:
    """What random search would take at each budget."""
    rng = generator_of(seed, "random search", task.name)
    meter = Meter(task.draw(seed), max(budgets))
    tried = [task.space.sample(rng) for _ in range(max(budgets) // task.n_folds)]
    means = [np.mean([meter.loss(one, instance) for instance in range(task.n_folds)]) for one in tried]
    return {"random search": {budget: tried[int(np.argmin(means[: budget // task.n_folds]))] for budget in budgets}}
