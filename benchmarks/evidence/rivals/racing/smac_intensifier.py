"""SMAC's intensifier (the Python package smac) on a given portfolio."""

from __future__ import annotations

import logging
import tempfile
from importlib import metadata

import numpy as np
from ConfigSpace import Categorical, Configuration, ConfigurationSpace
from smac import Scenario
from smac.intensifier import Intensifier
from smac.runhistory import RunHistory

from rivals.contest import Contest, Verdict


def version() -> str:
    """Version of SMAC."""
    return f"smac {metadata.version('smac')}"


def smac_intensifier(contest: Contest, seed: int, *, most: int = 300) -> Verdict:
    """Race challengers, in the order of the portfolio, against an incumbent by their mean final values.

    SMAC expects that ever more configurations come.  Each gives the incumbent one more instance, and is compared with
    it on a growing part of the incumbent's instances until it is worse on average or has taken over.  With the last
    configuration of a given portfolio it ends.  The incumbent is the only survivor, and the choice for every budget.
    """
    logging.getLogger("smac").setLevel(logging.ERROR)  # it warns when the configurations are used up
    final = contest.values[:most, -1]
    names = [f"a{place}" for place in range(final.shape[1])]
    space = ConfigurationSpace({"algorithm": Categorical("algorithm", names)})
    history = RunHistory()
    with tempfile.TemporaryDirectory() as folder:
        instances = [str(place) for place in range(len(final))]
        features = {name: [float(name)] for name in instances}
        scenario = Scenario(
            space,
            output_directory=folder,
            deterministic=True,
            instances=instances,
            instance_features=features,
            n_trials=final.size,
            seed=seed,
        )
        intensifier = Intensifier(scenario, max_config_calls=most, seed=seed)
        intensifier.runhistory = history
        intensifier.config_selector = [Configuration(space, {"algorithm": name}) for name in names]
        trials = 0
        for trial in intensifier:
            place = names.index(trial.config["algorithm"])
            history.add(
                trial.config, float(final[int(trial.instance), place]), instance=trial.instance, seed=trial.seed
            )
            intensifier.update_incumbents(trial.config)
            trials += 1
        incumbent = names.index(intensifier.get_incumbent()["algorithm"])
    kept = np.arange(final.shape[1]) == incumbent
    return Verdict(kept, np.full(len(contest.timepoints), incumbent), trials * float(contest.timepoints[-1]))
