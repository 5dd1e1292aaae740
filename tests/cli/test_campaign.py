from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_line import Command

from polarbear_plugins.cli import main
from polarbear_plugins.experiments import campaigns
from polarbear_plugins.experiments.campaigns import CampaignSettings, campaign
from polarbear_plugins.planning import RepetitionSettings

TWO = ("synthetic", "synthetic", "--budget", "5", "-P", "algorithms=2", "--workers", "0", "--seed", "1")
command = sys.modules["polarbear_plugins.cli.campaign"]  # the name in the package is the command's
COMMAND = Command("campaign", *TWO)
succeed, answer, fail = COMMAND.succeed, COMMAND.data, COMMAND.fail
QUICK = ("--error", "0.5", "--effect", "1.5", "--first", "4")


def python_result(**more: Any) -> dict[str, Any]:
    settings = CampaignSettings(
        repetitions=RepetitionSettings(error=0.5, first=4, **more), effect=1.5, alternative="two-sided", seed=1
    )
    options = {"algorithms": "2"}
    return campaign("synthetic", "synthetic", 5, settings, workers=0, portfolio_options=options).to_dict()


def test_the_command_finds_what_the_function_finds() -> None:
    assert answer(*QUICK) == python_result()
    assert answer(*QUICK, "--balanced") == python_result(balanced=True)


def test_people_get_a_table_the_power_and_what_was_supposed() -> None:
    text = succeed(*QUICK)
    data = answer(*QUICK)
    [found] = data["comparisons"]
    assert f"{found['other']} - {found['one']}" in text
    assert f"{found['estimate']:.4g}" in text
    assert f"{len(data['instances'])} instances, " in text
    assert "If differences over instances are independent and normal" in text
    assert "not saved: --journal FILE" in text


def test_an_interrupted_campaign_goes_on_with_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, journal = answer(*QUICK), tmp_path / "campaign.db"
    arguments = ["campaign", *TWO, *QUICK, "--journal", str(journal)]
    run = command.run_campaign

    def interrupted(*given: Any, **more: Any) -> Any:
        def stop(runs: int, _: int) -> None:
            if runs == 20:
                raise KeyboardInterrupt

        return run(*given, **{**more, "progress": stop})

    monkeypatch.setattr(command, "run_campaign", interrupted)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert "has every finished run: give the same command again" in result.stderr
    monkeypatch.undo()
    performed: list[int] = []
    carry_out = campaigns.CampaignRuns._carry_out

    def counted(self: Any, runs: Any, *more: Any) -> Any:
        performed.append(len(runs))
        return carry_out(self, runs, *more)

    monkeypatch.setattr(campaigns.CampaignRuns, "_carry_out", counted)
    assert answer(*QUICK, "--journal", str(journal)) == whole
    runs = sum(len(sample) for samples in whole["values"].values() for sample in samples.values())
    assert sum(performed) == runs - 20


def test_a_journal_of_other_options_is_refused(tmp_path: Path) -> None:
    journal = ("--journal", str(tmp_path / "campaign.db"))
    succeed(*QUICK, *journal)
    assert "another campaign: portfolio is" in fail(*QUICK, *journal, "-P", "correlation=0.5")
    assert "another campaign: horizon is" in fail(*QUICK, *journal, "--budget", "6")


def test_a_plan_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run_campaign", None)
    four = Command("campaign", *(word.replace("algorithms=2", "algorithms=4") for word in TWO))
    data = four.data("--error", "0.5", "--effect", "1", "--test", "wilcoxon", "--dry-run")
    assert len(data["pairs"]) == 6
    assert (
        data["instances"]
        == data["needed"]
        == CampaignSettings(repetitions=RepetitionSettings(error=0.5), effect=1.0, test="wilcoxon").needed(6)
    )
    text = succeed("--error", "0.5", "--instances", "12", "--dry-run")
    assert "12 instances (power 0.3" in text
    assert "Nothing was run" in text


def test_differences_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "differences.png"
    assert f"saved {path}" in succeed(*QUICK, "--figure", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_instances_that_ran_out_of_runs_are_counted() -> None:
    assert "--most 8 runs did not reach the standard error 0.01" in succeed(
        "--error", "0.01", "--first", "4", "--most", "8", "--instances", "4"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --error, the standard error of a difference on one instance"),
        ([*QUICK, "--effect", "0"], "no number of instances can detect an effect of 0"),
        ([*QUICK, "--budget", "5d"], "--budget 5d is in multiples of the dimension: give --dimension"),
        ([*QUICK, "--reference", "Z"], "reference: there is no algorithm 'Z'"),
        ([*QUICK, "-E", "a=b"], "--executor-option is for an executor"),
    ],
)
def test_mistakes_are_one_line_and_found_before_anything_runs(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns.CampaignRuns, "_carry_out", None)
    assert message in fail(*arguments)


def test_a_figure_that_cannot_be_saved_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(campaigns.CampaignRuns, "_carry_out", None)
    assert "expected a file that ends in .png" in fail(*QUICK, "--figure", "differences.xyz")
