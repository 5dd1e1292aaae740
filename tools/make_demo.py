"""Make the small surrogate of ``yahpo:demo``, which the package contains, in the layout of yahpo_data.

    python tools/make_demo.py adapters/yahpo/demo_data

It looks like tuning a network on 24 datasets and is a formula of a few lines: the accuracy falls with the distance
to an optimum that each dataset has for itself, ripples a little, and rises with the epochs, the slower the smaller the
learning rate is; time grows with the size of the network.  It says nothing about machine learning.

Needs: pip install onnx onnxruntime
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INSTANCES = tuple(f"d{number:02d}" for number in range(1, 25))
TARGETS = ("val_accuracy", "time")
#: Name, lower and upper bound, log scale; whole if the bounds are.
NUMBERS: tuple[tuple[str, float, float, bool], ...] = (
    ("epoch", 1, 50, False),
    ("learning_rate", 1e-4, 1.0, True),
    ("layers", 1, 6, False),
    ("units", 16, 512, True),
    ("dropout", 0.0, 0.8, False),
    ("momentum", 0.0, 0.99, False),
)
CHOICES = {"dataset": INSTANCES, "optimizer": ("adam", "sgd")}
EPOCH, MOMENTUM = 0, 5


def space() -> dict[str, Any]:
    """Describe the parameters, as config_space.json does."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "type": "categorical", "choices": list(choices), "default": choices[0], "probabilities": None}
        for name, choices in CHOICES.items()
    ]
    for name, lower, upper, log in NUMBERS:
        kind = "uniform_int" if isinstance(lower, int) else "uniform_float"
        parameters.append({"name": name, "type": kind, "log": log, "lower": lower, "upper": upper, "default": lower})
    condition = {"child": "momentum", "parent": "optimizer", "type": "EQ", "value": "sgd"}
    return {"hyperparameters": parameters, "conditions": [condition], "forbiddens": []}


def constants(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """The numbers of the formula; the first row of each table is for a category that is not active."""
    rng = np.random.default_rng(seed)
    rows = len(INSTANCES) + 1
    log = np.array([entry[3] for entry in NUMBERS])
    lower, upper = (np.array([entry[place] for entry in NUMBERS], float) for place in (1, 2))
    low = np.where(log, np.log(np.where(log, lower, 1)), lower)
    high = np.where(log, np.log(np.where(log, upper, 1)), upper)
    weights = rng.uniform(0.3, 3.0, (rows, len(NUMBERS)))
    weights[:, EPOCH] = 0
    weights[:, MOMENTUM] = rng.uniform(0.1, 0.5, rows)
    made = {
        "least": np.where(log, lower, 1),  # others have no logarithm, and it does not count
        "low": low,
        "span": high - low,
        "log": log.astype(float),
        "linear": (~log).astype(float),
        "optima": rng.uniform(0.15, 0.85, (rows, len(NUMBERS))),
        "weights": weights,
        "waves": np.where(np.arange(len(NUMBERS)) == EPOCH, 0, rng.uniform(6, 14, (rows, len(NUMBERS)))),
        "best": rng.uniform(75, 98, (rows, 1)),
        "spread": rng.uniform(20, 45, (rows, 1)),
        "slow": rng.uniform(10, 30, (rows, 1)),
        "optimizers": np.array([[0.0], [0.0], [1.5]]),
        "seconds": rng.uniform(0.2, 2.0, (rows, 1)),
        "slower": np.array([[1.0], [1.3], [1.0]]),
        "ripple": np.array(0.6),
        "minus": np.array(-1.0),
        "haste": np.array(-12.0 / 50),
        "epoch_column": np.eye(len(NUMBERS))[:, [EPOCH]],
        "rate_column": np.eye(len(NUMBERS))[:, [1]],
        "sluggish": np.array(0.2),
        "layers_column": np.eye(len(NUMBERS))[:, [2]],
        "units_column": np.eye(len(NUMBERS))[:, [3]] / 512,
        "ones": np.ones((len(NUMBERS), 1)),
    }
    return {name: np.asarray(value, np.float32) for name, value in made.items()}


def nodes() -> list[Any]:
    """The formula, step by step."""
    steps = """
        Max x_cont least -> inside | Log inside -> logs | Mul logs log -> logged | Mul x_cont linear -> straight
        Add logged straight -> placed | Sub placed low -> above | Div above span -> scaled
        Sub scaled optimum -> away | Mul away away -> squares | Mul squares weight -> weighted
        MatMul weighted ones -> distance | Mul distance minus -> closeness | Exp closeness -> hit
        Mul away wave -> phases | Cos phases -> ripples | MatMul ripples ones -> rippled | Mul rippled ripple -> relief
        MatMul x_cont epoch_column -> epochs | MatMul scaled rate_column -> speed | Add speed sluggish -> pushed
        Mul epochs pushed -> steps | Mul steps haste -> rate | Exp rate -> untrained
        Mul hit spread_of -> gained | Sub best_of spread_of -> worst | Add worst gained -> level
        Mul untrained slow_of -> missing | Sub level missing -> trained | Add trained relief -> rough
        Sub rough optimizer_of -> accuracy
        MatMul x_cont layers_column -> layers | MatMul x_cont units_column -> units | Mul layers units -> size
        Add size seconds_of -> pace | Mul pace epochs -> duration | Mul duration slower_of -> time
    """
    gathered = []
    for place, names in enumerate(
        (
            {"optima": "optimum", "weights": "weight", "waves": "wave", "best": "best_of", "spread": "spread_of"}
            | {"slow": "slow_of", "seconds": "seconds_of"},
            {"optimizers": "optimizer_of", "slower": "slower_of"},
        )
    ):
        gathered.append(helper.make_node("Gather", ["x_cat", f"place{place}"], [f"code{place}"], axis=1))
        gathered += [helper.make_node("Gather", [table, f"code{place}"], [row], axis=0) for table, row in names.items()]
    computed = []
    for step in steps.replace("\n", "|").split("|"):
        if step.strip():
            inputs, _, output = step.partition("->")
            operator, *names = inputs.split()
            computed.append(helper.make_node(operator, names, [output.strip()]))
    return [*gathered, *computed, helper.make_node("Concat", ["accuracy", "time"], ["output"], axis=1)]


def model(seed: int) -> Any:
    """The formula as a model."""
    given = [numpy_helper.from_array(value, name) for name, value in constants(seed).items()]
    given += [numpy_helper.from_array(np.array(place, np.int64), f"place{place}") for place in (0, 1)]
    graph = helper.make_graph(
        nodes(),
        "demo",
        [
            helper.make_tensor_value_info("x_cat", TensorProto.INT32, ["batch_size", len(CHOICES)]),
            helper.make_tensor_value_info("x_cont", TensorProto.FLOAT, ["batch_size", len(NUMBERS)]),
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch_size", len(TARGETS)])],
        given,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def bounds(made: Any, draws: int = 20_000) -> dict[tuple[str, str], tuple[float, float]]:
    """Least and greatest value of each target on each instance among random configurations, and a little more."""
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    share = rng.random((draws, len(NUMBERS)))
    lower, upper = (np.array([entry[place] for entry in NUMBERS]) for place in (1, 2))
    log = np.array([entry[3] for entry in NUMBERS])
    safe = np.where(log, lower, 1)
    numbers = np.where(log, safe * (upper / safe) ** share, lower + share * (upper - lower))
    whole = [isinstance(entry[1], int) for entry in NUMBERS]
    numbers[:, whole] = np.rint(numbers[:, whole])
    numbers[:, EPOCH] = NUMBERS[EPOCH][2]
    optimizer = rng.integers(1, 3, draws)
    numbers[optimizer == 1, MOMENTUM] = 0
    found = {}
    for place, instance in enumerate(INSTANCES, start=1):
        codes = np.stack([np.full(draws, place), optimizer], axis=1).astype(np.int32)
        [values] = session.run(None, {"x_cat": codes, "x_cont": numbers.astype(np.float32)})
        for column, target in enumerate(TARGETS):
            low, high = float(values[:, column].min()), float(values[:, column].max())
            found[instance, target] = (math.floor(low) - 1, math.ceil(high) + 1)
    return found


def build(folder: Path, seed: int = 0) -> Path:
    """Write all files; returns the folder."""
    place, statistics = folder / "demo", folder / "global_statistics"
    for made in (place, statistics):
        made.mkdir(parents=True, exist_ok=True)
    surrogate = model(seed)
    onnx.save(surrogate, place / "model.onnx")
    encoding = {name: {value: code for code, value in enumerate(["#na#", *them])} for name, them in CHOICES.items()}
    meta = {
        "cont_names": [entry[0] for entry in NUMBERS],
        "cat_names": list(CHOICES),
        "y_names": list(TARGETS),
        "y_minimize": [False, True],
        "fidelity_params": ["epoch"],
        "instance_names": "dataset",
        "runtime_name": "time",
    }
    for path, content in (
        (place / "config_space.json", space()),
        (place / "encoding.json", encoding),
        (folder / "yahpo_scenario_meta.json", {"demo": meta}),
    ):
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    with (statistics / "instance_target_statistics.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["metric", "statistic", "value", "scenario", "instance"])
        for (instance, target), (least, greatest) in bounds(surrogate).items():
            rows.writerow([target, "min", least, "demo", instance])
            rows.writerow([target, "max", greatest, "demo", instance])
    return folder


def main() -> None:
    """Write the files into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)


if __name__ == "__main__":
    main()
