"""What this package writes and reads again: journals, posteriors, results, and the answers of workers on Dask."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.rewriting import reformatted_json
from fuzzing.runs import answer_of, flaw_of_runs, steps
from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    analyze,
    compare,
    fit,
    race,
    select,
)
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.posterior.posterior import Posterior


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


def _read_journal(folder: Path) -> Answer:
    return {("result",): load_result(folder / "race.db").to_json()}


def some_posterior() -> Posterior:
    """A small posterior."""
    values = np.random.default_rng(5).random((8, 3, 3))
    table = RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[1, 2, 3])
    return fit(table, "random-walk", draws=100, seed=1)


def _make_posterior(folder: Path) -> None:
    (folder / "fitted").mkdir()
    some_posterior().save(folder / "fitted" / "posterior.npz")


def _read_posterior(folder: Path) -> Answer:
    posterior = Posterior.load(folder / "posterior.npz")
    return {
        ("selected",): repr(select(posterior)),
        ("better",): compare(posterior).p_better.tolist(),
        ("shown",): posterior._repr_html_(),
    }


def _make_result(folder: Path) -> None:
    (folder / "raced").mkdir()
    _race().save(folder / "raced" / "result.npz")
    values = np.random.default_rng(6).random((6, 2, 3))
    options: dict[str, Any] = {"algorithms": ["a", "b", "c"], "timepoints": [1, 2], "instances": list("xyzxyz")}
    table = RankingTable.from_values(values, groups=list("gghggh"), **options)
    (folder / "grouped").mkdir()
    analyze(table, RaceSettings(seed=1, draws=100)).save(folder / "grouped" / "result.npz")


def _read_result(folder: Path) -> Answer:
    result = load_result(folder / "result.npz")
    return {("result",): result.to_json(), ("summary",): result.summary().to_csv()}


# --- answers of workers


def _request() -> Any:
    from polarbear_plugins.execution.requests import Registered, Request
    from polarbear_plugins.problems.protocols import Identity

    return Request(
        algorithm=Registered("synthetic", "{}"),
        algorithm_name="a",
        problem=None,
        suite=Registered("synthetic", "{}"),
        identity=Identity("f1", {}),
        horizon=10.0,
        unit=1.0,
        seed=3,
        timepoints=np.array([1.0, 10.0]),
    )


def _make_dask(folder: Path) -> None:
    (folder / "run").mkdir()
    run = {"times": [1.0, 4.0, 6.5], "best": [3.0, 2.0, 0.25], "seconds": 0.5}
    (folder / "run" / "answer.json").write_text(json.dumps(run))


def _read_dask(folder: Path) -> Answer:
    from polarbear_plugins.integrations.dask_executor.messages import read_answer

    text = (folder / "answer.json").read_bytes().decode("utf-8", "surrogateescape")
    run, seconds = read_answer(text, _request())
    return {**answer_of([run]), ("seconds",): seconds}


def _flaw_of_dask(answer: Answer) -> str:
    seconds = answer["seconds",]
    if type(seconds) is not float or not 0 <= seconds < math.inf:
        return f"seconds are {seconds!r}"
    return flaw_of_runs({key: part for key, part in answer.items() if key != ("seconds",)})


def _same_dask(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Order of keys and blanks change nothing."""
    [(name, data)] = files.items()
    return Declared({name: reformatted_json(data, rng)}, (whole,), "written in another way")


def _another_dask(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Another value between its neighbours: only it differs."""
    [(name, data)] = files.items()
    run = json.loads(data)
    run["best"][1] = rng.uniform(0.3, 2.9)
    [(key, part)] = [pair for pair in whole.items() if pair[0] != ("seconds",)]
    expected = {**whole, key: steps(run["times"], run["best"], *part[2:])}
    return Declared({name: json.dumps(run).encode()}, (expected,), "another value")


def _refusable_dask(files: Files, _: Answer, rng: random.Random) -> Declared:
    """Times and values that no run has, and answers that are none."""
    [(name, data)] = files.items()
    run = json.loads(data)
    kind = rng.randrange(6)
    if kind == 0:
        run["times"][rng.randrange(3)] = rng.choice((math.nan, math.inf, -1.0, "x", None, [], 11.0))
    elif kind == 1:
        run["times"].reverse()
    elif kind == 2:
        run["best"].reverse()
    elif kind == 3:
        del run[rng.choice(list(run))]
    elif kind == 4:
        run["seconds"] = rng.choice((math.nan, -1.0, "x", None, [1.0], True))
    else:
        text = json.dumps(run).encode()
        return Declared({name: text[: rng.randrange(len(text))]}, (None,), "cut")
    return Declared({name: json.dumps(run).encode()}, (None,), f"refusable {kind}: {run!r}")


READERS = {
    "journal": Reader(_make_journal, _read_journal, slow=True),
    "posterior": Reader(_make_posterior, _read_posterior),
    "result": Reader(_make_result, _read_result, slow=True),
    "dask": Reader(
        _make_dask,
        _read_dask,
        changes=(_same_dask, _another_dask, _refusable_dask),
        flaw=_flaw_of_dask,
        names_file=False,
    ),
}
