"""What commands say about the model, groups and what a choice rests on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders import six_groups, table_of, two_kinds
from command_line import Command

from polarbear_plugins import RaceSettings, RankingTable, analyze
from polarbear_plugins.racing import analysis, posteriors
from polarbear_plugins.racing import result as result_module
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.commands import how_to_repeat

POLARBEAR = Command()
run, succeed, fail, data = POLARBEAR.run, POLARBEAR.succeed, POLARBEAR.fail, POLARBEAR.data
SETTINGS = RaceSettings(seed=1, draws=500)
SHORT = ("--draws", "500", "--seed", "1", "--timepoints", "1,2")


def csv_of(table: RankingTable, path: Path) -> str:
    """Write the runs of a table as a file that analyze reads."""
    frame = table.to_pandas().rename(columns={"timepoint": "time"})
    frame.drop(columns=["rank", "weight", "repetition"]).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def misfit(tmp_path: Path) -> str:
    return str(analyze(two_kinds(), SETTINGS).save(tmp_path / "misfit.npz"))


def test_analyze_shows_ratings_by_first_places_if_the_model_does_not_fit(tmp_path: Path) -> None:
    text = succeed("analyze", csv_of(two_kinds(), tmp_path / "kinds.csv"), *SHORT)
    assert "would be the best of those left, by first places, since the model does not fit:" in text
    [c] = [line for line in text.splitlines() if line.startswith(" c ")]
    assert re.search(r" in .* [01]% +[01]% ", c)  # by the model 41 %
    [d] = [line for line in text.splitlines() if line.startswith(" d ")]
    assert re.search(r"also certain without the model +- +- ", d)
    assert "The model does not fit (p = 0.004)" in text
    assert re.search("No choice is supported for any budget: ([ab]) or (?!\\1)[ab] may be best", text)
    assert "kept: the model would eliminate it because of c" in " ".join(text.split())


def test_analyze_shows_each_group_and_both_scopes(tmp_path: Path) -> None:
    source = csv_of(six_groups(), tmp_path / "groups.csv")
    text = succeed("analyze", source, *SHORT, "--by", "group")
    assert "Certainty is about an instance of a new group, judged by 6 groups" in text
    assert "About further instances of the same 6 groups: 1 of 2 algorithms is right for some budget" in text
    assert re.search(r"group 4 +10 +a 100% \(9\d%\) +a 100% \(9\d%\)", text)
    assert re.search(r"group 5 +10 +b 100% \(9\d%\) +b 100% \(9\d%\)", text)
    plain = succeed("analyze", source, *SHORT)
    assert "group 5" not in plain
    assert "by_group" not in data("analyze", source, *SHORT)


def test_the_ratings_of_groups_follow_from_first_places_if_the_model_does_not_fit(tmp_path: Path) -> None:
    table = table_of(two_kinds(120).values, groups=[f"g{number // 60}" for number in range(120)])
    found = data("analyze", csv_of(table, tmp_path / "kinds.csv"), *SHORT, "--by", "group")
    assert not found["check"]["fits"]
    assert [part["ratings"][0][2] < 0.1 for part in found["by_group"]] == [True, True]  # by the model 0.4


def test_data_without_groups_are_not_shown_by_group(tmp_path: Path) -> None:
    assert "--by group: the data have no groups. Add a column group" in fail(
        "analyze", csv_of(two_kinds(10), tmp_path / "kinds.csv"), *SHORT, "--by", "group"
    )


def test_the_help_of_analyze_names_the_column_group() -> None:
    text = " ".join(succeed("analyze", "--help").split())
    assert "optionally seed, horizon and group." in text


def test_select_chooses_from_first_places_and_says_what_the_model_would_choose(misfit: str) -> None:
    found = data("select", misfit)
    assert found["algorithm"] in "ab"
    assert (found["likelihood"], found["by_model"]) == ("first-places", "c")
    assert found["candidates"]["c"]["mean"] < 0.02
    text = succeed("select", misfit)  # and nothing on standard error
    assert text.count("The model does not fit") == 1
    assert "The choice follows from first places instead. The model would choose c." in text
    some = succeed("select", misfit, "--among", "a,d")
    assert "The model would choose the same." in some


def test_a_portfolio_is_chosen_from_first_places_too(misfit: str) -> None:
    found = data("select", misfit, "--size", "2", "--different")
    assert sorted(found["algorithms"]) == ["a", "b"]
    assert found["likelihood"] == "first-places"
    assert "c" in found["by_model"]
    assert re.search(r"The model would choose \w and \w\.", succeed("select", misfit, "--size", "2", "--different"))


def test_select_does_not_speak_of_the_model_where_it_fits_or_there_is_no_choice(misfit: str, tmp_path: Path) -> None:
    assert "does not fit" not in succeed("select", misfit, "--among", "a")
    assert data("select", misfit, "--among", "a")["likelihood"] == "rankings"
    clean = str(analyze(six_groups(), SETTINGS).save(tmp_path / "clean.npz"))
    assert "does not fit" not in succeed("select", clean)
    found = data("select", clean)
    assert (found["likelihood"], found["by_model"]) == ("rankings", found["algorithm"])


def test_candidates_that_are_unknown_are_refused_whether_or_not_the_model_fits(misfit: str) -> None:
    assert "there is no 'nobody' in the posterior" in fail("select", misfit, "--among", "a,nobody")


def test_a_report_of_a_misfit_is_written_without_a_warning_and_fits_once(
    misfit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = []

    def infer(*arguments: object, **options: object) -> object:
        fits.append(options.get("likelihood"))
        return posteriors.infer(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(result_module, "infer", infer)
    monkeypatch.setattr(analysis, "infer", infer)
    text = succeed("report", misfit, "-o", str(tmp_path / "misfit.html"))
    assert "The model does not fit" in text
    assert fits == ["first-places"]
    assert "does not fit" in (tmp_path / "misfit.html").read_text()


@pytest.mark.parametrize("options", [("--rule", "anytime-valid"), ("--guard", "none"), ("--groups", "same")])
def test_the_command_in_the_report_keeps_rule_guard_and_groups(tmp_path: Path, options: tuple[str, str]) -> None:
    source, saved = csv_of(six_groups(), tmp_path / "groups.csv"), str(tmp_path / "result.npz")
    succeed("analyze", source, *SHORT, *options, "--output", saved)
    assert " ".join(options) in how_to_repeat(RaceResult.load(saved))[1]
