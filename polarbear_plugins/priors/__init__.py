"""Priors over ratings, one for each row of the paper's Table 1."""

from polarbear_plugins.priors.base import Prior, TemporalPrior
from polarbear_plugins.priors.bspline import BSpline
from polarbear_plugins.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear_plugins.priors.gp import GaussianProcess, HilbertSpaceGaussianProcess, SparseGaussianProcess
from polarbear_plugins.priors.random_walk import RandomWalk

__all__ = [
    "BUILT_IN_PRIORS",
    "BSpline",
    "Dirichlet",
    "GaussianProcess",
    "HierarchicalDirichlet",
    "HilbertSpaceGaussianProcess",
    "Prior",
    "RandomWalk",
    "SparseGaussianProcess",
    "TemporalPrior",
]

BUILT_IN_PRIORS = {
    prior.name: prior
    for prior in (
        Dirichlet,
        HierarchicalDirichlet,
        GaussianProcess,
        SparseGaussianProcess,
        HilbertSpaceGaussianProcess,
        RandomWalk,
        BSpline,
    )
}
