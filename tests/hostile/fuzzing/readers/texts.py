"""Options, which come as text: on the command line, in a journal, in the name of a study."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzzing.kinds import Answer, Declared, Files, Reader
from fuzzing.readers.own import some_posterior
from fuzzing.rewriting import reformatted_json
from fuzzing.runs import some_runs
from polarbear_plugins import select
from polarbear_plugins.plugins.manager import load_plugins


def _options() -> dict[str, tuple[Callable[[str], object], tuple[str, ...]]]:
    from polarbear_plugins.adapters.coco.options import CocoOptions
    from polarbear_plugins.adapters.ioh_logs.options import LogOptions
    from polarbear_plugins.adapters.optuna_study.name_pattern import NamePattern
    from polarbear_plugins.cli.options import parse_key_values, parse_numbers, parse_timepoints, settings_from
    from polarbear_plugins.options import flag, whole_numbers
    from polarbear_plugins.partial_orders.criteria import best_at_timepoints
    from polarbear_plugins.problems.protocols import Identity
    from polarbear_plugins.racing.posteriors import check_inference
    from polarbear_plugins.trajectories.columns import LongFormOptions

    plugins, posterior = load_plugins(), some_posterior()

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
        return wanted if isinstance(wanted, int) else best_at_timepoints(some_runs()[:2], wanted)

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
        "coco": (lambda text: repr(CocoOptions.parse(pairs(text))), ("functions=1,3-5 best=rows",)),
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


def _make(folder: Path) -> None:
    for kind, (_, texts) in _options().items():
        for number, text in enumerate(texts):
            (folder / f"{kind}{number}").mkdir()
            name = "identity.json" if kind == "identity" else f"{kind}.txt"
            (folder / f"{kind}{number}" / name).write_text(text)


def _read(folder: Path) -> Answer:
    if not _READ_OPTION:
        _READ_OPTION.update({kind: read for kind, (read, _) in _options().items()})
    [path] = folder.iterdir()
    return {("read",): repr(_READ_OPTION[path.stem](path.read_bytes().decode("utf-8", "surrogateescape")))}


# --- changes that say what must come of them


def _same(files: Files, whole: Answer, rng: random.Random) -> Declared | None:
    """Order of options and of keys, blanks between numbers and the case of yes and no change nothing."""
    [(name, data)] = files.items()
    kind, text = name.partition(".")[0], data.decode()
    if kind == "identity":
        return Declared({name: reformatted_json(data, rng)}, (whole,), "keys in another order")
    if kind in ("table", "logs", "coco"):
        parts = text.split(" ")
        rng.shuffle(parts)
        text = " ".join(parts)
    elif kind in ("timepoints", "numbers"):
        text = text.replace(",", rng.choice((",", ", ", " ,"))).replace(
            "5-8", rng.choice(("5-8", "5,6,7,8", "5-6,7-8"))
        )
    elif kind == "flag":
        text = rng.choice((text.upper(), text.title(), {"true": "1", "no": "0"}[text]))
    else:
        return None
    return Declared({name: text.encode()}, (whole,), f"{kind}: {text!r}")


def _refusable(files: Files, _: Answer, rng: random.Random) -> Declared | None:
    """Unknown options, numbers that are none, times that do not increase."""
    [(name, data)] = files.items()
    kind, text = name.partition(".")[0], data.decode()
    if kind in ("table", "logs", "coco", "settings", "suite"):
        text += rng.choice((" nobody=1", " =1", " nobody"))
    elif kind == "timepoints":
        text = rng.choice(("1,nan", "1,inf", "-1,2", "2,1", "1,1", "0", "-5", "1,,2", "x", "1,2,"))
    elif kind == "numbers":
        text = rng.choice(("0", "25", "5-3", "1,x", "1.5", "-1", "1-", "", "nan"))
    elif kind == "flag":
        text = rng.choice(("", "2", "maybe", "truee", "nan"))
    elif kind == "pattern":
        text = rng.choice(("{algorithm}", "{algorithm}-{algorithm}", "{algorithm}-{instance}-{x}", "(?P<algorithm>"))
    elif kind == "identity":
        document = json.loads(text)
        document[rng.choice(("name", "parameters"))] = rng.choice((None, 1.5, [1], True))
        text = json.dumps(document)
    else:
        return None
    return Declared({name: text.encode()}, (None,), f"{kind}: {text!r}")


READERS = {
    "options": Reader(_make, _read, ("modcma", "ioh"), changes=(_same, _refusable), names_file=False),
}
