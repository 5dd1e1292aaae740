from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import six_groups, table_of
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, analyze
from polarbear_plugins.cli import main
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.next_steps import Kept, Step, next_section, next_steps

BY_NAME = {name: {"name": "synthetic", "options": "{}"} for name in ("portfolio", "suite")}
JOURNAL = Kept(journal=Path("my race.db"))
POLARBEAR = Command()
# 80 % interval 40 to 40, at most 5 more rounds, 12,345 more to pay.
KNOWN = Forecast(np.full(10, 40.0), np.full(10, 12_345.0), np.full(10, 5.0))
FOREVER = Forecast(*np.full((3, 10), np.inf))


def stopped(told: RaceResult, why: str, **settings: Any) -> RaceResult:
    """The race by hand of registered names on many instances, so that nothing is said about their number."""
    values = np.tile([5.0, 1.0, 3.0, 2.0, 4.0], (12, 3, 1))
    table = table_of(values, algorithms=told.algorithms, timepoints=told.timepoints)
    state = replace(told.state, table=table, settings=replace(told.settings, **settings))
    return replace(told, state=state, stopped=why, about=BY_NAME)


def settled(result: RaceResult) -> RaceResult:
    return replace(result, state=replace(result.state, resolved=np.ones_like(result.state.resolved)))


def parses(step: Step) -> None:
    """The command line would take it."""
    program, name, *arguments = shlex.split(step.command)
    assert program == "polarbear"
    main.commands[name].make_context(name, arguments).close()


CHOOSE = Step(
    "To choose one of the 2 that are left, say what is known about the later budget:",
    "polarbear select 'my race.db' --preference log-uniform",
)


def test_a_race_stopped_by_its_rounds_goes_on_with_a_limit_that_is_likely_enough(told: RaceResult) -> None:
    settle, choose = next_steps(stopped(told, "max_rounds"), KNOWN, JOURNAL)
    assert settle == Step(
        "To settle the open pair, go on with a and b: it likely takes about 40 more instances (80 % interval 40 to "
        "40). This limit is enough in 9 of 10 simulations:",
        "polarbear resume 'my race.db' --max-rounds 8",
    )
    assert choose == CHOOSE
    parses(settle)
    parses(choose)


def test_a_race_stopped_by_its_cost_goes_on_with_more_rounded_up(told: RaceResult) -> None:
    result = stopped(told, "max_cost", max_cost=4600.0, max_rounds=None)
    [settle, _] = next_steps(result, KNOWN, JOURNAL)
    assert settle.command == "polarbear resume 'my race.db' --max-cost 17000"  # 4,500 and 12,345
    parses(settle)
    # Both limits are raised if both would stop it.
    [settle, _] = next_steps(stopped(told, "max_cost", max_cost=4600.0, max_rounds=7), KNOWN, JOURNAL)
    assert settle.command == "polarbear resume 'my race.db' --max-rounds 8 --max-cost 17000"
    [settle, _] = next_steps(stopped(told, "max_cost", max_cost=4600.0, max_rounds=9), KNOWN, JOURNAL)
    assert settle.command == "polarbear resume 'my race.db' --max-cost 17000"


def test_where_some_simulations_do_not_end_the_limit_is_that_of_half_of_them(told: RaceResult) -> None:
    some = Forecast(*(np.array([*[value] * 8, np.inf, np.inf]) for value in (40.0, 12_345.0, 5.0)))
    [settle, _] = next_steps(stopped(told, "max_rounds"), some, JOURNAL)
    assert "to many). This limit is enough in half of the simulations:" in settle.says
    assert settle.command.endswith("--max-rounds 8")


def test_of_a_race_that_is_still_running_no_command_is_given(told: RaceResult) -> None:
    settle = next_steps(stopped(told, "running"), KNOWN, JOURNAL)[0]
    assert settle.says.startswith("Let the race go on, which is still running, to settle the")
    assert settle.command == ""


@pytest.mark.parametrize("why", ["interrupted", "requested"])
def test_a_race_stopped_by_hand_goes_on_within_its_limits(told: RaceResult, why: str) -> None:
    [settle, _] = next_steps(stopped(told, why), KNOWN, JOURNAL)
    assert settle.command == "polarbear resume 'my race.db'"
    assert "limit" not in settle.says
    parses(settle)
    nothing = replace(told, state=replace(told.state, rounds=()), stopped="interrupted", about=BY_NAME)
    [first] = next_steps(nothing, None, JOURNAL)
    assert (first.says, first.command) == (
        "Let the race go on: nothing is known before its first round is over:",
        "polarbear resume 'my race.db'",
    )


def test_without_a_journal_the_race_begins_anew_and_gets_one(told: RaceResult) -> None:
    [settle] = next_steps(stopped(told, "max_rounds"), KNOWN)  # a choice would have to repeat the race
    assert settle.says.endswith(
        "Without its journal the race begins anew, this time with one, and repeats what it did:"
    )
    assert settle.command == (
        "polarbear race synthetic synthetic --timepoints 10,100,2000 --alpha 0.9 --seed 3 --max-rounds 8 "
        "--journal race.db"
    )
    parses(settle)


def test_algorithms_given_in_python_are_needed_again(told: RaceResult) -> None:
    result = replace(stopped(told, "max_rounds"), about={"suite": BY_NAME["suite"]})
    [settle, _] = next_steps(result, KNOWN, JOURNAL)
    assert settle.says.endswith(". In Python, with the same portfolio:")
    assert settle.command == "resume('my race.db', portfolio=portfolio, max_rounds=8)"
    [settle, choose] = next_steps(result, KNOWN)
    assert settle.command.startswith("race(portfolio, 'synthetic', ")
    assert settle.command.endswith(", journal='race.db')")
    assert choose.command == "select(result.posterior, among=result.pareto_set, preference='log-uniform')"


def test_a_settled_race_leaves_only_the_choice(told: RaceResult) -> None:
    assert next_steps(settled(stopped(told, "resolved")), None, JOURNAL) == [CHOOSE]


def test_nothing_is_run_for_pairs_that_a_hundred_times_the_instances_would_not_settle(told: RaceResult) -> None:
    [settle, _] = next_steps(stopped(told, "max_rounds"), FOREVER, JOURNAL)
    assert settle.says.startswith(
        "Leave the open pair open, or ask for less: settling it would take more than a hundred"
    )
    assert "A larger epsilon than 0.05, a smaller alpha than 0.9" in settle.says
    assert not settle.command


def test_where_nothing_is_forecast_no_number_is_promised_and_limits_are_doubled(told: RaceResult) -> None:
    check = ModelCheck(
        algorithms=told.algorithms,
        timepoints=told.timepoints,
        p=0.01,
        p_first=np.full(3, 0.01),
        p_pairs=np.full(3, 0.5),
        observed=np.zeros((3, 5)),
        modelled=np.zeros((3, 5)),
        first_gap=None,
        pair_gap=None,
    )
    result = replace(stopped(told, "max_rounds"), _posterior=replace(told.posterior, check=check))
    doubt, settle, _ = next_steps(result, None, JOURNAL)
    assert doubt.says.startswith(
        "Check the instances, since the model does not fit: more of the same do not mend that."
    )
    assert "how many more instances it takes is not forecast, since the model does not fit:" in settle.says
    assert settle.command == "polarbear resume 'my race.db' --max-rounds 6"
    assert "enough" not in settle.says


def test_few_instances_are_told_and_more_runs_on_them_are_not_advised(told: RaceResult) -> None:
    says = [step.says for step in next_steps(replace(told, about=BY_NAME), KNOWN, JOURNAL)]
    assert says[0].startswith("Add instances, not more runs on the same ones: 6 instances are so few")
    assert not any("so few" in step.says for step in next_steps(stopped(told, "max_rounds"), KNOWN, JOURNAL))


def test_draws_that_are_not_good_enough_come_first(told: RaceResult) -> None:
    diagnostics = replace(told.posterior.diagnostics, good=False)
    result = replace(stopped(told, "inference"), _posterior=replace(told.posterior, diagnostics=diagnostics))
    first, *rest = next_steps(result, None, JOURNAL)
    assert first.says.startswith("Rely on nothing yet: the draws are not good enough")
    assert rest == [CHOOSE]


def test_an_analysis_says_which_data_to_add_and_never_resumes(told: RaceResult) -> None:
    result = replace(stopped(told, "analyzed"), about={"sources": ["runs.csv", "more.csv"]})
    [settle, choose] = next_steps(result, KNOWN)
    assert settle.says.startswith(
        "To settle the open pair, add runs of a and b to runs.csv and more.csv and repeat the analysis: it likely "
        "takes about 40 more instances (80 % interval 40 to 40). A larger epsilon"
    )
    assert not settle.command
    assert choose.says.endswith("; first repeat the analysis with --output result.npz, then:")
    assert choose.command == "polarbear select result.npz --preference log-uniform"
    saved = next_steps(result, KNOWN, Kept(saved=Path("-mine.npz")))[1]
    assert saved.command == "polarbear select ./-mine.npz --preference log-uniform"
    parses(saved)


def test_about_new_groups_more_groups_help_and_not_more_instances() -> None:
    result = replace(analyze(six_groups(), RaceSettings(seed=1, draws=500)), about={"sources": ["runs.csv"]})
    assert not result.resolved
    settle, _ = next_steps(result, compute(result).forecast)
    assert "add instances of more groups than the 6 there are" in settle.says
    assert "more instances of the same groups do not make groups differ less" in settle.says
    assert "--groups same" in settle.command
    parses(settle)


def test_a_suite_without_instances_left_cannot_go_on(told: RaceResult) -> None:
    result = stopped(told, "instances")
    assert next_steps(result, KNOWN, JOURNAL)[0].says.startswith(
        "Add instances to the suite, or ask for less: it has none"
    )
    assert not next_steps(result, KNOWN, JOURNAL)[0].command


def test_a_study_goes_on_with_trials(told: RaceResult) -> None:
    result = replace(stopped(told, "interrupted"), about={"study": "mine"})
    [settle, choose] = next_steps(result, KNOWN)
    assert settle.says.endswith("So many trials are enough in 9 of 10 simulations, if no new candidates enter:")
    assert settle.command == "study.optimize(objective, n_trials=80)"  # 40 instances of two candidates
    assert choose.command.startswith("select(result.posterior, ")
    limited = next_steps(replace(stopped(told, "max_rounds"), about={"study": "mine"}), KNOWN)[0]
    assert "give its PolarBearSampler settings with max_rounds=8, else the same" in limited.says


def test_the_section_escapes_what_others_wrote(told: RaceResult) -> None:
    markup = next_section(stopped(told, "max_rounds"), KNOWN, Kept(journal=Path("<b>.db")))
    assert "<pre>polarbear resume &#x27;&lt;b&gt;.db&#x27; --max-rounds 8</pre>" in markup


def test_the_printed_command_goes_on_with_the_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = ("--timepoints", "1,2", "--seed", "1", "--draws", "200", "--workers", "0", "-P", "algorithms=2")
    said = POLARBEAR.succeed("race", "synthetic", "synthetic", *short, "--max-rounds", "1", "--journal", "race.db")
    after = said.partition("What to do next:")[2]
    commands = [line.strip() for line in after.splitlines() if line.startswith("  polarbear ")]
    resume, select = (shlex.split(command)[1:] for command in commands)
    assert (resume[:2], select[:2]) == (["resume", "race.db"], ["select", "race.db"])
    POLARBEAR.succeed(*select)
    POLARBEAR.succeed(*resume, "--workers", "0")
    assert len(load_result("race.db").rounds) > 1
