"""What the words and the report say about the model, eliminations and groups."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from builders import six_groups, synthetic_race, table_of, two_kinds, wins_table

from polarbear_plugins import RaceResult, RaceSettings, analyze, select
from polarbear_plugins.errors import ModelWarning
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing import analysis, posteriors
from polarbear_plugins.racing import result as result_module
from polarbear_plugins.racing.by_group import by_group
from polarbear_plugins.report import render
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.words import conclusion, error_text, leaders_text, reasons
from polarbear_plugins.selection.stretches import stretches

SETTINGS = RaceSettings(seed=1, draws=500)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about words, and pictures take most of the time of a report."""
    monkeypatch.setattr("polarbear_plugins.report.figures.MOST_NAMES", 0)


HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def misfit() -> RaceResult:
    return analyze(two_kinds(), SETTINGS)


@pytest.fixture(scope="module")
def grouped() -> RaceResult:
    return analyze(six_groups(), SETTINGS)


@pytest.fixture(scope="module")
def clean() -> RaceResult:
    rng = np.random.default_rng(1)
    return analyze(table_of(rng.gumbel(size=(60, 2, 3)) + np.array([0, 0.2, 3.0])), SETTINGS)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was inferred since, by likelihood."""
    found: list[str] = []

    def infer(*arguments: object, **options: object) -> Posterior:
        found.append(str(options.get("likelihood", "rankings")))
        return posteriors.infer(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(result_module, "infer", infer)
    monkeypatch.setattr(analysis, "infer", infer)
    return found


def text_of(result: RaceResult, known: Computed | None = None) -> str:
    """Text of the report, without tags and style."""
    page = render(result, plugins=Plugins(), known=known).partition("<body>")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("&lt;", "<").replace("&gt;", ">").split())


# The conclusion


def test_a_clean_result_says_nothing_about_misfit_or_groups(clean: RaceResult) -> None:
    says = conclusion(clean, "", *compute(clean))
    assert clean.eliminations
    assert "does not fit" not in says
    assert "group" not in says
    assert conclusion(clean) == conclusion(clean, robust=clean.posterior)


def test_a_misfit_is_told_after_the_pareto_set_with_its_largest_gap(misfit: RaceResult) -> None:
    says = conclusion(misfit, "", *compute(misfit))
    assert says.startswith(
        "3 of 4 algorithms may be right for some budget: a, b, c. The model does not fit (p = 0.004): c is first on 0% "
        "of the instances at 1, and by the model on 4"
    )
    assert "; what to choose follows from first places instead. No choice is " in says


def test_advice_follows_from_first_places_if_the_model_does_not_fit(misfit: RaceResult) -> None:
    assert [part.algorithm for part in stretches(misfit.posterior, misfit.pareto_set)] == ["c"]  # what the model says
    says = conclusion(misfit, "", *compute(misfit))
    assert re.search("No choice is supported for any budget: ([ab]) or (?!\\1)[ab] may be best", says)
    assert "choice" not in conclusion(misfit)  # nothing is advised from a model that does not fit


def test_words_infer_nothing(misfit: RaceResult, grouped: RaceResult, fits: list[str]) -> None:
    known = {result: compute(result) for result in (misfit, grouped)}
    fits.clear()
    for result, computed in known.items():
        conclusion(result)
        conclusion(result, "", *computed)
        reasons(result)
        reasons(result, computed.robust)
    assert fits == []


def test_a_report_and_a_notebook_infer_once_what_they_need(
    misfit: RaceResult, grouped: RaceResult, clean: RaceResult, fits: list[str]
) -> None:
    for result, needed in ((misfit, ["first-places"]), (grouped, ["rankings"]), (clean, [])):
        known = compute(result)
        assert fits == needed
        fits.clear()
        render(result, plugins=Plugins(), known=known)
        assert fits == []
        render(result, plugins=Plugins())
        assert fits == needed
        fits.clear()
        assert conclusion(result, "", *known).split(";")[0] in text_of(result, known)
        assert "<table>" in result._repr_html_()
        assert fits == needed
        fits.clear()


@pytest.mark.parametrize(
    ("wins", "instances", "says"),
    [
        ([8], 8, r"^Under the model P\(the elimination is wrong\) = 0\.00\d+; it rests on the model\.$"),
        (
            [20, 20],
            20,
            r"^Under the model P\(the elimination is wrong\) < 0\.006 at the least sure timepoint; it is also certain",
        ),
    ],
)
def test_one_elimination_is_told_with_its_error_and_whether_it_needs_the_model(
    wins: list[int], instances: int, says: str
) -> None:
    result = analyze(wins_table(wins, instances), SETTINGS)
    assert re.search(says, error_text(result))
    assert conclusion(result).endswith(error_text(result))


def test_several_eliminations_are_counted() -> None:
    rows = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]] * 12
    both = analyze(table_of([[row] for row in rows]), SETTINGS)
    assert re.search(
        r"^Under the model P\(at least one of the 2 eliminations is wrong\) .*; all are also", error_text(both)
    )
    # The last algorithm has run on seven instances only.
    fewer = np.array(rows)
    fewer[7:, 2] = np.nan
    some = analyze(table_of(fewer[:, None]), replace(SETTINGS, guard="none"))
    assert len(some.eliminations) == 2
    assert error_text(some).endswith("; 1 of them is also certain without the model.")
    few = analyze(table_of(fewer[:7, None]), replace(SETTINGS, guard="none", alpha=0.95))
    assert len(few.eliminations) == 2
    assert few.certain_without_model == ()
    assert error_text(few).endswith("; all rest on the model.")


def test_a_joint_posterior_speaks_of_all_timepoints_at_once() -> None:
    result = analyze(wins_table([20, 20, 20], 20), replace(SETTINGS, prior="bspline", elimination="joint"))
    assert result.eliminations
    assert " at all timepoints at once; " in error_text(result)


def test_the_error_is_that_of_the_draws(clean: RaceResult) -> None:
    posterior = clean.posterior
    [out] = clean.eliminations
    rival, loser = (clean.algorithms.index(name) for name in (out.by, out.algorithm))
    logs = posterior.log_ratings.copy()
    logs[:50, 1, [rival, loser]] = logs[:50, 1, [loser, rival]]
    swapped = replace(clean, _posterior=replace(posterior, log_ratings=logs))
    assert "P(the elimination is wrong) = 0.1 at the least" in error_text(swapped)


def test_the_scope_is_told_and_the_other_one_where_it_differs(grouped: RaceResult) -> None:
    known = compute(grouped)
    says = conclusion(grouped, "", *known)
    assert "Certainty is about an instance of a new group, judged by 6 groups" in says
    assert says.endswith(
        "About further instances of the same 6 groups: 1 of 2 algorithms is right for some budget (without b)."
    )
    assert known.other_scope is not None
    other = conclusion(known.other_scope, "", None, None, grouped)
    assert "Certainty is about further instances of the same 6 groups" in other
    assert "About an instance of a new group: 2 of 2 algorithms may be right for some budget." in other
    assert "About" not in conclusion(grouped, "", None, None, grouped)


# Reasons


def test_an_elimination_says_whether_it_needs_the_model(misfit: RaceResult) -> None:
    assert reasons(misfit)["d"].endswith(" is better at every timepoint, P > 0.9995; also certain without the model")
    few = analyze(wins_table([8], 8), SETTINGS)
    assert reasons(few)["b"].endswith("; rests on the model")


def test_what_the_guard_kept_says_so(misfit: RaceResult) -> None:
    held = {kept.algorithm: kept for kept in misfit.rounds[-1].held}
    assert set(held) == {"a", "b"}
    assert reasons(misfit)["a"] == (
        f"kept: the model would eliminate it because of c, P = {held['a'].probability:.3f}, but direct counts do not "
        "support it"
    )


def test_where_an_algorithm_leads_follows_from_first_places_if_the_model_does_not_fit() -> None:
    result = analyze(two_kinds(40), SETTINGS)  # too few for the model to eliminate a or b
    assert not result.rounds[-1].held
    assert set(result.pareto_set) == {"a", "b", "c"}
    found = reasons(result, result.robust_posterior(result.pareto_set))
    assert found["c"] == "never likely best, but not dominated"
    assert "most likely best at " in found["a"] + found["b"]
    assert reasons(result)["c"] == "not dominated"


def test_leaders_are_named_with_their_share() -> None:
    values = [[[1.0, 2.0, 3.0]], [[2.0, 1.0, 3.0]], [[1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0]]]
    two, three, one = by_group(table_of(values, groups=["a2", "a2", "b3", "c1"]), [0])
    assert [leaders_text(part, 0) for part in (two, three, one)] == ["a and b, 50% each", "3 tied, 33% each", "a 100%"]
    [rated] = by_group(table_of([[[1.0, 2.0]]] * 3, groups=["g"] * 3), [0], likelihood="rankings")
    assert re.fullmatch(r"a 100% \(\d\d%\)", leaders_text(rated, 0))


# The report


def test_a_report_of_a_misfit_tells_where_and_chooses_from_first_places(misfit: RaceResult) -> None:
    known = compute(misfit)
    assert known.robust is not None
    page = text_of(misfit, known)
    assert "Does the model fit? The model does not fit (p = 0.004): c is first on 0% of the instances at 1" in page
    assert "largest gap, pairs" in page
    assert "p-value of at 1 at 2 first places 0.002 0.002" in page
    # Ratings of the model and of first places side by side, both among those that are left.
    assert "Ratings by the model / by first places" in page
    model = misfit.posterior.ratings.mean(axis=0)[:, :3]
    model /= model.sum(axis=1, keepdims=True)
    first = known.robust.ratings.mean(axis=0)
    assert " ".join(f"{one:.0%} / {other:.0%}" for one, other in zip(model[:, 2], first[:, 2], strict=True)) in page
    assert first[0, 2] < 0.02 < model[0, 2]
    assert "Since the model does not fit, that probability follows from first places among them." in page
    with pytest.warns(ModelWarning):
        wrong = select(misfit.posterior, misfit.pareto_set).algorithm
    assert wrong == "c"
    assert "Choose c " not in page
    assert "best of those that are left, by first places, P(best)" in page
    assert re.search(r"budget highest rating P\(best\) support 1 to 2 [ab] ", page)
    assert "of all algorithms where they are those of the model, which does not fit, and of those that are left" in page


def test_figures_of_the_model_say_that_it_does_not_fit(misfit: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    assert "by the model, which does not fit" in text_of(misfit, compute(misfit))


def test_nothing_is_forecast_from_a_misfit_or_about_new_groups(misfit: RaceResult) -> None:
    values = np.random.default_rng(3).normal(size=(24, 1, 2))
    groups = [f"g{row // 6}" for row in range(24)]
    new, same = (
        analyze(table_of(values, groups=groups), RaceSettings(seed=1, draws=200, groups=scope))
        for scope in ("new", "same")  # type: ignore[arg-type]
    )
    assert not new.resolved
    assert not same.resolved
    assert compute(misfit).forecast is None
    assert compute(new).forecast is None
    assert compute(same).forecast is not None
    assert "not forecast, since more of them do not make groups differ less." in text_of(new, compute(new))


def test_both_ratings_are_those_among_the_algorithms_that_are_left(misfit: RaceResult) -> None:
    logs = np.log(np.broadcast_to([0.3, 0.3, 0.2, 0.2], misfit.posterior.log_ratings.shape))
    result = replace(misfit, _posterior=replace(misfit.posterior, log_ratings=logs))
    assert result.pareto_set == ("a", "b", "c")
    assert " c 25% / 0% 25% / 0% " in text_of(result, Computed(robust=compute(misfit).robust))


def test_a_report_warns_in_its_own_words_only(misfit: RaceResult) -> None:
    robust = compute(misfit).robust
    assert robust is not None
    # Groups may keep even the ratings of first places from fitting; a warning would be an error here.
    assert "does not fit" in text_of(misfit, Computed(robust=replace(robust, check=misfit.check)))


def test_a_report_of_a_model_that_fits_says_so_and_shows_one_kind_of_ratings(clean: RaceResult) -> None:
    page = text_of(clean)
    assert "Does the model fit? The rankings do not contradict the model (p = " in page
    assert "by first places" not in page
    assert "does not fit" not in page
    assert "Ratings are probabilities of being the best of all algorithms on a new instance. Everything" in page
    assert " Groups " not in page
    assert f"{error_text(clean)} Wrong means that the rival is not the better one." in page
    assert "Direct counts of wins and of first places must support it." in page


def test_a_result_that_was_not_checked_says_so(clean: RaceResult) -> None:
    unchecked = replace(clean, _posterior=replace(clean.posterior, check=None))
    assert "Does the model fit? It was not checked" in text_of(unchecked)


def test_a_report_of_groups_tells_the_scope_and_each_group(grouped: RaceResult) -> None:
    page = text_of(grouped)
    effect = grouped.posterior.groups
    assert effect is not None
    assert f" Groups {effect} About further instances of the same 6 groups: 1 of 2" in page
    assert f"variance inflation {effect.inflation[0]:.2f} {effect.inflation[1]:.2f}" in page
    assert f"spread between groups {effect.spread[0]:.2f} {effect.spread[1]:.2f}" in page
    assert "group 4 10 a 100% a 100% group 5 10 b 100% b 100%" in page
    assert "of all algorithms on a new instance of a new group." in page
    ignored = text_of(analyze(six_groups(), replace(SETTINGS, groups="none")))
    assert "Groups The ratings and the certainty of this page do not regard groups." in ignored
    same = text_of(analyze(six_groups(), replace(SETTINGS, groups="same")))
    assert "of all algorithms on a new instance of the same groups." in same


def test_names_of_groups_are_escaped() -> None:
    html = render(analyze(six_groups(f"{HOSTILE} {{}}"), SETTINGS), plugins=Plugins())
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt; 5" in html


def test_names_of_algorithms_are_escaped_where_the_model_does_not_fit() -> None:
    table = two_kinds(60, timepoints=1)
    hostile = table_of(table.values, algorithms=["a", "b", HOSTILE, f"d{HOSTILE}"])
    html = render(analyze(hostile, SETTINGS), plugins=Plugins())
    assert "does not fit" in html
    assert "<img" not in html
    assert f"{HOSTILE.replace('<', '&lt;').replace('>', '&gt;')} is first on 0%" in html


def test_the_rule_of_the_race_is_told() -> None:
    valid = text_of(synthetic_race(rule="anytime-valid", max_rounds=2))
    assert "An algorithm is out once direct wins alone show" in valid
    assert "is at most 0.1, whatever the model" in valid
    bare = text_of(synthetic_race(guard="none", max_rounds=2))
    assert "must support it" not in bare
