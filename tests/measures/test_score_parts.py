from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.score_parts import pooled_quantile, split_scores
from polarbear_plugins.measures.scores import Scores, Studies, score_studies

MODEL = {"DT_wine": "DT", "DT_iris": "DT", "SVM_wine": "SVM"}


def scores() -> Scores:
    rng = np.random.default_rng(0)
    cells = {
        (algorithm, instance): rng.lognormal(-k, size=(4 + k, 5, 2))
        for k, algorithm in enumerate(["RandomSearch", "TPE"])
        for instance in MODEL
    }
    return score_studies(Studies(visible=cells, random=["RandomSearch"]))


def test_the_scores_of_the_parts_average_to_the_leaderboard() -> None:
    found = scores()
    parts = split_scores(found, MODEL)
    assert [(part.name, part.instances) for part in parts] == [("DT", ("DT_iris", "DT_wine")), ("SVM", ("SVM_wine",))]
    for row, name in enumerate(found.algorithms):
        assert [part.scores[row].algorithm for part in parts] == [name, name]
        mean = sum(part.scores[row].score * len(part.instances) for part in parts) / 3
        assert mean == pytest.approx(found.leaderboard[row])


def test_one_part_of_everything_has_the_median_of_the_leaderboard() -> None:
    found = scores()
    [part] = split_scores(found, dict.fromkeys(MODEL, "all"))
    np.testing.assert_allclose([each.quartiles[1] for each in part.scores], found.leaderboard_median)
    assert all(list(each.quartiles) == sorted(each.quartiles) for each in part.scores)


def test_an_instance_without_a_part_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="got none for 'SVM_wine'"):
        split_scores(scores(), {"DT_wine": "DT", "DT_iris": "DT"})


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.sampled_from([0.25, 0.5, 0.75]), st.integers(1, 3))
def test_equally_large_samples_have_the_quantile_of_all_values(values: list[float], share: float, copies: int) -> None:
    expected = np.quantile(values * copies, share, method="averaged_inverted_cdf")
    assert pooled_quantile([np.array(values)] * copies, share) == pytest.approx(expected)
