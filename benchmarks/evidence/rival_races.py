"""Racing a given portfolio: PolarBear against what else one could use, on the same runs.

    python benchmarks/evidence/rival_races.py --hpob discrete.csv --output rival_races.json --figure rival_races.png
    python benchmarks/evidence/rival_races.py --data ma-bbob --rivals "PolarBear" "irace, elitist"

Rivals: irace in one iteration on the given algorithms (elitist and not; by final values and by the area under the
curve), F-race at every timepoint, Wilcoxon's tests with Holm's correction on 100 and on 1,000 instances, successive
halving, SMAC's intensifier, and PolarBear by its default rule in rounds, without barriers (8 simulated workers: the
same answer at a higher cost), by its anytime-valid rule, and by its default rule with a limit on the cost.  Races have
300 instances at most.  A rival that is not installed is left out with a line.

Data: CMA-ES variants on MA-BBOB, recorded once and kept in --table; HPO-B (--hpob); the paper's synthetic examples; two
generators that do not follow the model (benchmarks/misfit_cases.py).  Recorded instances are drawn with replacement,
so that the truth is exact.

Printed for each, as means over replications with 95 % intervals: cost as a share of all algorithms on 100 instances;
members of the true Pareto set that were lost, by first places and by majorities; dominated algorithms that were kept;
regret of the choice under a budget with a uniform logarithm, in the share of first places, at which PolarBear aims, and
in the mean share of wins against the others, at which mean ranks do; and the share of replications in which any member
was lost (family-wise).
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, skip

# By name: the module and the function in rivals/racing/, and the options.
RIVALS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "PolarBear": ("polarbear", "polarbear", {}),
    "PolarBear, continuous": ("polarbear", "polarbear", {"workers": 8}),
    "PolarBear, anytime-valid": ("polarbear", "polarbear", {"rule": "anytime-valid"}),
    "PolarBear, cost 1": ("polarbear", "polarbear", {"affordable": 100}),
    "PolarBear, cost 0.2": ("polarbear", "polarbear", {"affordable": 20}),
    "irace, elitist": ("irace", "irace", {"elitist": True, "anytime": False}),
    "irace, elitist, anytime": ("irace", "irace", {"elitist": True, "anytime": True}),
    "irace, non-elitist": ("irace", "irace", {"elitist": False, "anytime": False}),
    "irace, non-elitist, anytime": ("irace", "irace", {"elitist": False, "anytime": True}),
    "F-race": ("f_race", "f_race", {}),
    "Wilcoxon-Holm, 100": ("wilcoxon_holm", "wilcoxon_holm", {"instances": 100}),
    "Wilcoxon-Holm, 1,000": ("wilcoxon_holm", "wilcoxon_holm", {"instances": 1000}),
    "successive halving": ("successive_halving", "successive_halving", {}),
    "SMAC's intensifier": ("smac_intensifier", "smac_intensifier", {}),
}
DATA = ("ma-bbob", "hpo-b", "plackett-luce", "heavy tails", "two kinds")
COLUMNS = {
    "cost share": "cost",
    "lost": "lost",
    "lost by majority": "by majority",
    "dominated kept": "dominated kept",
    "regret": "regret",
    "regret by wins": "regret by wins",
    "family-wise": "family-wise",
}
_FULL = 100  # instances to which costs are related
Job = tuple[str, str, int]


def installed(names: list[str]) -> dict[str, str]:
    """Versions of those rivals that can run here; a line for each of the others."""
    versions = {}
    for name in names:
        try:
            module = import_module(f"rivals.racing.{RIVALS[name][0]}")
            versions[name] = module.version()
        except ImportError as missing:
            print(f"left out: {name} ({missing})", flush=True)
    return versions


def recorded_with(data: list[str]) -> dict[str, str]:
    """Versions of the packages whose runs are raced."""
    return {name: metadata.version(name) for name in ("modcma", "ioh")} if "ma-bbob" in data else {}


def one_replication(job: Job, contest_of: Callable[..., Any], seed: int) -> dict[str, float]:
    """Scores of one rival on one contest, which is the same for all rivals."""
    from rivals.contest import score
    from threadpoolctl import threadpool_limits

    data, rival, replication = job
    module, function, options = RIVALS[rival]
    contest = contest_of(data, seed + replication)
    with threadpool_limits(1):  # contests are small, and threads would only wait for each other
        verdict = getattr(import_module(f"rivals.racing.{module}"), function)(contest, seed + replication, **options)
    found = score(contest, verdict)
    return {**found, "cost share": found["cost"] * len(contest.values) / (_FULL * contest.full_cost)}


def run(jobs: list[Job], work: Callable[[Job], dict[str, float]], workers: int, path: Path | None) -> dict[Job, Any]:
    """Scores of all jobs; those that a file has are not run again, and new ones are appended to it."""
    found: dict[Job, Any] = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            *job, scores = json.loads(line)
            found[tuple(job)] = scores
    missing = [job for job in jobs if job not in found]
    with ProcessPoolExecutor(workers) as pool:
        for job, scores in zip(missing, pool.map(work, missing), strict=True):
            found[job] = scores
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([*job, scores]) + "\n")
    return {job: found[job] for job in jobs}


def compared(rows: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Summaries of all rivals on some data, and PolarBear's differences from them on the same contests."""
    from rivals.racing.summaries import cost_ratio, paired, summarize

    summaries: dict[str, Any] = {name: summarize(scores) for name, scores in rows.items()}
    for name, scores in rows.items():
        if "PolarBear" in rows and name != "PolarBear":
            mine = rows["PolarBear"]
            summaries[name]["PolarBear against it"] = {
                "cost ratio": cost_ratio([one["cost"] for one in mine], [one["cost"] for one in scores]),
                **{
                    f"{measure} difference": paired([one[measure] for one in mine], [one[measure] for one in scores])
                    for measure in ("regret", "regret by wins", "lost", "dominated kept")
                },
            }
    return summaries


def print_table(data: str, summaries: dict[str, Any]) -> None:
    """Print a line for each rival, and hand on the ratio of PolarBear's cost to its own."""
    print(f"\n{data:28}" + "".join(f"{heading:>24}" for heading in COLUMNS.values()))
    for name, summary in summaries.items():
        cells = [_cell(summary[measure], 2 if measure == "cost share" else 3) for measure in COLUMNS]
        line = f"{name:28}" + "".join(f"{cell:>24}" for cell in cells)
        against = summary.get("PolarBear against it")
        if against is None:
            print(line, flush=True)
        else:
            ratio = against["cost ratio"]["mean"]
            report_figure(line, f"cost of PolarBear, {data}", ratio, f"cost of {name}", "lower")


def _cell(found: dict[str, float], digits: int) -> str:
    return f"{found['mean']:.{digits}f} [{found['low']:.{digits}f}, {found['high']:.{digits}f}]"


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=30, help="contests for each kind of data")
    parser.add_argument(
        "--data", nargs="+", choices=DATA, default=list(DATA), metavar="DATA", help=f"of {', '.join(DATA)}"
    )
    rivals = f"of {'; '.join(RIVALS)}"
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS), metavar="RIVAL", help=rivals)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--hpob", type=Path, metavar="CSV", help="results of HPO-B: algorithm,instance,seed,time,value")
    table = Path(tempfile.gettempdir()) / "polarbear_rival_races.npz"
    parser.add_argument("--table", type=Path, default=table, help="where the runs on MA-BBOB are kept")
    parser.add_argument("--instances", type=int, default=600, help="problems of MA-BBOB to record")
    parser.add_argument("--partial", type=Path, help="a file of finished races; they are not run again")
    parser.add_argument("--output", type=Path, help="JSON")
    parser.add_argument("--figure", type=Path, help="PNG")
    return parse_arguments(parser, {"replications": 2, "instances": 20, "data": ["plackett-luce", "two kinds"]})


def main() -> None:
    """Race, print a table for each kind of data, and write the figures down."""
    options = parse()
    data = [name for name in options.data if name != "hpo-b" or options.hpob is not None]
    if len(data) < len(options.data):
        print("left out: hpo-b (it needs --hpob with the results of the public benchmark)", flush=True)
    versions = installed(options.rivals)
    if not data or not versions:
        skip("There is nothing to race: no data, or none of the rivals is installed.")
    from rivals.racing.data import contest_of, prepare

    prepare(data, options.table, options.instances)
    given = partial(contest_of, recorded=options.table, recorded_instances=options.instances, hpob_csv=options.hpob)
    jobs = [(kind, rival, place) for kind in data for place in range(options.replications) for rival in versions]
    found = run(jobs, partial(one_replication, contest_of=given, seed=options.seed), options.workers, options.partial)
    print(f"\n{options.replications} replications, seed {options.seed}; means [95 % interval]")
    for rival, version in versions.items():
        print(f"  {rival}: {version}")
    results = {}
    for kind in data:
        rows: dict[str, list[dict[str, float]]] = defaultdict(list)
        for (of_kind, rival, _), scores in found.items():
            if of_kind == kind:
                rows[rival].append(scores)
        results[kind] = compared(rows)
        print_table(kind, results[kind])
    if options.output:
        about = {key: getattr(options, key) for key in ("replications", "seed", "instances")}
        content = {**about, "versions": versions, "recorded with": recorded_with(data), "results": results}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if options.figure:
        from rivals.racing.figure import draw

        draw(results, options.figure)


if __name__ == "__main__":
    main()
