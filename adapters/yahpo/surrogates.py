"""Surrogates of YAHPO Gym in onnxruntime: configurations in, predicted targets out."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.adapters.yahpo.encoding import NOT_ACTIVE, Encoder, Inactive, Rows
from polarbear_plugins.adapters.yahpo.files import (
    data_folder,
    description_of,
    model_of,
    names_near,
    read_encoding,
    read_space,
)
from polarbear_plugins.arrays import Float32Array
from polarbear_plugins.errors import InvalidInputError, SourceError, reason, short
from polarbear_plugins.extras import require
from polarbear_plugins.problems.spaces import Categorical, Configuration, ConfigurationSpace, Float, Integer, Value
from polarbear_plugins.regular_files import check_regular

_LARGEST = float(np.finfo(np.float32).max)
_MOST_FILLED = 4096  # rows of instances and fidelities that are kept


class Surrogate:
    """The surrogate of a scenario, made by :func:`load_surrogate`, which keeps one for each scenario and process.

    Parameters
    ----------
    folder
        The copy of yahpo_data.
    scenario
        Name of the scenario.

    Attributes
    ----------
    space : ConfigurationSpace
        Space that is searched: all parameters but the instance and the fidelities.
    fidelities : dict
        Range of each fidelity; the first one is varied.
    instances : tuple of str
        Names of the instances.
    targets : tuple of str
        Names of the targets, in the order of the columns of :meth:`predict`.
    """

    def __init__(self, folder: Path, scenario: str) -> None:
        self.folder, self.scenario = folder, scenario
        self.description = description = description_of(folder, scenario)
        self.targets = description.targets
        complete, encoding = read_space(folder, scenario), read_encoding(folder, scenario)
        self._check_columns(complete, encoding)
        column = description.instance_column
        self.instances = description.instances
        if column is not None:
            self.instances = tuple(map(str, complete.parameters[column].choices))  # type: ignore[union-attr]
        self.fidelities: dict[str, Float | Integer] = {
            name: complete.parameters[name]  # type: ignore[misc]
            for name in description.fidelities
        }
        searched = {
            name: parameter
            for name, parameter in complete.parameters.items()
            if name != column and name not in description.fidelities
        }
        try:
            self.space = ConfigurationSpace(searched, complete.conditions)
        except InvalidInputError as problem:
            raise SourceError(f"{folder / scenario / 'config_space.json'}: {problem}") from None
        self._numbers = {name: place for place, name in enumerate(description.numbers)}
        self._categories = {name: place for place, name in enumerate(description.categories)}
        self._instance_codes = encoding.get(column, {}) if column is not None else {}
        self._encoder = Encoder(self.space, self._numbers, self._categories, encoding, scenario)
        # A column that is not active holds 0, or the code of its absence.
        self._empty = Rows([encoding[name][NOT_ACTIVE] for name in description.categories], [0.0] * len(self._numbers))
        self._filled: dict[tuple[object, ...], Rows] = {}
        self._session: Any = None
        self._inputs: tuple[str, str] = ("", "")
        self._output: list[str] = []

    def predict(
        self,
        configurations: Sequence[Configuration],
        instance: str | int,
        fidelities: Mapping[str, Value],
        inactive: Inactive = "refuse",
    ) -> Float32Array:
        """Predict all targets of configurations on an instance, in one batch.

        Parameters
        ----------
        configurations
            Values of the active parameters.
        instance
            Its name; a whole number means the instance that is called so.
        fidelities
            A value for each fidelity.
        inactive
            Whether a parameter that is set but not active is refused, or dropped.

        Returns
        -------
        values[configuration, target]
        """
        return self._run(*self.encode(configurations, instance, fidelities, inactive))

    def encode(
        self,
        configurations: Sequence[Configuration],
        instance: str | int,
        fidelities: Mapping[str, Value],
        inactive: Inactive = "refuse",
    ) -> tuple[NDArray[np.int32], Float32Array]:
        """The two arrays that :meth:`predict` passes to the session: codes of categories, and numbers."""
        instance = str(instance)
        # The types are in the key, since True and 1 are equal.
        key = instance, *fidelities.items(), *map(type, fidelities.values())
        try:
            empty = self._filled.get(key)
        except TypeError:  # not hashable, and refused below
            empty = None
        if empty is None:
            if len(self._filled) >= _MOST_FILLED:
                self._filled.clear()
            empty = self._filled[key] = self._fill(instance, fidelities)
        encode = self._encoder.encode
        return _stack([encode(each, empty, inactive) for each in configurations])

    def predict_complete(self, configurations: Sequence[Configuration], inactive: Inactive = "refuse") -> Float32Array:
        """:meth:`predict` for configurations that hold their instance and fidelities, as yahpo_gym takes them."""
        column = self.description.instance_column
        encoded = []
        for configuration in configurations:
            rest = dict(configuration)
            fidelities = {name: rest.pop(name) for name in self.fidelities if name in rest}
            instance = self.instances[0] if column is None else rest.pop(column, None)
            if instance is None:
                raise InvalidInputError(
                    f"{self.scenario}: the instance {column!r} is missing; one of {', '.join(self.instances[:3])}, ..."
                )
            encoded.append(self._encoder.encode(rest, self._fill(str(instance), fidelities), inactive))
        return self._run(*_stack(encoded))

    def check_instance(self, instance: str) -> None:
        """Refuse an unknown instance, and name similar ones."""
        if instance not in self.instances:
            raise InvalidInputError(
                f"The scenario {self.scenario!r} has no instance {instance!r}. "
                f"{names_near(instance, list(self.instances))}"
            )

    def open(self) -> None:
        """Open the session, with one thread, unless it is open.

        :raises SourceError: the file is missing or damaged, or does not fit the other files.
        """
        if self._session is not None:
            return
        path = model_of(self.folder, self.scenario)
        runtime = require("onnxruntime", extra="yahpo", who="A surrogate of YAHPO Gym")
        check_regular(path)
        if not path.is_file():
            raise SourceError(
                f"{path} is missing: this copy of https://github.com/slds-lmu/yahpo_data has no surrogate of "
                f"{self.scenario!r}. Download it there."
            )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a race has a process for each core
        options.log_severity_level = 4  # errors are raised
        try:
            session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            [codes, numbers], [output] = session.get_inputs(), session.get_outputs()
            widths = [list(value.shape or [None])[-1] for value in (codes, numbers, output)]
            names = [value.name for value in (codes, numbers, output)]
        except Exception as problem:  # onnxruntime's errors have no common base but this one
            raise SourceError(f"{path} is damaged ({reason(problem)}). Download it again.") from None
        for found, expected, what in zip(
            widths,
            (len(self._categories), len(self._numbers), len(self.targets)),
            ("categorical columns", "columns of numbers", "targets"),
            strict=True,
        ):
            if found != expected:
                raise SourceError(
                    f"{path}: expected {expected} {what}, got {short(found)}. The file belongs to another scenario."
                )
        self._session, self._inputs, self._output = session, (names[0], names[1]), names[2:]

    def __reduce__(self) -> tuple[Any, ...]:
        return load_surrogate, (self.scenario, str(self.folder))

    def __repr__(self) -> str:
        return f"Surrogate({self.scenario!r}, {len(self.instances)} instances, {str(self.folder)!r})"

    def _fill(self, instance: str, fidelities: Mapping[str, Value]) -> Rows:
        """Rows with the columns of an instance and its fidelities filled, and no other.

        :raises InvalidInputError: there is no such instance, or a fidelity is missing, unknown or out of range.
        """
        self.check_instance(instance)
        for name, parameter in self.fidelities.items():
            if name not in fidelities:
                raise InvalidInputError(
                    f"{self.scenario}: the fidelity {name!r} is missing; expected {parameter}. "
                    "Without it the surrogate would use 0."
                )
            if not parameter.accepts(fidelities[name]):
                raise InvalidInputError(
                    f"{self.scenario}: the fidelity {name!r} is {short(fidelities[name])}; expected {parameter}."
                )
        unknown = [name for name in fidelities if name not in self.fidelities]
        if unknown:
            raise InvalidInputError(
                f"{self.scenario}: there is no fidelity {unknown[0]!r}. {names_near(unknown[0], list(self.fidelities))}"
            )
        rows = Rows(self._empty.codes.copy(), self._empty.numbers.copy())
        if self.description.instance_column is not None:
            rows.codes[self._categories[self.description.instance_column]] = self._instance_codes[instance]
        for name, value in fidelities.items():
            rows.numbers[self._numbers[name]] = float(value)
        return rows

    def _run(self, codes: NDArray[np.int32], numbers: Float32Array) -> Float32Array:
        if self._session is None:
            self.open()
        if not len(codes):
            return np.empty((0, len(self.targets)), dtype=np.float32)
        try:
            [values] = self._session.run(self._output, {self._inputs[0]: codes, self._inputs[1]: numbers})
        except Exception as problem:  # onnxruntime's errors have no common base but this one
            path = model_of(self.folder, self.scenario)
            raise SourceError(f"{path} is damaged ({reason(problem)}). Download it again.") from None
        found: Float32Array = values
        if found.shape != (len(codes), len(self.targets)):
            path = model_of(self.folder, self.scenario)
            raise SourceError(f"{path}: expected {len(self.targets)} targets for each row, got an array {found.shape}.")
        return found

    def _check_columns(self, complete: ConfigurationSpace, encoding: Mapping[str, Mapping[str, int]]) -> None:
        """Refuse files that do not belong together."""
        folder, description = self.folder / self.scenario, self.description
        where = f"{folder / 'config_space.json'} and encoding.json"
        for name in (*description.numbers, *description.categories):
            if name not in complete.parameters:
                raise SourceError(f"{where}: the parameter {short(name)} of this scenario is missing.")
        for name, parameter in complete.parameters.items():
            if isinstance(parameter, Categorical):
                wanted = [NOT_ACTIVE, *map(str, parameter.choices)]
                lost = [choice for choice in wanted if choice not in encoding.get(name, {})]
                if name not in description.categories or lost:
                    raise SourceError(f"{where}: there is no code for {name[:60]} = {short((lost or wanted)[0])}.")
            elif name not in description.numbers:
                raise SourceError(f"{where}: the surrogate has no column {short(name)}.")
            elif max(abs(parameter.lower), abs(parameter.upper)) > _LARGEST:
                raise SourceError(f"{where}: the range of {name!r} is too large for the surrogate's single precision.")
            if name in description.fidelities and isinstance(parameter, Categorical):
                raise SourceError(f"{where}: expected a range of the fidelity {name!r}.")
            if name == description.instance_column and not isinstance(parameter, Categorical):
                raise SourceError(f"{where}: expected the choices of the instance {name!r}.")


def load_surrogate(scenario: str, data: str | Path | None = None) -> Surrogate:
    """Surrogate of a scenario, one for each process; its session opens with the first prediction.

    Parameters
    ----------
    scenario
        One of the 14, ``demo``, or one of the user's own, described in ``yahpo_scenario_meta.json`` of the folder.
    data
        A copy of yahpo_data; by default the folder in the variable ``YAHPO_DATA``.

    Raises
    ------
    InvalidInputError
        There is no such scenario; names similar ones.
    SourceError
        A file is missing or damaged; names it and says what to do.
    """
    folder = data_folder(data, scenario)
    files = [folder / scenario / name for name in ("config_space.json", "encoding.json", "model.onnx")]
    # A changed file is another surrogate.  A forked process must not share the session of its parent.
    stamps = tuple((file.stat().st_mtime_ns, file.stat().st_size) if file.is_file() else None for file in files)
    return _cached_surrogate(Path(os.path.realpath(folder)), scenario, os.getpid(), stamps)


def _stack(encoded: Sequence[Rows]) -> tuple[NDArray[np.int32], Float32Array]:
    codes = np.array([rows.codes for rows in encoded], dtype=np.int32)
    return codes, np.array([rows.numbers for rows in encoded], dtype=np.float32)


@functools.lru_cache(maxsize=32)
def _cached_surrogate(folder: Path, scenario: str, *_: object) -> Surrogate:
    return Surrogate(folder, scenario)
