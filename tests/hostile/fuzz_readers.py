"""Everything that reads a user's file: how real files of its kind are made, and how they are read.

A reader gets a folder.  Its seeds are folders too, made by the writers of this repository and its examples, so that
anybody can make them; real data beside the repository (``../shared/data``) are added where they are.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import io
import json
import random
import runpy
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import NUMBERS, TEXTS, Mutation, bytes_mutation

from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    Trajectory,
    analyze,
    compare,
    fit,
    race,
    rank,
    select,
)
from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.manager import Plugins, load_plugins
from polarbear_plugins.posterior.posterior import Posterior

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Reader:
    """One kind of input.

    Attributes
    ----------
    make
        Writes the seeds: a folder for each below the folder it gets.
    read
        Reads an input, a folder; what it returns is compared for inputs that were not changed.
    needs
        Packages without which it is skipped.
    mutations
        How files are damaged whose structure only their library knows, by how their names end.
    names_file
        Whether an error must name a file; options have none.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], object]
    needs: tuple[str, ...] = ()
    mutations: Mapping[str, Mutation] = field(default_factory=dict)
    names_file: bool = True

    @property
    def missing(self) -> list[str]:
        """Packages that are not there."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def _runs() -> list[Trajectory]:
    rng = np.random.default_rng(1)
    return [
        Trajectory.from_evaluations(rng.random(12), algorithm=algorithm, instance=f"f{instance}", seed=seed)
        for algorithm in ("csa", "msr", "tpa")
        for instance in (1, 2)
        for seed in (0, 1)
    ]


def _ranked(trajectories: Any) -> object:
    """Take what was read one step on; there the runs have no file any more that an error could name."""
    found = list(trajectories)
    read = [(run.algorithm, run.instance, run.seed, run.best.tolist()) for run in found]
    try:
        return read, rank(found, [max(run.horizon for run in found)]).values.tolist()
    except PolarBearError as problem:
        return read, str(problem)


@functools.cache
def _plugin(module: str) -> Plugins:
    plugins = Plugins()
    plugins.register(importlib.import_module(module), module)
    return plugins


# --- tables


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(
        [
            (run.algorithm, run.instance, run.seed, time, best, run.horizon)
            for run in _runs()
            for time, best in zip(run.times.tolist(), run.best.tolist(), strict=True)
        ],
        columns=["algorithm", "instance", "seed", "time", "value", "horizon"],
    )


def _make_csv(folder: Path) -> None:
    text = _frame().to_csv(index=False)
    for name, content in {
        "runs.csv": text.encode(),
        "runs.tsv": text.replace(",", "\t").encode(),
        "runs.csv.gz": gzip.compress(text.encode(), mtime=0),
        "plain.csv": b"algorithm,instance,time,value\na,x,1,3\na,x,2,1\nb,x,1,2\nb,x,2,2\n",
        "groups.csv": b"algorithm,instance,group,time,value\na,x,g,1,3\nb,x,g,1,2\na,y,h,1,3\nb,y,h,1,2\n",
    }.items():
        (folder / name).mkdir()
        (folder / name / name).write_bytes(content)


def _make_parquet(folder: Path) -> None:
    for name, options in {"plain": {"compression": None}, "packed": {"compression": "snappy"}}.items():
        (folder / name).mkdir()
        _frame().to_parquet(folder / name / "runs.parquet", index=False, **options)


def _read_table(folder: Path) -> object:
    [path] = folder.iterdir()
    return _ranked(_plugin("polarbear_plugins.adapters.table").read_trajectories(path))


def _parquet_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Write a table whose columns have other types or names than they should."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = _frame().head(rng.choice((0, 1, 12, 40)))
    columns = {name: frame[name].tolist() for name in frame}
    name = rng.choice(list(columns))
    count = len(frame)
    kind = rng.randrange(8)
    types = [pa.int8(), pa.float16(), pa.bool_(), pa.date32(), pa.binary(), pa.large_string(), pa.null(), pa.uint64()]
    types += [pa.decimal128(38, 2), pa.list_(pa.float64()), pa.struct([("a", pa.int64())]), pa.timestamp("ns", "UTC")]
    values: Any = columns[name]
    try:
        if kind <= 1:
            values = pa.array([rng.choice((None, 1, 2**62, -1, 0)) for _ in range(count)])
        elif kind == 2:
            values = pa.nulls(count, rng.choice(types))
        elif kind == 3:
            values = [rng.choice((*NUMBERS, *TEXTS)) for _ in range(count)]
        elif kind == 4:
            values = pa.array([[1.0]] * count)
        elif kind == 5:
            values = pa.array([rng.choice((float("nan"), float("inf"), 1e308, -1.0, 0.0)) for _ in range(count)])
        elif kind == 6:
            values = pa.array(values).cast(rng.choice(types), safe=False)
        else:
            values = pa.array([str(value) for value in values]).dictionary_encode()
        columns[name] = values
        if rng.random() < 0.1:
            columns[rng.choice(TEXTS)] = columns.pop(name)
        target = io.BytesIO()
        pq.write_table(pa.table(columns), target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return bytes_mutation(data, rng, other)
    made = target.getvalue()
    return bytes_mutation(made, rng, data) if rng.random() < 0.2 else made


# --- IOHprofiler


def _make_ioh(folder: Path) -> None:
    from polarbear_plugins.integrations.ioh_writer import IOHWriter, Scenario

    scenarios = {f"f{number}": Scenario(number, f"F{number}", 2, 1) for number in (1, 2)}
    with IOHWriter(folder / "written", scenarios=scenarios, suite="mine") as writer:
        for run in _runs():
            writer.add(run)
    real = SHARED / "ioh" / "examples" / "SO_Data"
    for index in sorted(real.rglob("IOHprofiler_*.json"))[:2] if real.is_dir() else ():
        target = folder / f"real-{index.parent.name}-{index.stem}"
        data = index.parent / json.loads(index.read_bytes())["scenarios"][0]["path"]
        if data.stat().st_size < 300_000:
            copy = target / data.relative_to(index.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data, copy)
            shutil.copyfile(index, target / index.name)


def _read_ioh(folder: Path) -> object:
    return _ranked(_plugin("polarbear_plugins.adapters.ioh_logs").read_trajectories(folder))


def _make_ioh_zip(folder: Path) -> None:
    _make_ioh(folder)
    for seed in list(folder.iterdir()):
        with zipfile.ZipFile(folder / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(seed.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(seed))
        shutil.rmtree(seed)
        seed.mkdir()
        (folder / "logs.zip").rename(seed / "logs.zip")


def _read_ioh_zip(folder: Path) -> object:
    return _ranked(_plugin("polarbear_plugins.adapters.ioh_logs").read_trajectories(folder / "logs.zip"))


# --- COCO


_COCO_COLUMNS = {
    "new": "% f evaluations | g evaluations | best noise-free fitness - Fopt (7.9e+01) + sum g_i+ | measured | x1",
    "old": "% function evaluation | noise-free fitness - Fopt (7.9e+1) | best noise-free fitness - Fopt | measured | x",
    "ioh": '"function evaluation" "current f(x)" "best-so-far f(x)" "current af(x)+b" "best af(x)+b"',
}
_COCO_HEADERS = {
    "new": "suite = 'bbob', funcId = {f}, DIM = 2, Precision = 1.000e-08, algId = '{a}', coco_version = '2.8.2'",
    "old": "funcId = {f}, DIM = 2, Precision = 1.000e-008, algId = '{a}'",
    "ioh": 'suite = "PBO", funcId = {f}, funcName = "OneMax", DIM = 2, maximization = "F", algId = "{a}"',
}


def _make_coco(folder: Path) -> None:
    curves: dict[tuple[str, str], list[Trajectory]] = {}
    for run in _runs():
        curves.setdefault((run.algorithm, run.instance), []).append(run)
    for kind, columns in _COCO_COLUMNS.items():
        for (algorithm, instance), runs in curves.items():
            target = folder / kind / algorithm
            name = f"data_{instance}/exp_{instance}_DIM2"
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            rows = [
                [columns, *(f"{t:.0f} 0 {b:+.9e} +8.0e+01 -2.9e+00" for t, b in zip(run.times, run.best, strict=True))]
                for run in runs
            ]
            last = [f"{run.horizon:.0f} 0 {run.best[-1]:+.9e} +8.0e+01 -2.9e+00" for run in runs]
            (target / f"{name}.dat").write_text("\n".join(line for block in rows for line in block) + "\n")
            fixed = (line for block, end in zip(rows, last, strict=True) for line in (*block[:2], end))
            (target / f"{name}.tdat").write_text("\n".join(fixed) + "\n")
            header = _COCO_HEADERS[kind].format(f=instance[1:], a=algorithm)
            path = name.replace("/", "\\" if kind == "old" else "/")
            entries = [f"{run.seed + 1}:{run.horizon:.0f}|{run.best[-1]:.1e}" for run in runs]
            (target / f"exp_{instance}.info").write_text(", ".join([f"{header}\n% x\n{path}.dat", *entries]) + "\n")
    real = SHARED / "coco" / "exdata" / "random-search"
    if real.is_dir():
        shutil.copytree(real / "data_f1", folder / "real" / "data_f1")
        shutil.copyfile(real / "bbobexp_f1.info", folder / "real" / "bbobexp_f1.info")


def _read_coco(folder: Path) -> object:
    return _ranked(_plugin("polarbear_plugins.adapters.coco").read_trajectories(folder))


def _make_coco_tar(folder: Path) -> None:
    _make_coco(folder)
    for seed in list(folder.iterdir()):
        with tarfile.open(folder / "logs.tar", "w") as archive:
            archive.add(seed, "logs")
        packed = gzip.compress((folder / "logs.tar").read_bytes(), mtime=0)
        (folder / "logs.tar").unlink()
        shutil.rmtree(seed)
        seed.mkdir()
        (seed / "logs.tgz").write_bytes(packed)


def _read_coco_tar(folder: Path) -> object:
    return _ranked(_plugin("polarbear_plugins.adapters.coco").read_trajectories(folder / "logs.tgz"))


# --- Bayesmark


def _make_bayesmark(folder: Path) -> None:
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


def _read_bayesmark(folder: Path) -> object:
    from polarbear_plugins.adapters.bayesmark import read_database
    from polarbear_plugins.measures.scores import score_studies

    plugins = _plugin("polarbear_plugins.adapters.bayesmark")
    if not (folder / "eval").is_dir():
        read_database(folder)
    by_iteration = _ranked(plugins.read_trajectories(folder, objective="generalization"))
    by_second = list(plugins.read_trajectories(folder, time="seconds"))
    database = read_database(folder)
    try:
        scores = score_studies(database.arrays(random=database.optimizers[:1]))
        board = scores.leaderboard.tolist(), scores.bootstrap(20).places.tolist()
    except PolarBearError as problem:  # not every study is in the database
        return by_iteration, len(by_second), str(problem)
    return by_iteration, len(by_second), board


# --- YAHPO Gym


def _make_yahpo(folder: Path) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "make_surrogate.py"))
    for scenario in module["SPACES"]:
        module["build"](folder / scenario, scenario)
        (folder / scenario / scenario / "model.onnx").unlink()
    real = SHARED / "yahpo"
    if real.is_dir():
        for name in ("config_space.json", "encoding.json"):
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
    return next((path.name for path in sorted(folder.iterdir()) if (path / "encoding.json").is_file()), "mine")


def _read_yahpo(folder: Path) -> object:
    from polarbear_plugins.adapters.yahpo.files import read_statistics
    from polarbear_plugins.adapters.yahpo.surrogates import Surrogate

    scenario = _scenario(folder)
    surrogate = Surrogate(folder, scenario)
    rng = np.random.default_rng(0)
    drawn = [surrogate.space.sample(rng) for _ in range(3)]
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    arrays = surrogate.encode(drawn, surrogate.instances[0], full)
    return [array.tolist() for array in arrays], sorted(read_statistics(folder).items())


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


def _read_onnx(folder: Path) -> object:
    from polarbear_plugins.adapters.yahpo.surrogates import Surrogate

    surrogate = Surrogate(folder, _scenario(folder))
    surrogate.open()
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    drawn = [surrogate.space.sample(np.random.default_rng(0))]
    return surrogate.predict(drawn, surrogate.instances[0], full).tolist()


# --- what this package writes


def _race(**options: Any) -> RaceResult:
    return race(
        "synthetic",
        "synthetic",
        [1, 2, 3],
        RaceSettings(seed=3, max_rounds=2, draws=100, batch_size=4, batch_min=4),
        workers=0,
        portfolio_options={"algorithms": 3, "seed": 4},
        **options,
    )


def _make_journal(folder: Path) -> None:
    (folder / "race").mkdir()
    _race(journal=folder / "race" / "race.db")


def _read_journal(folder: Path) -> object:
    return load_result(folder / "race.db").to_json()


def _posterior() -> Posterior:
    values = np.random.default_rng(5).random((8, 3, 3))
    table = RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[1, 2, 3])
    return fit(table, "random-walk", draws=100, seed=1)


def _make_posterior(folder: Path) -> None:
    (folder / "fitted").mkdir()
    _posterior().save(folder / "fitted" / "posterior.npz")


def _read_posterior(folder: Path) -> object:
    posterior = Posterior.load(folder / "posterior.npz")
    relations = compare(posterior)
    return repr(select(posterior)), relations.p_better.tolist(), posterior._repr_html_()


def _make_result(folder: Path) -> None:
    (folder / "raced").mkdir()
    _race().save(folder / "raced" / "result.npz")
    values = np.random.default_rng(6).random((6, 2, 3))
    options: dict[str, Any] = {"algorithms": ["a", "b", "c"], "timepoints": [1, 2], "instances": list("xyzxyz")}
    table = RankingTable.from_values(values, groups=list("gghggh"), **options)
    (folder / "grouped").mkdir()
    analyze(table, RaceSettings(seed=1, draws=100)).save(folder / "grouped" / "result.npz")


def _read_result(folder: Path) -> object:
    result = load_result(folder / "result.npz")
    return result.to_json(), result.summary().to_csv()


# --- Optuna


def _make_study(storage: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name in ("tpe-f1-0", "random-f1-0"):
        study = optuna.create_study(storage=storage, study_name=name, sampler=optuna.samplers.RandomSampler(seed=1))
        study.set_user_attr("note", "x")

        def objective(trial: Any) -> float:
            x = trial.suggest_float("x", 0, 1)
            trial.report(x, 1)
            return float(x)

        study.optimize(objective, n_trials=4)


def _make_optuna_sqlite(folder: Path) -> None:
    (folder / "made").mkdir()
    _make_study(f"sqlite:///{folder / 'made' / 'studies.db'}")


def _make_optuna_journal(folder: Path) -> None:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    (folder / "made").mkdir()
    _make_study(optuna.storages.JournalStorage(JournalFileBackend(str(folder / "made" / "studies.log"))))


def _read_optuna(folder: Path) -> object:
    path = next(path for path in folder.iterdir() if path.suffix in (".db", ".log"))
    plugins = _plugin("polarbear_plugins.adapters.optuna_study")
    return _ranked(plugins.read_trajectories(path)), len(list(plugins.read_trajectories(path, time="seconds")))


def _lines_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage one line of JSON among others."""
    from fuzz_mutations import json_mutation, text_mutation

    lines = data.splitlines(keepends=True)
    if not lines or rng.random() < 0.2:
        return text_mutation(data, rng, other)
    at = rng.randrange(len(lines))
    lines[at] = json_mutation(lines[at], rng, other) + b"\n"
    return b"".join(lines)


# --- criteria, published problems


def _make_criteria(folder: Path) -> None:
    text = "function,optimizer,loss,time\n" + "".join(
        f"f{f},o{o},{(f * o * 7) % 5}.5,{(f + o * 3) % 7}\n" for f in range(4) for o in range(3)
    )
    (folder / "made").mkdir()
    (folder / "made" / "criteria.csv").write_text(text)


def _read_criteria(folder: Path) -> object:
    from polarbear_plugins.partial_orders.criteria import orders_of_functions, read_criteria
    from polarbear_plugins.partial_orders.depth import ufg_depth

    orders = orders_of_functions(
        read_criteria(folder / "criteria.csv"), indifferent="incomparable", missing="incomparable"
    )
    found = list(orders.values())
    return ufg_depth(found).tolist() if 1 < len(found) < 8 and len(found[0].optimizers) < 6 else len(found)


def _make_ma_bbob(folder: Path) -> None:
    from polarbear_plugins.integrations.ma_bbob import draw_parameters

    (folder / "made").mkdir()
    drawn = [draw_parameters(np.random.default_rng(seed), 3) for seed in range(3)]
    for name, key in (("weights", "weights"), ("iids", "instances"), ("opt_locs", "xopt")):
        rows = [",".join([str(row), *map(str, parameters[key])]) for row, parameters in enumerate(drawn)]
        header = ",".join(["", *map(str, range(len(drawn[0][key])))])
        (folder / "made" / f"{name}.csv").write_text("\n".join([header, *rows, ""]))


def _read_ma_bbob(folder: Path) -> object:
    from polarbear_plugins.integrations.ma_bbob import read_csv_folder

    return read_csv_folder(folder, 3)


# --- options, which come as text


def _options() -> dict[str, tuple[Callable[[str], object], tuple[str, ...]]]:
    from polarbear_plugins.adapters.ioh_logs.options import LogOptions
    from polarbear_plugins.adapters.optuna_study.name_pattern import NamePattern
    from polarbear_plugins.cli.options import parse_key_values, parse_numbers, parse_timepoints, settings_from
    from polarbear_plugins.options import flag, whole_numbers
    from polarbear_plugins.partial_orders.criteria import best_at_timepoints
    from polarbear_plugins.problems.protocols import Identity
    from polarbear_plugins.racing.posteriors import check_inference
    from polarbear_plugins.trajectories.columns import LongFormOptions

    plugins, posterior = load_plugins(), _posterior()

    def pairs(text: str) -> dict[str, str]:
        return parse_key_values(text.split(" "), "-P")

    def settings(text: str) -> object:
        choices: dict[str, Any] = {"alpha": 0.9, "epsilon": 0.1, "engine": "native", "draws": 100, "seed": 1}
        prior, *rest = text.split(" ")
        modes = {"elimination": "pointwise", "resolution": "strict", "rule": "posterior"}
        modes |= {"guard": "counts", "groups": "auto"}
        made = settings_from(**choices, **modes, prior=prior, prior_options=rest)
        check_inference(made)
        return made.to_json()

    def points(text: str) -> object:
        wanted = parse_timepoints(text)
        return wanted if isinstance(wanted, int) else best_at_timepoints(_runs()[:2], wanted)

    def chosen(text: str) -> object:
        preference, _, risk = text.partition(" ")
        weights = parse_numbers(preference, "--preference") if preference[:1].isdigit() else preference
        return repr(select(posterior, preference=weights, risk=risk or "expected"))

    def portfolio(text: str) -> object:
        name, *rest = text.split(" ")
        return [algorithm.name for algorithm in plugins.portfolio(name, **pairs(" ".join(rest)) if rest else {})]

    def suite(text: str) -> object:
        name, *rest = text.split(" ")
        made = plugins.suite(name, **pairs(" ".join(rest)) if rest else {})
        return next(iter(made.identities(1))).to_json()

    return {
        "timepoints": (points, ("20", "1,10,100", "1,2.5,1e3")),
        "preference": (chosen, ("log-uniform", "1,2,3 quantile:0.05", "worst best", "final expected")),
        "settings": (settings, ("gp kernel=matern32", "dirichlet alpha=1", "bspline", "hsgp", "sparse-gp inducing=3")),
        "portfolio": (
            portfolio,
            ('modcma:{"ssa":["CSA","TPA"],"sigma0":2}', "synthetic algorithms=3 seed=1", "modcma-ssa"),
        ),
        "suite": (
            suite,
            ("ma-bbob dimension=5", "bbob dimension=5 functions=1,3-5", "gp-bbob dimension=3", "synthetic"),
        ),
        "numbers": (lambda text: whole_numbers(1, 24)(text, "functions"), ("1,3,5-8", "24")),
        "flag": (lambda text: flag(text, "maximize"), ("true", "no")),
        "table": (
            lambda text: repr(LongFormOptions.parse(pairs(text))),
            ("columns=time=evals,value=y,group=a+b maximize=true", "horizon=10 fixed_groups=true"),
        ),
        "logs": (
            lambda text: repr(LogOptions.parse(pairs(text))),
            ("functions=1,2 dimensions=5 time=evaluations", "algorithm=folder group=dimension"),
        ),
        "pattern": (
            lambda text: NamePattern(text).read("tpe-f1-3"),
            ("{algorithm}-{instance}-{seed}", "(?P<algorithm>.*)-(?P<instance>.*)", "{algorithm}-{instance}-{group}"),
        ),
        "identity": (
            lambda text: Identity.from_json(text).to_json(),
            (
                '{"name": "f1", "parameters": {"function": 1}}',
                '{"name": "f1", "parameters": {}, "group": "g", "fixed_group": true}',
            ),
        ),
    }


_READ_OPTION: dict[str, Callable[[str], object]] = {}


def _make_options(folder: Path) -> None:
    for kind, (_, texts) in _options().items():
        for number, text in enumerate(texts):
            (folder / f"{kind}{number}").mkdir()
            name = "identity.json" if kind == "identity" else f"{kind}.txt"
            (folder / f"{kind}{number}" / name).write_text(text)


def _read_options(folder: Path) -> object:
    if not _READ_OPTION:
        _READ_OPTION.update({kind: read for kind, (read, _) in _options().items()})
    [path] = folder.iterdir()
    return repr(_READ_OPTION[path.stem](path.read_bytes().decode("utf-8", "surrogateescape")))


READERS: dict[str, Reader] = {
    "csv": Reader(_make_csv, _read_table),
    "parquet": Reader(_make_parquet, _read_table, ("pyarrow",), {".parquet": _parquet_mutation}),
    "ioh": Reader(_make_ioh, _read_ioh),
    "ioh-zip": Reader(_make_ioh_zip, _read_ioh_zip),
    "coco": Reader(_make_coco, _read_coco),
    "coco-tar": Reader(_make_coco_tar, _read_coco_tar),
    "bayesmark": Reader(_make_bayesmark, _read_bayesmark),
    "yahpo": Reader(_make_yahpo, _read_yahpo, ("onnx",)),
    "onnx": Reader(_make_onnx, _read_onnx, ("onnx", "onnxruntime"), {".onnx": _onnx_mutation}),
    "journal": Reader(_make_journal, _read_journal),
    "posterior": Reader(_make_posterior, _read_posterior),
    "result": Reader(_make_result, _read_result),
    "optuna-sqlite": Reader(_make_optuna_sqlite, _read_optuna, ("optuna",)),
    "optuna-journal": Reader(_make_optuna_journal, _read_optuna, ("optuna",), {".log": _lines_mutation}),
    "criteria": Reader(_make_criteria, _read_criteria),
    "ma-bbob": Reader(_make_ma_bbob, _read_ma_bbob),
    "options": Reader(_make_options, _read_options, ("modcma", "ioh"), names_file=False),
}
