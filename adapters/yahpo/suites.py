"""Suites of problems on surrogates: a scenario, some of its instances, or one of the lists of the paper."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from polarbear_plugins.adapters.yahpo.encoding import Inactive
from polarbear_plugins.adapters.yahpo.files import Statistics, data_folder, model_of, names_near, read_statistics
from polarbear_plugins.adapters.yahpo.lists import LISTS, Entry
from polarbear_plugins.adapters.yahpo.problems import AXES, Axis, Predictor, YahpoObjectivesProblem, YahpoProblem
from polarbear_plugins.adapters.yahpo.surrogates import load_surrogate
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, short
from polarbear_plugins.extras import require
from polarbear_plugins.names import distinct_names
from polarbear_plugins.options import Reader, one_of, whole_number
from polarbear_plugins.problems.protocols import Identity


class YahpoSuite:
    """Problems on instances of scenarios, each drawn once.

    Parameters
    ----------
    name
        Name of the suite, as users write it.
    folder
        The copy of yahpo_data.
    entries
        Scenario, instance and targets of each problem; with several targets the hypervolume is optimised.
    axis
        What time is: ``evaluations`` at full fidelity, ``percent`` of the paper's budget, or predicted ``seconds``.
    inactive
        Whether a parameter that is set but not active is refused, or dropped.
    absent
        Entries of a list whose surrogate is not in the folder.
    replications
        How often a race runs each algorithm on an instance; these runs together count as one instance.

    Attributes
    ----------
    budget : float or None
        How far a race on this suite goes unless the user says otherwise.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        entries: Sequence[Entry],
        axis: Axis = "evaluations",
        inactive: Inactive = "refuse",
        absent: Sequence[Entry] = (),
        replications: int = 1,
    ) -> None:
        self.name, self.folder, self.axis, self.inactive = name, folder, axis, inactive
        self.entries, self.absent, self.replications = tuple(entries), tuple(absent), replications
        self.budget: float | None = 100.0 if axis == "percent" else None
        if axis == "evaluations":
            scenarios = {scenario for scenario, _, _ in self.entries}
            budgets = {self.build(identity_of(*entry)).budget for entry in self._first_entries(scenarios)}
            self.budget = float(max(budgets))

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw each problem once."""
        return draw([identity_of(*entry) for entry in self.entries], seed)

    def build(self, identity: Identity, /) -> YahpoProblem | YahpoObjectivesProblem:
        """Build the problem of an identity; the session of its scenario is shared."""
        scenario = identity.parameters.get("scenario")
        if not isinstance(scenario, str):
            raise InvalidInputError(f"identity {identity.name!r} has no scenario; it was not drawn by {self.name!r}.")
        surrogate = load_surrogate(scenario, self.folder)
        return build_problem(identity, surrogate, read_statistics(self.folder), self.axis, self.inactive)

    def check(self) -> None:
        """Open every surrogate, so that damaged or missing files are found before a race begins."""
        for scenario in dict.fromkeys(scenario for scenario, _, _ in self.entries):
            load_surrogate(scenario, self.folder).open()
        for entry in self.entries:
            self.build(identity_of(*entry))
        if any(len(targets) > 1 for _, _, targets in self.entries):
            require("moocore", extra="yahpo", who="The hypervolume of several targets")

    def _first_entries(self, scenarios: Iterable[str]) -> list[Entry]:
        return [next(entry for entry in self.entries if entry[0] == scenario) for scenario in scenarios]


def suite_of_scenario(
    name: str,
    *,
    data: str | Path | None = None,
    target: Sequence[str] | None = None,
    time: Axis = "evaluations",
    inactive: Inactive = "refuse",
    replications: int = 1,
) -> YahpoSuite:
    """Suite ``yahpo:SCENARIO[:INSTANCE...]``."""
    _, scenario, *instances = name.split(":")
    folder = data_folder(data, scenario)
    surrogate = load_surrogate(scenario, folder)
    for instance in instances:
        surrogate.check_instance(instance)
    targets = tuple(target or (surrogate.description.target,))
    for wanted in targets:
        if wanted not in surrogate.targets:
            raise InvalidInputError(
                f"The scenario {scenario!r} has no target {wanted!r}. {names_near(wanted, list(surrogate.targets))}"
            )
    chosen = dict.fromkeys(instances or surrogate.instances)
    entries = [(scenario, each, targets) for each in chosen]
    return YahpoSuite(name, folder, entries, time, inactive, replications=replications)


def suite_of_list(
    name: str,
    *,
    data: str | Path | None = None,
    time: Axis = "percent",
    inactive: Inactive = "refuse",
    replications: int = 1,
) -> YahpoSuite:
    """Suite ``yahpo-so`` or ``yahpo-mo``: the entries whose surrogates are in the folder; warns about the others.

    :raises SourceError: the folder has none of its surrogates.
    """
    folder = data_folder(data)
    here = {scenario: model_of(folder, scenario).is_file() for scenario, _, _ in LISTS[name]}
    entries = [entry for entry in LISTS[name] if here[entry[0]]]
    absent = [entry for entry in LISTS[name] if not here[entry[0]]]
    listed = ", ".join(identity_of(*entry).name for entry in absent)
    if not entries:
        raise SourceError(
            f"{folder} has no surrogate of the suite {name!r}, which needs SCENARIO/model.onnx for "
            f"{', '.join(sorted(here))}. Download https://github.com/slds-lmu/yahpo_data."
        )
    if absent and multiprocessing.parent_process() is None:  # workers do not repeat it
        warnings.warn(
            f"The suite {name!r} has {len(LISTS[name])} entries; {len(absent)} of them have no surrogate in {folder} "
            f"and are left out: {listed}.",
            PolarBearWarning,
            stacklevel=2,
        )
    return YahpoSuite(name, folder, entries, time, inactive, absent, replications)


def identity_of(scenario: str, instance: str, targets: Sequence[str]) -> Identity:
    """Identity of a problem; the targets are in the name where there are several, and the scenario is its group.

    >>> identity_of("lcbench", "3945", ("val_accuracy",)).name
    'lcbench-3945'
    """
    several = [*targets] if len(targets) > 1 else []
    parameters = {"scenario": scenario, "instance": instance, "targets": list(targets)}
    return Identity("-".join([scenario, instance, *several]), parameters, group=scenario)


def draw(identities: Sequence[Identity], seed: int) -> Iterator[Identity]:
    """Each identity once, in an order that the seed determines."""
    seed = as_whole_number(seed, "seed", at_least=0)
    for place in np.random.default_rng(seed).permutation(len(identities)):
        yield identities[place]


def build_problem(
    identity: Identity, predictor: Predictor, statistics: Statistics, axis: Axis, inactive: Inactive
) -> YahpoProblem | YahpoObjectivesProblem:
    """Build the problem of an identity with one target or several.

    :raises InvalidInputError: the instance or a target of the identity does not exist.
    """
    instance, targets = identity.parameters.get("instance"), identity.parameters.get("targets")
    if instance not in predictor.instances:
        raise InvalidInputError(f"identity {identity.name!r}: {predictor.scenario!r} has no instance {instance!r}.")
    if not isinstance(targets, list) or not targets or not set(targets) <= set(predictor.description.targets):
        raise InvalidInputError(f"identity {identity.name!r}: {predictor.scenario!r} has no targets {targets!r}.")
    if len(targets) > 1:
        return YahpoObjectivesProblem(identity, predictor, instance, targets, statistics, axis, inactive)
    return YahpoProblem(identity, predictor, instance, targets[0], statistics, axis, inactive)


def _read_targets(value: object, what: str) -> tuple[str, ...]:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidInputError(f"{what}: expected names of targets, such as acc or acc,memory; got {short(value)}.")
    return distinct_names(names, what)


def _read_folder(value: object, _: str) -> Any:
    return data_folder(value)


#: Readers of the options of both kinds of suites; ``target`` is for scenarios only.
OPTIONS: Mapping[str, Reader] = {
    "data": _read_folder,
    "target": _read_targets,
    "time": one_of(AXES),
    "inactive": one_of(get_args(Inactive)),
    "replications": whole_number(1, 10_000),
}
