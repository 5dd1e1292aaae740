from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    Trajectory,
    compare,
    fit,
    race,
    read_trajectories,
    select,
    select_portfolio,
)
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.display.html import summary_table
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.experiments.campaigns import CampaignSettings, campaign
from polarbear_plugins.measures.orders import order_by_measures
from polarbear_plugins.measures.scores import Studies, score_studies
from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.depth import measure_depth
from polarbear_plugins.planning.repetitions import RepetitionSettings
from polarbear_plugins.racing.result_tables import ResultTable
from polarbear_plugins.racing.state import Failure

NAMES = ("csa", "<b>msr", "tpa")


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    options = {"algorithms": 5, "timepoints": 10}
    settings = RaceSettings(seed=3, max_rounds=4, alpha=0.9, draws=200)
    return race("synthetic", "synthetic", range(1, 11), settings, workers=0, portfolio_options=options)


@pytest.fixture(scope="module")
def table() -> RankingTable:
    rng = np.random.default_rng(1)
    values = rng.random((6, 4, 3))
    values[2, 3, 1] = np.nan
    instances = ["f1", "f1", "f2", "f3", "f4", "f5"]
    return RankingTable.from_values(values, algorithms=NAMES, timepoints=[1, 2, 5, 9], instances=instances)


def kinds(frame: pd.DataFrame) -> dict[str, str]:
    """What a column holds, in words that no version of pandas changes."""
    names = {"f": "float", "i": "int", "b": "bool"}
    return {
        str(column): "names"
        if isinstance(dtype, pd.CategoricalDtype)
        else "text"
        if pd.api.types.is_string_dtype(dtype)
        else names[dtype.kind]
        for column, dtype in frame.dtypes.items()
    }


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


def test_the_rankings_have_a_row_for_each_observation(table: RankingTable) -> None:
    frame = table.to_pandas()
    assert kinds(frame) == {
        "instance": "names",
        "repetition": "int",
        "timepoint": "float",
        "algorithm": "names",
        "value": "float",
        "rank": "int",
        "weight": "float",
    }
    assert len(frame) == 6 * 4 * 3 - 1
    # The table can be made again from it.
    cells = frame.pivot_table(
        index=["instance", "repetition"], columns=["timepoint", "algorithm"], values="value", observed=True
    )
    np.testing.assert_array_equal(cells.to_numpy().reshape(6, 4, 3), table.values)
    assert frame.groupby("instance", observed=True)["weight"].sum().eq(12).sum() == 4  # f2 lacks a value
    assert list(frame["algorithm"].cat.categories) == list(NAMES)


def test_the_draws_are_those_of_the_posterior(table: RankingTable) -> None:
    posterior = fit(table, draws=100, seed=1)
    frame = posterior.to_pandas()
    assert kinds(frame) == {
        "draw": "int",
        "timepoint": "float",
        "algorithm": "names",
        "rating": "float",
        "log_rating": "float",
    }
    mean = frame.groupby(["timepoint", "algorithm"], observed=True)["rating"].mean()
    np.testing.assert_allclose(mean, posterior.summary()["mean"])


@pytest.mark.parametrize("prior", ["dirichlet", "bspline"])
def test_relations_have_a_row_for_each_ordered_pair(table: RankingTable, prior: str) -> None:
    relations = compare(fit(table, prior, draws=100, seed=1))
    frame = relations.to_pandas()
    assert list(frame) == ["timepoint", "algorithm", "other", "p_better", "p_equivalent", "p_anytime"]
    assert set(kinds(frame).values()) == {"float", "names"}
    assert len(frame) == 4 * 3 * 2
    row = frame.query("timepoint == 5 and algorithm == 'tpa' and other == 'csa'").iloc[0]
    assert row["p_better"] == relations.p_better[2, 2, 0]
    assert row["p_equivalent"] == relations.p_equivalent[2, 2, 0]
    if prior == "bspline":
        assert row["p_anytime"] == relations.p_anytime[2, 0]
    else:
        assert frame["p_anytime"].isna().all()


def test_a_result_gives_its_tables(raced: RaceResult) -> None:
    algorithms = raced.to_pandas()
    assert kinds(algorithms) == {
        "algorithm": "names",
        "status": "text",
        "round": "int",
        "by": "names",
        "probability": "float",
        "instances": "int",
        "cost": "float",
        "failed": "int",
    }
    assert list(algorithms["algorithm"]) == list(raced.algorithms)
    assert algorithms["by"].notna().sum() == len(raced.eliminations) > 0
    rounds = raced.to_pandas("rounds")
    assert list(rounds["round"]) == [1, 2, 3, 4]
    assert rounds["cost"].iloc[-1] == raced.cost
    assert list(rounds["left"]) == list(len(raced.algorithms) - rounds["eliminated"].cumsum())
    assert rounds["eliminated"].sum() == len(raced.eliminations)
    out = raced.to_pandas("eliminations")
    assert [tuple(row) for row in out.itertuples(index=False)] == [
        (each.round, each.algorithm, each.by, each.probability) for each in raced.eliminations
    ]
    rivals = raced.to_pandas("rivals")
    assert len(rivals) == sum(len(finished.rivals) for finished in raced.rounds)
    pairs = raced.to_pandas("open_pairs")
    assert len(pairs) == sum(len(times) for _, _, times in raced.open_pairs) > 0


@pytest.mark.parametrize("what", ["eliminations", "rivals", "open_pairs", "failures", "rounds"])
def test_an_empty_table_has_the_columns_and_kinds_of_a_full_one(raced: RaceResult, what: Any) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    empty = race("synthetic", "synthetic", [1, 2], RaceSettings(seed=3), workers=0, progress=stop)
    full = RaceResult(
        state=raced.state, stopped="max_rounds", _posterior=None, failures=(Failure("A", "7", "it crashed"),)
    )
    assert len(full.to_pandas(what))
    assert kinds(empty.to_pandas(what)) == kinds(full.to_pandas(what))


def test_the_page_about_tables_tells_their_columns(raced: RaceResult, root: Path) -> None:
    page = (root / "docs" / "guide" / "data.md").read_text()
    rows = re.findall(r"^\| `(.+) \| ([\w, ]+?)(?:;.*)? \|$", page, re.MULTILINE)
    told = {name.replace("`", "").partition(" of ")[0]: columns.split(", ") for name, columns in rows}
    run = next(iter(raced.trajectories()))
    choices = select(raced.posterior), select_portfolio(raced.posterior, 2)
    for thing in (run, raced.state.table, raced.posterior, raced.relations, raced.forecast(20), *choices):
        assert told[type(thing).__name__] == list(thing.to_pandas()), type(thing)
    for what in get_args(ResultTable):
        assert told[f'RaceResult, "{what}"'] == list(raced.to_pandas(what)), what


def test_another_table_is_refused(raced: RaceResult) -> None:
    with pytest.raises(InvalidInputError, match=r"to_pandas: expected .*open_pairs.*got 'draws'"):
        raced.to_pandas("draws")  # type: ignore[arg-type]


def test_choices_give_what_they_chose_from(raced: RaceResult) -> None:
    choice = select(raced.posterior, preference="final")
    frame = choice.to_pandas()
    assert kinds(frame) == {"draw": "int", "algorithm": "names", "value": "float"}
    means = frame.groupby("algorithm", observed=True)["value"].mean()
    np.testing.assert_allclose(means, choice.summary()["mean"].loc[list(choice.candidates)])
    portfolio = select_portfolio(raced.posterior, 3, preference="worst")
    members = portfolio.to_pandas()
    assert kinds(members) == {"portfolio": "text", "score": "float", "algorithm": "names", "copies": "int"}
    assert (members.groupby("portfolio")["copies"].sum() == 3).all()
    assert members["portfolio"].nunique() == len(portfolio.scores)
    best = members[members["portfolio"] == members["portfolio"].iloc[0]]
    assert dict(zip(best["algorithm"], best["copies"], strict=True)) == portfolio.counts


def test_the_outlook_gives_its_simulations(raced: RaceResult) -> None:
    found = raced.forecast(simulations=20)
    frame = found.to_pandas()
    assert kinds(frame) == {"simulation": "int", "instances": "float", "cost": "float"}
    np.testing.assert_array_equal(frame["instances"], found.instances)
    np.testing.assert_array_equal(frame["cost"], found.costs)


def test_scores_and_their_resamples_give_their_losses() -> None:
    rng = np.random.default_rng(1)
    visible = {("rs", "f1"): rng.random((5, 4, 2)), ("rs", "f2"): rng.random((3, 4, 2))}
    visible |= {("good", name): 0.5 * rng.random((2, 4, 2)) for name in ("f1", "f2")}
    scores = score_studies(Studies(visible=visible, random=["rs"]))
    frame = scores.to_pandas()
    assert kinds(frame) == {
        "algorithm": "names",
        "instance": "names",
        "study": "int",
        "iteration": "int",
        "loss": "float",
    }
    assert len(frame) == 4 * (5 + 3 + 2 + 2)
    last = frame[frame["iteration"] == 4].groupby(["algorithm", "instance"], observed=True)["loss"].mean()
    np.testing.assert_allclose(last, scores.by_instance[-1].ravel())
    summary = scores.summary()
    assert summary.index.name == "algorithm"
    assert list(summary["leaderboard"]) == sorted(scores.leaderboard, reverse=True)
    resampled = scores.bootstrap(30).to_pandas()
    assert kinds(resampled) == {"resample": "int", "algorithm": "names", "loss": "float", "rank": "int"}
    assert len(resampled) == 60


def test_partial_orders_give_their_pairs() -> None:
    order = PartialOrder.from_edges("abc", [("a", "b"), ("b", "c")], close=True)
    frame = order.to_pandas()
    assert kinds(frame) == {"optimizer": "names", "other": "names", "better": "bool", "cover": "bool"}
    assert len(frame) == 6
    better = frame[frame["better"]]
    assert list(zip(better["optimizer"], better["other"], strict=True)) == order.edges()
    covers = frame[frame["cover"]]
    assert list(zip(covers["optimizer"], covers["other"], strict=True)) == order.covers() == [("a", "b"), ("b", "c")]
    other = PartialOrder.from_edges("cba", [("c", "a")])
    depth = measure_depth({"f1": order, "f2": other}).to_pandas()
    assert kinds(depth) == {
        "function": "names",
        "optimizer": "names",
        "other": "names",
        "better": "bool",
        "depth": "float",
        "error": "float",
    }
    second = depth[(depth["function"] == "f2") & depth["better"]]
    assert list(zip(second["optimizer"], second["other"], strict=True)) == [("c", "a")]


def test_measures_give_their_values_and_places() -> None:
    runs = [
        Trajectory(algorithm=name, instance="f", seed=seed, times=[1, 4], best=[8, best + seed], horizon=9)
        for name, best in (("a", 3.0), ("b", 1.0))
        for seed in (0, 1)
    ]
    frame = order_by_measures(runs, 9).to_pandas()
    assert kinds(frame) == {"measure": "names", "algorithm": "names", "value": "float", "rank": "int"}
    ranks = frame.set_index(["measure", "algorithm"])["rank"]
    assert [ranks[measure, "b"] for measure in ("AOCC", "ECDF area", "final median")] == [1, 1, 1]


def test_the_runs_of_a_campaign_are_listed() -> None:
    settings = CampaignSettings(repetitions=RepetitionSettings(error=10.0, first=3), instances=2, seed=1)
    found = campaign("synthetic", "synthetic", 5, settings, workers=0)
    frame = found.to_pandas()
    assert kinds(frame) == {"instance": "names", "algorithm": "names", "repetition": "int", "value": "float"}
    runs = sum(
        sample.size for samples in found.to_dict()["values"].values() for sample in map(np.array, samples.values())
    )
    assert len(frame) == runs


def test_trajectories_are_read_back_from_their_tables() -> None:
    runs = [
        Trajectory(algorithm="a", instance="f", seed=seed, times=[1, 4], best=[8, seed], horizon=9) for seed in (0, 1)
    ]
    assert list(read_trajectories(pd.concat([run.to_pandas() for run in runs]))) == runs


@pytest.mark.parametrize("made", ["relations", "choice", "portfolio", "scores", "orders", "depth"])
def test_a_notebook_shows_a_table_in_which_names_are_text(made: str, table: RankingTable) -> None:
    posterior = fit(table, draws=100, seed=1)
    rng = np.random.default_rng(1)
    if made in ("relations", "choice", "portfolio"):
        shown: Any = {"relations": compare, "choice": select, "portfolio": lambda p: select_portfolio(p, 2)}[made]
        html = shown(posterior)._repr_html_()
    elif made == "scores":
        visible = {(name, "f"): rng.random((5, 4, 2)) for name in NAMES}
        html = score_studies(Studies(visible=visible, random=["csa"]))._repr_html_()
    elif made == "orders":
        runs = [Trajectory(algorithm=n, instance="f", times=[1], best=[k + 1], horizon=9) for k, n in enumerate(NAMES)]
        html = order_by_measures(runs, 9)._repr_html_()
    else:
        orders = {str(k): PartialOrder.from_edges(NAMES, [(NAMES[k], NAMES[1 - k])]) for k in (0, 1)}
        html = measure_depth(orders)._repr_html_()
    assert "<table>" in html
    assert "&lt;b&gt;msr" in html
    assert "<b>" not in html


def test_a_long_summary_says_what_it_leaves_out() -> None:
    frame = pd.DataFrame({"a_b": np.arange(40) / 7}, index=pd.Index(range(40), name="what"))
    html = summary_table(frame, "Sevenths")
    assert "Sevenths (the first 30 of 40 rows)" in html
    assert html.count("<tr>") == 31
    assert ">a b</th>" in html
