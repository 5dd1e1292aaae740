from __future__ import annotations

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins import UNRANKED, PolarBearError, Posterior, RankingTable, fit
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.disagreements import Disagreement, find_disagreements
from polarbear_plugins.measures.scores import Scores, Studies, score_studies

RANDOM = "random"


def judged(final: dict[str, FloatArray]) -> tuple[Scores, Bootstrap, RankingTable, Posterior]:
    """Everything about algorithms with these values on instances, each in one iteration of one suggestion."""
    rng = np.random.default_rng(0)
    n = len(next(iter(final.values())))
    visible = {(name, f"f{k:02}"): np.full((3, 1, 1), value) for name, v in final.items() for k, value in enumerate(v)}
    visible |= {(RANDOM, f"f{k:02}"): np.append(rng.uniform(1, 2, 9), 0.0).reshape(10, 1, 1) for k in range(n)}
    scores = score_studies(Studies(visible=visible, random=[RANDOM]))
    names = scores.algorithms
    medians = [[[float(np.median(visible[name, f])) for name in names]] for f in scores.instances]
    table = table_of(medians, algorithms=names)
    return scores, scores.bootstrap(200), table, fit(table, seed=1)


def pair(found: list[Disagreement], *names: str) -> Disagreement | None:
    return next((each for each in found if (each.ahead, each.behind) == names), None)


def test_one_great_lead_reverses_many_small_ones() -> None:
    often = np.full(20, 0.10)
    seldom = np.full(20, 0.11)
    often[7] = 0.9
    found = find_disagreements(*judged({"often": often, "seldom": seldom}))
    reversed_ = pair(found, "seldom", "often")
    assert reversed_ is found[0]
    assert (reversed_.kind, reversed_.instance) == ("reversed", "f07")
    assert reversed_.wins == pytest.approx(1 / 20)
    assert reversed_.share > 1
    assert reversed_.ranked < 0.01
    assert reversed_.resampled == 1
    assert "seldom scores above often (in 100.0% of the resamples), but often has the higher rating" in str(reversed_)
    assert "better in 5% of the comparisons and gets more than all of its lead on f07" in str(reversed_)


def test_a_score_without_spread_is_surer_than_few_instances_allow() -> None:
    found = find_disagreements(*judged({"a": np.array([0.1, 0.2, 0.1]), "b": np.array([0.2, 0.3, 0.4])}))
    unsure = pair(found, "a", "b")
    assert unsure is not None
    assert unsure.kind == "only the score is sure"
    assert (unsure.wins, unsure.instance) == (1, "f02")
    assert unsure.share == pytest.approx(0.6, abs=0.05)
    assert "Other instances may reverse it." in str(unsure)


def test_a_tie_is_half_a_win() -> None:
    found = find_disagreements(*judged({"a": np.array([0.1, 0.2, 0.1]), "b": np.array([0.2, 0.2, 0.4])}))
    unsure = pair(found, "a", "b")
    assert unsure is not None
    assert unsure.wins == pytest.approx(2.5 / 3)


def test_two_unranked_algorithms_are_not_tied() -> None:
    values = {"a": np.array([0.1, 0.2, 0.1, 0.4]), "b": np.array([0.2, 0.1, 0.4, 0.8])}
    scores, bootstrap, table, posterior = judged(values)
    column = table.algorithms.index(RANDOM)
    partial = np.full(table.values.shape, UNRANKED)
    partial[..., column] = 0.0
    partial[0, 0, table.algorithms.index("a")] = 0.1
    found = pair(
        find_disagreements(scores, bootstrap, table_of(partial, algorithms=table.algorithms), posterior), "a", "b"
    )
    assert found is not None
    assert found.wins == 1.0  # the only ranking in which one of them is ranked


def test_rankings_can_be_surer_than_a_noisy_score() -> None:
    values = {"a": np.full(40, 0.1), "b": np.full(40, 0.2)}
    scores, bootstrap, table, posterior = judged(values)
    doubtful = Bootstrap(
        algorithms=bootstrap.algorithms,
        losses=bootstrap.losses,
        ranks=np.concatenate([bootstrap.ranks, bootstrap.ranks[:, [1, 0, 2]]]),
    )
    unsure = pair(find_disagreements(scores, doubtful, table, posterior), "a", "b")
    assert unsure is not None
    assert unsure.kind == "only the rankings are sure"
    assert "scores above it in only 50.0% of the resamples" in str(unsure)


def test_where_both_are_sure_of_the_same_there_is_nothing_to_say() -> None:
    assert find_disagreements(*judged({"a": np.full(60, 0.1), "b": np.full(60, 0.2)})) == []


def test_other_algorithms_than_those_scored_are_refused() -> None:
    scores, bootstrap, table, _ = judged({"a": np.full(4, 0.1), "b": np.full(4, 0.2)})
    other = fit(table_of([[[1.0, 2.0]]], algorithms=["a", "c"]), seed=1)
    with pytest.raises(PolarBearError, match="Scores, rankings and posterior are of different algorithms"):
        find_disagreements(scores, bootstrap, table, other)
