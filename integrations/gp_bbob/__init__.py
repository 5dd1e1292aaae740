"""GP-BBOB: mixtures of the 24 SBOX functions whose weights change over the box (appendix C of the PolarBear paper).

The logits of the weights are a Gaussian process, made of random Fourier features; at x only the k(x) largest weights
count, and k(x) comes from another Gaussian process.
"""

from __future__ import annotations

from collections.abc import Mapping

from polarbear_plugins.extras import require
from polarbear_plugins.integrations.gp_bbob.mixture import Mixture
from polarbear_plugins.integrations.gp_bbob.suite import PRIORS, WHO, GpBbobProblem, GpBbobSuite
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import Suite

__all__ = ["PRIORS", "GpBbobProblem", "GpBbobSuite", "Mixture", "polarbear_suite"]


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """gp-bbob: mixtures of SBOX functions that change over the box; options dimension and the paper's other priors."""
    if name != GpBbobSuite.name:
        return None
    suite = GpBbobSuite(options)
    require("ioh", extra="ioh", who=WHO)
    return suite
