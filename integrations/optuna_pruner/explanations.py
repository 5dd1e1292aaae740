"""Why trials were pruned: a note in each of them, a line in Optuna's log, and a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import optuna
import pandas as pd
from optuna.trial import FrozenTrial

from polarbear_plugins.integrations.optuna_pruner.study_storage import read_reason, write_reason

# A name below Optuna's own, so that its handlers and its verbosity apply.
_logger = optuna.logging.get_logger("optuna.polarbear")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a trial was pruned.

    Attributes
    ----------
    by
        Number of the finished trial that is better.
    probability
        Posterior probability that it is; the least one where several timepoints were seen.
    instances
        The instances that both have reported.
    mean, mean_by
        Mean loss of the two on these instances, in the units of the study, at the last timepoint seen; ``None`` where
        it is not finite.
    """

    by: int
    probability: float
    instances: tuple[int, ...]
    mean: float | None
    mean_by: float | None

    def keep(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Note the reason in the trial, and log it."""
        write_reason(study, trial, {**asdict(self), "instances": list(self.instances)})
        _logger.info(
            f"Trial {trial.number} is pruned: trial {self.by} is better with probability {self.probability:.4f}, on "
            f"{len(self.instances)} instances that both have reported (means {_text(self.mean)} and "
            f"{_text(self.mean_by)})."
        )


def _text(mean: float | None) -> str:
    return "not finite" if mean is None else f"{mean:.6g}"


def explain(study: optuna.Study) -> pd.DataFrame:
    """Why trials of a study were pruned by a :class:`PolarBearPruner`, one row for each.

    The columns are the number of the trial, the ``state`` in which it ended (``COMPLETE`` if its objective returned an
    estimate), ``by``: the finished trial that was better, the ``probability`` of that, the ``instances`` that both had
    reported, and the means of the two there.

    Examples
    --------
    >>> from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(pruner=PolarBearPruner())
    >>> study.add_trial(optuna.trial.create_trial(value=4.5, intermediate_values={i: i for i in range(10)}))
    >>> trial = study.ask()
    >>> for instance in range(10):
    ...     trial.report(instance + 1.0, instance)
    >>> trial.should_prune()
    True
    >>> explain(study)[["by", "mean", "mean_by"]].to_dict("index")
    {1: {'by': 0, 'mean': 5.5, 'mean_by': 4.5}}
    """
    rows: dict[int, Mapping[str, Any]] = {
        trial.number: {"state": trial.state.name, **reason}
        for trial in study.get_trials(deepcopy=False)
        if (reason := read_reason(trial)) is not None
    }
    columns = ["state", "by", "probability", "instances", "mean", "mean_by"]
    index = pd.Index(list(rows), name="trial", dtype="int64")
    return pd.DataFrame(list(rows.values()), columns=columns, index=index)
