"""What tests of several integrations share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna logs nothing, and afterwards as much as before."""
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    yield
    optuna.logging.set_verbosity(before)
