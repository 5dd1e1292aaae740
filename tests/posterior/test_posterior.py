from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from builders import cells_of, change_json, column_kinds, posterior_of_logs, table_of

from polarbear_plugins import Posterior, fit
from polarbear_plugins.errors import MissingExtraError, SourceError
from polarbear_plugins.posterior.posterior import Diagnostics

DIAGNOSTICS = Diagnostics(
    engine="native",
    route="by hand",
    good=True,
    problems=("a small one", "and another: <ä>"),
    k_hat=0.25,
    effective_draws=51.5,
    moves=3,
    memory=0.05,
    dependence=(1.0, 0.5, 0.25),
)


def posterior(*, good: bool = True, draws: int = 50) -> Posterior:
    utilities = np.random.default_rng(0).normal(size=(draws, 3, 2))
    return Posterior(
        algorithms=("csa", "größer"),
        timepoints=np.array([1.0, 10.0, 100.0]),
        log_ratings=utilities - np.logaddexp.reduce(utilities, axis=-1, keepdims=True),
        prior="bspline",
        joint=True,
        diagnostics=DIAGNOSTICS if good else Diagnostics(engine="native", route="by hand", good=False),
        hyperparameters={"log_scale": np.linspace(-1, 1, draws)},
        state="not saved",
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return posterior().save(tmp_path / "posterior.npz")


def test_ratings_are_probabilities_that_sum_to_one() -> None:
    ratings = posterior().ratings
    assert ratings.shape == (50, 3, 2)
    assert (ratings > 0).all()
    np.testing.assert_allclose(ratings.sum(axis=-1), 1.0)


def test_a_mean_rating_is_that_of_the_draws_and_unknown_where_nothing_was_observed() -> None:
    ratings = np.array([[[0.25, 0.75], [0.5, 0.5]], [[0.75, 0.25], [1.0, 0.0]], [[0.5, 0.5], [0.9, 0.1]]])
    one = posterior_of_logs(np.log(np.maximum(ratings, 1e-300)))
    np.testing.assert_allclose(one.mean_ratings, [[0.5, 0.5], [0.8, 0.2]])
    known = replace(one, observed=np.array([[True, False], [True, True]]))
    np.testing.assert_allclose(known.mean_ratings, [[0.5, np.nan], [0.8, 0.2]])


def test_a_posterior_that_was_saved_and_loaded_is_the_same(saved: Path) -> None:
    one, other = posterior(), Posterior.load(saved)
    assert other.algorithms == one.algorithms
    np.testing.assert_array_equal(other.timepoints, one.timepoints)
    np.testing.assert_array_equal(other.log_ratings, one.log_ratings)
    assert (other.prior, other.joint, other.diagnostics) == (one.prior, one.joint, one.diagnostics)
    assert list(other.hyperparameters) == ["log_scale"]
    np.testing.assert_array_equal(other.hyperparameters["log_scale"], one.hyperparameters["log_scale"])
    assert other.state is None


@pytest.mark.parametrize("prior", ["dirichlet", "hierarchical-dirichlet", "random-walk"])
def test_a_fitted_posterior_survives_saving(tmp_path: Path, prior: str) -> None:
    values = np.random.default_rng(1).normal(size=(6, 2, 3))
    table = table_of(values)
    one = fit(table, prior, draws=200, seed=1)
    other = Posterior.load(one.save(str(tmp_path / "no suffix")))
    np.testing.assert_array_equal(other.log_ratings, one.log_ratings)
    assert other.diagnostics == one.diagnostics
    assert repr(other) == repr(one)


def test_infinite_diagnostics_survive_saving(tmp_path: Path) -> None:
    one = posterior()
    poor = Diagnostics(engine="native", route="by hand", good=False, k_hat=np.inf)
    path = Posterior(one.algorithms, one.timepoints, one.log_ratings, "gp", True, poor).save(tmp_path / "poor.npz")
    assert Posterior.load(path).diagnostics.k_hat == np.inf


def test_a_saved_posterior_needs_no_pickle(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fU" for name in arrays.files)
        assert json.loads(str(arrays["about"]))["algorithms"] == ["csa", "größer"]


def test_a_file_written_by_a_version_with_further_diagnostics_can_be_read(saved: Path) -> None:
    change_json(saved, "about", lambda about: about["diagnostics"].update(invented_later=7))
    assert Posterior.load(saved).diagnostics == DIAGNOSTICS


@pytest.mark.parametrize(
    "wrong",
    [
        {"k_hat": "x"},
        {"moves": True},
        {"r_hat": [1.0]},
        {"divergences": "none"},
        {"good": 1},
        {"engine": None},
        {"problems": [3]},
        {"dependence": 0.5},
        {"dependence": [0.5, "x"]},
    ],
)
def test_diagnostics_that_no_posterior_writes_are_refused(wrong: dict[str, object]) -> None:
    assert Diagnostics.from_json(asdict(DIAGNOSTICS)) == DIAGNOSTICS
    with pytest.raises((ValueError, TypeError)):
        Diagnostics.from_json({**asdict(DIAGNOSTICS), **wrong})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see the test below
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_is_damaged(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SourceError, match=r"posterior\.npz is not a saved posterior, or is damaged"):
        Posterior.load(saved)


def test_json_is_told_apart_and_says_what_to_give_instead(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('\n {"format": 1}')
    with pytest.raises(
        SourceError,
        match=r"result\.json is JSON.*has the findings but not the draws.*file that --output .*or the journal",
    ):
        Posterior.load(path)


def test_a_damaged_file_is_closed_again(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:200])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(SourceError):
            Posterior.load(saved)
        gc.collect()
    assert not told


def test_a_file_with_a_wrong_byte_in_the_draws_is_damaged(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    place = content.index(b"log_ratings.npy") + 400
    content[place] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(SourceError, match=r"posterior\.npz is not a saved posterior, or is damaged"):
        Posterior.load(saved)


def write_text(path: Path) -> None:
    path.write_text("algorithm,instance,time,value\n")


def write_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def write_archive(path: Path) -> None:
    np.savez(path, some=np.zeros(3))


def write_objects(path: Path) -> None:
    np.savez(path, about=np.array([{"a": 1}], dtype=object))


def write_wrong_about(path: Path) -> None:
    np.savez(path, about=np.array("[1, 2]"))


def write_too_few_algorithms(path: Path) -> None:
    one = posterior()
    Posterior(("csa",), one.timepoints, one.log_ratings, "gp", True, DIAGNOSTICS).save(path)


@pytest.mark.parametrize(
    "write",
    [
        write_text,
        write_array,
        write_archive,
        write_objects,
        write_wrong_about,
        write_too_few_algorithms,
    ],
)
def test_a_foreign_file_is_named_and_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "foreign.npz"
    write(path)
    with pytest.raises(SourceError, match=r"foreign\.npz is not a saved posterior, or is damaged"):
        Posterior.load(path)


def test_who_gives_a_folder_is_told_how_to_make_a_result_of_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is a folder, not a saved posterior.*polarbear analyze .* --output"):
        Posterior.load(tmp_path)


def test_a_file_of_another_format_says_which_one_can_be_read(saved: Path) -> None:
    change_json(saved, "about", lambda about: about.update(format=2))
    with pytest.raises(SourceError, match=r"posterior\.npz: The posterior has the format 2; this version reads 1"):
        Posterior.load(saved)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.npz: there is no such file"):
        Posterior.load(tmp_path / "nowhere.npz")


def test_the_summary_has_a_row_for_each_timepoint_and_algorithm() -> None:
    one = posterior(draws=2001)
    summary = one.summary()
    assert summary.index.names == ["timepoint", "algorithm"]
    assert summary.index.to_list() == [(time, name) for time in (1.0, 10.0, 100.0) for name in ("csa", "größer")]
    assert summary.columns.to_list() == ["mean", "sd", "low", "high"]
    for (time, name), row in summary.iterrows():
        draws = one.ratings[:, one.timepoints.tolist().index(time), one.algorithms.index(name)]
        assert row["mean"] == pytest.approx(draws.mean())
        assert row["sd"] == pytest.approx(draws.std())
        # 2001 draws: the limits are the 51st from either end.
        assert row["low"] == pytest.approx(np.sort(draws)[50])
        assert row["high"] == pytest.approx(np.sort(draws)[-51])


def test_a_larger_probability_gives_a_wider_interval() -> None:
    one, other = posterior().summary(0.5), posterior().summary(0.9)
    assert (other["low"] < one["low"]).all()
    assert (other["high"] > one["high"]).all()


def test_the_representation_says_what_it_is_and_when_it_is_not_good() -> None:
    assert repr(posterior()) == "Posterior(50 draws, 2 algorithms, 3 timepoints, prior 'bspline', good)"
    assert "NOT GOOD" in repr(posterior(good=False))


def test_a_notebook_shows_means_and_intervals_at_a_few_timepoints() -> None:
    logs = np.log(np.array([[[share, 1 - share]] * 7 for share in np.linspace(0.2, 0.8, 21)]))
    logs[:, 6] = logs[:, 6, ::-1]  # at the last timepoint the two change places
    observed = np.ones((7, 2), dtype=bool)
    observed[0, 1] = False
    one = replace(
        posterior_of_logs(logs, timepoints=[1, 2, 3, 4, 5, 6, 7000]), observed=observed, algorithms=("<a>", "b")
    )
    page = one._repr_html_()
    assert cells_of(page) == [
        ["algorithm", "at 1", "at 3", "at 5", "at 7,000"],
        ["<a>", *["0.50 (0.23 to 0.77)"] * 4],
        ["b", "-", *["0.50 (0.23 to 0.77)"] * 3],
    ]
    assert "<caption>Rating: mean and 90 % interval</caption>" in page
    assert page.startswith("<p>Posterior(21 draws, 2 algorithms, 7 timepoints, prior &#x27;gp&#x27;, good)</p>")
    lower = posterior_of_logs(np.log([[[0.9, 0.1]], [[0.7, 0.3]]]))
    assert cells_of(lower._repr_html_())[1:] == [["a", "0.80 (0.71 to 0.89)"], ["b", "0.20 (0.11 to 0.29)"]]


def test_arviz_gets_the_ratings_and_the_hyperparameters() -> None:
    pytest.importorskip("arviz")
    one = posterior()
    data = one.to_arviz().posterior
    assert dict(data.rating.sizes) == {"chain": 1, "draw": 50, "timepoint": 3, "algorithm": 2}
    np.testing.assert_allclose(data.rating.sel(algorithm="csa").values[0], one.ratings[..., 0])
    np.testing.assert_allclose(data.log_scale.values[0], one.hyperparameters["log_scale"])


def test_without_arviz_the_extra_that_brings_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"Posterior\.to_arviz needs 'arviz'.*polarbear-plugins\[pymc\]"):
        posterior().to_arviz()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of matplotlib, about ArviZ
def test_the_figures_of_arviz_name_timepoints_and_algorithms() -> None:
    arviz = pytest.importorskip("arviz")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    data = posterior().to_arviz()
    try:
        at = {"coords": {"timepoint": data.posterior.timepoint.values[1]}}
        old = arviz.__version__.startswith("0.")
        for draw, options in (
            (arviz.plot_forest, {}),
            (arviz.plot_posterior if old else arviz.plot_dist, at),
            (arviz.plot_pair, at),
            (arviz.plot_trace, {**at, "compact": False} if old else at),
        ):
            draw(data, var_names=["rating"], **options)
            texts = " ".join(text.get_text() for text in pyplot.gcf().findobj(pyplot.Text))
            assert all(name in texts for name in posterior().algorithms), draw.__name__
            pyplot.close()
    finally:
        pyplot.close("all")


def test_the_draws_are_those_of_the_posterior() -> None:
    fitted = fit(table_of(np.random.default_rng(1).random((6, 4, 3))), draws=100, seed=1)
    frame = fitted.to_pandas()
    assert column_kinds(frame) == {
        "draw": "int",
        "timepoint": "float",
        "algorithm": "names",
        "rating": "float",
        "log_rating": "float",
    }
    mean = frame.groupby(["timepoint", "algorithm"], observed=True)["rating"].mean()
    np.testing.assert_allclose(mean, fitted.summary()["mean"])
