"""The words of ``polarbear gate``: for the terminal, for a comment and for a test report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from polarbear_plugins.display.text import amount
from polarbear_plugins.measures.gates import BudgetVerdict, Gate, GateComparison

Named: TypeAlias = Callable[[str], str]

#: Columns of the table of a comparison.
ROW = (">budget", "verdict", ">P(better)", "win share", ">wins", ">ties", ">losses", ">pairs")


def heading(comparison: GateComparison, gate: Gate, named: Named = str) -> str:
    """What is compared, on what, and how sure a verdict must be; ``named`` writes the names of others."""
    pairing = comparison.pairing
    paired = [f"{count:,} {how}" for count, how in ((pairing.by_seed, "by seed"), (pairing.by_instance, "by instance"))]
    used = " and ".join(text for text in paired if not text.startswith("0 "))
    return (
        f"{names_of(comparison, named)}: {_runs(pairing.pairs, 'pair')} of runs on "
        f"{_runs(pairing.instances, 'instance')}, paired {used} · alpha {gate.alpha:g} · epsilon {gate.epsilon:g}"
    )


def names_of(comparison: GateComparison, named: Named = str) -> str:
    """Name of both versions, or their two names."""
    one, other = named(comparison.base), named(comparison.new)
    return one if one == other else f"{one} (base) and {other} (new)"


def row_of(each: BudgetVerdict) -> tuple[str, ...]:
    """Cells of the table."""
    budget = f"{each.budget:,.6g}"
    if each.verdict is None or each.win_share is None or each.p_better is None:
        return (budget, "-", "-", "-", "-", "-", "-", "0")
    share = f"{each.win_share:.0%} ({each.low:.0%} to {each.high:.0%})"
    counts = (f"{count:,}" for count in (each.wins, each.ties, each.losses, each.pairs))
    return (budget, f"{each.verdict}{' (fails)' * each.fails}", _probability(each.p_better), share, *counts)


def conclusion(gate: Gate, named: Named = str) -> str:
    """Whether the gate passes, and why; ``named`` writes the names of others."""
    worse = [each for each in gate.verdicts if each.verdict == "worse"]
    unsettled = [each for each in gate.verdicts if each.fails and each.verdict != "worse"]
    reasons = []
    several = named if len(gate.comparisons) > 1 else None
    if worse:
        reasons.append(f"worse at {_places(worse, several)}")
    if unsettled:
        reasons.append(f"open or not compared at {_places(unsettled, several)}")
    if gate.missing_better:
        of_whom = f" ({', '.join(map(named, gate.missing_better))})" if several else ""
        reasons.append(f"better at no budget{of_whom}, which was required")
    if reasons:
        return f"The gate fails: the new version is {'; '.join(reasons)}."
    found = {
        word: [each for each in gate.verdicts if each.verdict == word]
        for word in ("better", "equivalent", "open", None)
    }
    parts = [f"{word or 'not compared'} at {_places(each, several)}" for word, each in found.items() if each]
    silent = "" if found["better"] or found["equivalent"] else " That is no evidence that the two are alike."
    return f"The gate passes: the new version is not shown to be worse at any budget; it is {'; '.join(parts)}.{silent}"


def caveats(comparison: GateComparison, gate: Gate) -> list[str]:
    """What the verdicts rest on, what was left out, and what would settle the open ones."""
    return [*_scope(comparison, gate), *_left_out(comparison), *_outlook(comparison)]


def _scope(comparison: GateComparison, gate: Gate) -> list[str]:
    pairing = comparison.pairing
    units = max(each.units for each in comparison.verdicts)
    word = {"groups": "group", "instances": "instance", "pairs": "pair"}[pairing.unit]
    budgets = len(comparison.verdicts)
    family = f"all {budgets} budgets" if budgets > 1 else "the budget"
    if len(gate.comparisons) > 1:
        family += (
            f" of all {len(gate.comparisons)} algorithms together (each algorithm has a level of {gate.level:.2g})"
        )
    elif budgets > 1:
        family += " together"
    needed = ""
    if comparison.threshold is not None:
        sure = f"{comparison.threshold:.4f}"
        needed = f" That takes a P(better) of at least {sure}, or at most {1 - comparison.threshold:.4f}."
    level = f"If the two versions are equal, P(any false better or worse) is at most {1 - gate.alpha:.2g} for {family}."
    sentences = [f"{level}{needed} P(better) and the interval are those of one budget by itself."]
    if pairing.unit == "pairs" and pairing.instances == 1:
        sentences.append("There is one instance: this is about further runs on it, not about other instances.")
    elif pairing.unit == "pairs" and pairing.pairs > pairing.instances:
        sentences.append(
            f"Every pair counts by itself, as asked: this is about these {pairing.instances:,} instances, not about "
            "others."
        )
    elif pairing.unit == "groups":
        sentences.append(
            f"The instances belong to {pairing.groups:,} groups, and each group counts as one: this is about new "
            "groups. With --groups same each instance counts, for these groups."
        )
    elif pairing.pairs > pairing.instances:
        sentences.append("Repeated runs on an instance count together as one.")
    if pairing.unit == "instances" and pairing.groups > 1:
        sentences.append(f"This is about further instances of the same {pairing.groups:,} groups.")
    if units < gate.least_units:
        sentences.append(
            f"{_runs(units, word)} {'is' if units == 1 else 'are'} too few for better or worse, whoever wins: it takes "
            f"at least {gate.least_units}."
        )
    return sentences


def _left_out(comparison: GateComparison) -> list[str]:
    pairing = comparison.pairing
    sentences = []
    if pairing.base_left_out or pairing.new_left_out:
        apart = f"; {_runs(pairing.one_sided, 'instance')} only one of them has" if pairing.one_sided else ""
        sentences.append(
            f"Left out for want of a partner: {_runs(pairing.base_left_out, 'run')} of base and "
            f"{_runs(pairing.new_left_out, 'run')} of new{apart}."
        )
    for side, count in (("base", pairing.base_without_value), ("new", pairing.new_without_value)):
        if count:
            sentences.append(
                f"{_runs(count, 'run')} of {side} never had a value, which counts as losing to any run that had one."
            )
    # Budgets are those that both have, unless others are asked for.
    until, longer = sorted([(pairing.base_until, "base"), (pairing.new_until, "new")])
    if max(each.budget for each in comparison.verdicts) <= until[0] < longer[0]:
        sentences.append(
            f"Runs of {until[1]} were watched until {amount(until[0])} at most, those of {longer[1]} until "
            f"{amount(longer[0])}: nothing later was compared."
        )
    rules = {
        "cut": "are not compared from there on",
        "hold": "keep their last value from there on, which is an assumption",
        "done": "reached their target, and count as best from there on",
    }
    for each in comparison.early_ends:
        when = amount(each.first) if each.first == each.last else f"{amount(each.first)} to {amount(each.last)}"
        sentences.append(
            f"{_runs(each.runs, 'run')} of {each.algorithm} ended before the partner, at {when}: they "
            f"{rules[each.rule]}."
        )
    missing = [each for each in comparison.verdicts if not each.pairs]
    if missing:
        sentences.append(f"No pair of runs was watched until {_budgets(missing)}.")
    return sentences


def _outlook(comparison: GateComparison) -> list[str]:
    unit = {"groups": "groups", "instances": "instances", "pairs": "pairs of runs"}[comparison.pairing.unit]
    needed = [
        f"{each.further.describe()} at {each.budget:,.6g}" for each in comparison.verdicts if each.further is not None
    ]
    if not needed:
        return []
    what = f"What would settle the open budgets with a chance of 80 %, in further {unit}"
    return [f"{what} (and an 80 % interval, since the difference is not known well): {', '.join(needed)}."]


def _places(verdicts: Sequence[BudgetVerdict], named: Named | None) -> str:
    """Budgets, by algorithm if there are several to name."""
    if named is None:
        return _budgets(verdicts)
    names = dict.fromkeys(each.algorithm for each in verdicts)
    return "; ".join(
        f"{_budgets([one for one in verdicts if one.algorithm == name])} ({named(name)})" for name in names
    )


def _budgets(verdicts: Sequence[BudgetVerdict]) -> str:
    texts = [f"{each.budget:,.6g}" for each in verdicts]
    return " and ".join((", ".join(texts[:-1]), texts[-1])) if len(texts) > 1 else texts[0]


def _runs(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _probability(p: float) -> str:
    return "> 0.9995" if p > 0.9995 else "< 0.0005" if p < 0.0005 else f"{p:.3f}"
