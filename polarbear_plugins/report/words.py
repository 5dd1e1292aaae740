"""The result of a race or an analysis in words, the same in the terminal, the notebook and the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.html import Markup, html_table
from polarbear_plugins.display.text import probability_text, spans_text
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.report.advice import advice_from
from polarbear_plugins.report.observations import never_found_anything, unused_text
from polarbear_plugins.report.stored_words import matching_text, open_pairs, run_and_stored_text, settled_text
from polarbear_plugins.selection.stretches import stretches

if TYPE_CHECKING:
    from polarbear_plugins.racing.by_group import GroupPart
    from polarbear_plugins.racing.forecast import Forecast
    from polarbear_plugins.racing.result import RaceResult


WHY_STOPPED = {
    "resolved": "every pair is settled",
    "analyzed": "every pair is settled",
    "max_rounds": "stopped after as many rounds as allowed",
    "max_cost": "stopped because the next instance would cost more than allowed",
    "instances": "stopped because the suite has no more instances",
    "inference": "stopped because no posterior is good enough to decide on",
    "requested": "stopped on request",
    "interrupted": "interrupted",
    "running": "and the race is still running",
}


def conclusion(
    result: RaceResult,
    unit: str = "",
    forecast: Forecast | None = None,
    robust: Posterior | None = None,
    other_scope: RaceResult | None = None,
) -> str:
    """What was found, which algorithm to choose, how the race ended, what is still open and how sure it is.

    What takes time to compute is given, or left out; :func:`polarbear_plugins.report.computed.compute` makes it.

    Parameters
    ----------
    unit
        Unit of time, such as ``evaluations``; left out if unknown.
    forecast
        Forecast of the instances that would settle the open pairs.
    robust
        Posterior to choose from.  Without it nothing is advised if the model does not fit.
    other_scope
        Analysis of the same data about the same groups of instances instead of new ones, or about new ones.
    """
    if not result.rounds:
        return "Interrupted before the first round was over: nothing is known yet."
    failed = never_found_anything(result)
    kept = tuple(name for name in result.pareto_set if name not in failed)
    sentences = [f"{_how_many(result, kept)}: {', '.join(kept)}."]
    if failed:
        sentences.append(f"No run of {' or '.join(failed)} found a value.")
    if misfits(result):
        sentences.append(misfit_text(result))
    if len(kept) > 1 and (robust is not None or not misfits(result)):
        sentences.append(advice(result, kept, unit, robust))
    sentences.append(_settled(result, forecast))
    if result.state.stored:
        sentences += [run_and_stored_text(result), matching_text(result)]
    elif result.stopped != "analyzed":
        share = result.cost / result.full_cost if result.full_cost else 1.0
        instances = f"{len(result.state.table.instances):,} instances"
        sentences.append(
            f"{len(result.rounds)} rounds, {instances}, {share:.0%} of the cost of running everything on as many"
            f"{unused_text(result)}."
        )
    if result.posterior.groups is not None:
        sentences.append(str(result.posterior.groups))
    if other_scope is not None and set(other_scope.pareto_set) != set(result.pareto_set):
        sentences.append(other_scope_text(other_scope))
    if result.eliminations:
        sentences.append(error_text(result))
    return " ".join(sentences)


def _how_many(result: RaceResult, kept: Sequence[str]) -> str:
    verb = "is" if len(kept) == 1 else "may be"
    return f"{len(kept)} of {len(result.algorithms)} algorithms {verb} right for some budget"


def _settled(result: RaceResult, forecast: Forecast | None) -> str:
    if result.resolved:
        return settled_text(result)
    pairs = open_pairs(result, stored=False)
    some = "; ".join(f"{one} and {other}" for one, other, _ in pairs[:3]) + (" ..." if len(pairs) > 3 else "")
    text = f"{len(pairs)} pair{'s are' if len(pairs) > 1 else ' is'} not settled ({some})"
    why = WHY_STOPPED.get(result.stopped)  # none for a word that no race writes, in a file that was changed
    if result.stopped == "instances" and result.state.stored:
        why = "stopped because newcomers have run on all instances of the archive that could settle them"
    if why is not None and result.stopped not in ("resolved", "analyzed"):
        text += f", {why}"
    if forecast is not None:
        text += f"; {forecast} would likely settle {'them' if len(pairs) > 1 else 'it'}"
    return f"{text}."


def misfits(result: RaceResult) -> bool:
    """Whether the model was checked and does not fit."""
    return result.check is not None and not result.check.fits


def misfit_text(result: RaceResult) -> str:
    """Sentence about a model that does not fit, and what follows from it."""
    found = str(result.check).removesuffix(".")
    return f"{found}; what to choose follows from first places instead." if len(result.pareto_set) > 1 else f"{found}."


def error_text(result: RaceResult) -> str:
    """How likely an elimination is wrong under the model, and how many are certain without it."""
    count, certain = len(result.eliminations), len(result.certain_without_model)
    p = result.p_any_wrong
    # What no draw shows may still have a probability of up to three times that of a draw (at a level of 95 %).
    value = f"= {p:.2g}" if p > 0 else f"< {3 / result.posterior.draws:.1g}"
    one_wrong = "the elimination is wrong" if count == 1 else f"at least one of the {count} eliminations is wrong"
    model = "Under the model, which does not fit," if misfits(result) else "Under the model"
    where = " at all timepoints at once" if result.posterior.joint else " at the least sure timepoint"
    if len(result.timepoints) == 1:
        where = ""
    if count == 1:
        without = "it is also certain without the model" if certain else "it rests on the model"
    elif certain in (0, count):
        without = "all are also certain without the model" if certain else "all rest on the model"
    else:
        without = f"{certain} of them {'is' if certain == 1 else 'are'} also certain without the model"
    return f"{model} P({one_wrong}) {value}{where}; {without}."


def other_scope_text(other: RaceResult) -> str:
    """Sentence about what an analysis says about the other scope of groups."""
    groups = other.posterior.groups
    if groups is None:
        return ""
    same = f"further instances of the same {groups.groups} groups"
    scope = same if groups.scope == "same" else "an instance of a new group"
    out = ", ".join(name for name in other.algorithms if name not in other.pareto_set)
    without = f" (without {out})" if out else ""
    return f"About {scope}: {_how_many(other, other.pareto_set)}{without}."


def advice(result: RaceResult, among: Sequence[str], unit: str = "", robust: Posterior | None = None) -> str:
    """One sentence that says which algorithm to choose for which budget; ``robust`` as for :func:`conclusion`."""
    return advice_from(stretches(robust or result.posterior, among), result.timepoints, unit)


def reasons(result: RaceResult, robust: Posterior | None = None) -> dict[str, str]:
    """Why each algorithm is in or out; ``robust`` as for :func:`conclusion`."""
    found = dict.fromkeys(result.algorithms, "not dominated")
    if robust is not None or not misfits(result):
        posterior = robust or result.posterior
        leader = np.argmax(np.where(posterior.observed, posterior.mean_ratings, -1), axis=1)
        for place, name in enumerate(posterior.algorithms):
            where = where_it_leads(result.timepoints, (leader == place) & posterior.observed[:, place])
            found[name] = where or "never likely best, but not dominated"
    found |= dict.fromkeys(never_found_anything(result), "found no value in any run")
    for kept in result.rounds[-1].held:
        found[kept.algorithm] = (
            f"kept: the model would eliminate it because of {kept.by}, {probability_text(kept.probability)}, but "
            "direct counts do not support it"
        )
    certain = result.certain_without_model
    for out in result.eliminations:
        without = "also certain without the model" if out.algorithm in certain else "rests on the model"
        found[out.algorithm] = f"{out.by} is better at every timepoint, {probability_text(out.probability)}; {without}"
    return found


def leaders_text(part: GroupPart, place: int) -> str:
    """Who is most often first in a group at a timepoint, how often, and in brackets its rating, if known."""
    names, share, rating = part.leaders(place)
    if not names:
        return "-"
    if len(names) > 1:
        return f"{' and '.join(names) if len(names) == 2 else f'{len(names)} tied'}, {share:.0%} each"
    return f"{names[0]} {share:.0%}" + ("" if rating is None else f" ({rating:.0%})")


def result_table(result: RaceResult, robust: Posterior | None = None) -> Markup:
    """HTML table of the algorithms: in or out, and why; ``robust`` as for :func:`conclusion`."""
    why, out = reasons(result, robust), {elimination.algorithm for elimination in result.eliminations}
    rows = [[name, "out" if name in out else "in", why[name]] for name in result.algorithms]
    return html_table(("algorithm", "status", "because"), rows)


def where_it_leads(grid: FloatArray, ahead: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Text that says where an algorithm leads; empty if nowhere."""
    return f"most likely best at {spans_text(grid, ahead)}" if ahead.any() else ""
