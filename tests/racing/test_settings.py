from __future__ import annotations

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


def test_options_do_not_change_behind_the_back_of_the_settings() -> None:
    options = {"kernel": "se"}
    settings = RaceSettings(prior="gp", prior_options=options)
    options["kernel"] = "matern52"
    assert settings.prior_options == {"kernel": "se"}


def test_settings_with_an_object_for_a_prior_cannot_be_written() -> None:
    with pytest.raises(InvalidInputError, match="polarbear_priors"):
        RaceSettings(prior=object()).to_json()
