from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from polarbear_plugins import RaceResult, select, select_portfolio
from polarbear_plugins.racing.result_tables import ResultTable


def test_the_page_about_tables_tells_their_columns(raced: RaceResult, root: Path) -> None:
    page = (root / "docs" / "guide" / "data.md").read_text()
    rows = re.findall(r"^\| `(.+) \| ([\w, ]+?)(?:;.*)? \|$", page, re.MULTILINE)
    told = {name.replace("`", "").partition(" of ")[0]: columns.split(", ") for name, columns in rows}
    trajectory = next(iter(raced.trajectories()))
    choices = select(raced.posterior), select_portfolio(raced.posterior, 2)
    for thing in (trajectory, raced.state.table, raced.posterior, raced.relations, raced.forecast(20), *choices):
        assert told[type(thing).__name__] == list(thing.to_pandas()), type(thing)
    for what in get_args(ResultTable):
        assert told[f'RaceResult, "{what}"'] == list(raced.to_pandas(what)), what
