"""Change the source in small ways and see whether a test fails: mutation testing, one room at a time.

    tox -e mutation -- racing                         # 150 mutants, drawn with seed 0
    tox -e mutation -- report --sample 120 --seed 1
    tox -e mutation -- optuna_pruner --sample 0       # all of them
    tox -e mutation -- report --only build/mutation/report.md   # the survivors of the last run, after writing tests
    tox -e mutation -- racing --tests tests/racing tests/laws/test_hard_cases.py --slow   # with other tests

A room is a folder of polarbear_plugins/, integrations/ or adapters/.  Everything happens in a copy of the work tree.
Of each mutant a process of its own runs the tests that run the changed statement, the quickest first, until one fails.
Which tests these are is found out before, with coverage of the unchanged source; tests of processes that a test starts
are not seen, so a statement that no test is seen to run is tried with all tests of the room.  Without --slow only the
quick half of the tests runs, and of it no more than --seconds: a survivor may still be noticed by a slow test.

ctrl-C ends a run early: what was tried until then is a random sample, too.  Survivors are printed and written to
build/mutation/ROOM.md.  Those that no test should notice are in tools/mutation_survivors.md, with the reason.

The mutants are mutmut's and a few more (tools/mutants.py).  mutmut's own runner is not used: it leaves out what is
decorated (every property) and what is outside functions (every default of a dataclass, every table of words), and does
not follow the links in the package.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mutants import Mutant, as_markdown, draw, listed

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "tools" / "mutation_survivors.md"
PLACES = ("polarbear_plugins", "integrations", "adapters")
# Quick tests elsewhere that check what a room says.
ALSO = {
    "journal": ("tests/experiments/test_archives.py", "tests/hostile/test_damaged_input.py"),
    "optuna_pruner": ("tests/integrations/test_optuna_folds.py",),
    "posterior": ("tests/inference/test_checking.py",),
    "report": ("tests/cli/test_report.py",),
}
OPTIONS = ["-q", "--assert=plain", "-p", "no:xdist", "-p", "no:cacheprovider"]
SURVIVED = ("survived", "no test")
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def source_of(room: str, root: Path = ROOT) -> Path:
    """The folder of a room, relative to the root."""
    found = [Path(place) / room for place in PLACES if (root / place / room / "__init__.py").is_file()]
    if not found:
        rooms = sorted(file.parent.name for place in PLACES for file in (root / place).glob("*/__init__.py"))
        raise SystemExit(f"There is no room {room!r}; there are {', '.join(rooms)}.")
    return found[0]


def tests_of(room: str, root: Path) -> list[str]:
    """The tests of a room: those of its folder, or those of its name, and what ALSO lists."""
    folder = root / "tests" / room
    beside = root / "tests" / source_of(room, root).parts[0]
    own = [folder] if folder.is_dir() else sorted(beside.glob(f"test_{room}*.py"))
    return [path.relative_to(root).as_posix() for path in own] + list(ALSO.get(room, ()))


# Running tests


def copy_tree(root: Path, target: Path) -> None:
    """Copy what git knows or would add, links as links."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in names.split("\0"):
        if name and (root / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name, follow_symlinks=False)


class Survey:
    """Plugin of pytest: which tests pass, in what time, and which lines of a room each of them runs.

    What a shared fixture runs counts for all tests that use it, and functions that remember are made to forget, so that
    not only the first test that asks is taken to run what they do.
    """

    def __init__(self, copy: Path, coverage: Any) -> None:
        self.copy, self.coverage = copy, coverage
        self.seconds: dict[str, float] = {}
        self.fixtures: dict[str, list[str]] = {}
        self.modules: list[str] = []
        self.before = 0.0

    def pytest_collection_finish(self) -> None:
        """Remember what the tests have imported from elsewhere."""
        self.modules = [name for name, module in list(sys.modules.items()) if not self._is_ours(module)]

    def _is_ours(self, module: object) -> bool:
        return str(getattr(module, "__file__", None) or "").startswith(str(self.copy))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note under its name what a test runs."""
        for module in [module for module in list(sys.modules.values()) if self._is_ours(module)]:
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", ()))
        self.test = item.nodeid
        self.coverage.switch_context(item.nodeid)
        result = yield
        self.coverage.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note under its own name what a shared fixture runs."""
        if fixturedef.scope == "function":
            return (yield)
        self.coverage.switch_context(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Take the CPU time of a test that has passed: time by the clock depends on what else the machine does."""
        result: Any = yield
        now = sum(os.times()[:4])
        if call.when == "call" and result.passed:
            self.seconds[item.nodeid] = now - self.before
        self.before = now
        return result

    def tests_by_line(self) -> dict[str, dict[int, list[str]]]:
        """For each file and line of the room the tests that run it."""
        data = self.coverage.get_data()
        users = defaultdict(list)
        for test in self.seconds:
            users[test].append(test)
            for name in self.fixtures[test]:
                users[f"fixture {name}"].append(test)
        return {
            str(Path(file).resolve().relative_to(self.copy)): {
                line: sorted({test for context in contexts for test in users.get(context, ())})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }


class Chosen:
    """Plugin of pytest: only these tests, in this order, and the name of the one that fails."""

    def __init__(self, tests: Sequence[str], failed: Path) -> None:
        self.order = {test: number for number, test in enumerate(tests)}
        self.failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose and sort."""
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the failure."""
        if report.failed:
            self.failed.write_text(report.nodeid)


def import_all(names: Iterable[str]) -> None:
    """Import what can be imported, but not what pytest wants to import itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if not re.match(r"_?pytest|_?hypothesis|xdist|execnet|conftest|__main__|coverage", name):
                with contextlib.suppress(Exception):  # some are made, not imported
                    importlib.import_module(name)


class Runner:
    """Runs pytest in forks of this process, which has imported what the tests import from elsewhere, in one copy."""

    def __init__(self, root: Path, work: Path, source: Path, tests: Sequence[str], slow: bool, limit: float) -> None:
        self.limit = limit
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.copy = work.resolve() / "copy"
        self.output = work.resolve() / "output.txt"
        self.source, self.tests = source, tests
        self.options = [*OPTIONS, *([] if slow else ["-m", "not slow"])]
        copy_tree(root, self.copy)

    def fork(self, run: Any, timeout: float) -> int | None:
        """The exit code of ``run()`` in a process of its own, in the copy; None if it took too long."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:  # pragma: no cover
            code = 70
            try:
                os.setsid()
                os.chdir(self.copy)
                file = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(file, 1)
                os.dup2(file, 2)
                os.environ["PYTHONPATH"] = str(self.copy)
                sys.path.insert(0, str(self.copy))
                code = int(run())
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        deadline = time.monotonic() + timeout
        done = (0, 0)
        try:
            while done == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.02)
                done = os.waitpid(child, os.WNOHANG)
        finally:  # also after ctrl-C; what the tests started is in the child's session, and ends with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        if done == (0, 0):
            os.waitpid(child, 0)
            return None
        return os.waitstatus_to_exitcode(done[1])

    def survey(self, remembered: Path) -> None:
        """Find out which tests run what on the unchanged source, and import what they import.

        What is remembered of a test file is used again if neither it nor the room has changed.
        """
        known = json.loads(remembered.read_text()) if remembered.is_file() else {}
        common = [*sorted((self.copy / self.source).rglob("*.py")), *sorted((self.copy / "tests").glob("*.py"))]
        keys = {}
        for test in self.tests:
            for file in [path] if (path := self.copy / test).is_file() else sorted(path.rglob("test_*.py")):
                text = "".join([str(self.options), *(each.read_text() for each in [*common, file])])
                keys[file.relative_to(self.copy).as_posix()] = hashlib.sha256(text.encode()).hexdigest()
        known = {file: entry for file, entry in known.items() if keys.get(file) == entry["key"]}
        if new := [file for file in keys if file not in known]:
            result = self.output.with_name("survey.json")
            code = self.fork(lambda: self._look(new, result), 3600)
            if not result.is_file():
                raise SystemExit(f"The tests could not be run on the unchanged source:\n{self.output.read_text()}")
            if code not in (0, NO_TESTS):
                print("Left out, since they fail on the unchanged source:")
                print(*re.findall(r"^(?:FAILED|ERROR) .*", self.output.read_text(), re.MULTILINE), sep="\n")
            for file, entry in json.loads(result.read_text()).items():
                known[file] = {"key": keys[file], **entry}
            remembered.parent.mkdir(parents=True, exist_ok=True)
            remembered.write_text(json.dumps(known))
        for entry in known.values():
            self.seconds.update(entry["seconds"])
            for path, lines in entry["lines"].items():
                for line, tests in lines.items():
                    self.lines[path][int(line)].update(tests)
        import_all(sorted({name for entry in known.values() for name in entry["modules"]}))
        # From here on nothing is compiled into a cache, which knows a file by its size and its second.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for cache in list((self.copy / self.source).rglob("__pycache__")):
            shutil.rmtree(cache)

    def _look(self, files: Sequence[str], result: Path) -> int:
        coverage = importlib.import_module("coverage").Coverage(
            data_file=None, config_file=False, include=[f"{self.copy / self.source}/*", f"*/{self.source}/*"]
        )
        survey = Survey(self.copy, coverage)
        coverage.start()
        code = pytest.main([*self.options, *files], plugins=[survey])
        coverage.stop()
        found: dict[str, Any] = {
            file: {"seconds": {}, "lines": defaultdict(lambda: defaultdict(list)), "modules": survey.modules}
            for file in files
        }
        for test, seconds in survey.seconds.items():
            found[test.partition("::")[0]]["seconds"][test] = seconds
        for path, lines in survey.tests_by_line().items():
            for line, tests in lines.items():
                for test in tests:
                    found[test.partition("::")[0]]["lines"][path][line].append(test)
        result.write_text(json.dumps(found))
        return int(code)

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's statement, the quickest first, as many as there is time for; by file."""
        lines = self.lines[mutant.path]
        tests = {test for line in mutant.statement for test in lines.get(line, ())}
        # A statement outside functions runs on import, for all tests of the file.
        tests = tests or {test for found in lines.values() for test in found} or set(self.seconds)
        chosen, total = [], 0.0
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            total += self.seconds[test]
            if chosen and total > self.limit:
                break
            chosen.append(test)
        first = {test.partition("::")[0]: number for number, test in reversed(list(enumerate(chosen)))}
        return sorted(chosen, key=lambda test: first[test.partition("::")[0]])

    def outcome(self, mutant: Mutant) -> str:
        """What becomes of a mutant: the test that failed, 'timeout', 'survived' or 'no test'."""
        tests = self.tests_for(mutant)
        failed = self.output.with_name("failed.txt")
        failed.unlink(missing_ok=True)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        changed = self.copy / mutant.path
        changed.write_text(mutant.changed)
        try:
            code = self.fork(
                lambda: pytest.main([*self.options, "-x", *files], plugins=[Chosen(tests, failed)]),
                60 + 20 * sum(self.seconds[test] for test in tests),
            )
        finally:
            changed.write_text(mutant.original)
        if code is None:
            return "timeout"
        if code in (0, NO_TESTS):
            return "survived" if code == 0 else "no test"
        return failed.read_text() if failed.is_file() else "import"


def try_all(runner: Runner, mutants: Sequence[Mutant]) -> list[str]:
    """What becomes of each mutant; after ctrl-C or SIGTERM of the first ones, which are a random sample as well."""
    outcomes: list[str] = []
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background ctrl-C is ignored
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        for number, mutant in enumerate(mutants, 1):
            outcomes.append(runner.outcome(mutant))
            print(f"{number}/{len(mutants)} {mutant.path}:{mutant.line} {outcomes[-1]}", flush=True)
            if outcomes[-1] in SURVIVED:
                print(*(f"    {line}" for line in mutant.diff), sep="\n", flush=True)
    return outcomes


# The report


def interval(killed: int, total: int) -> tuple[float, float]:
    """95 % interval (Clopper and Pearson) of the share of all mutants that would be killed."""
    found = importlib.import_module("scipy.stats").binomtest(killed, total).proportion_ci()
    return float(found.low), float(found.high)


def table(room: str, outcomes: Sequence[str], known: int) -> list[str]:
    """The result as a table: rate of all drawn mutants, timeouts counting as killed, listed ones as survivors."""
    counts = Counter(outcome if outcome in (*SURVIVED, "timeout") else "killed" for outcome in outcomes)
    survived = counts["survived"] + counts["no test"]
    low, high = interval(len(outcomes) - survived, len(outcomes))
    cells = [room, len(outcomes), counts["killed"], counts["timeout"], survived, known]
    cells += [f"{1 - survived / len(outcomes):.1%}", f"{low:.1%} to {high:.1%}"]
    return [
        "| room | mutants | killed | timeouts | survived | of them listed | kill rate | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        f"| {' | '.join(str(cell) for cell in cells)} |",
    ]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Draw mutants of a room, try them and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room")
    parser.add_argument("--sample", type=int, default=150, help="how many mutants; 0 for all (default: 150)")
    parser.add_argument("--seed", type=int, default=0, help="which mutants (default: 0)")
    parser.add_argument("--only", type=Path, help="only the mutants of this file, as one is written by each run")
    parser.add_argument("--tests", nargs="+", default=[], help="tests to run instead of those of the room")
    parser.add_argument(
        "--seconds", type=float, default=30, help="CPU seconds of tests for a mutant, at most (default: 30)"
    )
    parser.add_argument("--slow", action="store_true", help="with tests that are marked slow")
    chosen = parser.parse_args(arguments)
    source = source_of(chosen.room, root)
    mutants = draw(source, root, chosen.sample, chosen.seed, listed(chosen.only) if chosen.only else set())
    if not mutants:
        raise SystemExit("There is no such mutant.")
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    with tempfile.TemporaryDirectory(prefix="mutation-") as work:
        runner = Runner(
            root, Path(work), source, chosen.tests or tests_of(chosen.room, root), chosen.slow, chosen.seconds
        )
        runner.survey(root / "build" / "mutation" / f"{chosen.room}.json")
        print(f"{len(runner.seconds)} tests, {sum(runner.seconds.values()):.0f} s", flush=True)
        unchanged = replace(mutants[0], changed=mutants[0].original)
        if runner.outcome(unchanged) != "survived":
            raise SystemExit(f"A test fails in a copy of the unchanged source:\n{runner.output.read_text()}")
        outcomes = try_all(runner, mutants)
    survivors = [mutant for mutant, outcome in zip(mutants, outcomes, strict=False) if outcome in SURVIVED]
    survivors.sort(key=lambda mutant: (mutant.path, mutant.line))
    known = listed(root / LISTED.relative_to(ROOT))
    new = [mutant for mutant in survivors if (mutant.path, mutant.diff) not in known]
    for mutant in new:
        print("", f"{mutant.path}:{mutant.line}", *mutant.diff, sep="\n")
    print("", *table(chosen.room, outcomes, len(survivors) - len(new)), sep="\n")
    report = root / "build" / "mutation" / f"{chosen.room}.md"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(as_markdown(new))
    return 0


if __name__ == "__main__":
    sys.exit(main())
