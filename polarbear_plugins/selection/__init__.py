"""Choosing an algorithm, or several, under a preference over time and a risk profile."""

from polarbear_plugins.selection.choice import Choice, select
from polarbear_plugins.selection.portfolio import PortfolioChoice, select_portfolio
from polarbear_plugins.selection.preferences import BudgetDistribution, vectorized

__all__ = [
    "BudgetDistribution",
    "Choice",
    "PortfolioChoice",
    "select",
    "select_portfolio",
    "vectorized",
]
