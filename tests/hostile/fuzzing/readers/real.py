"""Where real data are, beside the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[4]
SHARED = ROOT.parent / "shared" / "data"
