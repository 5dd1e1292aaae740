from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

import polarbear_plugins

# The same examples every time: a failure can be repeated, and the suite does not fail by chance.
hypothesis.settings.register_profile("polarbear", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("polarbear")

ROOT = Path(__file__).parent.parent


def pytest_report_header() -> str:
    return f"polarbear_plugins from {Path(polarbear_plugins.__file__).parent}"


@pytest.fixture
def root() -> Path:
    """The top folder of the repository."""
    return ROOT


@pytest.fixture
def shared() -> Path:
    """Real data beside the repository; a test that wants it is skipped where there is none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside the repository")
    return folder
