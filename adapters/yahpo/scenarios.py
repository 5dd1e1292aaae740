"""The 14 scenarios of YAHPO Gym: the columns of their surrogates, in order, and the meaning of the targets.

Ranges, choices, conditions and instances are in the data.  The order of the columns is not: yahpo_gym has it in its
code.  A scenario of the user's own has it in the file ``yahpo_scenario_meta.json`` of the data folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polarbear_plugins.errors import SourceError, short

META_FILE = "yahpo_scenario_meta.json"


@dataclass(frozen=True, slots=True)
class Description:
    """What the files of a scenario do not contain.

    Parameters
    ----------
    numbers, categories
        Columns that the surrogate takes, in its order.
    targets
        Columns that it predicts, in its order.
    maximized
        Targets to be maximised.
    target
        The one to optimise by default.
    runtime
        Target that is the time of training, in seconds.
    fidelities
        Columns that are not hyperparameters: they set how much is spent on an evaluation.  The first one is varied,
        the others stay at their upper bound.
    instance_column
        Column that holds the instance; ``None`` if there is only one instance and no column.
    instances
        Names of the instances where they have no column.
    budget
        Full evaluations that the paper gives where they are not what its formula says.
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    targets: tuple[str, ...]
    maximized: frozenset[str]
    target: str
    runtime: str | None
    fidelities: tuple[str, ...]
    instance_column: str | None
    instances: tuple[str, ...] = ()
    budget: int | None = None


_LEARNERS = {
    "aknn": (("k", "M", "ef", "ef_construction"), ("distance",)),
    "glmnet": (("alpha", "s"), ()),
    "rpart": (("cp", "maxdepth", "minbucket", "minsplit"), ()),
    "svm": (("cost", "gamma", "tolerance", "degree"), ("kernel",)),
    "xgboost": (
        (
            *("nrounds", "eta", "gamma", "lambda", "alpha", "subsample", "max_depth", "min_child_weight"),
            *("colsample_bytree", "colsample_bylevel", "rate_drop", "skip_drop"),
        ),
        ("booster",),
    ),
}
_FOREST = ("num.trees", "sample.fraction", "mtry.{}", "min.node.size", "num.random.splits")
_SPLITS = ("respect.unordered.factors", "splitrule")
_RBV2 = {**_LEARNERS, "ranger": (tuple(name.format("power") for name in _FOREST), _SPLITS)}
_IAML = {**_LEARNERS, "ranger": (tuple(name.format("ratio") for name in _FOREST), ("replace", *_SPLITS))}


def _rbv2(numbers: tuple[str, ...], categories: tuple[str, ...]) -> Description:
    return Description(
        numbers=(*numbers, "trainsize", "repl"),
        categories=("task_id", *categories, "num.impute.selected.cpo"),
        targets=("acc", "bac", "auc", "brier", "f1", "logloss", "timetrain", "timepredict", "memory"),
        # yahpo_gym lists f1 among the targets to be minimised, by mistake.
        maximized=frozenset({"acc", "bac", "auc", "f1"}),
        target="acc",
        runtime="timetrain",
        fidelities=("trainsize", "repl"),
        instance_column="task_id",
    )


def _iaml(numbers: tuple[str, ...], categories: tuple[str, ...]) -> Description:
    return Description(
        numbers=(*numbers, "trainsize"),
        categories=("task_id", *categories),
        targets=(
            *("mmce", "f1", "auc", "logloss", "ramtrain", "rammodel", "rampredict", "timetrain", "timepredict"),
            *("mec", "ias", "nf"),
        ),
        maximized=frozenset({"f1", "auc"}),
        target="mmce",
        runtime="timetrain",
        fidelities=("trainsize",),
        instance_column="task_id",
    )


def _super(
    learners: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]], order: tuple[str, ...], choice: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of the scenario that chooses among learners: theirs, with the learner in front."""
    numbers, categories = (
        tuple(f"{learner}.{name}" for learner in order for name in learners[learner][kind]) for kind in (0, 1)
    )
    return numbers, (choice, *categories)


_DARTS = "NetworkSelectorDatasetInfo_COLON_darts_COLON_"

SCENARIOS: Mapping[str, Description] = {
    "lcbench": Description(
        numbers=(
            *("epoch", "batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units"),
            "max_dropout",
        ),
        categories=("OpenML_task_id",),
        targets=(
            *("time", "val_accuracy", "val_cross_entropy", "val_balanced_accuracy", "test_cross_entropy"),
            "test_balanced_accuracy",
        ),
        maximized=frozenset({"val_accuracy", "val_balanced_accuracy", "test_balanced_accuracy"}),
        target="val_accuracy",
        runtime="time",
        fidelities=("epoch",),
        instance_column="OpenML_task_id",
    ),
    "nb301": Description(
        numbers=("epoch",),
        categories=(
            *(f"{_DARTS}edge_{cell}_{edge}" for cell in ("normal", "reduce") for edge in range(14)),
            *(f"{_DARTS}inputs_node_{cell}_{node}" for cell in ("normal", "reduce") for node in (3, 4, 5)),
        ),
        targets=("val_accuracy", "runtime"),
        maximized=frozenset({"val_accuracy"}),
        target="val_accuracy",
        runtime="runtime",
        fidelities=("epoch",),
        instance_column=None,
        instances=("CIFAR10",),
        budget=250,  # Table 3 of the paper; for its 34 parameters the formula says 254
    ),
    **{f"rbv2_{learner}": _rbv2(*columns) for learner, columns in _RBV2.items()},
    "rbv2_super": _rbv2(*_super(_RBV2, ("svm", "glmnet", "rpart", "ranger", "aknn", "xgboost"), "learner_id")),
    **{f"iaml_{learner}": _iaml(*columns) for learner, columns in _IAML.items() if learner not in {"aknn", "svm"}},
    "iaml_super": _iaml(*_super(_IAML, ("ranger", "rpart", "glmnet", "xgboost"), "learner")),
}


def read_description(meta: Mapping[str, Any], place: str) -> Description:
    """Description of a scenario of the user's own, from its entry in the file ``yahpo_scenario_meta.json``.

    :raises SourceError: something is missing in the entry, or is not a list of names.
    """
    lists = {}
    for key in ("cont_names", "cat_names", "y_names", "fidelity_params"):
        found = meta.get(key)
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise SourceError(f"{place}: expected names under {key!r}, got {short(found)}.")
        if len(set(found)) < len(found):
            raise SourceError(f"{place}: expected each name once under {key!r}, got {short(found)}.")
        lists[key] = tuple(found)
    targets, directions = lists["y_names"], meta.get("y_minimize")
    if not targets or not isinstance(directions, list) or len(directions) != len(targets):
        raise SourceError(f"{place}: expected true or false for each of the {len(targets)} targets under 'y_minimize'.")
    if not lists["fidelity_params"]:
        raise SourceError(f"{place}: expected at least one fidelity under 'fidelity_params'.")
    unknown = [name for name in lists["fidelity_params"] if name not in lists["cont_names"]]
    if unknown:
        raise SourceError(f"{place}: the fidelity {short(unknown[0])} is not among the columns under 'cont_names'.")
    column, runtime = meta.get("instance_names"), meta.get("runtime_name")
    instances = meta.get("instances") or []
    if not all(name is None or isinstance(name, str) for name in (column, runtime)):
        raise SourceError(f"{place}: expected names of columns under 'instance_names' and 'runtime_name'.")
    if column is not None and column not in lists["cat_names"]:
        raise SourceError(f"{place}: the instance {short(column)} is not among the columns under 'cat_names'.")
    if column is None and not (isinstance(instances, list) and instances):
        raise SourceError(f"{place}: expected the column of the instance under 'instance_names', or 'instances'.")
    return Description(
        numbers=lists["cont_names"],
        categories=lists["cat_names"],
        targets=targets,
        maximized=frozenset(name for name, minimize in zip(targets, directions, strict=True) if not minimize),
        target=next((name for name in targets if name != runtime), targets[0]),
        runtime=runtime if runtime in targets else None,
        fidelities=lists["fidelity_params"],
        instance_column=column,
        instances=tuple(map(str, instances)) if column is None else (),
    )
