"""What the numbers of a figure or a table rest on, in sentences for its caption."""

from __future__ import annotations

from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.observations import assumptions
from polarbear_plugins.report.words import misfit_text, misfits


def basis(result: RaceResult, unit: str = "") -> list[str]:
    """Sentences about the data, the model and what was assumed."""
    grid, posterior = result.timepoints, result.posterior
    unit = f" {unit}" if unit else ""
    times = f"{grid.size} timepoints from {grid[0]:,.5g} to {grid[-1]:,.5g}" if grid.size > 1 else f"{grid[0]:,.5g}"
    instances = len(result.state.table.instances)
    joint = "" if posterior.joint or grid.size == 1 else ", which treats timepoints as independent"
    found = [
        f"{len(result.algorithms)} algorithms on {instances:,} instance{'s' * (instances != 1)}, at {times}{unit}.",
        f"Probabilities are those of {posterior.draws:,} posterior draws under the prior {posterior.prior}{joint}.",
    ]
    if misfits(result):
        found.append(misfit_text(result))
    if not posterior.diagnostics.good:
        found.append("The posterior is not good enough to decide on.")
    if posterior.groups is not None:
        found.append(str(posterior.groups))
    if result.failures:
        found.append(f"{len(result.failures):,} runs failed and count as having found nothing.")
    return found + assumptions(result)
