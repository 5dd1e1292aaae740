from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins.display.frames import long_frame


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_long_table_holds_every_cell_once_at_its_place(shape: list[int], data: st.DataObject) -> None:
    cells = np.arange(np.prod(shape)).reshape(shape)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=cells.size, max_size=cells.size))).reshape(shape)
    axes: dict[str, Any] = {f"axis{k}": [f"n{place}" for place in range(size)] for k, size in enumerate(shape)}
    frame = long_frame(axes, {"cell": cells}, keep=keep)
    assert list(frame["cell"]) == cells[keep].tolist()
    for _, *labels, cell in frame.itertuples(name=None):
        assert cells[tuple(int(label[1:]) for label in labels)] == cell
