"""``polarbear plan``: the number of instances that an experiment needs, or that a race still needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.output import console, json_option, print_json, text_table
from polarbear_plugins.cli.outputs import FigureFile, InputPath, Saving
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.planning.sample_size import (
    detectable_effect,
    effect_of_share,
    number_of_instances,
    power_curve,
    power_of,
    standardized_effect,
)
from polarbear_plugins.report.stored_words import open_pairs

_POWER = 0.8
_ALPHA = 0.05
_CURVE = 10  # rows of a power curve in the table


@click.command(short_help="How many instances an experiment needs.")
@click.argument("result", type=InputPath(), required=False)
@click.option("--effect", type=float, help="The smallest effect that matters, in standard deviations of differences.")
@click.option("--difference", type=float, help="The same in the units of the measure; needs --deviation.")
@click.option(
    "--share", type=float, help="The same as the share of instances won, for --test sign with any distribution."
)
@click.option("--deviation", type=float, help="Standard deviation of the differences over instances.")
@click.option("--error", type=float, help="Standard error of the difference on one instance, with --deviation.")
@click.option("--power", type=float, help=f"Probability of finding the effect.  [default: {_POWER}]")
@click.option("--instances", type=int, help="Number of instances.")
@click.option("--alpha", type=float, help=f"Probability of finding an effect where there is none.  [default: {_ALPHA}]")
@click.option("--test", type=click.Choice(["t", "wilcoxon", "sign"]), help="The paired test.  [default: t]")
@click.option("--one-sided", is_flag=True, help="Only one direction matters.")
@click.option("--comparisons", type=int, help="Number of pairs that are tested.  [default: 1]")
@click.option(
    "--power-target",
    type=click.Choice(["worst-case", "mean", "median"]),
    help="Of several comparisons: the power of each, or the mean or median over Holm's steps, which promise less.  "
    "[default: worst-case]",
)
@click.option("--curve", is_flag=True, help="The power for a range of effects; needs --instances.")
@click.option(
    "--figure",
    type=FigureFile(),
    help="Draw the curve into this file (.png, .pdf, .svg), with --curve.",
)
@click.option(
    "--simulations", type=int, help="Number of simulations of RESULT's race.  [default: 200, fewer for large races]"
)
@click.option("--seed", type=int, help="Seed of the simulations.  [default: 0]")
@json_option
def plan(
    result: Path | None, simulations: int | None, seed: int | None, curve: bool, as_json: bool, **classical: Any
) -> None:
    """Compute how many instances an experiment needs.

    With RESULT, which `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race: simulates
    how many more instances and how much more cost it takes until every pair is settled.

    Without RESULT, for a paired test of two algorithms over instances: give two of --effect, --power and --instances
    to compute the third.
    """
    given = [
        f"--{name.replace('_', '-')}" for name, value in classical.items() if value is not None and value is not False
    ]
    if result is not None:
        if given or curve:
            raise InvalidInputError(
                f"{(given or ['--curve'])[0]} is for planning without RESULT: leave out one of the two."
            )
        _forecast(result, simulations, seed or 0, as_json)
        return
    if simulations is not None or seed is not None:
        raise InvalidInputError("--simulations and --seed are for a race: give its RESULT.")
    _classical(curve, as_json, **classical)


def _forecast(path: Path, simulations: int | None, seed: int, as_json: bool) -> None:
    result = load_result(path)
    with spinner("simulating the rest of the race"):
        found = result.forecast(simulations, seed)
    pairs = open_pairs(result, stored=False)
    if as_json:
        print_json(
            {
                "result": str(path),
                "resolved": result.resolved,
                "observed": result.state.instances_run,
                "spent": result.cost,
                "open_pairs": [[one, other] for one, other, _ in pairs],
                "seed": seed,
                **found.to_dict(),
            }
        )
        return
    out = console()
    observed = f"{result.state.instances_run:,} instances"
    if result.resolved:
        out.print(f"Every pair is settled after {observed}: no more are needed.", soft_wrap=True)
        return
    view = text_table("until every pair is settled", ">10 %", ">median", ">90 %")
    for name, cost in (("more instances", False), ("more cost", True)):
        numbers = (found.quantile(share, cost=cost) for share in (0.1, 0.5, 0.9))
        view.add_row(name, *("more" if number is None else f"{number:,}" for number in numbers))
    out.print(view)
    mean = "" if found.mean is None else f" On average {found.mean:,.0f}."
    out.print(
        f"{len(pairs)} pair{'s are' if len(pairs) > 1 else ' is'} not settled after {observed}; {found} would likely "
        f"settle {'them' if len(pairs) > 1 else 'it'}.{mean} From {found.instances.size} simulations of the rest of "
        "the race.",
        soft_wrap=True,
    )


def _classical(
    curve: bool,
    as_json: bool,
    *,
    figure: Path | None,
    effect: float | None,
    share: float | None,
    difference: float | None,
    deviation: float | None,
    error: float | None,
    power: float | None,
    instances: int | None,
    alpha: float | None,
    test: str | None,
    one_sided: bool,
    comparisons: int | None,
    power_target: str | None,
) -> None:
    effect = _effect(effect, difference, deviation, error)
    if share is not None:
        if effect is not None or test != "sign":
            raise InvalidInputError("--share is the effect of the sign test: give it with --test sign, and no other.")
        effect = effect_of_share(share)
    if power_target is not None and not comparisons:
        raise InvalidInputError("--power-target is for several comparisons: give their number with --comparisons.")
    options: dict[str, Any] = {
        "alpha": _ALPHA if alpha is None else alpha,
        "test": test or "t",
        "alternative": "one-sided" if one_sided else "two-sided",
        "comparisons": 1 if comparisons is None else comparisons,
        "power_target": power_target or "worst-case",
    }
    if curve:
        if instances is None or effect is not None or power is not None:
            raise InvalidInputError("--curve needs --instances, and neither an effect nor --power.")
        _show_curve(instances, options, as_json, figure)
        return
    if figure is not None:
        raise InvalidInputError("--figure draws a power curve: give it with --curve and --instances.")
    if effect is not None and instances is not None and power is not None:
        raise InvalidInputError("--effect, --power and --instances: leave out the one to compute.")
    if effect is None and instances is None:
        raise InvalidInputError("Give --effect or --instances (or both, for the power), or the RESULT of a race.")
    reached = ""
    if effect is not None and instances is not None:
        answer, power = "power", power_of(instances, effect, **options)
    else:
        power = _POWER if power is None else power
        if instances is None and effect is not None:
            answer, instances = "instances", number_of_instances(effect, power, **options)
            reached = f" ({power_of(instances, effect, **options):.3f} with {instances:,})"
        elif instances is not None:
            answer, effect = "effect", detectable_effect(instances, power, **options)
    if as_json:
        print_json({"answer": answer, "instances": instances, "effect": effect, "power": power, **options})
        return
    computed = {
        "instances": f"{instances:,} instances",
        "power": f"Power {power:.3g}",
        "effect": f"An effect of {effect:.3g} standard deviations",
    }[answer]
    rest = {"instances": f"{instances:,} instances", "effect": f"effect {effect:.3g}"}
    rest["power"] = f"power {power:.3g}{reached}"
    given = ", ".join(text for name, text in rest.items() if name != answer)
    assumed = (
        f"instances are independent, and one algorithm is better on {share:.3g} of them; no ties"
        if share is not None
        else "differences over instances are independent and normal"
    )
    console().print(f"{computed}: {given}, {_conditions(options)}.\nSupposed: {assumed}.", soft_wrap=True)


def _effect(
    effect: float | None, difference: float | None, deviation: float | None, error: float | None
) -> float | None:
    if difference is None and deviation is None and error is None:
        return effect
    if effect is not None:
        raise InvalidInputError("Give --effect, or --difference with --deviation, not both.")
    if difference is None or deviation is None:
        raise InvalidInputError("--difference and --deviation (and --error) belong together.")
    return standardized_effect(difference, deviation, error or 0.0)


def _show_curve(instances: int, options: dict[str, Any], as_json: bool, figure: Path | None) -> None:
    with spinner("computing powers"):
        effects, powers = power_curve(instances, **options)
    with Saving() as saving:
        saving.save(figure, lambda path: _draw(effects, powers, path))
        if as_json:
            data = {"answer": "curve", "instances": instances, "effects": effects.tolist(), "powers": powers.tolist()}
            print_json({**data, **options})
            return
        view = text_table(">effect", ">power")
        for place in range(0, len(effects), len(effects) // _CURVE):
            view.add_row(f"{effects[place]:.3g}", f"{powers[place]:.3f}")
        out = console()
        out.print(view)
        out.print(f"Power for each effect: {instances:,} instances, {_conditions(options)}.", soft_wrap=True)


def _draw(effects: FloatArray, powers: FloatArray, path: Path) -> None:
    from polarbear_plugins.plots.differences import save_power

    save_power(effects, powers, path)


def _conditions(options: dict[str, Any]) -> str:
    name = {"t": "paired t test", "wilcoxon": "Wilcoxon's signed-rank test", "sign": "sign test"}[options["test"]]
    several = ""
    if options["comparisons"] > 1:
        target = {"worst-case": "", "mean": ", mean power of Holm's steps", "median": ", median power of Holm's steps"}
        several = f" shared by {options['comparisons']} comparisons{target[options['power_target']]}"
    return f"{options['alternative']} {name}, alpha {options['alpha']:g}{several}"
