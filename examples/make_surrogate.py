"""Make a tiny surrogate in the layout of yahpo_data, for tests, first steps, and as a pattern for one of your own.

    python examples/make_surrogate.py FOLDER

It has the columns, ranges, conditions and targets of a scenario of YAHPO Gym and three instances, but a smooth function
of a few lines instead of a network: losses are a weighted sum of squared distances to an optimum that depends on the
instance, and fall with the fidelity; accuracies and times rise likewise.  It says nothing about machine learning.

Needs: pip install onnx
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INSTANCES = ("101", "102", "103")
#: Targets that rise towards the optimum and with the fidelity; the others fall.
RISING = ("acc", "bac", "auc", "f1", "time", "val_accuracy", "val_balanced", "test_balanced")
#: No sum is larger: the bound of the targets in the statistics.
WORST = 16.0


def number(name: str, lower: float, upper: float, log: bool = False) -> dict[str, Any]:
    """Describe a parameter that is a number; whole if its bounds are."""
    kind = "uniform_int" if isinstance(lower, int) else "uniform_float"
    return {"name": name, "type": kind, "log": log, "lower": lower, "upper": upper, "default": lower}


def choice(name: str, *choices: str) -> dict[str, Any]:
    """Describe a parameter with choices."""
    return {"name": name, "type": "categorical", "choices": list(choices), "default": choices[0], "probabilities": None}


#: Parameters and conditions of the scenarios that can be made, and the order of their columns.
SPACES: Mapping[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[str], list[str], list[str]]] = {
    "lcbench": (
        [
            choice("OpenML_task_id", *INSTANCES),
            number("batch_size", 16, 512, log=True),
            number("epoch", 1, 52),
            number("learning_rate", 1e-4, 0.1, log=True),
            number("max_dropout", 0.0, 1.0),
            number("max_units", 64, 1024, log=True),
            number("momentum", 0.1, 0.99),
            number("num_layers", 1, 5),
            number("weight_decay", 1e-5, 0.1),
        ],
        [],
        [
            *("epoch", "batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units"),
            "max_dropout",
        ],
        ["OpenML_task_id"],
        [
            *("time", "val_accuracy", "val_cross_entropy", "val_balanced_accuracy", "test_cross_entropy"),
            "test_balanced_accuracy",
        ],
    ),
    "rbv2_svm": (
        [
            number("cost", 1e-4, 1e4, log=True),
            choice("kernel", "linear", "polynomial", "radial"),
            choice("num.impute.selected.cpo", "impute.mean", "impute.median", "impute.hist"),
            number("repl", 1, 10),
            choice("task_id", *INSTANCES),
            number("tolerance", 1e-4, 2.0, log=True),
            number("trainsize", 0.03, 1.0),
            number("degree", 2, 5),
            number("gamma", 1e-4, 1e4, log=True),
        ],
        [
            {"child": "degree", "parent": "kernel", "type": "EQ", "value": "polynomial"},
            {"child": "gamma", "parent": "kernel", "type": "IN", "values": ["radial"]},
        ],
        ["cost", "gamma", "tolerance", "degree", "trainsize", "repl"],
        ["task_id", "kernel", "num.impute.selected.cpo"],
        ["acc", "bac", "auc", "brier", "f1", "logloss", "timetrain", "timepredict", "memory"],
    ),
}


def build(folder: Path, scenario: str = "lcbench", seed: int = 0) -> Path:
    """Write config_space.json, encoding.json and model.onnx of a scenario, and the statistics; return the folder."""
    parameters, conditions, numbers, categories, targets = SPACES[scenario]
    place = folder / scenario
    place.mkdir(parents=True, exist_ok=True)
    space = {"hyperparameters": parameters, "conditions": conditions, "forbiddens": []}
    (place / "config_space.json").write_text(json.dumps(space, indent=2))
    by_name = {entry["name"]: entry for entry in parameters}
    encoding = {
        name: {value: code for code, value in enumerate(["#na#", *sorted(by_name[name]["choices"])])}
        for name in categories
    }
    (place / "encoding.json").write_text(json.dumps(encoding))
    onnx.save(_model([by_name[name] for name in numbers], encoding, targets, seed), place / "model.onnx")
    _write_statistics(folder, scenario, targets)
    return folder


def _model(numbers: list[dict[str, Any]], encoding: dict[str, dict[str, int]], targets: list[str], seed: int) -> Any:
    """Distance of the scaled numbers to an optimum that the first category moves, plus an effect of each other one."""
    rng = np.random.default_rng(seed)
    lower, upper = (np.array([entry[key] for entry in numbers], np.float32) for key in ("lower", "upper"))
    first, *others = encoding.values()
    rising = np.array([name.startswith(RISING) for name in targets])
    constants = {
        "lower": lower,
        "span": upper - lower,
        "optima": rng.uniform(0.1, 0.9, (len(first), len(numbers))).astype(np.float32),
        "weights": rng.uniform(0.5, 2.0, (len(numbers), len(targets))).astype(np.float32),
        "zero": np.array(0, np.int64),
        "sign": np.where(rising, -1, 1).astype(np.float32),
        "offset": np.where(rising, WORST, 0).astype(np.float32),
    }
    # More of a fidelity is better: its optimum lies at the upper bound.
    for column, entry in enumerate(numbers):
        if entry["name"] in ("epoch", "trainsize", "repl"):
            constants["optima"][:, column] = 1.0
    nodes = [
        helper.make_node("Sub", ["x_cont", "lower"], ["above"]),
        helper.make_node("Div", ["above", "span"], ["scaled"]),
        helper.make_node("Gather", ["x_cat", "zero"], ["first"], axis=1),
        helper.make_node("Gather", ["optima", "first"], ["optimum"], axis=0),
        helper.make_node("Sub", ["scaled", "optimum"], ["away"]),
        helper.make_node("Mul", ["away", "away"], ["squares"]),
        helper.make_node("MatMul", ["squares", "weights"], ["sum0"]),
    ]
    for place, codes in enumerate(others, start=1):
        constants[f"place{place}"] = np.array(place, np.int64)
        constants[f"effects{place}"] = rng.uniform(0, 0.3, (len(codes), len(targets))).astype(np.float32)
        nodes += [
            helper.make_node("Gather", ["x_cat", f"place{place}"], [f"codes{place}"], axis=1),
            helper.make_node("Gather", [f"effects{place}", f"codes{place}"], [f"effect{place}"], axis=0),
            helper.make_node("Add", [f"sum{place - 1}", f"effect{place}"], [f"sum{place}"]),
        ]
    nodes += [
        helper.make_node("Mul", [f"sum{len(others)}", "sign"], ["signed"]),
        helper.make_node("Add", ["signed", "offset"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("x_cat", TensorProto.INT32, ["batch_size", len(encoding)]),
            helper.make_tensor_value_info("x_cont", TensorProto.FLOAT, ["batch_size", len(numbers)]),
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch_size", len(targets)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _write_statistics(folder: Path, scenario: str, targets: list[str]) -> None:
    """Append bounds of every target on every instance."""
    path = folder / "global_statistics" / "instance_target_statistics.csv"
    path.parent.mkdir(exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.writer(file)
        if new:
            rows.writerow(["metric", "statistic", "value", "scenario", "instance"])
        for instance in INSTANCES:
            for target in targets:
                rows.writerow([target, "min", 0.0, scenario, instance])
                rows.writerow([target, "max", WORST, scenario, instance])


def main() -> None:
    """Make both scenarios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for scenario in SPACES:
        build(folder, scenario)
    print(f"made {', '.join(SPACES)} in {folder}; say --data {folder} or YAHPO_DATA={folder}")


if __name__ == "__main__":
    main()
