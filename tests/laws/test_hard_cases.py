"""The benchmark of hard cases: its exact answers are exact, its references fit its cases, and it sees what is wrong."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betainc

from polarbear_plugins import Posterior, RankingTable, fit

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "evidence")]

import case_references  # noqa: E402
import hard_cases  # noqa: E402
import ranking_cases  # noqa: E402
from exact_posteriors import exact_posterior  # noqa: E402


def table_of(values: object, algorithms: str, weights: object = None) -> RankingTable:
    array = np.asarray(values, dtype=float)
    return RankingTable.from_values(
        array, algorithms=list(algorithms), timepoints=range(array.shape[1]), weights=weights
    )


def test_quadrature_of_two_algorithms_is_the_beta_distribution() -> None:
    values = [[[0, 1]], [[0, 1]], [[1, 0]], [[1, 1]], [[0, np.nan]]]
    exact = exact_posterior(table_of(values, "ab", [1.0, 2.5, 0.5, 3.0, 9.0]), "dirichlet")
    assert exact.p_better[0, 0, 1] == pytest.approx(1 - betainc(1 + 3.5 + 1.5, 1 + 0.5 + 1.5, 0.5), abs=1e-7)


def test_quadrature_of_three_algorithms_is_the_beta_distribution_where_the_third_is_absent() -> None:
    values = [[[0, 1, np.nan]]] * 6 + [[[1, 0, np.nan]]] * 2
    exact = exact_posterior(table_of(values, "abc"), "dirichlet")
    assert exact.p_better[0, 0, 1] == pytest.approx(1 - betainc(7, 3, 0.5), abs=1e-9)


def test_a_single_comparison_leaves_the_hyperprior_as_it_is() -> None:
    # Whatever kappa is, each of two algorithms wins it with probability 1/2.
    exact = exact_posterior(table_of([[[0, 1]]], "ab"), "hierarchical-dirichlet")
    mean, sd = exact.hyperparameters["log_kappa"]
    assert mean == pytest.approx(np.log(10) - np.euler_gamma, abs=1e-3)
    assert sd == pytest.approx(np.pi / np.sqrt(6), abs=2e-3)


@pytest.mark.parametrize("prior", [pytest.param("gp", marks=pytest.mark.slow), "bspline", "random-walk"])
def test_quadrature_at_one_timepoint_is_symmetric_and_near_the_native_engine(prior: str) -> None:
    table = table_of([[[0, 1, 2]]] * 5 + [[[2, 1, 0]]] * 3 + [[[1, 0, 0]]] * 2, "abc")
    exact = exact_posterior(table, prior)
    off = ~np.eye(3, dtype=bool)
    assert (exact.p_better + exact.p_better.transpose(0, 2, 1))[0][off] == pytest.approx(1)
    posterior = fit(table, prior, seed=1)
    for name, (mean, sd) in exact.hyperparameters.items():
        assert abs(posterior.hyperparameters[name].mean() - mean) < 0.15 * sd


def test_a_case_is_determined_by_its_number() -> None:
    for number in (0, 5, 22, 91):
        assert ranking_cases.case(number).digest == ranking_cases.case(number).digest
    cases = [ranking_cases.case(number) for number in range(ranking_cases.COUNT)]
    pairs = {(of.prior, of.kind) for of in cases}
    assert len(pairs) == len(ranking_cases.PRIORS) * len(ranking_cases.KINDS)


def test_the_stored_references_are_of_these_cases() -> None:
    for number, reference in case_references.load(hard_cases.STORED).items():
        assert reference.digest == ranking_cases.case(number).digest


def test_references_survive_the_file(tmp_path: Path) -> None:
    better = np.array([[[0.0, 0.25], [0.75, 0.0]]])
    exact = case_references.Reference(3, "d", "nuts", "", 1.5, better, better[0] / 2, {"x": (1.0, 2.0, 0.1)}, 0.01)
    none = case_references.Reference(1, "e", "none", "too slow")
    case_references.save([exact, none], tmp_path / "file.npz")
    found = case_references.load(tmp_path / "file.npz")
    assert (found[1].how, found[1].p_better) == ("none", None)
    np.testing.assert_allclose(found[3].p_better, better, atol=1e-5)
    np.testing.assert_allclose(found[3].p_anytime, better[0] / 2, atol=1e-5)
    assert found[3].hyperparameter_error == pytest.approx(0.05)


def test_a_reference_of_other_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(14)
    monkeypatch.setattr(hard_cases, "STORED", tmp_path / "file.npz")
    case_references.save([case_references.Reference(14, of.digest, "none", "")], hard_cases.STORED)
    assert hard_cases.read_references([of])[14].how == "none"
    case_references.save([case_references.Reference(14, "other", "none", "")], hard_cases.STORED)
    with pytest.raises(SystemExit, match="other data: 14"):
        hard_cases.read_references([of])


def reference_of(of: ranking_cases.Case) -> case_references.Reference:
    return next(iter(case_references.make(of)))


def shifted(by: float, *, only: int | None = None, good: bool = True, scale: float = 0.0) -> object:
    """Return the native engine with the utilities of the first algorithm, and all hyperparameters, shifted."""

    def wrong(*arguments: object, seed: int, **options: object) -> Posterior:
        posterior = fit(*arguments, seed=seed, **options)  # type: ignore[arg-type]
        if only not in (None, seed):
            return posterior
        logs = posterior.log_ratings + by * (np.arange(posterior.log_ratings.shape[2]) == 0)
        return dataclasses.replace(
            posterior,
            log_ratings=logs,
            hyperparameters={name: values + scale for name, values in posterior.hyperparameters.items()},
            diagnostics=dataclasses.replace(posterior.diagnostics, good=good),
        )

    return wrong


def test_a_good_posterior_that_is_wrong_is_a_silent_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(34)  # bspline, one timepoint: exact
    reference = reference_of(of)
    assert reference.how == "exact"
    assert not hard_cases.examine(of, reference, 2).faults
    monkeypatch.setattr(hard_cases, "fit", shifted(2.0))
    assert [fault.split()[0] for fault in hard_cases.examine(of, reference, 2).faults] == ["p_better", "p_anytime"]
    monkeypatch.setattr(hard_cases, "fit", shifted(0.0, scale=0.3))
    assert [fault.split()[0] for fault in hard_cases.examine(of, reference, 2).faults] == ["hyperparameters"]
    monkeypatch.setattr(hard_cases, "fit", shifted(2.0, good=False))
    result = hard_cases.examine(of, reference, 2)
    assert (result.good, result.faults) == (0, ())


def test_one_bad_seed_among_several_is_not_averaged_away(monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(34)
    monkeypatch.setattr(hard_cases, "fit", shifted(0.0, only=1, scale=0.18))
    result = hard_cases.examine(of, reference_of(of), 6)
    assert result.differences["hyperparameters"] < 0.05
    assert [fault.split()[:4] for fault in result.faults] == [["hyperparameters", "of", "one", "fit"]]


def test_a_difference_that_a_coarse_reference_explains_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(34)
    exact = reference_of(of)
    moments = {name: (mean, sd, 0.04 * sd) for name, (mean, sd, _) in exact.hyperparameters.items()}
    monkeypatch.setattr(hard_cases, "fit", shifted(0.0, scale=0.1))
    assert hard_cases.examine(of, exact, 2).faults
    result = hard_cases.examine(of, dataclasses.replace(exact, hyperparameters=moments), 2)
    assert (len(result.doubts), result.faults) == (1, ())


def test_a_difference_from_a_reference_with_divergences_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(34)
    diverged = dataclasses.replace(reference_of(of), how="diverged")
    monkeypatch.setattr(hard_cases, "fit", shifted(2.0, scale=0.3))
    result = hard_cases.examine(of, diverged, 2)
    assert (len(result.doubts), result.faults) == (3, ())


@pytest.mark.parametrize(
    ("outcomes", "how"),
    [
        (["nuts"], "nuts"),
        (["none", "nuts"], "nuts"),
        (["diverged", "nuts"], "nuts"),
        (["diverged", "diverged"], "diverged"),
        (["diverged", "diverged elsewhere"], "none"),
        (["diverged", "none"], "none"),
        (["none", "diverged"], "none"),
        (["coarse", "none"], "nuts"),
        (["coarse", "nuts"], "nuts"),
    ],
)
def test_a_poor_run_is_repeated_once(outcomes: list[str], how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = ranking_cases.case(25)
    seeds = []

    def run(of: ranking_cases.Case, *_: object, seed: int) -> case_references.Reference:
        outcome, place = outcomes[len(seeds)], len(seeds)
        seeds.append(seed)
        better = np.full((of.timepoints, of.n, of.n), 0.6 if "elsewhere" in outcome else 0.5)
        error = 0.02 if outcome == "coarse" else 0.005
        name = {"coarse": "nuts", "diverged elsewhere": "diverged"}.get(outcome, outcome)
        return case_references.Reference(of.number, of.digest, name, str(place), 0.0, better, None, {}, error)

    monkeypatch.setattr(case_references, "_nuts", run)
    last = list(case_references.make(of))[-1]
    assert (last.how, len(seeds), len(set(seeds))) == (how, len(outcomes), len(outcomes))
    assert last.about == ("0" if outcomes == ["coarse", "none"] else str(len(outcomes) - 1))


def test_ranges_of_cases() -> None:
    assert hard_cases.parse_numbers(["3", "7-9"]) == [3, 7, 8, 9]
