"""Problems that algorithms run on, suites and configuration spaces."""

from polarbear_plugins.problems.given import FunctionAlgorithm, GivenProblem, cube
from polarbear_plugins.problems.protocols import (
    Algorithm,
    BoxProblem,
    ChargedProblem,
    Identity,
    ObjectivesProblem,
    Problem,
    SpaceProblem,
    Suite,
)
from polarbear_plugins.problems.recorded import RecordedObjectives
from polarbear_plugins.problems.spaces import Categorical, Condition, ConfigurationSpace, Float, Integer

__all__ = [
    "Algorithm",
    "BoxProblem",
    "Categorical",
    "ChargedProblem",
    "Condition",
    "ConfigurationSpace",
    "Float",
    "FunctionAlgorithm",
    "GivenProblem",
    "Identity",
    "Integer",
    "ObjectivesProblem",
    "Problem",
    "RecordedObjectives",
    "SpaceProblem",
    "Suite",
    "cube",
]
