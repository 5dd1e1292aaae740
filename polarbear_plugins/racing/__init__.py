"""The race: its settings, its rules and its result.  Nothing here runs an algorithm."""

from polarbear_plugins.racing.analysis import analyze
from polarbear_plugins.racing.asynchronous import AsynchronousRace, Standing
from polarbear_plugins.racing.betting import SecondOpinion, second_opinion
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide, enter, observe, plan
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Elimination, Failure, Order, Plan, RaceState, Round, start_race

__all__ = [
    "AsynchronousRace",
    "Elimination",
    "Failure",
    "Forecast",
    "Order",
    "Plan",
    "RaceResult",
    "RaceSettings",
    "RaceState",
    "Round",
    "SecondOpinion",
    "Standing",
    "analyze",
    "decide",
    "enter",
    "observe",
    "plan",
    "second_opinion",
    "start_race",
]
