"""Databases of Bayesmark."""

from __future__ import annotations

import contextlib
import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.readers.real import SHARED
from fuzzing.rewriting import reformatted_json
from fuzzing.runs import answer_of, flaw_of_runs, plugin, steps
from polarbear_plugins.errors import PolarBearError


def _make(folder: Path) -> None:
    rng = np.random.default_rng(2)
    own = folder / "written"
    for number, optimizer in enumerate(("RandomSearch", "TPE")):
        uuid = f"{number:032x}"
        arguments = {"--uuid": uuid, "--opt": optimizer, "--classifier": "kNN", "--data": "wine", "--metric": "nll"}
        meta = {"args": {**arguments, "opt_rev": "1.0", "rev": "abc"}, "signature": [[{}, {}], [0.5, 0.25]]}
        losses, seconds = rng.random((5, 2)), rng.random((3, 5))
        parts = {
            "eval": {"_visible_to_opt": losses, "generalization": losses + 0.1},
            "time": {"suggest": seconds[0], "eval": losses, "observe": seconds[1]},
        }
        for key, variables in parts.items():
            (own / key).mkdir(parents=True, exist_ok=True)
            content = {
                name: {"dims": ["iter", "suggestion"][: array.ndim], "attrs": {}, "data": array.tolist()}
                for name, array in variables.items()
            }
            data = {"meta": meta, "data": {"coords": {}, "attrs": {}, "data_vars": content}}
            (own / key / f"{uuid}.json").write_text(json.dumps(data))
        (own / "log").mkdir(exist_ok=True)
        (own / "log" / f"{uuid}.log").write_text("Failure in optimizer suggest. Falling back to random search.\n")
    real = SHARED / "bayesmark" / "sample"
    if real.is_dir():
        for path in sorted((real / "eval").glob("*.json"))[:2]:
            for part in ("eval", "time"):
                (folder / "real" / part).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(real / part / path.name, folder / "real" / part / path.name)


def _read(folder: Path) -> Answer:
    from polarbear_plugins.adapters.bayesmark import read_database
    from polarbear_plugins.measures.scores import score_studies

    plugins = plugin("polarbear_plugins.adapters.bayesmark")
    if not (folder / "eval").is_dir():
        read_database(folder)
    answer = answer_of(plugins.read_trajectories(folder))
    answer |= answer_of(plugins.read_trajectories(folder, objective="generalization"), "incumbent")
    answer |= answer_of(plugins.read_trajectories(folder, time="seconds"), "seconds")
    database = read_database(folder)
    with contextlib.suppress(PolarBearError):  # not every study is in the database
        score_studies(database.arrays(random=database.optimizers[:1])).bootstrap(20)
    return answer


# --- changes that say what must come of them


def _study(files: Files, rng: random.Random, folder: str = "eval") -> tuple[str, Any]:
    name = rng.choice([name for name in files if name.startswith(f"{folder}/")])
    return name, json.loads(files[name])


def _as_it_was(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Order of keys, blanks, logs and files of other kinds change nothing."""
    made = {name: reformatted_json(data, rng) for name, data in files.items() if name.endswith(".json")}
    made |= {"log/other.log": b"\xff", "eval/notes.txt": b"{"} if rng.random() < 0.3 else {}
    return Declared(made, (whole,), "written in another way")


def _another_loss(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """One evaluation with another loss: only its study differs."""
    name, data = _study(files, rng)
    arguments, variables = data["meta"]["args"], data["data"]["data_vars"]
    visible, beside = variables["_visible_to_opt"]["data"], variables["generalization"]["data"]
    iteration, suggestion = rng.randrange(len(visible)), rng.randrange(len(visible[0]))
    visible[iteration][suggestion] = rng.choice((rng.uniform(-1, 2), rng.uniform(-1, 2), math.inf))
    algorithm = "_".join(arguments[key] for key in ("--opt", "opt_rev", "rev"))
    instance = "_".join(arguments[key] for key in ("--classifier", "--data", "--metric"))
    best = incumbent = math.inf
    curve, incumbents = [], []
    for losses, others in zip(visible, beside, strict=True):
        for loss, other in zip(losses, others, strict=True):
            if loss < best:
                best, incumbent = loss, other
        curve.append(best)
        incumbents.append(incumbent)
    expected = dict(whole)
    for kind, values in (("run", curve), ("incumbent", incumbents), ("seconds", curve)):
        key = (kind, algorithm, instance, 0)
        times, _, *rest = whole[key]
        expected[key] = steps(times, values, *rest)
    return Declared({**files, name: json.dumps(data).encode()}, (expected,), f"a loss in {name}")


def _without_a_study(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """A study less: the others stay as they were."""
    name, data = _study(files, rng)
    prefix = data["meta"]["args"]["--opt"] + "_"
    made = {key: content for key, content in files.items() if Path(key).stem != Path(name).stem}
    expected = {key: part for key, part in whole.items() if not key[1].startswith(prefix)}
    return Declared(made, (expected,), f"without {name}")


def _refusable(files: Files, _: Answer, rng: random.Random) -> Declared:
    """What no database may hold."""
    kind = rng.randrange(7)
    name, data = _study(files, rng, "time" if kind in (3, 4) else "eval")
    variables = data["data"]["data_vars"]
    part = rng.choice(list(variables))
    values = variables[part]["data"]
    row = rng.randrange(len(values))
    if kind == 0:
        values[row][0] = rng.choice((math.nan, None, "x", [1.0], {}, True))
    elif kind == 1:
        values[row] = values[row][:1]
    elif kind == 2:
        del values[row]
    elif kind == 3:
        bad = rng.choice((-1.0, math.nan, math.inf, "x", None))
        values[row] = [bad, 1.0] if isinstance(values[row], list) else bad
    elif kind == 4:
        values.append(values[row])
    elif kind == 5:
        del data["meta"]["args"][rng.choice(("--opt", "--classifier", "--data", "--metric", "rev"))]
    else:
        data["meta"]["args"]["--uuid"] = "0" * 31 + ("1" if name.endswith("0.json") else "0")
    made = {**files, name: json.dumps(data).encode()}
    return Declared(made, (None,), f"refusable {kind}: {part} in {name}, {values[row % len(values)]!r}")


READERS = {
    "bayesmark": Reader(
        _make,
        _read,
        changes=(_as_it_was, _another_loss, _without_a_study, _refusable),
        flaw=flaw_of_runs,
        slow=True,
    ),
}
