from __future__ import annotations

import itertools
import json
import math
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InvalidInputError, MissingExtraError, PolarBearError, RunWarning
from polarbear_plugins.integrations import modcma_portfolio as module
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Algorithm, Identity
from polarbear_plugins.testing import check_portfolio

STEP_SIZES = ["CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES"]
MATRICES = ["COV", "SEP", "MAT", "CHO", "CMSA", "NAT", "NONE"]


class Box:
    """Rastrigin's function, which counts and remembers the lowest and the highest coordinate it has seen."""

    def __init__(self, dimension: int = 4, lower: float = -5.0, upper: float = 5.0) -> None:
        self.identity = Identity(f"rastrigin-{dimension}-{lower:g}-{upper:g}")
        self.lower, self.upper = np.full(dimension, lower), np.full(dimension, upper)
        self.evaluations, self.lowest, self.highest = 0, math.inf, -math.inf
        self.points: list[np.ndarray] = []

    def evaluate(self, x: ArrayLike, /) -> float:
        self.evaluations += 1
        point = np.asarray(x)
        self.lowest, self.highest = min(self.lowest, point.min()), max(self.highest, point.max())
        self.points.append(point)
        return float(np.sum(point**2 + 10 - 10 * np.cos(2 * math.pi * point)))


class Function(Box):
    """Any function on the box."""

    def __init__(self, function: Callable[[np.ndarray], Any], dimension: int = 4) -> None:
        super().__init__(dimension)
        self.function = function

    def evaluate(self, x: ArrayLike, /) -> float:
        super().evaluate(x)
        return self.function(np.asarray(x))  # type: ignore[no-any-return]


def plugins() -> Plugins:
    made = Plugins()
    made.register(module, "modcma")
    return made


def variants(**options: object) -> list[Algorithm]:
    """The 13 variants of the paper."""
    both = [plugins().portfolio(name, random_search=False, **options) for name in ("modcma-ssa", "modcma-matrix")]
    return [*both[0], *both[1]]


def digests(order: int = 1) -> dict[str, list[float]]:
    """What identifies the runs of all variants, run one after the other."""
    runs = [algorithm.run(Box(), 800, 11) for algorithm in variants()[::order]][::order]
    return {f"{place} {run.algorithm}": [*run.times, *run.best] for place, run in enumerate(runs)}


def test_without_modcma_a_portfolio_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "modcma", None)
    monkeypatch.setitem(sys.modules, "modcma.c_maes", None)
    for use in (
        lambda: plugins().portfolio("modcma-ssa"),
        lambda: plugins().portfolio("modcma:{}"),
        lambda: module.ModularCMAES("a", {}),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'polarbear-plugins\[ioh\]'"):
            use()


def test_without_modcma_other_names_are_still_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "modcma.c_maes", None)
    assert module.polarbear_portfolio("modcma", {}) is None
    assert module.polarbear_portfolio("random-search", {}) is None


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("modcma.c_maes")


needs_modcma = pytest.mark.usefixtures("library")


@needs_modcma
@pytest.mark.parametrize("preset", ["paper", "appendix-b"])
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("modcma-ssa", [*STEP_SIZES, "RS"]),
        ("modcma-matrix", [*MATRICES, "RS"]),
        (
            'modcma:{"ssa": ["CSA", "tpa"], "active": [true, false], "lambda0": 12}',
            ["ssa=CSA active=true", "ssa=CSA active=false", "ssa=TPA active=true", "ssa=TPA active=false"],
        ),
        ('modcma:{"matrix_adaptation": "SEP", "mu0": 2}', ["matrix_adaptation=SEPARABLE mu0=2"]),
        ("modcma:{}", ["modcma"]),
    ],
)
def test_the_plugin_keeps_the_contract(name: str, names: list[str], preset: str) -> None:
    portfolio = check_portfolio(module, name, Box(), 700, {"preset": preset})
    assert [algorithm.name for algorithm in portfolio] == names


@needs_modcma
def test_random_search_is_a_choice() -> None:
    for text, wanted in (("false", False), (False, False), ("true", True), (True, True)):
        for name in ("modcma-ssa", "modcma-matrix", "modcma:{}"):
            names = [algorithm.name for algorithm in plugins().portfolio(name, random_search=text)]
            assert ("RS" in names) is wanted


# Seeds


@needs_modcma
def test_the_same_seed_gives_the_same_trajectories_in_any_order_and_after_any_history(library: Any) -> None:
    expected = digests()
    assert digests(-1) == expected
    # modcma keeps every second normal number for later, whatever the seed.
    for seed in (0, 5):
        for count in range(2):
            library.utils.set_seed(seed)
            for _ in range(count):
                library.utils.random_normal()
            assert digests() == expected


@needs_modcma
def test_a_broken_run_leaves_nothing_behind() -> None:
    algorithm = variants()[0]
    expected = algorithm.run(Box(), 900, 2)
    for limit in range(30, 36):
        with pytest.raises(ZeroDivisionError):
            algorithm.run(failing(limit), 900, 2)
        assert algorithm.run(Box(), 900, 2) == expected


def failing(limit: int) -> Function:
    problem = Function(lambda x: 1 / 0 if problem.evaluations > limit else float(x @ x))
    return problem


@pytest.mark.slow
@needs_modcma
def test_another_process_gives_the_same_trajectories() -> None:
    code = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('tests_of_modcma', {__file__!r})\n"
        "tests = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(tests)\n"
        "print(json.dumps(tests.digests(-1)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == digests()


@needs_modcma
def test_another_seed_gives_another_trajectory_from_the_first_point_on() -> None:
    for algorithm in variants():
        one, other = (algorithm.run(Box(), 300, seed) for seed in (1, 2**40))
        assert one.best[0] != other.best[0]


@needs_modcma
def test_threads_do_not_disturb_each_other() -> None:
    algorithms = variants()[:4]
    expected = [algorithm.run(Box(), 1200, 5) for algorithm in algorithms]
    found: dict[int, object] = {}

    def work(place: int) -> None:
        found[place] = algorithms[place].run(Box(), 1200, 5)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[place] for place in range(4)] == expected


@needs_modcma
def test_a_longer_run_begins_with_the_shorter_one() -> None:
    for algorithm in variants():
        short, long = (algorithm.run(Box(), horizon, 3) for horizon in (400, 1500))
        assert np.array_equal(short.best, long.best[: short.best.size])
        assert np.array_equal(short.times, long.times[: short.times.size])


@needs_modcma
def test_an_algorithm_travels_and_stays_the_same() -> None:
    for algorithm in variants():
        assert pickle.loads(pickle.dumps(algorithm)).run(Box(), 200, 1) == algorithm.run(Box(), 200, 1)  # noqa: S301


# Budgets


@needs_modcma
@pytest.mark.parametrize("preset", ["paper", "appendix-b"])
@pytest.mark.parametrize("horizon", [1, 2, 37, 1000, 1000.9])
def test_a_run_takes_exactly_the_evaluations_it_was_given(preset: str, horizon: float) -> None:
    for algorithm in variants(preset=preset):
        values: list[float] = []
        problem = Function(lambda x, values=values: values.append(float(x @ x)) or values[-1])  # type: ignore[misc]
        run = algorithm.run(problem, horizon, 4)
        if algorithm.name != "NAT":  # which leaves out points that are nan
            assert problem.evaluations == int(horizon)
        assert run.horizon == horizon
        assert run.times[-1] <= int(horizon)
        assert run.best[-1] == min(values)


@needs_modcma
def test_a_horizon_before_the_first_evaluation_evaluates_nothing() -> None:
    problem = Box()
    assert variants()[0].run(problem, 0.5, 1).times.size == 0
    assert problem.evaluations == 0


@needs_modcma
def test_time_can_be_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # an evaluation takes a second by it
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    for algorithm in plugins().portfolio("modcma-ssa", axis="seconds"):
        problem = Box()
        run = algorithm.run(problem, 50, 1)
        assert run.horizon == 50
        assert 0 < run.times[0] < run.times[-1] <= 50
        assert 50 <= problem.evaluations <= 51


@needs_modcma
def test_an_algorithm_that_ends_by_itself_is_watched_until_the_horizon() -> None:
    [algorithm] = plugins().portfolio('modcma:{"restart_strategy": "STOP"}')
    problem = Function(lambda x: float(x @ x))
    run = algorithm.run(problem, 50_000, 1)
    assert problem.evaluations < 50_000
    assert run.horizon == 50_000


# Boxes and presets


@needs_modcma
@pytest.mark.parametrize(("lower", "upper"), [(-5.0, 5.0), (-1.9, 0.4), (1e6, 1e6 + 1)])
def test_the_preset_of_the_paper_never_leaves_the_box(lower: float, upper: float) -> None:
    for algorithm in variants(preset="paper"):
        problem = Function(lambda x: -float(np.sum(x)))  # with its optimum in a corner, where steps lead outside
        problem.lower, problem.upper = np.full(4, lower), np.full(4, upper)
        algorithm.run(problem, 1500, 6)
        assert lower <= problem.lowest
        assert problem.highest <= upper


@needs_modcma
def test_the_letter_of_appendix_b_leaves_the_box() -> None:
    [algorithm] = plugins().portfolio("modcma:{}", preset="appendix-b")
    problem = Box()
    algorithm.run(problem, 4000, 6)
    assert problem.highest > 5


@needs_modcma
def test_the_preset_of_the_paper_restarts_everywhere_in_the_box() -> None:
    # A flat function ends every descent at once; the mean of a generation tells where it began.
    [algorithm] = plugins().portfolio('modcma:{"sigma0": 1e-3, "restart_strategy": "RESTART"}')
    problem = Function(lambda _: 0.0, dimension=3)
    algorithm.run(problem, 20_000, 6)
    starts = np.unique(np.round(np.array(problem.points) / 0.5), axis=0) * 0.5
    assert len(starts) > 50
    assert (starts.min(axis=0) < -4).all()
    assert (starts.max(axis=0) > 4).all()
    assert np.abs(starts.mean(axis=0)).max() < 1.5


@needs_modcma
def test_the_first_point_is_near_a_uniform_start_not_the_middle() -> None:
    [algorithm] = plugins().portfolio('modcma:{"sigma0": 1e-6}')
    firsts = []
    for seed in range(200):
        problem = Box(2)
        algorithm.run(problem, 1, seed)
        firsts.append(problem.points[0])
    assert np.abs(np.quantile(firsts, [0.1, 0.5, 0.9], axis=0).T - [-4, 0, 4]).max() < 1


@needs_modcma
def test_a_box_is_mapped_onto_that_of_the_paper() -> None:
    for preset in ("paper", "appendix-b"):
        for algorithm in variants(preset=preset):
            small = Box(3)
            large = Function(lambda x: Box(3).evaluate(x / 64 - 5), dimension=3)
            large.lower, large.upper = np.zeros(3), np.full(3, 640.0)
            assert algorithm.run(large, 300, 9).times.tolist() == algorithm.run(small, 300, 9).times.tolist()


@needs_modcma
def test_the_configuration_is_that_of_appendix_b(library: Any) -> None:
    assert module.PRESETS["bounded"] == module.PRESETS["paper"]  # of earlier journals
    inside = dict.fromkeys(("bound_correction", "center_placement"))
    assert {**module.PRESETS["paper"], **inside} == {**module.PRESETS["appendix-b"], **inside}
    for algorithm in variants(preset="appendix-b"):
        assert isinstance(algorithm, module.ModularCMAES)
        settings = module._make_settings(library, algorithm.configuration, np.zeros(6))
        modules, options = settings.modules, library.options
        assert settings.sigma0 == 2
        assert (modules.repelling_restart, modules.threshold_convergence) == (True, False)
        assert modules.active is (algorithm.name != "NONE")  # without a matrix there is nothing to be active about
        assert modules.bound_correction == options.CorrectionMethod.COTN
        assert modules.restart_strategy == options.RestartStrategy.IPOP
        assert modules.center_placement == options.CenterPlacement.UNIFORM
    kinds = [module._make_settings(library, a.configuration, np.zeros(6)).modules for a in variants()]  # type: ignore[attr-defined]
    assert [kind.ssa.name for kind in kinds] == [*STEP_SIZES, *["CSA"] * 7]
    # modcma's own rewriting: the same model, sampled without eigenvectors.
    assert {kind.matrix_adaptation.name for kind in kinds[1:6]} == {"COVARIANCE_NO_EIGV"}
    full = ["COVARIANCE", "SEPARABLE", "MATRIX", "CHOLESKY", "CMSA", "NATURAL_GRADIENT", "NONE"]
    assert [kind.matrix_adaptation.name for kind in kinds[6:]] == full


@needs_modcma
def test_dimensions_in_which_repelling_hangs_are_guarded(library: Any) -> None:
    [algorithm] = plugins().portfolio("modcma:{}")
    for dimension, repels in ((308, True), (309, False)):
        settings = module._make_settings(library, algorithm.configuration, np.zeros(dimension))  # type: ignore[attr-defined]
        assert settings.modules.repelling_restart is repels
    # A constant restarts at once, which without the guard never comes back.
    [quick] = plugins().portfolio('modcma:{"matrix_adaptation": "NONE"}')
    problem = Function(lambda _: 1.0, dimension=320)
    quick.run(problem, 12_000, 1)
    assert problem.evaluations == 12_000


# Failures


@needs_modcma
@pytest.mark.parametrize(("values", "best"), [((math.nan, 1.0, math.inf), [1.0]), ((math.inf, math.inf, math.inf), [])])
def test_runs_survive_values_that_are_not_finite(values: tuple[float, ...], best: list[float]) -> None:
    for algorithm in variants():
        if not best and algorithm.name == "NAT":
            continue  # where nothing is finite its own points become nan, which is a failure
        problem = Function(lambda x: values[int(abs(x[0]) * 100) % 3])
        assert algorithm.run(problem, 600, 1).best.tolist() == best


@needs_modcma
def test_a_run_that_finds_nothing_but_nan_fails() -> None:
    for algorithm in variants():
        with pytest.raises(PolarBearError, match=r"found nothing: 200 evaluations gave nan"):
            algorithm.run(Function(lambda _: math.nan), 200, 1)


@needs_modcma
def test_points_that_are_nan_count_but_do_not_reach_the_problem() -> None:
    natural = next(algorithm for algorithm in variants() if algorithm.name == "NAT")
    problem = Box(2)
    run = natural.run(problem, 20_000, 0)
    assert problem.evaluations < 20_000
    assert np.isfinite(problem.points).all()
    assert run.horizon == 20_000


@needs_modcma
@pytest.mark.parametrize("value", ["x", None])
def test_an_objective_without_a_number_fails(value: object) -> None:
    with pytest.raises(TypeError):
        variants()[0].run(Function(lambda _: value), 20, 1)


@needs_modcma
def test_a_failing_algorithm_is_a_failed_run_and_not_a_failed_race() -> None:
    portfolio = [*plugins().portfolio('modcma:{"ssa": ["CSA", "TPA"]}'), Broken()]
    with pytest.warns(UserWarning, match="broken"):
        result = race(
            portfolio,
            [Box(2, -5, 5 + k) for k in range(4)],
            [50, 100, 200],
            RaceSettings(seed=1, batch_size=4, batch_min=4, max_rounds=1),
            workers=0,
        )
    assert {failure.algorithm for failure in result.failures} == {"broken"}


class Broken:
    name = "broken"

    def run(self, _: Box, horizon: float, seed: int, /) -> Any:
        return variants()[0].run(Function(lambda _: math.nan), horizon, seed)


@needs_modcma
def test_problems_without_a_box_are_refused() -> None:
    algorithm = variants()[0]
    with pytest.raises(InvalidInputError, match=r"'CSA' cannot run on 'seven': it needs a box"):
        algorithm.run(GivenProblem(Identity("seven"), 7), 5, 1)
    for lower, upper in ((-math.inf, 1.0), (1.0, 1.0), (2.0, 1.0), (0.0, math.nan)):
        problem = Box(2)
        problem.lower, problem.upper = np.full(2, lower), np.full(2, upper)
        with pytest.raises(InvalidInputError, match="needs finite bounds"):
            algorithm.run(problem, 5, 1)
    problem = Box(2)
    problem.upper = np.ones(3)
    with pytest.raises(InvalidInputError, match="needs finite bounds"):
        algorithm.run(problem, 5, 1)


@needs_modcma
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("modcma-ssa", {"colour": 1}, "no option 'colour'. It takes preset, axis, random_search"),
        ("modcma-ssa", {"preset": "best"}, 'preset: expected "paper", "appendix-b" or "bounded", got'),
        ("modcma-ssa", {"axis": "weeks"}, 'axis: expected "evaluations" or "seconds", got'),
        ("modcma-matrix", {"random_search": "maybe"}, "random_search: expected true or false, got 'maybe'"),
        ("modcma:", {}, "must be JSON"),
        ("modcma:[1]", {}, r"expected an object \{...\} after the colon, got \[1\]"),
        ('modcma:{"colour": 1}', {}, "modcma has no 'colour'. It takes acov, active, always_compute_eigv"),
        ('modcma:{"ssa": "CSB"}', {}, "ssa must be one of CSA, TPA, .* got 'CSB'"),
        ('modcma:{"ssa": 1}', {}, "ssa must be one of"),
        ('modcma:{"ssa": []}', {}, "the list of values of 'ssa' is empty"),
        ('modcma:{"active": 3}', {}, "active: expected true or false"),
        ('modcma:{"lambda0": 2.5}', {}, "lambda0 must be a whole number of at least 1"),
        ('modcma:{"sigma0": 0}', {}, "sigma0: expected a positive number"),
        ('modcma:{"cs": -1}', {}, "cs: expected a number of at least 0, got -1"),
        ('modcma:{"cs": "x"}', {}, "cs: expected a finite number"),
        ('modcma:{"mu0": 9, "lambda0": 8}', {}, r"mu0 \(9\) must not exceed lambda0 \(8\)"),
        ('modcma:{"threshold_convergence": true}', {}, "Give one with budget"),
        ('modcma:{"restart_strategy": "BIPOP"}', {}, "Give one with budget"),
        (
            'modcma:{"matrix_adaptation": ["COV", "COVARIANCE"]}',
            {},
            "'matrix_adaptation=COVARIANCE' is named more than once",
        ),
    ],
)
def test_options_without_meaning_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plugins().portfolio(name, **options)


@needs_modcma
def test_every_module_of_modcma_can_be_chosen(library: Any) -> None:
    grid = {key: list(values) for key, values in library.get_all_module_options().items()}
    budget = {"budget": 5000}
    for key, values in grid.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            algorithms = module.modcma_portfolio({key: values, **budget})
        assert [warning.category for warning in caught] == [RunWarning] * (key in module._NOT_REPEATABLE), key
        for algorithm in algorithms:
            run = algorithm.run(Box(), 300, 1)
            assert run.times[0] == 1
            if algorithm.configuration[key] != module._NOT_REPEATABLE.get(key, ...):
                assert algorithm.run(Box(), 300, 1) == run, algorithm.name


@needs_modcma
def test_what_modcma_cannot_repeat_is_said() -> None:
    with pytest.warns(RunWarning, match="'mine': modcma's ssa=PSR reads memory .* cannot be repeated"):
        module.ModularCMAES("mine", {"ssa": "PSR"})
    with pytest.warns(RunWarning, match="'mine': modcma's sequential_selection=true reads memory"):
        module.ModularCMAES("mine", {"sequential_selection": True})
