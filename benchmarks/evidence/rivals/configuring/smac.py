"""SMAC3 as algorithm configurator: its facade of that name, by ask and tell; instances are known by their places."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from fold_tasks import Parameters, Task

from polarbear_plugins.integrations.smac_portfolio import _optimizer, decode, encode_space
from rivals.configuring.budget import Meter, Picks, RivalMissingError


def configure(task: Task, seed: int, budgets: Sequence[int]) -> Picks:
    """SMAC's incumbent at each budget: one run, since nothing in it depends on the number of trials to come."""
    if find_spec("smac") is None:
        raise RivalMissingError("SMAC3 is not installed: pip install smac")
    import joblib

    meter = Meter(task.draw(seed), max(budgets))
    picks: dict[int, Parameters | None] = {}
    with (
        tempfile.TemporaryDirectory(prefix="configuring-smac-") as folder,
        joblib.parallel_config("sequential"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        optimizer = _make_optimizer(task, seed, max(budgets), folder)
        for budget in sorted(budgets):
            _spend(optimizer, task, meter, budget)
            incumbents = optimizer.intensifier.get_incumbents(sort_by="cost")
            picks[budget] = decode(incumbents[0], task.space)
    return {"SMAC3": picks}


def _make_optimizer(task: Task, seed: int, budget: int, folder: str) -> Any:
    import smac

    instances = [str(place) for place in range(task.n_folds)]
    scenario = smac.Scenario(
        encode_space(task.space),
        n_trials=budget,
        instances=instances,
        instance_features={name: [float(name)] for name in instances},  # without better ones SMAC advises these
        deterministic=True,
        seed=seed,
        output_directory=folder,
    )
    return _optimizer(smac.AlgorithmConfigurationFacade, scenario)


def _spend(optimizer: Any, task: Task, meter: Meter, budget: int) -> None:
    """Run trials until the budget is spent; SMAC ends early if it finds no new configuration."""
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory import TrialValue

    while meter.spent < budget:
        try:
            trial = optimizer.ask()
        except (StopIteration, ConfigurationSpaceExhaustedException):
            print(f"SMAC3 ends by itself on {task.name}, after {meter.spent} evaluations", file=sys.stderr, flush=True)
            return
        loss = meter.loss(decode(trial.config, task.space), int(trial.instance))
        optimizer.tell(trial, TrialValue(cost=loss), save=False)
