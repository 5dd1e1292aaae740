"""What tests/hostile/fuzz.py found, one small input each."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import re
import shutil
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import change_arrays, change_journal

from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    analyze,
    load_plugins,
    race,
    read_trajectories,
)
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.cli.options import settings_from
from polarbear_plugins.errors import InvalidInputError, SourceError, reason
from polarbear_plugins.files import parse_json
from polarbear_plugins.integrations.ioh_writer import IOHWriter, Scenario
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.measures.bootstrap import bootstrap_scores
from polarbear_plugins.measures.random_baseline import normalise
from polarbear_plugins.measures.scores import Studies, score_studies
from polarbear_plugins.partial_orders.criteria import read_criteria
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.trajectories.trajectory import Trajectory


@pytest.fixture(scope="module")
def result() -> RaceResult:
    values = np.random.default_rng(1).random((10, 2, 3))
    table = RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[1, 2])
    return analyze(table, RaceSettings(seed=1, draws=100))


def in_text(name: str, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Change the JSON in one of the arrays."""

    def changed(arrays: dict[str, Any]) -> None:
        data = json.loads(str(arrays[name]))
        change(data)
        arrays[name] = np.array(json.dumps(data))

    return changed


# --- saved posteriors and results


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda arrays: arrays["log_ratings"].__setitem__((0, 0, 0), np.nan), "add up to 1"),
        (lambda arrays: arrays["log_ratings"].__setitem__((0, 0, 0), 700.0), "add up to 1"),
        (lambda arrays: arrays["timepoints"].__setitem__(0, 1e308), "increase strictly"),
        (lambda arrays: arrays["timepoints"].__setitem__(1, 1e308), "none after"),
        (in_text("about", lambda about: about["diagnostics"].update(k_hat="x")), "diagnostics"),
        (in_text("about", lambda about: about["diagnostics"].update(good="yes")), "diagnostics"),
        (in_text("about", lambda about: about.update(format="9" * 5000)), "format"),
    ],
)
def test_a_posterior_that_is_none_is_refused(
    result: RaceResult, tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    path = change_arrays(result.posterior.save(tmp_path / "posterior.npz"), change)
    with pytest.raises(SourceError, match=rf"posterior\.npz.*{says}") as found:
        Posterior.load(path)
    assert len(str(found.value)) < 6000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda arrays: arrays.update(resolved=np.zeros(3, bool)), "resolved"),
        (lambda arrays: arrays.update(resolved=np.zeros((2, 3, 3))), "resolved"),
        (lambda arrays: arrays["weights"].__setitem__(0, 1e308), "weights"),
        (in_text("result", lambda data: data.update(cost=math.inf)), "Infinity"),
        (in_text("result", lambda data: data.update(about=[])), "about"),
        (in_text("result", lambda data: data["about"].update(suite=[])), "name and options of the suite"),
        (in_text("result", lambda data: data["about"].update(suite={"name": "x", "options": "[]"})), "of the suite"),
        (in_text("result", lambda data: data["about"].update(sources="x")), "sources"),
        (in_text("result", lambda data: data["rounds"][0].update(cost="x")), "cost"),
        (in_text("result", lambda data: data["rounds"][0].update(next_batch=2**40)), "next_batch"),
        (in_text("result", lambda data: data["rounds"][0].update(newcomers=["z"])), "none of the algorithms"),
        (in_text("result", lambda data: data["settings"].update(draws=2**40)), "draws"),
        (in_text("result", lambda data: data["settings"].update(batch_max=10**400)), "batch_max"),
    ],
)
def test_a_result_that_is_none_is_refused(
    result: RaceResult, tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    path = change_arrays(result.save(tmp_path / "result.npz"), change)
    with pytest.raises(SourceError, match=rf"result\.npz.*{says}"):
        RaceResult.load(path)


def test_a_result_in_which_nobody_is_left_is_refused(result: RaceResult, tmp_path: Path) -> None:
    out = [{"algorithm": name, "by": "a", "probability": 1.0, "round": 1} for name in "abc"]
    change = in_text("result", lambda data: data["rounds"][0].update(eliminations=out))
    with pytest.raises(SourceError, match="every algorithm was eliminated"):
        RaceResult.load(change_arrays(result.save(tmp_path / "result.npz"), change))


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(500000000,)", "(-1,)"])
def test_no_room_is_made_for_an_array_that_only_claims_to_be_large(
    result: RaceResult, tmp_path: Path, shape: str
) -> None:
    path = result.posterior.save(tmp_path / "posterior.npz")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"'shape': (2,)", f"'shape': {shape}".encode(), 1))
    with pytest.raises(SourceError, match=r"posterior\.npz.*(claims|shape|header)"):
        Posterior.load(path)


def test_a_packed_array_that_would_grow_as_no_data_do_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "posterior.npz"
    np.savez_compressed(path, about=np.array("{}"), log_ratings=np.zeros(2_000_000))
    with pytest.raises(SourceError, match="would grow from"):
        Posterior.load(path)


def test_weights_that_nothing_fits_can_be_written_as_json_and_read_again(result: RaceResult, tmp_path: Path) -> None:
    posterior = result.posterior
    odd = Posterior(
        algorithms=posterior.algorithms,
        timepoints=posterior.timepoints,
        log_ratings=posterior.log_ratings,
        prior=posterior.prior,
        joint=posterior.joint,
        diagnostics=replace(posterior.diagnostics, k_hat=math.inf),
        hyperparameters={},
    )
    assert Posterior.load(odd.save(tmp_path / "odd.npz")).diagnostics.k_hat == math.inf
    kept = replace(result, _posterior=odd)
    assert json.loads(kept.to_json())["diagnostics"]["k_hat"] is None


# --- journals


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    settings = RaceSettings(seed=3, max_rounds=1, draws=100, batch_size=4, batch_min=4)
    options = {"algorithms": 2, "seed": 4}
    race("synthetic", "synthetic", [1, 2], settings, workers=0, portfolio_options=options, journal=tmp_path / "race.db")
    return tmp_path / "race.db"


def test_a_view_in_the_place_of_a_table_is_not_run(journal: Path) -> None:
    with contextlib.closing(sqlite3.connect(journal)) as connection:
        connection.execute("DROP TABLE about")
        connection.execute(
            "CREATE VIEW about AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) "
            "SELECT n AS key, n AS json FROM more"
        )
        connection.commit()
    with pytest.raises(SourceError, match="tables are not those of a journal"):
        load_result(journal)


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("suite", '{"name": Infinity}', "Infinity"),
        ("suite", '{"name": 1e999}', "1e999"),
        ("suite", '{"name": "x"}', "of the suite"),
        ("settings", "[" * 100_000, "recursion"),
        ("settings", '{"seed": 3, "prior": "nobody"}', "nobody"),
        ("timepoints", "[1, 1e308]", "none after"),
    ],
)
def test_a_journal_that_says_nonsense_is_refused(journal: Path, key: str, text: str, says: str) -> None:
    change_journal(journal, ("UPDATE about SET json = ? WHERE key = ?", (text, key)))
    with pytest.raises(SourceError, match=rf"race\.db.*{says}"):
        load_result(journal)


# --- IOHprofiler


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    run = Trajectory(algorithm="csa", instance="f1", times=[1, 4], best=[3.5, 0.25], horizon=10)
    with IOHWriter(tmp_path / "logs", scenarios={"f1": Scenario(1, "F1", 2, 1)}) as writer:
        writer.add(run)
    return tmp_path / "logs"


def test_numbers_of_thousands_of_digits_are_refused(logs: Path) -> None:
    [index] = logs.rglob("*.json")
    data = json.loads(index.read_text())
    index.write_text(json.dumps(data).replace('"dimension": 2', f'"dimension": {"9" * 5000}'))
    with pytest.raises(SourceError, match=rf"{index.name}.*4300"):
        list(read_trajectories(logs))


def test_a_best_value_that_no_float_holds_is_none(logs: Path) -> None:
    [index] = logs.rglob("*.json")
    data = json.loads(index.read_text())
    [run] = data["scenarios"][0]["runs"]
    run["best"]["y"] = 10**400
    index.write_text(json.dumps(data))
    [read] = read_trajectories(logs)
    assert read.best.tolist() == [3.5, 0.25]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_nobody_waits_for_a_pipe(logs: Path) -> None:
    os.mkfifo(logs / "IOHprofiler_f2_F2.json")
    assert len(list(read_trajectories(logs))) == 1


@pytest.mark.parametrize("name", ["../IOHprofiler_f1_F1.json", "/IOHprofiler_f1_F1.json"])
def test_names_that_lead_out_of_a_zip_file_lead_nowhere(logs: Path, name: str) -> None:
    path = logs.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(logs.rglob("*")):
            if file.is_file():
                archive.write(file, name if file.suffix == ".json" else file.relative_to(logs))
    before = sorted(logs.parent.rglob("*"))
    with pytest.raises(SourceError, match=r"logs"):
        list(read_trajectories(path))
    assert sorted(logs.parent.rglob("*")) == before


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_inside_a_packed_member_is_an_error_that_names_the_file(logs: Path, method: int) -> None:
    pytest.importorskip("lzma")
    path = logs.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(logs.rglob("*.*")):
            archive.write(file, file.relative_to(logs))
        start = min(member.header_offset + 30 + len(member.filename) for member in archive.infolist())
    content = bytearray(path.read_bytes())
    content[start + 20 : start + 40] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"logs\.zip cannot be read as a zip file"):
        list(read_trajectories(path))


@pytest.mark.parametrize(
    ("name", "flags"),
    [("", 0), ("caf\xe9", 0x800)],  # a member without a name; a name that claims to be UTF-8 and is not
)
def test_strange_names_of_members_end_in_the_runs_or_an_error(logs: Path, name: str, flags: int) -> None:
    path = logs.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(logs.rglob("*.*")):
            archive.write(file, file.relative_to(logs))
        archive.writestr("!!!!", "")
    content = path.read_bytes().replace(b"!!!!", name.encode("latin-1").ljust(4, b"\0"))
    if flags:
        at = content.rindex(b"PK\x01\x02")
        content = content[: at + 8] + flags.to_bytes(2, "little") + content[at + 10 :]
    path.write_bytes(content)
    if flags:
        with pytest.raises(SourceError, match=r"logs\.zip"):
            list(read_trajectories(path))
    else:
        assert len(list(read_trajectories(path))) == 1


def test_a_header_of_thousands_of_characters_is_not_repeated_in_full(logs: Path) -> None:
    [rows] = logs.rglob("*.dat")
    rows.write_text(rows.read_text().replace("raw_y", "y" * 9_000))
    with pytest.raises(SourceError, match=r"expected one column") as caught:
        list(read_trajectories(logs))
    assert len(str(caught.value)) < 500


def test_an_algorithm_with_an_unpaired_surrogate_is_an_error_that_names_the_file(logs: Path) -> None:
    [index] = logs.rglob("*.json")
    data = json.loads(index.read_text())
    data["algorithm"]["name"] = "\ud800"
    index.write_text(json.dumps(data))
    with pytest.raises(SourceError, match=r"\.dat, run 1.*unpaired surrogate"):
        list(read_trajectories(logs))


# --- tables


def test_a_packed_table_that_would_grow_as_no_data_do_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(gzip.compress(b"algorithm,instance,time,value\na,f,1,1\n" + b"x" * 12_000_000))
    with pytest.raises(SourceError, match=r"runs\.csv\.gz would grow"):
        list(read_trajectories(path))


def test_a_packed_table_is_read_whole(tmp_path: Path) -> None:
    rows = "".join(f"a,f,{k},{-k}\n" for k in range(150_000))  # more than one piece
    (tmp_path / "runs.csv.gz").write_bytes(gzip.compress(f"algorithm,instance,time,value\n{rows}".encode()))
    [run] = read_trajectories(tmp_path / "runs.csv.gz")
    assert run.times.size == 150_000


def test_a_parquet_file_with_rows_without_end_is_refused(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, np.int32)), ["a"])
    table = pa.table({"algorithm": names, "instance": names, "time": names, "value": names})
    parquet.write_table(table, tmp_path / "runs.parquet")
    with pytest.raises(SourceError, match=r"runs\.parquet would grow"):
        list(read_trajectories(tmp_path / "runs.parquet"))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("f,o,x\n", "row 1 below the header: expected a number in 'loss', got 'x'"),
        (f"f,o,{10**400}\n", "expected a number in 'loss'"),
        (" ,o,1\n", "expected names"),
        ("f,,1\n", "expected names"),
    ],
)
def test_criteria_that_are_none_are_refused_by_name(tmp_path: Path, rows: str, says: str) -> None:
    path = tmp_path / "criteria.csv"
    path.write_text(f"function,optimizer,loss\n{rows}")
    with pytest.raises(SourceError, match=rf"criteria\.csv.*{says}"):
        read_criteria(path)


def test_a_long_list_of_columns_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(",".join(["x" * 5000] + [f"c{k}" for k in range(500)]) + "\n")
    with pytest.raises(SourceError, match=r"runs\.csv has no column") as found:
        list(read_trajectories(path))
    assert len(str(found.value)) < 1000


@pytest.mark.parametrize("ending", ["", ",", ",2", ",2,"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_that_was_cut_within_a_line_is_refused(tmp_path: Path, ending: str, packed: bool) -> None:
    text = f"algorithm,instance,time,value\na,x,1,3\nb,x,1,2\nb,x{ending}"
    path = tmp_path / ("runs.csv.gz" if packed else "runs.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    if ending == ",2,":  # all columns are there; the last one is empty: a failed evaluation
        assert len(list(read_trajectories(path))) == 2
        return
    with pytest.raises(SourceError, match=r"its last line has \d of 4 columns and no end, so the file was cut"):
        list(read_trajectories(path))


# --- Optuna


def test_a_storage_with_views_is_not_opened(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    path = tmp_path / "studies.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for name in ("studies", "trials", "version_info"):
            connection.execute(f"CREATE TABLE {name} (x)")
        connection.execute("CREATE VIEW trial_values AS SELECT 1")
        connection.commit()
    with pytest.raises(SourceError, match="views or triggers"):
        list(read_trajectories(path))


def test_a_study_with_a_finished_trial_without_a_value_is_refused_by_name(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    backend = pytest.importorskip("optuna.storages.journal").JournalFileBackend(str(tmp_path / "studies.log"))
    study = optuna.create_study(storage=optuna.storages.JournalStorage(backend), study_name="tpe-f1-0")
    study.tell(study.ask(), 1.0)
    path = tmp_path / "studies.log"
    whole = path.read_text()
    path.write_text(whole.replace("[1.0]", "[]"))
    assert path.read_text() != whole
    with pytest.raises(SourceError, match=r"studies\.log.*'tpe-f1-0' is damaged"):
        list(read_trajectories(path))


# --- numbers


def test_a_loss_that_is_nan_has_no_place() -> None:
    losses = {("a", "f"): np.array([0.1, math.nan]), ("b", "f"): np.array([0.2, 0.3])}
    with pytest.raises(InvalidInputError, match="'a' on 'f' has a loss that is nan"):
        bootstrap_scores(losses, ["a", "b"], ["f"])


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "[-1e999]"])
def test_json_that_no_encoder_writes_again_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        parse_json(text)


def test_an_option_that_is_nested_without_end_is_text() -> None:
    text = "[" * 100_000
    made = settings_from(
        alpha=0.9,
        epsilon=0.1,
        engine="native",
        draws=100,
        seed=1,
        prior="gp",
        elimination="pointwise",
        resolution="strict",
        rule="posterior",
        guard="counts",
        groups="auto",
        prior_options=[f"kernel={text}"],
    )
    assert made.prior_options["kernel"] == text


def test_a_reason_is_one_short_line() -> None:
    assert reason(ValueError("a\nb  c")) == "a b c"
    assert reason(ValueError()) == "ValueError"
    assert len(reason(ValueError("x" * 9000))) == 200
    assert io.StringIO(reason(ValueError("\r\n".join("ab")))).readlines() == ["a b"]


# --- YAHPO Gym


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("rbv2_svm/config_space.json", '"lower": 4.5399929762484854e-05', '"lower": "x"', "could not convert"),
        ("rbv2_svm/encoding.json", ": 1", ": 9007199254740993", "whole numbers"),
        ("global_statistics/instance_target_statistics.csv", "metric", "\udcff", "damaged"),
    ],
)
def test_a_file_of_a_surrogate_that_is_damaged_is_named(
    tiny_yahpo: Path, tmp_path: Path, file: str, old: str, new: str, says: str
) -> None:
    files = pytest.importorskip("polarbear_plugins.adapters.yahpo.files")
    path = Path(shutil.copytree(tiny_yahpo, tmp_path / "data")) / file
    text = path.read_text()
    path.write_bytes(
        re.sub(r'"lower": [\d.e-]+' if "lower" in old else old, new, text).encode("utf-8", "surrogateescape")
    )
    assert path.read_bytes() != text.encode()
    with pytest.raises(SourceError, match=rf"{path.name}.*{says}"):
        _read_all(files, tmp_path / "data")


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("config_space.json", r'"upper": \d+\.[\d.e+-]+', '"upper": 1e300', "too large for the surrogate's single"),
        ("config_space.json", '"linear"', f'"{"9" * 5000}"', "there is no code for kernel = '999"),
    ],
)
def test_a_space_that_its_surrogate_cannot_take_is_refused_in_a_line(
    tiny_yahpo: Path, tmp_path: Path, file: str, old: str, new: str, says: str
) -> None:
    surrogates = pytest.importorskip("polarbear_plugins.adapters.yahpo.surrogates")
    path = Path(shutil.copytree(tiny_yahpo, tmp_path / "data")) / "rbv2_svm" / file
    path.write_text(re.sub(old, new, path.read_text()))
    with pytest.raises(SourceError, match=rf"{path.name}.*{says}") as caught:
        surrogates.Surrogate(tmp_path / "data", "rbv2_svm")
    assert len(str(caught.value)) < 500


def _read_all(files: Any, folder: Path) -> None:
    files.read_space(folder, "rbv2_svm")
    files.read_encoding(folder, "rbv2_svm")
    files.read_statistics(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cont_names": ["x", "x", "epoch"]}, "each name once"),
        ({"fidelity_params": ["z"]}, "'z' is not among the columns"),
        ({"instance_names": {}}, "expected names of columns"),
        ({"instance_names": "z"}, "'z' is not among the columns"),
    ],
)
def test_a_scenario_of_ones_own_whose_columns_do_not_fit_is_refused(change: dict[str, Any], says: str) -> None:
    scenarios = pytest.importorskip("polarbear_plugins.adapters.yahpo.scenarios")
    meta = {
        "cont_names": ["x", "epoch"],
        "cat_names": ["task"],
        "y_names": ["loss"],
        "y_minimize": [True],
        "fidelity_params": ["epoch"],
        "instance_names": "task",
        "runtime_name": None,
    }
    scenarios.read_description(meta, "meta.json")
    with pytest.raises(SourceError, match=rf"meta\.json: .*{says}"):
        scenarios.read_description({**meta, **change}, "meta.json")


@pytest.mark.parametrize("change", ["no shape", "other shape", "other type", "other operation"])
def test_a_model_that_does_not_fit_is_refused_by_name(tiny_yahpo: Path, tmp_path: Path, change: str) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    surrogates = pytest.importorskip("polarbear_plugins.adapters.yahpo.surrogates")
    path = Path(shutil.copytree(tiny_yahpo, tmp_path / "data")) / "rbv2_svm" / "model.onnx"
    model = onnx.load(path)
    kind = model.graph.input[0].type.tensor_type
    if change == "no shape":
        del kind.shape.dim[:]
    elif change == "other shape":
        kind.shape.dim[-1].dim_value = 99
    elif change == "other type":
        kind.elem_type = onnx.TensorProto.INT64
    else:
        model.graph.node[0].op_type = "Nothing"
    onnx.save(model, path)
    surrogate = surrogates.load_surrogate("rbv2_svm", tmp_path / "data")
    configuration = {"cost": 1.0, "kernel": "linear", "num.impute.selected.cpo": "impute.mean", "tolerance": 0.01}
    with pytest.raises(SourceError, match=r"model\.onnx"):
        surrogate.predict([configuration], "101", {"trainsize": 1.0, "repl": 10})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta["args"].update(rev="\ud800"), r"meta\.args: rev: .*unpaired surrogate"),
        (lambda meta: meta.update(signature=[[{}], [10**400]]), None),  # nobody needs it to read the runs
    ],
)
def test_strange_words_about_a_study_of_bayesmark(
    write_study: Callable[..., Path], change: Callable[[dict[str, Any]], None], message: str | None
) -> None:
    path = write_study("TPE", "kNN_wine_nll", [[2.0], [1.0]])
    data = json.loads(path.read_text())
    change(data["meta"])
    path.write_text(json.dumps(data))
    if message is None:
        assert len(list(read_trajectories(path.parent.parent))) == 1
    else:
        with pytest.raises(SourceError, match=message):
            list(read_trajectories(path.parent.parent))


def test_true_is_no_loss_of_bayesmark(write_study: Callable[..., Path]) -> None:
    path = write_study("TPE", "kNN_wine_nll", [[2.0, 0.5], [1.0, 0.5]])
    data = json.loads(path.read_text())
    data["data"]["data_vars"]["_visible_to_opt"]["data"][1][0] = True
    path.write_text(json.dumps(data))
    with pytest.raises(SourceError, match=rf"{path.name}.*_visible_to_opt: expected numbers, got true or false"):
        list(read_trajectories(path.parent.parent))


def test_random_search_that_is_next_to_the_best_gives_no_warning() -> None:
    """Its best value came first, by chance, so that what is left to be better at is rounding."""
    drawn = np.array([[[0.26, 0.0], [0.81, 0.09], [0.6, 0.73], [0.19, 0.06], [0.27, 0.66]]])
    other = np.array([[[0.92, 0.47], [0.69, 0.11], [0.1, 0.2], [0.88, 0.68], [0.85, 0.64]]])
    values = {("random", "f"): drawn, ("tpe", "f"): other}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = score_studies(Studies(visible=values, scored=values, random=["random"]))
    assert not np.isnan(scores.mean).any()


def test_a_scale_of_next_to_nothing_gives_no_warning() -> None:
    assert normalise(np.array([0.0, 5e-324]), 0.0, 5e-324)[0] != 1


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: load_plugins().portfolio("synthetic", algorithms=9007199254740993), "algorithms must be"),
        (lambda: load_plugins().portfolio("synthetic", timepoints="1" + 400 * "0"), "timepoints must be"),
        (lambda: LogOptions.parse({"functions": "1," + 5000 * "9"}), "functions: expected numbers"),
    ],
)
def test_options_that_ask_for_more_than_there_is_are_refused(ask: Callable[[], object], what: str) -> None:
    with pytest.raises(InvalidInputError, match=what) as caught:
        ask()
    assert len(str(caught.value)) < 300
