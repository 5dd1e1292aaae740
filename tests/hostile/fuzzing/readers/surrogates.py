"""Surrogates of YAHPO Gym: their metadata, statistics and models."""

from __future__ import annotations

import json
import math
import random
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.damage import bytes_mutation
from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.readers.real import ROOT, SHARED
from fuzzing.rewriting import NO_NUMBER, Sheet, number, reformatted_json

_SPACE, _CODES, _STATISTICS = "config_space.json", "encoding.json", "instance_target_statistics.csv"


def _make_yahpo(folder: Path) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "make_surrogate.py"))
    for scenario in module["SPACES"]:
        module["build"](folder / scenario, scenario)
        (folder / scenario / scenario / "model.onnx").unlink()
    real = SHARED / "yahpo"
    if real.is_dir():
        for name in (_SPACE, _CODES):
            (folder / "real" / "rbv2_xgboost").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(real / "rbv2_xgboost" / name, folder / "real" / "rbv2_xgboost" / name)
    own = folder / "own"
    shutil.copytree(folder / "rbv2_svm", own)
    (own / "rbv2_svm").rename(own / "mine")
    meta = {
        "cont_names": ["cost", "gamma", "tolerance", "degree", "trainsize", "repl"],
        "cat_names": ["task_id", "kernel", "num.impute.selected.cpo"],
        "y_names": ["acc", "timetrain"],
        "y_minimize": [False, True],
        "fidelity_params": ["trainsize", "repl"],
        "instance_names": "task_id",
        "runtime_name": "timetrain",
    }
    (own / "yahpo_scenario_meta.json").write_text(json.dumps({"mine": meta}))


def _scenario(folder: Path) -> str:
    return next((path.name for path in sorted(folder.iterdir()) if (path / _CODES).is_file()), "mine")


def _read_yahpo(folder: Path) -> Answer:
    from polarbear_plugins.adapters.yahpo.files import read_encoding, read_space, read_statistics
    from polarbear_plugins.adapters.yahpo.surrogates import Surrogate

    scenario = _scenario(folder)
    surrogate = Surrogate(folder, scenario)
    rng = np.random.default_rng(0)
    drawn = [surrogate.space.sample(rng) for _ in range(3)]
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    surrogate.encode(drawn, surrogate.instances[0], full)
    space = read_space(folder, scenario)
    answer: Answer = {("parameter", name): repr(parameter) for name, parameter in space.parameters.items()}
    answer |= {("condition", place): repr(condition) for place, condition in enumerate(space.conditions)}
    codes = read_encoding(folder, scenario)
    answer |= {("code", column, value): code for column, of in codes.items() for value, code in of.items()}
    return answer | {("statistic", *key): bounds for key, bounds in read_statistics(folder).items()}


def _flaw_of_yahpo(answer: Answer) -> str:
    for key, part in answer.items():
        if key[0] == "code" and type(part) is not int:
            return f"{key!r} is {part!r}"
        if key[0] == "statistic" and not all(map(math.isfinite, part)):
            return f"{key!r} is {part!r}"
    return ""


def _same_yahpo(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Order of keys and of lines, blanks and line ends change nothing."""
    made = dict(files)
    for name, data in files.items():
        if name.endswith(".json"):
            made[name] = reformatted_json(data, rng)
        elif name.endswith(".csv"):
            sheet = Sheet.parse(data)
            rng.shuffle(sheet.rows)
            made[name] = sheet.permuted(rng).write(",", rng).removeprefix(b"\xef\xbb\xbf")
    return Declared(made, (whole,), "written in another way")


def _another_number(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
    """One code or one statistic is another: nothing else differs."""
    expected = dict(whole)
    if rng.random() < 0.5:
        name = next(name for name in files if name.endswith(_CODES))
        codes = json.loads(files[name])
        column = rng.choice(list(codes))
        value = rng.choice(list(codes[column]))
        expected["code", column, value] = codes[column][value] = rng.randrange(1000, 2000)
        return Declared({**files, name: json.dumps(codes).encode()}, (expected,), f"code of {value!r}")
    name = next((name for name in files if name.endswith(_STATISTICS)), None)
    if name is None:
        return None
    sheet = Sheet.parse(files[name])
    row = rng.randrange(len(sheet.rows))
    cells = dict(zip(sheet.columns, sheet.rows[row], strict=True))
    key = ("statistic", cells["scenario"], cells["instance"], cells["metric"])
    low, high = whole[key]
    text = number(rng, -100, 0) if cells["statistic"] == "min" else number(rng, 100, 200)
    sheet.put(row, "value", text)
    expected[key] = (float(text), high) if cells["statistic"] == "min" else (low, float(text))
    return Declared({**files, name: sheet.write(",", random.Random(0))}, (expected,), f"statistic {key!r}")  # noqa: S311


def _refusable_yahpo(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """What no folder of YAHPO Gym may hold."""
    kind = rng.randrange(6)
    name = next(name for name in files if name.endswith(_SPACE if kind < 3 else _CODES))
    data: Any = json.loads(files[name])
    if kind == 0:
        entry = rng.choice([entry for entry in data["hyperparameters"] if "lower" in entry])
        entry["lower"] = entry["upper"] + 1
    elif kind == 1:
        rng.choice(data["hyperparameters"])["type"] = rng.choice(("normal_float", None, 1))
    elif kind == 2:
        entry = rng.choice([entry for entry in data["hyperparameters"] if "lower" in entry])
        entry[rng.choice(("lower", "upper"))] = rng.choice((math.nan, math.inf, None, "x", []))
    elif kind == 3:
        column = rng.choice(list(data))
        data[column][rng.choice(list(data[column]))] = rng.choice((0.5, None, "1", 2**40, True, []))
    elif kind == 4:
        del data[rng.choice(list(data))]
    else:
        name = next((name for name in files if name.endswith(_STATISTICS)), "")
        if not name:
            return None
        sheet = Sheet.parse(files[name])
        row = rng.randrange(len(sheet.rows))
        sheet.put(row, "value", rng.choice((*(text.replace(",", "") for text in NO_NUMBER[2:]), "nan", "inf", "")))
        return Declared({**files, name: sheet.write(",", random.Random(0))}, (None,), f"{sheet.rows[row]!r}")  # noqa: S311
    return Declared({**files, name: json.dumps(data).encode()}, (None,), f"refusable {kind} in {name}")


def _make_onnx(folder: Path) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "make_surrogate.py"))
    for scenario in module["SPACES"]:
        module["build"](folder / scenario, scenario)
        shutil.rmtree(folder / scenario / "global_statistics")


def _onnx_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Change the graph of a model that stays one: operations, names, shapes and constants."""
    import onnx

    try:
        model = onnx.load_from_string(data)
    except Exception:  # protobuf's error has moved between its versions
        return bytes_mutation(data, rng, other)
    graph = model.graph
    kind = rng.randrange(7)
    if kind == 0 and graph.node:
        operations = (
            "Loop",
            "Expand",
            "Tile",
            "ConstantOfShape",
            "Reshape",
            "Gather",
            "Nothing",
            "MatMul",
            "Range",
            "",
        )
        rng.choice(graph.node).op_type = rng.choice(operations)
    elif kind == 1 and graph.initializer:
        dims = rng.choice(graph.initializer).dims
        del dims[:]
        dims.extend(rng.choice(([2**40], [-1], [0], [3, 3], [2**31, 2**31], [1] * 50)))
    elif kind == 2 and graph.initializer:
        constant = rng.choice(graph.initializer)
        constant.raw_data = bytes_mutation(constant.raw_data, rng, constant.raw_data)
    elif kind == 3 and graph.node:
        node = rng.choice(graph.node)
        if node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(("", "x", *(c.name for c in graph.initializer)))
    elif kind == 4:
        value = rng.choice([*graph.input, *graph.output])
        shape = value.type.tensor_type.shape.dim
        if shape:
            shape[-1].dim_value = rng.choice((0, 1, 2, -1, 2**40))
    elif kind == 5:
        value = rng.choice([*graph.input, *graph.output])
        value.type.tensor_type.elem_type = rng.randrange(20)
    else:
        model.ir_version = rng.choice((0, 1, 99, 2**31))
    return model.SerializeToString()


def _read_onnx(folder: Path) -> Answer:
    from polarbear_plugins.adapters.yahpo.surrogates import Surrogate

    surrogate = Surrogate(folder, _scenario(folder))
    surrogate.open()
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    drawn = [surrogate.space.sample(np.random.default_rng(0))]
    return {("predicted",): surrogate.predict(drawn, surrogate.instances[0], full).tolist()}


READERS = {
    "yahpo": Reader(
        _make_yahpo,
        _read_yahpo,
        ("onnx",),
        changes=(_same_yahpo, _another_number, _refusable_yahpo),
        flaw=_flaw_of_yahpo,
    ),
    "onnx": Reader(_make_onnx, _read_onnx, ("onnx", "onnxruntime"), {".onnx": _onnx_mutation}),
}
