from __future__ import annotations

import importlib.metadata
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, hookimpl, load_plugins, race, read_trajectories
from polarbear_plugins.errors import InvalidInputError, PluginWarning, SourceError, UnknownNameError
from polarbear_plugins.inference import Engine
from polarbear_plugins.plugins import hookspecs
from polarbear_plugins.plugins.manager import FailedPlugin, Plugins
from polarbear_plugins.priors import Prior
from polarbear_plugins.problems.given import FunctionAlgorithm, as_suite
from polarbear_plugins.racing import RaceState

Announce = Callable[[str, str], EntryPoint]

TABLE = EntryPoint("table", "polarbear_plugins.adapters.table", "polarbear")
# What hooks name only for type checkers, since it lies above them.
ABOVE = {"Engine": Engine, "Prior": Prior, "RaceResult": RaceResult, "RaceState": RaceState}
SPECS = [getattr(hookspecs, name) for name in vars(hookspecs) if name.startswith("polarbear_")]


@pytest.fixture
def announce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Announce]:
    """Write a module and announce it as a plugin."""

    def write(name: str, text: str) -> EntryPoint:
        (tmp_path / f"plugin_{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return EntryPoint(name, f"plugin_{name}", "polarbear")

    yield write
    for path in tmp_path.iterdir():
        sys.modules.pop(path.stem, None)


def suite_module(name: str) -> str:
    return f"""
from polarbear_plugins import hookimpl
from polarbear_plugins.problems.given import as_suite

@hookimpl
def polarbear_suite(name, options):
    \"\"\"{name}: a few numbers.

    More about them.
    \"\"\"
    return as_suite(["{name}"]) if name == "{name}" else None
"""


class Numbers:
    @hookimpl
    def polarbear_suite(self, name: str, options: dict[str, object]) -> object:
        """numbers: from 0 to 2, or to the option last."""
        return as_suite(range(int(options.get("last", 2)) + 1)) if name == "numbers" else None  # type: ignore[call-overload]


class Reader:
    """An adapter for files that end as it is told."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    @hookimpl
    def polarbear_read_trajectories(self, source: object) -> list[Trajectory] | None:
        """Special files."""
        if not str(source).endswith(self.suffix):
            return None
        return [Trajectory(algorithm="special", instance="f1", times=[1], best=[1.0])]


class Misspelt:
    @hookimpl
    def polarbear_suit(self, name: str) -> None:
        """Nothing."""

    @hookimpl
    def polarbear_suite(self, name: str) -> object:
        """Everything."""
        return as_suite([name])


class WrongArguments:
    @hookimpl
    def polarbear_portfolio(self, name: str) -> object:
        """Everything."""
        return [FunctionAlgorithm(name, print)]

    @hookimpl
    def polarbear_suite(self, name: str, colour: str) -> object:
        """Everything."""
        return as_suite([name, colour])


class Nothing:
    def polarbear_suite(self, name: str) -> None:
        """Not marked, hence no hook."""


BROKEN = [
    pytest.param("raise ImportError('libfoo is missing')", "ImportError: libfoo is missing", id="import error"),
    pytest.param("import no_such_library_at_all", "ModuleNotFoundError: No module named", id="missing library"),
    pytest.param("def broken(:", "SyntaxError: invalid syntax", id="syntax error"),
    pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exit"),
    pytest.param("1 / 0", "ZeroDivisionError: division by zero", id="any other error"),
    pytest.param(
        "import polarbear_plugins\n@polarbear_plugins.hookimpl\ndef polarbear_suite(name, colour): ...",
        "polarbear_suite(name, colour)",
        id="wrong arguments",
    ),
    pytest.param(
        "import polarbear_plugins\n@polarbear_plugins.hookimpl\ndef polarbear_suit(name): ...",
        "unknown hook 'polarbear_suit'",
        id="unknown hook",
    ),
    pytest.param("def polarbear_suite(name): ...", "plugin 'middle' implements no hook", id="no hook"),
]


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_a_plugin_that_fails_is_reported_and_the_others_work(announce: Announce, text: str, reason: str) -> None:
    announced = [
        announce("aardvark", suite_module("aardvark")),
        announce("middle", text),
        announce("zebra", suite_module("zebra")),
    ]
    with pytest.warns(PluginWarning) as caught:
        plugins = load_plugins(announced)
    assert [plugin.name for plugin in plugins.installed] == ["aardvark", "zebra"]
    for name in ("aardvark", "zebra"):
        assert [identity.name for identity in plugins.suite(name).identities(0)] == [name]
    [failure] = plugins.failed
    assert (failure.name, failure.module, failure.distribution) == ("middle", "plugin_middle", "")
    assert reason in failure.reason
    [warning] = caught
    assert str(warning.message) == f"The plugin 'middle' could not be loaded ({failure.reason}). The others were."
    assert warning.filename == __file__


@pytest.mark.parametrize("value", ["no_such_module_at_all", "polarbear_plugins.adapters.table:no_such_object"])
def test_an_entry_point_that_leads_nowhere_is_reported(value: str) -> None:
    with pytest.warns(PluginWarning, match="'lost' could not be loaded"):
        plugins = load_plugins([EntryPoint("lost", value, "polarbear"), TABLE])
    assert [(plugin.name, plugin.module) for plugin in plugins.failed] == [("lost", value)]
    assert [plugin.name for plugin in plugins.installed] == ["table"]


def test_of_two_plugins_with_the_same_name_the_first_works_and_the_second_is_reported(announce: Announce) -> None:
    one, two = announce("one", suite_module("one")), announce("two", suite_module("two"))
    announced = [EntryPoint("same", two.value, "polarbear"), EntryPoint("same", one.value, "polarbear"), TABLE]
    with pytest.warns(PluginWarning, match="'same' could not be loaded .* another one is already registered"):
        plugins = load_plugins(announced)
    assert [(plugin.name, plugin.module) for plugin in plugins.failed] == [("same", "plugin_two")]
    assert [(plugin.name, plugin.module) for plugin in plugins.installed] == [
        ("same", "plugin_one"),
        ("table", "polarbear_plugins.adapters.table"),
    ]
    assert plugins.suite("one").build(next(plugins.suite("one").identities(0)))
    with pytest.raises(UnknownNameError):
        plugins.suite("two")


@pytest.mark.filterwarnings("ignore::polarbear_plugins.errors.PluginWarning")
def test_a_plugin_that_is_announced_twice_works(announce: Announce) -> None:
    one = announce("one", suite_module("one"))
    assert first_name(load_plugins([one, one]), "one") == "one"


def test_warnings_of_failed_plugins_name_their_distribution(
    announce: Announce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = announce("broken", "1 / 0")
    metadata = tmp_path / "their_plugin-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 2.0\n")
    (metadata / "entry_points.txt").write_text(f"[polarbear]\nbroken = {broken.value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(PluginWarning, match=r"The plugin 'broken' of their-plugin 2\.0 could not be loaded"):
        plugins = load_plugins()
    reason = "ZeroDivisionError: division by zero"
    assert plugins.failed == (FailedPlugin("broken", broken.value, "their-plugin 2.0", reason),)


def test_the_built_in_table_adapter_is_announced_like_any_other_plugin() -> None:
    [table] = [plugin for plugin in load_plugins().installed if plugin.name == "table"]
    assert table.module == "polarbear_plugins.adapters.table"
    assert table.distribution == f"polarbear-plugins {importlib.metadata.version('polarbear-plugins')}"
    assert list(table.hooks) == ["polarbear_read_trajectories"]


def test_an_installed_plugin_says_the_first_line_of_its_docstring(announce: Announce) -> None:
    [plugin] = load_plugins([announce("one", suite_module("one"))]).installed
    assert plugin.hooks == {"polarbear_suite": "one: a few numbers"}


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Misspelt(), "plugin 'broken': unknown hook 'polarbear_suit'"),
        (WrongArguments(), "plugin 'broken': .*colour"),
        (Nothing(), "plugin 'broken' implements no hook. Mark its functions with @polarbear_plugins.hookimpl"),
        (42, "plugin 'broken' implements no hook"),
    ],
)
def test_a_failed_registration_leaves_nothing_behind(plugin: object, message: str) -> None:
    plugins = Plugins()
    with pytest.raises(InvalidInputError, match=message):
        plugins.register(plugin, "broken")
    assert plugins.manager.list_name_plugin() == []
    assert not hasattr(plugins.manager.hook, "polarbear_suit")
    assert plugins.installed == plugins.failed == ()
    for ask in (plugins.suite, plugins.portfolio):
        with pytest.raises(UnknownNameError, match="Asked: none"):
            ask("numbers")
    plugins.register(Numbers(), "broken")  # the name is free again
    plugins.register(Reader(".special"), "later")
    assert [plugin.name for plugin in plugins.installed] == ["broken", "later"]
    assert first_name(plugins, "numbers") in {"0", "1", "2"}


def test_a_failed_registration_leaves_earlier_plugins_alone() -> None:
    plugins = Plugins()
    plugins.register(Numbers(), "numbers")
    for plugin in (Misspelt(), WrongArguments(), Nothing()):
        for name in ("numbers", "another"):
            with pytest.raises(InvalidInputError):
                plugins.register(plugin, name)
    assert [plugin.name for plugin in plugins.installed] == ["numbers"]
    assert first_name(plugins, "numbers") in {"0", "1", "2"}


def test_registering_a_plugin_again_is_refused_and_it_still_works() -> None:
    plugins, numbers = Plugins(), Numbers()
    plugins.register(numbers, "numbers")
    for name in ("numbers", "another"):
        with pytest.raises(InvalidInputError, match=f"plugin '{name}': it is already registered as 'numbers'"):
            plugins.register(numbers, name)
    with pytest.raises(InvalidInputError, match="plugin 'numbers': another one is already registered under that name"):
        plugins.register(Reader(".special"), "numbers")
    assert [plugin.name for plugin in plugins.installed] == ["numbers"]
    assert first_name(plugins, "numbers") in {"0", "1", "2"}


def test_options_reach_the_plugin() -> None:
    plugins = Plugins()
    plugins.register(Numbers(), "numbers")
    assert len(list(plugins.suite("numbers", last="4").identities(0))) == 5


@pytest.mark.parametrize("what", ["source", "suite", "portfolio", "executor"])
def test_an_unknown_name_names_those_asked_what_they_accept_and_those_that_could_not_be(
    announce: Announce, what: str
) -> None:
    class Everything:
        @hookimpl
        def polarbear_read_trajectories(self) -> None:
            """Sources of dreams."""

        @hookimpl
        def polarbear_suite(self) -> None:
            """Suites of dreams."""

        @hookimpl
        def polarbear_portfolio(self) -> None:
            """Portfolios of dreams."""

        @hookimpl
        def polarbear_executor(self) -> None:
            """Executors of dreams."""

    class Priors:
        @hookimpl
        def polarbear_priors(self) -> dict[str, Callable[..., object]]:
            """Priors."""
            return {}

    with pytest.warns(PluginWarning):
        plugins = load_plugins([announce("broken", "1 / 0"), announce("wrong", "import no_such_library_at_all")])
    plugins.register(Everything(), "dreams")
    plugins.register(Priors(), "believers")
    ask: Callable[[str], object] = plugins.read_trajectories if what == "source" else getattr(plugins, what)
    with pytest.raises(UnknownNameError) as caught:
        ask("dask:nowhere://")
    assert str(caught.value) == (
        f"No plugin knows the {what} 'dask:nowhere://'. Asked: dreams ({what.capitalize()}s of dreams). "
        "Could not be asked: broken, wrong."
    )


def test_an_unknown_name_says_so_if_no_plugin_could_be_asked() -> None:
    with pytest.raises(UnknownNameError, match="Asked: none, since no plugin provides any"):
        Plugins().suite("ma-bbob")


def test_an_unknown_source_says_whether_there_is_such_a_file(tmp_path: Path) -> None:
    present = tmp_path / "results.xyz"
    present.touch()
    with pytest.raises(UnknownNameError) as caught:
        read_trajectories(present)
    assert "no such file" not in str(caught.value)
    assert "table (CSV and Parquet files and pandas data frames" in str(caught.value)
    with pytest.raises(UnknownNameError, match=r"'absent\.xyz' \(there is no such file\)"):
        read_trajectories("absent.xyz")
    with pytest.raises(UnknownNameError) as caught:
        read_trajectories("https://example.org/results")
    assert "no such file" not in str(caught.value)


def test_an_unknown_source_that_is_no_text_is_named_by_its_type() -> None:
    with pytest.raises(UnknownNameError, match=r"No plugin knows the source of type list\. Asked: .*table"):
        read_trajectories(list(range(1000)))


def test_an_unknown_source_longer_than_any_path_is_named_by_its_ends() -> None:
    with pytest.raises(UnknownNameError, match=r"No plugin knows the source 'begin x+\.{3}x+ end' \(there is no such"):
        read_trajectories(f"begin {'x' * 5000} end")


@pytest.mark.parametrize("name", ["aardvark", "zebra"])
@pytest.mark.parametrize("first", [True, False])
def test_an_adapter_of_others_is_asked_before_the_built_in_one(tmp_path: Path, name: str, first: bool) -> None:
    source = tmp_path / "runs.csv"
    source.write_text("algorithm,instance,time,value\nordinary,f1,1,1\n")
    plugins = Plugins()
    if first:
        plugins.register(Reader(".csv"), name)
    plugins.load(TABLE)
    if not first:
        plugins.register(Reader(".csv"), name)
    assert [run.algorithm for run in read_trajectories(source, plugins=plugins)] == ["special"]


def test_a_source_that_others_leave_alone_reaches_the_built_in_adapter(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text("algorithm,instance,time,value\nordinary,f1,1,1\n")
    plugins = load_plugins([TABLE])
    plugins.register(Reader(".special"), "special")
    assert [run.algorithm for run in read_trajectories(source, plugins=plugins)] == ["ordinary"]


def test_a_damaged_source_is_not_offered_to_the_next_adapter(tmp_path: Path) -> None:
    class Refuses:
        @hookimpl
        def polarbear_read_trajectories(self) -> None:
            """Everything."""
            raise SourceError("mine, and damaged")

    plugins = load_plugins([TABLE])
    plugins.register(Refuses(), "refuses")
    with pytest.raises(SourceError, match="mine, and damaged"):
        plugins.read_trajectories(tmp_path / "runs.csv")


def test_a_portfolio_of_a_plugin_is_checked() -> None:
    class Twins:
        @hookimpl
        def polarbear_portfolio(self) -> object:
            """Twins."""
            return [FunctionAlgorithm("twin", print), FunctionAlgorithm("twin", print)]

    plugins = Plugins()
    plugins.register(Twins(), "twins")
    with pytest.raises(InvalidInputError, match="algorithms of the portfolio: 'twin' is named more than once"):
        plugins.portfolio("twins")


def test_an_executor_of_a_plugin_is_returned() -> None:
    class Threads:
        @hookimpl
        def polarbear_executor(self, address: str, options: dict[str, Any]) -> ThreadPoolExecutor | None:
            """Threads."""
            return ThreadPoolExecutor(**options) if address == "threads" else None

    plugins = Plugins()
    plugins.register(Threads(), "threads")
    with plugins.executor("threads", max_workers=1) as executor:
        assert executor.submit(abs, -3).result() == 3


@pytest.mark.parametrize("option", ["source", "self"])
def test_an_option_may_have_any_name(option: str) -> None:
    with pytest.raises(InvalidInputError, match=f"A table has no option '{option}'"):
        load_plugins([TABLE]).read_trajectories("runs.csv", **{option: 1})


def test_every_hook_specification_is_exported() -> None:
    marked = {name for name, thing in vars(hookspecs).items() if hasattr(thing, "polarbear_spec")}
    assert marked == {spec.__name__ for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
def test_every_hook_is_typed(spec: Callable[..., object]) -> None:
    assert set(typing.get_type_hints(spec, vars(hookspecs), ABOVE)) == {*inspect.signature(spec).parameters, "return"}


@pytest.mark.parametrize("spec", SPECS)
def test_every_hook_documents_its_arguments_its_result_and_since_when_it_exists(spec: Callable[..., object]) -> None:
    text = inspect.getdoc(spec) or ""
    assert text.partition("\n")[0].endswith(".")
    for parameter in inspect.signature(spec).parameters:
        assert f":param {parameter}: " in text
    assert (":returns: " in text) is (typing.get_type_hints(spec, vars(hookspecs), ABOVE)["return"] is not type(None))
    assert ".. versionadded:: 0." in text


@pytest.mark.parametrize("spec", SPECS)
def test_a_hook_says_that_it_stops_at_the_first_result_if_and_only_if_it_does(spec: Any) -> None:
    assert ("Stops at first non-None result." in spec.__doc__) is spec.polarbear_spec["firstresult"]


def first_name(plugins: Plugins, suite: str) -> str:
    return next(plugins.suite(suite).identities(0)).name


def test_plugins_are_loaded_once_for_a_race_and_its_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[str] = []
    load = Plugins.load

    def counted(self: Plugins, entry_point: EntryPoint) -> None:
        loaded.append(entry_point.name)
        load(self, entry_point)

    monkeypatch.setattr(Plugins, "load", counted)
    settings = RaceSettings(seed=1, draws=200, max_rounds=1)
    options = {"algorithms": 2, "timepoints": 2}
    race("synthetic", "synthetic", [1, 2], settings, workers=0, portfolio_options=options).report(
        tmp_path / "race.html"
    )
    assert {"synthetic", "table"} <= set(loaded)
    assert len(loaded) == len(set(loaded))
