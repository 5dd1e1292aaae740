"""Rankings from known utilities, for scripts that compare a posterior with the truth or with another posterior."""

import numpy as np
from scipy.stats import norm

from polarbear_plugins import RankingTable


def simulate(utilities: np.ndarray, instances: int, rho: float, rng: np.random.Generator) -> RankingTable:
    """Simulate runs whose Gumbel noise correlates by ``rho`` from one timepoint to the next."""
    timepoints, n = utilities.shape
    noise = rng.standard_normal((instances, timepoints, n))
    for t in range(1, timepoints):
        noise[:, t] = rho * noise[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    gumbel = -np.log(-norm.logcdf(noise))
    return RankingTable.from_values(
        utilities + gumbel,
        algorithms=[f"a{i}" for i in range(n)],
        timepoints=np.arange(1, timepoints + 1),
        maximize=True,
    )


def rankings(n: int, instances: int, timepoints: int, seed: int = 2) -> RankingTable:
    """Rankings by smoothly changing utilities."""
    rng = np.random.default_rng(seed)
    time_ = np.linspace(0, 1, timepoints)
    kernel = np.exp(-0.5 * ((time_[:, None] - time_) / 0.4) ** 2) + 1e-8 * np.eye(timepoints)
    smooth = np.linalg.cholesky(kernel) @ rng.normal(size=(timepoints, n))
    return simulate(0.7 * (rng.normal(size=n) + smooth), instances, 0.0, rng)
