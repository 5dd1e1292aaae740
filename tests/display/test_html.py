from __future__ import annotations

import numpy as np
import pandas as pd

from polarbear_plugins.display.html import summary_table


def test_a_long_summary_says_what_it_leaves_out() -> None:
    frame = pd.DataFrame({"a_b": np.arange(40) / 7}, index=pd.Index(range(40), name="what"))
    html = summary_table(frame, "Sevenths")
    assert "Sevenths (the first 30 of 40 rows)" in html
    assert html.count("<tr>") == 31
    assert ">a b</th>" in html
