"""Storages of Optuna: SQLite files and journals."""

from __future__ import annotations

import json
import random
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from fuzzing.damage import json_mutation, text_mutation
from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.runs import answer_of, flaw_of_runs, improvements, plugin, steps

_STUDY, _TRIAL, _END = 0, 4, 6  # how a journal numbers what happened
_NOTHING_ELSE = (None, False, None, "unknown")  # no group, no dimension


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


def _make_sqlite(folder: Path) -> None:
    (folder / "made").mkdir()
    _make_study(f"sqlite:///{folder / 'made' / 'studies.db'}")


def _make_journal(folder: Path) -> None:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    (folder / "made").mkdir()
    _make_study(optuna.storages.JournalStorage(JournalFileBackend(str(folder / "made" / "studies.log"))))


def _read(folder: Path) -> Answer:
    path = next(path for path in folder.iterdir() if path.suffix in (".db", ".log"))
    plugins = plugin("polarbear_plugins.adapters.optuna_study")
    by_trial = answer_of(plugins.read_trajectories(path))
    return by_trial | answer_of(plugins.read_trajectories(path, time="seconds"), "seconds")


def _lines_mutation(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage one line of JSON among others."""
    lines = data.splitlines(keepends=True)
    if not lines or rng.random() < 0.2:
        return text_mutation(data, rng, other)
    at = rng.randrange(len(lines))
    lines[at] = json_mutation(lines[at], rng, other) + b"\n"
    return b"".join(lines)


# --- what a storage says, read by plain loops


def _answer(studies: dict[str, list[tuple[str, str, float]]]) -> Answer:
    """What studies mean: of each trial the start, the end and the value."""
    answer: Answer = {}
    for study, trials in studies.items():
        algorithm, instance, seed = study.split("-")
        first = min(datetime.fromisoformat(start) for start, _, _ in trials)
        ends = [(datetime.fromisoformat(end) - first).total_seconds() for _, end, _ in trials]
        values = [value for _, _, value in trials]
        numbers = [float(number) for number in range(1, len(trials) + 1)]
        for kind, times in (("run", numbers), ("seconds", ends)):
            points = zip(times, values, strict=True)
            answer[kind, algorithm, instance, int(seed)] = steps(*improvements(points), times[-1], *_NOTHING_ELSE)
    return answer


def _lines(files: Files) -> tuple[str, list[Any]]:
    [(name, data)] = files.items()
    return name, [json.loads(line) for line in data.splitlines()]


def _ended(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["op_code"] == _END and line.get("values")]


def _answer_of_journal(lines: list[Any]) -> Answer:
    names = [line["study_name"] for line in lines if line["op_code"] == _STUDY]
    begun = [line for line in lines if line["op_code"] == _TRIAL]
    studies: dict[str, list[tuple[str, str, float]]] = {}
    for end in _ended(lines):
        begin = begun[end["trial_id"]]
        trial = begin["datetime_start"], end["datetime_complete"], end["values"][0]
        studies.setdefault(names[begin["study_id"]], []).append(trial)
    return _answer(studies)


def _journal(name: str, lines: list[Any]) -> Files:
    return {name: "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()}


def _in_database(files: Files, statement: str, *values: Any) -> tuple[Files, Answer]:
    """The storage after a statement, and what it says then."""
    [(name, data)] = files.items()
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        connection.execute(statement, values)
        connection.commit()
        connection.execute("VACUUM")
        rows = connection.execute(
            "SELECT study_name, datetime_start, datetime_complete, value FROM trial_values "
            "JOIN trials USING (trial_id) JOIN studies USING (study_id) ORDER BY study_name, number"
        ).fetchall()
        studies: dict[str, list[tuple[str, str, float]]] = {}
        for study, start, end, value in rows:
            studies.setdefault(study, []).append((start, end, value))
        return {name: connection.serialize()}, _answer(studies)
    finally:
        connection.close()


# --- changes that say what must come of them


def _same_journal(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """The order of keys after the first changes nothing."""
    name, lines = _lines(files)
    for place, line in enumerate(lines):
        rest = [key for key in line if key != "op_code"]
        rng.shuffle(rest)
        lines[place] = {"op_code": line["op_code"], **{key: line[key] for key in rest}}
    return Declared(_journal(name, lines), (whole,), "written in another way")


def _another_value(files: Files, _: Answer, rng: random.Random) -> Declared:
    """A trial with another value: only its study differs."""
    name, lines = _lines(files)
    rng.choice(_ended(lines))["values"] = [rng.uniform(-1, 1)]
    return Declared(_journal(name, lines), (_answer_of_journal(lines),), "another value")


def _refusable_journal(files: Files, _: Answer, rng: random.Random) -> Declared:
    """Lines that are none, and finished trials without a value."""
    name, lines = _lines(files)
    kind = rng.randrange(3)
    if kind == 0:
        rng.choice(_ended(lines))["values"] = None
    elif kind == 1:
        rng.choice([line for line in lines if line["op_code"] == _STUDY])["directions"] = [1, 1]
    else:
        made = files[name].splitlines(keepends=True)
        at = rng.randrange(len(made) - 1)
        made[at] = made[at][: rng.randrange(1, len(made[at]) - 2)] + b"\n"
        return Declared({name: b"".join(made)}, (None,), f"line {at + 1} cut")
    return Declared(_journal(name, lines), (None,), f"refusable {kind}")


def _same_database(files: Files, whole: Answer, rng: random.Random) -> Declared:
    """Larger pages, in another order, change nothing."""
    return Declared(
        _in_database(files, f"PRAGMA page_size = {rng.choice((1024, 8192, 65536))}")[0], (whole,), "packed again"
    )


def _another_value_in_database(files: Files, _: Answer, rng: random.Random) -> Declared:
    """A trial with another value: only its study differs."""
    change = "UPDATE trial_values SET value = ? WHERE trial_value_id = ?"
    made, expected = _in_database(files, change, rng.uniform(-1, 1), rng.randrange(1, 9))
    return Declared(made, (expected,), "another value")


def _refusable_database(files: Files, _: Answer, rng: random.Random) -> Declared:
    """Finished trials without a value, and two objectives."""
    statement = rng.choice(
        (
            "DELETE FROM trial_values WHERE trial_value_id = 3",
            "INSERT INTO study_directions (direction, study_id, objective) VALUES ('MINIMIZE', 1, 1)",
            "UPDATE trials SET state = 'DONE' WHERE trial_id = 2",
            "CREATE VIEW more AS SELECT 1",
        )
    )
    return Declared(_in_database(files, statement)[0], (None,), statement)


_NEEDS = ("optuna",)
READERS = {
    "optuna-sqlite": Reader(
        _make_sqlite,
        _read,
        _NEEDS,
        changes=(_same_database, _another_value_in_database, _refusable_database),
        flaw=flaw_of_runs,
        slow=True,
    ),
    "optuna-journal": Reader(
        _make_journal,
        _read,
        _NEEDS,
        {".log": _lines_mutation},
        changes=(_same_journal, _another_value, _refusable_journal),
        flaw=flaw_of_runs,
        slow=True,
    ),
}
