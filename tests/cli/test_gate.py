from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import synthetic_race
from command_line import Command

GATE = Command("gate")
HOSTILE = [
    '<b>&"x"]]>',
    "a|b\n| c",
    "@everyone `x` **y** [z](http://e.x)",
    "\x1b[31mred\x00",
    "\ufffe\u202etxt",
    "--json",
]

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a table of runs on instances, of which the first are better; gives its path."""

    def write(name: str, better: int = 0, instances: int = 12, **more: object) -> str:
        algorithm, seeds, group = more.get("algorithm", "tpe"), more.get("seeds", (0,)), more.get("group")
        quoted = '"' + str(algorithm).replace('"', '""') + '"'
        rows = ["algorithm,instance,seed,time,value,horizon" + (",group" if group else "")]
        for k in range(instances):
            end = f",g{k % int(str(group))}" if group else ""
            value = 1 if k < better else more.get("value", 3)
            horizon = more.get("horizon", 100)
            rows += [f"{quoted},f{k},{seed},{time},{value},{horizon}{end}" for seed in seeds for time in (1, 10)]  # type: ignore[attr-defined]
        path = tmp_path / name
        path.write_text("\n".join(rows))
        return str(path)

    return write


def middle(make: Make, instances: int = 12, **more: object) -> str:
    return make("middle.csv", 0, instances, value=2, **more)


@pytest.mark.parametrize(("better", "code", "word"), [(12, 0, "better"), (0, 1, "worse"), (6, 0, "open")])
def test_the_exit_code_says_whether_the_gate_passes(make: Make, better: int, code: int, word: str) -> None:
    found = GATE.run(middle(make), make("new.csv", better))
    assert (found.exit_code, found.stderr) == (code, "")
    assert word in found.stdout
    assert f"The gate {'fails' if code else 'passes'}: the new version is" in found.stdout
    assert "P(any false better or worse) is at most 0.01 for all 5 budgets together" in found.stdout


def test_runs_that_never_had_a_value_are_said_to_lose_for_that(make: Make) -> None:
    found = GATE.run(middle(make), make("new.csv", 0, value="nan"))
    assert found.exit_code == 1
    assert "\n12 runs of new never had a value, which counts as losing to any run that had one.\n" in found.stdout
    found = GATE.run(make("new.csv", 11, value="nan"), middle(make))
    assert "\n1 run of base never had a value, which counts" in found.stdout
    assert "never had a value" not in GATE.run(middle(make), make("new.csv", 0)).stdout


def test_a_version_that_ends_earlier_is_said_to_be_compared_no_further(make: Make) -> None:
    short, long = make("new.csv", 0, horizon=10), middle(make, horizon=1000)
    says = "Runs of {} were watched until 10 at most, those of {} until 1,000: nothing later was compared."
    assert says.format("new", "base") in GATE.run(long, short).stdout
    assert says.format("base", "new") in GATE.run(short, long).stdout
    assert "nothing later was compared" not in GATE.run(long, short, "--budgets", "10,100").stdout  # a dash says it
    assert "were watched until" not in GATE.run(long, long).stdout


def test_stricter_gates_fail_on_open_and_without_better(make: Make) -> None:
    sources = middle(make), make("new.csv", 6)
    for options in (["--fail-on", "open"], ["--require", "better"]):
        assert GATE.run(*sources, *options).exit_code == 1
    assert GATE.run(middle(make), make("new.csv", 12), "--require", "better", "--fail-on", "open").exit_code == 0


def test_json_has_the_verdicts_and_the_exit_code_is_the_same(make: Make) -> None:
    found = GATE.run(middle(make), make("new.csv", 0), "--budgets", "10,1,200", "--json")
    data = json.loads(found.stdout)
    assert (found.exit_code, data["passed"], data["budgets"]) == (1, False, [1, 10, 200])
    assert [each["verdict"] for each in data["comparisons"][0]["verdicts"]] == ["worse", "worse", None]


def test_where_nothing_was_compared_there_are_dashes_and_a_sentence(make: Make) -> None:
    out = GATE.succeed(middle(make), make("new.csv", 12), "--budgets", "10,200")
    [row] = [line.split() for line in out.splitlines() if line.strip().startswith("200")]
    assert row == ["200", *"------", "0"]
    assert "No pair of runs was watched until 200." in out


def test_what_was_assumed_and_left_out_is_said(make: Make) -> None:
    out = GATE.succeed(middle(make, seeds=(0, 1)), make("new.csv", 6, 5, seeds=(1, 2, 3)))
    assert "paired 5 by seed and 5 by instance" in out
    assert "Repeated runs on an instance count together as one." in out
    assert "14 runs of base and 5 runs of new; 7 instances only one of them has" in out
    assert "5 instances are too few for better or worse, whoever wins: it takes at least 8." in out


def test_one_instance_is_said_to_be_one(make: Make) -> None:
    out = GATE.succeed(middle(make, 1, seeds=range(12)), make("new.csv", 1, 1, seeds=range(12)))
    assert "There is one instance: this is about further runs on it, not about other instances." in out
    assert "better" in out


def test_groups_count_as_one_each_unless_the_question_is_about_the_same(make: Make) -> None:
    sources = middle(make, group=3), make("new.csv", 12, group=3)
    assert "3 groups are too few for better or worse" in GATE.succeed(*sources)
    same = GATE.succeed(*sources, "--groups", "same")
    assert "This is about further instances of the same 3 groups." in same
    assert "the new version is not shown to be worse at any budget; it is better at" in same


def test_the_error_level_is_divided_among_several_algorithms(make: Make) -> None:
    pairs = []
    for side, better in (("base", 0), ("new", 6)):
        both = [Path(make(f"{side}-{name}.csv", better, algorithm=name)).read_text() for name in "ab"]
        path = Path(make(f"{side}.csv"))
        path.write_text(both[0] + "\n" + both[1].partition("\n")[2])
        pairs.append(str(path))
    out = GATE.succeed(*pairs)
    assert "for all 5 budgets of all 2 algorithms together (each algorithm has a level of 0.005)" in out
    assert len(GATE.data(*pairs, "--algorithm", "b")["comparisons"]) == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_the_test_report_or_the_comment(make: Make, tmp_path: Path, name: str) -> None:
    junit, comment = tmp_path / "gate.xml", tmp_path / "gate.md"
    base = middle(make, algorithm="old" + name)
    found = GATE.run(base, make("new.csv", 0, algorithm=name), "--junit", str(junit), "--markdown", str(comment))
    assert found.exit_code == 1
    suite = ET.fromstring(junit.read_text(encoding="utf-8"))  # noqa: S314 - our own
    cases = suite.findall("testcase")
    assert (
        [suite.get("tests"), suite.get("failures")]
        == ["5", "5"]
        == [str(len(cases)), str(len(suite.findall(".//failure")))]
    )
    text = comment.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert sum(line.startswith("| ") for line in lines) == 7
    assert {line.count("|") for line in lines if line.startswith("|")} == {9}
    for inside in text.split("<code>")[1:]:
        assert not set(inside.partition("</code>")[0]) & set("<>|`*@[]()_\x1b\x00\n\u202e")
    assert text.count("<") == text.count("<code>") + text.count("</code>") + text.count("| < 0.0005 |")
    assert "\x1b" not in found.stdout


def test_the_test_report_has_failures_skipped_cases_and_what_is_required(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    options = ["--budgets", "10,200", "--require", "better", "--junit", str(path)]
    assert GATE.run(middle(make), make("new.csv", 0), *options).exit_code == 1
    suite = ET.fromstring(path.read_text())  # noqa: S314 - our own
    kinds = [[child.tag for child in case] for case in suite.findall("testcase")]
    assert kinds == [["failure", "system-out"], ["skipped", "system-out"], ["failure"]]
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "2",
        "skipped": "1",
    }
    assert [failure.get("type") for failure in suite.findall(".//failure")] == ["worse", "required"]


def test_a_comment_on_standard_output_is_all_that_is_printed(make: Make) -> None:
    sources = middle(make), make("new.csv", 12)
    assert GATE.succeed(*sources, "--markdown", "-").startswith("**The gate passes: ")
    assert "--markdown - and --json both print" in GATE.fail(*sources, "--markdown", "-", "--json")


def test_races_are_compared_at_their_timepoints(tmp_path: Path) -> None:
    result = str(synthetic_race(2, 4, seed=1, max_rounds=2, draws=200).save(tmp_path / "race.npz"))
    data = GATE.data(result, result)
    assert set(data["budgets"]) <= {1, 2, 3, 4}
    assert len(data["comparisons"]) == 2
    assert {each["wins"] + each["losses"] for one in data["comparisons"] for each in one["verdicts"]} == {0}
    assert "a race keeps values only at its timepoints, and 2.5 is none" in GATE.fail(
        result, result, "--budgets", "2.5"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budgets", "1,x"], "--budgets: expected numbers"),
        (["--budgets", "1,2", "--timepoints", "2"], "leave out one of the two"),
        (["--timepoints", "0"], "must be a whole number of at least 1"),
        (["--alpha", "1"], "alpha: expected a number between 0.5 and 1"),
        (["--algorithm", "x"], "base has no run of 'x'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(make: Make, options: list[str], message: str) -> None:
    assert message in GATE.fail(middle(make), make("new.csv", 12), *options)
