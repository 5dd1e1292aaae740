"""Independent timepoints: Dirichlet priors."""

from __future__ import annotations

from polarbear_plugins.priors.base import check_positive


class Dirichlet:
    """Ratings at each timepoint are Dirichlet(alpha, ..., alpha), independently of the other timepoints."""

    name = "dirichlet"

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = check_positive(alpha, "dirichlet: alpha")


class HierarchicalDirichlet:
    """Ratings at each timepoint are Dirichlet(kappa / n), with one kappa ~ Exponential(rate) for all timepoints."""

    name = "hierarchical-dirichlet"

    def __init__(self, *, rate: float = 0.1) -> None:
        self.rate = check_positive(rate, "hierarchical-dirichlet: rate")
