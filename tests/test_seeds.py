from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.seeds import derived_seed


@given(st.integers(0, 2**63), st.text())
def test_a_derived_seed_is_one_that_every_library_takes(seed: int, name: str) -> None:
    assert 0 <= derived_seed(seed, "run", name) < 2**31


def test_derived_seeds_use_the_whole_range() -> None:
    assert max(derived_seed(1, name) for name in range(100)) > 0.9 * 2**31
