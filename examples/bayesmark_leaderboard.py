"""Score the optimizers of a Bayesmark database, and see where their rankings say something else.

    python examples/bayesmark_leaderboard.py --quick
    python examples/bayesmark_leaderboard.py path/to/database

Without a database a small one is made up: random search, an optimizer that is a little better everywhere, and one that
is often much better and sometimes lost. `polarbear leaderboard DB` shows more.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import uuid
from pathlib import Path

import numpy as np

from polarbear_plugins import RaceSettings, rank
from polarbear_plugins.adapters.bayesmark import read_database
from polarbear_plugins.measures.disagreements import find_disagreements
from polarbear_plugins.measures.scores import score_studies
from polarbear_plugins.racing.analysis import analyze

FUNCTIONS = [f"{model}_wine_nll" for model in ("DT", "kNN")]
FUNCTIONS += [f"{model}_{data}_mse" for model in ("DT", "kNN", "SVM", "ada") for data in ("boston", "diabetes")]


def make_up(folder: Path, studies: int, seed: int) -> None:
    """Write a database as Bayesmark does, of optimizers that only pretend to work."""
    rng = np.random.default_rng(seed)
    (folder / "eval").mkdir(parents=True)
    for number, function in enumerate(FUNCTIONS):
        for optimizer in ("RandomSearch", "steady", "daring"):
            for _ in range(studies):
                losses = rng.uniform(size=(12, 4))
                if optimizer == "steady":
                    losses **= np.linspace(1, 1.6, 12)[:, None]  # learns a little
                elif optimizer == "daring":
                    # Learns a lot, but on some functions it gets lost at once.
                    losses = 0.4 + 0.6 * losses if number % 5 == 4 else losses ** np.linspace(1, 4, 12)[:, None]
                write_study(
                    folder, rng.bytes(16), optimizer, function, losses, losses + 0.02 * rng.normal(size=(12, 4))
                )


def write_study(folder: Path, name: bytes, optimizer: str, function: str, *losses: np.ndarray) -> None:
    """Write the evaluations of one study."""
    model, data, metric = function.split("_")
    study = uuid.UUID(bytes=name).hex
    arguments = {"--uuid": study, "--opt": optimizer, "--classifier": model, "--data": data, "--metric": metric}
    variables = {
        objective: {"dims": ["iter", "suggestion"], "attrs": {}, "data": values.tolist()}
        for objective, values in zip(("_visible_to_opt", "generalization"), losses, strict=True)
    }
    content = {
        "meta": {"args": {**arguments, "opt_rev": "0.1", "rev": "example"}, "signature": [[], []]},
        "data": {"coords": {}, "attrs": {}, "data_vars": variables},
    }
    (folder / "eval" / f"{study}.json").write_text(json.dumps(content))


def show(folder: Path, resamples: int, seed: int) -> None:
    """Print scores, what they are worth, how sure they are, and what the rankings say."""
    database = read_database(folder)
    scores = score_studies(database.arrays("visible"))
    bootstrap = scores.bootstrap(resamples, seed)
    low, high = 100 * (1 - bootstrap.interval()[::-1])
    print(f"{'algorithm':32} {'score':>8} {'95 %':>16} {'median':>8} {'random evaluations':>19}")
    for k in np.argsort(-scores.leaderboard):
        worth = scores.equivalents[k]
        print(
            f"{scores.algorithms[k]:32} {scores.leaderboard[k]:8.3f} {low[k]:7.2f} to {high[k]:5.2f} "
            f"{scores.leaderboard_median[k]:8.3f} {f'> {scores.baseline.limit}' if worth is None else worth:>19}"
        )
    for ranking in bootstrap.rankings()[:3]:
        print(f"{ranking.share:6.1%} of the resamples: {ranking}")

    table = rank(database.trajectories("visible"))
    result = analyze(table, RaceSettings(seed=seed))
    ratings = result.posterior.ratings[:, -1].mean(axis=0)
    best = ", ".join(f"{name} {p:.0%}" for name, p in zip(result.algorithms, ratings, strict=True))
    print(f"\nProbability of being best of all at the end, by rankings: {best}")
    print(f"Anytime Pareto set: {', '.join(result.pareto_set)}")
    pairs = find_disagreements(scores, bootstrap, table, result.posterior)
    print("\nScores and rankings disagree:" if pairs else "\nScores and rankings agree about every pair.")
    for pair in pairs:
        print(f"- {pair}")


def main() -> None:
    """Read or make up a database, and show its leaderboard."""
    parser = argparse.ArgumentParser()
    parser.add_argument("database", nargs="?", type=Path, help="the folder of a Bayesmark database")
    parser.add_argument("--quick", action="store_true", help="3 studies of each pair, 1,000 resamples")
    parser.add_argument("--studies", type=int, default=10, help="of each made-up optimizer on each function")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.studies, arguments.resamples = 3, 1_000
    if arguments.database is not None:
        show(arguments.database, arguments.resamples, arguments.seed)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_up(Path(folder) / "made-up", arguments.studies, arguments.seed)
        show(Path(folder) / "made-up", arguments.resamples, arguments.seed)


if __name__ == "__main__":
    main()
