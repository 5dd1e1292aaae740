"""Seeds: each random choice has its own, derived from the user's seed."""

from __future__ import annotations

import hashlib
import json


def derived_seed(seed: int, *path: str | int) -> int:
    """Seed for one purpose, derived from the seed of the race; below 2^31, which every library accepts.

    >>> derived_seed(7, "run", "csa", "f1") == derived_seed(7, "run", "csa", "f1")
    True
    """
    text = json.dumps([seed, *path])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
