"""Selection in the report: every preference with every risk, precomputed for the control in the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from polarbear_plugins.display.html import Markup, html_table, text
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.advice import either
from polarbear_plugins.report.at_budget import LITTLE, bounded
from polarbear_plugins.report.words import misfits
from polarbear_plugins.selection.choice import Choice, select_each
from polarbear_plugins.selection.preferences import PreferenceLike

RISKS = {
    "expected": "the mean value",
    "best": "the probability of being best",
    "quantile:0.05": "the value that is exceeded with probability 95 %",
}
COLUMNS = ("algorithm", ">score", ">value", ">95 % interval", ">P(best)", ">expected regret")
_BUDGETS = 3  # timepoints between the first and the last that are offered as preferences


def preferences_of(result: RaceResult, unit: str = "") -> dict[str, tuple[str, PreferenceLike]]:
    """Preferences of the control, by their key in links: a description, and what ``select`` takes."""
    grid = result.timepoints
    unit = f" {unit}" if unit else ""
    if grid.size == 1:  # all preferences are the same
        return {"uniform": (f"the only timepoint, {grid[0]:,.5g}{unit}", "uniform")}
    found: dict[str, tuple[str, PreferenceLike]] = {
        "uniform": (f"uniform: any budget from {grid[0]:,.5g} to {grid[-1]:,.5g}{unit} alike", "uniform"),
    }
    if grid[0] > 0:
        found["log-uniform"] = ("log-uniform: each factor of the budget alike", "log-uniform")
    found["final"] = (f"final: the whole budget, {grid[-1]:,.5g}{unit}", "final")
    found["worst"] = ("worst: the budget at which it is worst", "worst")
    for place in sorted({round(share * (grid.size - 1)) for share in np.linspace(0, 1, _BUDGETS + 2)[:-1]}):
        weights = np.eye(grid.size)[place]
        found[f"budget-{grid[place]:.5g}"] = (f"a budget of {grid[place]:,.5g}{unit}", weights)
    return found


def choices_of(result: RaceResult, robust: Posterior, unit: str = "") -> dict[str, dict[str, dict[str, Any]]]:
    """Texts to show for each preference and risk: a sentence, and the rows of a table.

    ``robust`` is the posterior to choose from.
    """
    preferences = preferences_of(result, unit)
    taken = [preference for _, preference in preferences.values()]
    found = select_each(robust, result.pareto_set, taken, RISKS)
    return {
        key: {risk: _describe(choice, says, risk) for risk, choice in zip(RISKS, choices, strict=True)}
        for (key, (says, _)), choices in zip(preferences.items(), found, strict=True)
    }


def selection_section(
    result: RaceResult, choices: dict[str, dict[str, dict[str, Any]]], figures: Markup, unit: str = ""
) -> Markup:
    """Control, what it shows at first, ``figures`` of the values, and a table of all choices, which needs no script."""
    preferences = preferences_of(result, unit)
    first = choices["uniform"]["expected"]
    options = "".join(f'<option value="{text(key)}">{text(says)}</option>' for key, (says, _) in preferences.items())
    risks = "".join(f'<option value="{risk}">{risk}: {text(says)}</option>' for risk, says in RISKS.items())
    doubtful = "" if first["supported"] else " doubtful"
    table = html_table(COLUMNS, first["rows"]).replace("<tbody>", '<tbody id="choice-rows">')
    overview = html_table(
        ("preference", *RISKS),
        [[says, *(_chosen(choices[key][risk]) for risk in RISKS)] for key, (says, _) in preferences.items()],
    )
    note = (
        ""
        if result.posterior.joint or result.timepoints.size == 1
        else f"<p>The prior {text(result.settings.prior)} treats timepoints as independent: a value over several of "
        "them then varies as little as that model implies, so the intervals, P(best), the quantiles and whether a "
        "choice is supported are overconfident. Means are not affected; for the rest, use a temporal prior such as "
        "bspline.</p>"
    )
    basis = (
        " Since the model does not fit, that probability follows from first places among them."
        if misfits(result) and len(result.pareto_set) > 1
        else ""
    )
    return Markup(
        "<p>What to choose depends on what is known about the later budget (preference) and on how much risk is "
        "acceptable. The value of an algorithm is its probability of being the best of those that are left, weighted "
        f"over time by the preference.{basis}</p>"
        f'<form id="control" class="control" hidden><label>Preference <select id="preference">{options}</select>'
        f'</label><label>Risk <select id="risk">{risks}</select></label></form>'
        f'<div aria-live="polite"><p class="says{doubtful}" id="choice-says">{text(first["says"])}</p>'
        f'<div class="wide">{table}</div></div>'
        f'{figures}{note}<h3>All choices</h3><div class="wide">{overview}</div>'
    )


def _chosen(choice: dict[str, Any]) -> str:
    """Name of the choice, and that the data do not support it."""
    return str(choice["algorithm"]) if choice["supported"] else f"{choice['algorithm']} (not supported)"


def _describe(choice: Choice, preference: str, risk: str) -> dict[str, Any]:
    draws = len(choice.values)
    rows = [
        [
            str(name),
            bounded(row["score"], draws) if choice.risk == "best" else f"{row['score']:.3g}",
            f"{row['mean']:.3g}",
            f"{row['low']:.3g} to {row['high']:.3g}",
            bounded(row["p_best"], draws),
            f"< {LITTLE:g}" if row["expected_regret"] < LITTLE else f"{row['expected_regret']:.3g}",
        ]
        for name, row in choice.summary().iterrows()
    ]
    regret = f"below {LITTLE:g}" if choice.expected_regret < LITTLE else f"{choice.expected_regret:.3g}"
    lost = f"Expected regret {regret}: the value lost on average against the best choice."
    if len(choice.candidates) == 1:
        says = f"{choice.algorithm} is the only one that is left (preference {preference}; risk {risk})."
    elif choice.supported:
        says = f"Choose {choice.algorithm} (preference {preference}; risk {risk}). {lost}"
    else:
        others = f"; {either(choice.rivals)} may be better" if choice.rivals else ""
        says = (
            f"No choice is supported (preference {preference}; risk {risk}): {choice.algorithm} is highest{others}. "
            f"{lost}"
        )
    return {"algorithm": choice.algorithm, "supported": choice.supported, "says": says, "rows": rows}
