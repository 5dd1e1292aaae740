from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from polarbear_plugins import RaceSettings
from polarbear_plugins.errors import InvalidInputError


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.5},
        {"alpha": 1.1},
        {"epsilon": 0.5},
        {"epsilon": -0.1},
        {"elimination": "both"},
        {"resolution": "loose"},
        {"rule": "frequentist"},
        {"guard": "all"},
        {"groups": "some"},
        {"batch_size": 0},
        {"batch_min": 9, "batch_max": 8},
        {"max_rounds": 0},
        {"max_cost": -1.0},
        {"max_cost": 0},
        {"seed": -1},
        {"draws": 10},
    ],
)
def test_settings_are_checked_at_once_and_name_what_is_wrong(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        RaceSettings(**wrong)  # type: ignore[arg-type]


def test_settings_survive_json() -> None:
    settings = RaceSettings(alpha=0.95, prior="gp", prior_options={"kernel": "se"}, seed=3, max_cost=10.5)
    assert RaceSettings.from_json(settings.to_json()) == settings
    other = replace(settings, rule="anytime-valid", guard="none", groups="new")
    assert RaceSettings.from_json(other.to_json()) == other
    assert other.to_json() | {"rule": "posterior", "guard": "counts", "groups": "auto"} == settings.to_json()


def test_a_race_of_an_earlier_version_goes_on_by_the_rules_it_started_with() -> None:
    older = RaceSettings(seed=3).to_json()
    for unknown in ("rule", "guard", "groups"):
        del older[unknown]
    settings = RaceSettings.from_json(older)
    assert (settings.rule, settings.guard, settings.groups) == ("posterior", "none", "none")
    assert RaceSettings.from_json({**older, "guard": "counts"}).guard == "counts"


@pytest.mark.parametrize(
    ("changed", "full"),
    [({}, False), ({"elimination": "joint"}, True), ({"rule": "anytime-valid"}, True), ({"guard": "none"}, False)],
)
def test_runs_are_needed_in_full_where_an_elimination_needs_all_timepoints(changed: dict[str, Any], full: bool) -> None:
    assert RaceSettings(**changed).needs_full_runs is full


def test_options_do_not_change_behind_the_back_of_the_settings() -> None:
    options = {"kernel": "se"}
    settings = RaceSettings(prior="gp", prior_options=options)
    options["kernel"] = "matern52"
    assert settings.prior_options == {"kernel": "se"}


def test_settings_with_an_object_for_a_prior_cannot_be_written() -> None:
    with pytest.raises(InvalidInputError, match="polarbear_priors"):
        RaceSettings(prior=object()).to_json()
