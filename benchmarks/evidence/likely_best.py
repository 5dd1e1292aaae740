"""How often the configuration that ``likely_best`` calls the best is the best, and how often it says so.

    python benchmarks/evidence/likely_best.py                  # 300 studies of each kind: 5 minutes

Each study has 20 configurations of two parameters on six folds.  Printed for each kind of study: the mean probability,
the share of studies in which the configuration is the best, the difference in standard errors, and the same for answers
with a probability above 0.8.  Regrets are those of the answer and of the lowest mean over all folds, in units of the
spread of the means.

model       means and noise as the model says: normal, independent of the parameters
smooth      means that depend on the parameters
pruned      smooth, and half of the trials end after two to five folds if they look bad
heavy       smooth, noise with a t distribution of three degrees of freedom
unequal     smooth, noise that differs between configurations by a lognormal factor (0.7)
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import optuna
from numpy.typing import NDArray

from polarbear_plugins.integrations.optuna_sampler import likely_best

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

KINDS = ("model", "smooth", "pruned", "heavy", "unequal")
CONFIGURATIONS, FOLDS, NOISE = 20, 6, 1.0
SPACE: dict[str, optuna.distributions.BaseDistribution] = {
    name: optuna.distributions.FloatDistribution(0, 1) for name in ("x", "y")
}


def draw_means(kind: str, points: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Mean losses of configurations, with a standard deviation of about 1."""
    if kind == "model":
        return rng.standard_normal(len(points))
    waves, phases = rng.normal(0, 3, (40, 2)), rng.uniform(0, 2 * np.pi, 40)
    return np.sqrt(2 / 40) * np.cos(points @ waves.T + phases).sum(axis=1)


def draw_losses(kind: str, means: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Losses by fold and configuration; ``nan`` where a trial was pruned."""
    shape = FOLDS, len(means)
    noise = rng.standard_t(3, shape) / np.sqrt(3) if kind == "heavy" else rng.standard_normal(shape)
    scale = np.exp(0.7 * rng.standard_normal(len(means))) if kind == "unequal" else 1.0
    losses = 3 * rng.standard_normal((FOLDS, 1)) + means + NOISE * scale * noise
    if kind == "pruned":
        for column in range(len(means)):
            end = int(rng.integers(2, 6))
            if losses[:end, column].mean() > np.nanmedian(losses[:end]):
                losses[end:, column] = np.nan
    return losses


def study_of(points: NDArray[np.float64], losses: NDArray[np.float64]) -> optuna.Study:
    """A study with these trials."""
    study = optuna.create_study()
    for point, column in zip(points.tolist(), losses.T, strict=True):
        reports = {fold: float(loss) for fold, loss in enumerate(column) if not np.isnan(loss)}
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(zip(SPACE, point, strict=True)),
                distributions=SPACE,
                value=float(np.nanmean(column)),
                intermediate_values=reports,
            )
        )
    return study


def ask(kind: str, seed: int) -> tuple[float, bool, float, float]:
    """Probability of the answer, whether it is right, its regret, and that of the lowest mean over all folds."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    points = rng.random((CONFIGURATIONS, len(SPACE)))
    means = draw_means(kind, points, rng)
    losses = draw_losses(kind, means, rng)
    best = likely_best(study_of(points, losses), steps="instances", seed=seed)
    chosen = int(np.flatnonzero(points[:, 0] == best.parameters["x"])[0])
    full = ~np.isnan(losses).any(axis=0)
    luckiest = int(np.where(full, losses.mean(axis=0), np.inf).argmin())
    return best.probability, means[chosen] == means.min(), means[chosen] - means.min(), means[luckiest] - means.min()


def main() -> None:
    """Print a row for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parse_arguments(parser, {"studies": 5})
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(
        f"{'kind':10s} {'P(best)':>8s} {'right':>6s} {'z':>6s}   above 0.8: P, right, of   regret  of the lowest mean"
    )
    for kind in KINDS:
        found = [ask(kind, options.first_seed + seed) for seed in range(options.studies)]
        probability, right, regret, luckiest = (np.array(column, dtype=float) for column in zip(*found, strict=True))
        error = np.sqrt((probability * (1 - probability)).sum()) / len(probability)
        z = (probability.mean() - right.mean()) / error
        sure = probability > 0.8
        of_sure = f"{probability[sure].mean():.2f} {right[sure].mean():.2f} {sure.sum():5d}" if sure.any() else "none"
        report_figure(
            f"{kind:10s} {probability.mean():8.3f} {right.mean():6.3f} {z:6.1f}   {of_sure:>22s}   {regret.mean():6.3f}"
            f"  {luckiest.mean():.3f}",
            f"mean probability minus share of right answers, {kind}",
            probability.mean() - right.mean(),
            "0",
        )


if __name__ == "__main__":
    main()
