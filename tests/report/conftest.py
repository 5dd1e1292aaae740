from __future__ import annotations

import pytest
from builders import race_by_hand

from polarbear_plugins import RaceResult


@pytest.fixture(scope="module")
def told() -> RaceResult:
    """A result that is made by hand, without a race or a fit."""
    return race_by_hand()
