"""Losses of real cross-validation, for all configurations of a grid on many random splits; computed once and kept.

svm-digits
    Error rate of a support vector machine, with many ties: C and gamma.
logistic-cancer
    Log loss of logistic regression on principal components: C and their number.
ridge-diabetes
    Squared error of kernel ridge regression, very noisy: alpha and gamma.

Each split draws small parts of the data for training and testing.  The splits overlap: the truth of a configuration is
about new splits of the same data set, not about new data.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mean_squared_error, zero_one_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

FloatArray: TypeAlias = NDArray[np.float64]
#: Values on the two axes of a grid, by parameter.
Axes: TypeAlias = Mapping[str, Sequence[float]]

SPLITS = 50


@dataclass(frozen=True)
class CrossValidation:
    """Data, a model with two parameters, and a loss.

    Parameters
    ----------
    load
        Function that gives the data: features and what is to be predicted.
    axes
        Values of the two parameters, for a number of positions on each axis.
    make_model
        Model with given values of the parameters.
    loss
        Loss of a model on features and what is to be predicted.
    n_folds
        Splits that a study sees.
    train, test
        Sizes of the two parts.
    """

    load: Callable[[], tuple[FloatArray, NDArray[Any]]]
    axes: Callable[[int], Axes]
    make_model: Callable[[float, float], Any]
    loss: Callable[[Any, FloatArray, NDArray[Any]], float]
    n_folds: int = 15
    train: int = 150
    test: int = 100

    def losses(self, grid: int, split: int) -> FloatArray:
        """Losses on a split, ``losses[first, second]``."""
        features, targets = self.load()
        order = np.random.default_rng(split).permutation(len(targets))
        train, test = order[: self.train], order[self.train : self.train + self.test]

        def loss(first: float, second: float) -> float:
            model = self.make_model(first, second).fit(features[train], targets[train])
            return self.loss(model, features[test], targets[test])

        firsts, seconds = self.axes(grid).values()
        return np.array([[loss(first, second) for second in seconds] for first in firsts])


def _log_axis(lower: float, upper: float, grid: int) -> list[float]:
    return np.geomspace(lower, upper, grid).tolist()


def _components_axis(grid: int) -> list[float]:
    return np.unique(np.linspace(2, 16, grid).round()).tolist()


def _diabetes() -> tuple[FloatArray, FloatArray]:
    features, targets = load_diabetes(return_X_y=True)
    return features, (targets - targets.mean()) / targets.std()


TABLES = {
    "svm-digits": CrossValidation(
        load=functools.partial(load_digits, return_X_y=True),
        axes=lambda grid: {"C": _log_axis(0.1, 1e3, grid), "gamma": _log_axis(1e-6, 3e-3, grid)},
        make_model=lambda c, gamma: SVC(C=c, gamma=gamma),
        loss=lambda model, features, targets: zero_one_loss(targets, model.predict(features)),
        n_folds=10,
    ),
    "logistic-cancer": CrossValidation(
        load=functools.partial(load_breast_cancer, return_X_y=True),
        axes=lambda grid: {"C": _log_axis(0.01, 100, grid), "components": _components_axis(grid)},
        make_model=lambda c, components: make_pipeline(
            StandardScaler(), PCA(int(components)), LogisticRegression(C=c, solver="newton-cholesky")
        ),
        loss=lambda model, features, targets: log_loss(targets, model.predict_proba(features)),
    ),
    "ridge-diabetes": CrossValidation(
        load=_diabetes,
        axes=lambda grid: {"alpha": _log_axis(1e-3, 10, grid), "gamma": _log_axis(1e-4, 1, grid)},
        make_model=lambda alpha, gamma: make_pipeline(
            StandardScaler(), KernelRidge(alpha=alpha, gamma=gamma, kernel="rbf")
        ),
        loss=lambda model, features, targets: mean_squared_error(targets, model.predict(features)),
    ),
}


def cross_validate(name: str, cache: Path, grid: int, workers: int) -> FloatArray:
    """Losses of all configurations on all splits, ``losses[first, second, split]``."""
    definition = Path(__file__).read_text(), grid, sklearn.__version__

    def compute() -> FloatArray:
        with ProcessPoolExecutor(workers) as pool:
            one_split = functools.partial(_losses_on_split, name, grid)
            return np.stack(list(pool.map(one_split, range(SPLITS))), axis=-1)

    return cached(cache, name, definition, compute)


def _losses_on_split(name: str, grid: int, split: int) -> FloatArray:
    with threadpool_limits(1):
        return TABLES[name].losses(grid, split)


def cached(folder: Path, name: str, definition: object, compute: Callable[[], FloatArray]) -> FloatArray:
    """What ``compute`` returns, kept in a folder under the name and the definition."""
    digest = hashlib.sha256(repr(definition).encode()).hexdigest()[:12]
    path = folder / f"{name}-{digest}.npy"
    if not path.exists():
        print(f"{name}: computing {path}, once", flush=True)
        values = compute()
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, values)
        partial.replace(path)
    return np.load(path)
