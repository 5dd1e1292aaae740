"""Words beside the charts of the page: what a chart shows for those who cannot see it, and what a choice rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polarbear_plugins.display.text import few_places, spans_text, visible
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.at_budget import bounded
from polarbear_plugins.report.words import misfits


def notes(result: RaceResult, robust: Posterior) -> dict[str, list[str]]:
    """Sentences about what a choice rests on: ``always``, and besides for a preference over ``several`` timepoints."""
    always = [f"This rests on {len(result.state.table.instances):,} instances."]
    if misfits(result) and len(result.pareto_set) > 1:
        always.append("The model does not fit: this follows from first places among those that are left instead.")
    if not result.posterior.diagnostics.good:
        always.append("The posterior is not good enough to decide on: see the diagnostics.")
    several = []
    if not robust.joint and robust.timepoints.size > 1:
        several.append(
            f"The prior {result.settings.prior} treats timepoints as independent: P(best), support and expected regret "
            "over several of them are overconfident. Values are not affected."
        )
    for place, name in enumerate(robust.algorithms):
        absent = ~robust.observed[:, place]
        if name in result.pareto_set and absent.any():
            several.append(
                f"{name} was never observed at {spans_text(robust.timepoints, absent)}: there it counts as never best."
            )
    return {"always": [visible(says) for says in always], "several": [visible(says) for says in several]}


def captions(result: RaceResult, band_draws: int) -> dict[str, str]:
    """What is drawn in each chart; ``band_draws`` is the number of draws behind the band of a pair."""
    by_model = ", by the model, which does not fit" if misfits(result) else ""
    by_first = ", by first places, since the model does not fit" if misfits(result) else ""
    gap = "A gap: not observed there."
    where = "at all timepoints" if result.settings.elimination == "joint" else "at the least sure timepoint"
    return {
        "ratings": f"The probability of being the best of all on a new instance{by_model}: posterior means, with "
        f"bands that {band_text(result)}. Eliminated algorithms are grey, without a band. The dashed line is the "
        f"budget set above. {gap}",
        "best": f"The probability of having the highest rating among the algorithms that are left{by_first}. The "
        f"dashed line is the budget set above. {gap}",
        "pair": f"How often the first beats the second on a new instance{by_model}: posterior mean, with bounds "
        f"that {band_text(result)} (from {band_draws:,} draws). Dashed: the probability that the first has the "
        f"higher rating. {gap}",
        "rounds": "For each algorithm and round the probability that its strongest rival dominates it "
        f"({where}); the scale is stretched above 0.9. The dashed line is alpha = {result.settings.alpha:g}. A line "
        "ends where an algorithm is eliminated or all its pairs are settled.",
    }


def band_text(result: RaceResult) -> str:
    """What bands of 90 % do, and on what condition: the check of the model notices little with few instances."""
    if misfits(result):
        return "would hold the truth with probability 90 % if the model fitted"
    return "hold the truth with probability 90 % as far as the model is right"


def summaries(data: Mapping[str, Any]) -> dict[str, str]:
    """What each chart shows, in words, from the data of the page."""
    names, left, unit = data["names"], data["left"], data["unit"]
    places = few_places(len(data["times"]))

    def highest(lines: Sequence[Sequence[float | None]], who: Sequence[str], told: Callable[[float], str]) -> str:
        parts = []
        for at in places:
            known = [(value, name) for name, line in zip(who, lines, strict=True) if (value := line[at]) is not None]
            value, name = max(known, key=lambda pair: pair[0], default=(None, ""))
            time = f"at {data['timeTexts'][at]}{f' {unit}' if unit and at == places[0] else ''}"
            parts.append(f"{name} {told(value)} {time}" if value is not None else f"not observed {time}")
        return f"Highest: {', '.join(parts)}."

    found = {
        "ratings": highest(data["ratings"]["mean"], names, lambda rating: f"{rating:.2f}"),
        "best": highest(data["best"], [names[place] for place in left], lambda p: bounded(p, data["draws"])),
    }
    rounds = data["rounds"]
    if rounds is not None:
        gone = [f"{name} in round {at}" for name, at in zip(names, rounds["out"], strict=True) if at is not None]
        found["rounds"] = f"Eliminated: {', '.join(gone)}." if gone else "No algorithm was eliminated."
    return found
