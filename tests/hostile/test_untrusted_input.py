"""Nothing that reads a user's file runs what is in it, and nothing that shows it lets it act."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, RankingTable, Trajectory, analyze, compare, select
from polarbear_plugins.display.text import visible
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.racing.state import Failure
from polarbear_plugins.report import render
from polarbear_plugins.report.style import LIBRARY, SCRIPT

# Modules that run code from data, or commands, or write where an archive says.
DANGEROUS_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "tarfile", "subprocess"}
DANGEROUS_NAMES = {"eval", "exec", "compile", "__import__"}
DANGEROUS_METHODS = {
    *("extractall", "extract", "read_pickle", "to_pickle", "system", "popen", "eval", "query", "unsafe_load"),
    *("full_load", "execfile", "run_path", "run_module", "spawnl", "execv", "enable_load_extension"),
}
# What is used although it is in one of the lists, and why.
REASONED = {
    # Messages between processes that this package has started itself, through a pipe that nobody else has.
    ("polarbear_plugins/execution/local_processes.py", "import pickle"),
    ("polarbear_plugins/execution/worker.py", "import pickle"),
    # Makes a report in a process of its own, by a module of this package on files of its own, without a shell.
    ("polarbear_plugins/watch/reports.py", "import subprocess"),
    # Files of an archive are read into memory, as a stream; extract and extractall, which write, are still forbidden.
    ("polarbear_plugins/trajectories/logs/places.py", "import tarfile"),
    # The value of a node in the graph of a model, which PyMC's own functions have built.
    ("polarbear_plugins/inference/pymc/engines.py", ".eval()"),
}


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for folder in ("polarbear_plugins", "adapters", "integrations"):
        for path in sorted((root / folder).rglob("*.py")):
            inside = path.relative_to(root)
            if inside.parts[:2] not in (("polarbear_plugins", "adapters"), ("polarbear_plugins", "integrations")):
                yield inside.as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def dangers(tree: ast.Module) -> set[str]:
    """What a module does that may run what it reads."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found |= {f"import {name}" for name in names if name.partition(".")[0] in DANGEROUS_MODULES}
            taken = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            found |= {f"import {name}" for name in taken & (DANGEROUS_NAMES | DANGEROUS_METHODS)}
        if not isinstance(node, ast.Call):
            continue
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id in DANGEROUS_NAMES:
            found.add(f"{node.func.id}()")
        if isinstance(node.func, ast.Attribute) and node.func.attr in DANGEROUS_METHODS:
            found.add(f".{node.func.attr}()")
        if keywords.get("shell", "False") != "False" or keywords.get("allow_pickle", "False") != "False":
            found.add("shell= or allow_pickle=")
        if ast.unparse(node.func) in ("np.load", "numpy.load") and keywords.get("allow_pickle") != "False":
            found.add("np.load() without allow_pickle=False")
    return found


def test_no_module_runs_what_it_reads(root: Path) -> None:
    found = {(module, danger) for module, tree in _modules(root) for danger in dangers(tree)}
    assert found == REASONED


@pytest.mark.parametrize(
    "line",
    [
        *(
            "import pickle",
            "from yaml import load",
            "eval(text)",
            "exec(text)",
            "frame.query(text)",
            "frame.eval(text)",
        ),
        *("np.load(path)", "np.load(path, allow_pickle=True)", "archive.extractall(folder)", "os.system(text)"),
        *("run(words, shell=True)", "pd.read_pickle(path)", "import subprocess", "import joblib", "import marshal"),
        *("import shelve", "import pickle as p", "from os import system", "from pandas import read_pickle as r"),
    ],
)
def test_the_search_for_dangers_finds_them(line: str) -> None:
    assert dangers(ast.parse(line))


# --- what is opened

#: Modules that check what kind of file they open, or open what was checked.
OPENERS = ("polarbear_plugins/regular_files.py", "polarbear_plugins/files.py", "polarbear_plugins/journal/")
OPENERS += ("polarbear_plugins/trajectories/logs/places.py",)
OPENING = {
    "open",
    "read_text",
    "read_bytes",
    "ZipFile",
    "read_csv",
    "read_parquet",
    "read_json",
    "copyfile",
    "fromfile",
}
OPENING |= {"loadtxt", "genfromtxt", "InferenceSession"}
#: What else opens something, and why.
OPENED = {
    # A journal checks its file itself.
    ("polarbear_plugins/experiments/campaign_runs.py", "Journal.open"),
    ("polarbear_plugins/experiments/open_race.py", "Journal.open"),
    # The null device, for closed standard streams and to keep descriptors free.
    ("polarbear_plugins/cli/failures.py", "os.open"),
    ("polarbear_plugins/execution/starting.py", "os.open"),
    # /proc and /sys.
    ("polarbear_plugins/execution/memory.py", "os.open"),
    (
        "polarbear_plugins/execution/cores.py",
        "Path(f'/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list').read_text",
    ),
    # Files of the package.
    ("polarbear_plugins/report/style.py", "(_ASSETS / name).read_text"),
    ("polarbear_plugins/watch/page.py", "(files('polarbear_plugins.watch') / 'assets' / name).read_text"),
    # What a process of ours has written into a new folder.
    ("polarbear_plugins/watch/reports.py", "target.read_text"),
    # No file is opened: a browser is.
    ("polarbear_plugins/cli/browser.py", "webbrowser.open"),
    # Regular files by is_file() or check_regular().
    ("polarbear_plugins/testing.py", "file.read_bytes"),
    ("adapters/optuna_study/storages.py", "sqlite3.connect"),
    ("adapters/yahpo/suites.py", "load_surrogate(scenario, self.folder).open"),
    ("adapters/yahpo/surrogates.py", "self.open"),
    ("adapters/yahpo/surrogates.py", "runtime.InferenceSession"),
    # New files in a new folder.
    ("integrations/ioh_writer.py", "data.open"),
    ("integrations/ioh_writer.py", "(self._folder / 'instances.csv').open"),
}


def test_files_are_opened_where_their_kind_is_checked(root: Path) -> None:
    """Reading a pipe or a device may never end, so that no reader opens files by itself."""
    found = set()
    for module, tree in _modules(root):
        for call in (node.func for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""
            if name in OPENING or ast.unparse(call) in ("np.load", "sqlite3.connect"):
                found.add((module, ast.unparse(call)))
    assert {(module, call) for module, call in found if not module.startswith(OPENERS)} == OPENED


# --- what is shown

#: Everything that means something to HTML, to a terminal, to rich or to a figure.
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover='x' a=\"",
    "]]>&amp;&lt;",
    "[red]csa[/red][/]",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202egnirts\u202c",
    "$\\frac{1}$",
    "nul\x00\x85\x7f",
)


IN_REPORTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "nav", "section", "footer", "script", "form"),
    *("h1", "h2", "h3", "p", "ul", "li", "a", "table", "caption", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"),
    *("div", "span", "pre", "code", "details", "summary", "figure", "figcaption", "label", "select", "option", "input"),
    *("output", "strong", "em", "b", "button", "fieldset", "legend"),
    *("svg", "g", "defs", "image", "path", "text", "tspan", "use", "rect", "clippath"),
}


def shown_result(names: tuple[str, ...]) -> RaceResult:
    """A result in which every name that data can carry is one of these."""
    rng = np.random.default_rng(1)
    table = RankingTable.from_values(
        rng.random((30, 3, len(names))) + np.linspace(0, 1.5, len(names)),
        algorithms=names,
        timepoints=[1, 10, 100],
        instances=[f"{names[k % len(names)]}{k}" for k in range(30)],
    )
    failures = tuple(Failure(name, f"{name}0", f"because of {name}") for name in names)
    about = {
        "sources": list(names),
        "options": {name: name for name in names},
        "portfolio": {"name": names[0], "options": json.dumps({names[1]: names[2]})},
        "suite": {"name": names[3], "options": json.dumps({names[4]: names[5]})},
        "study": names[0],
    }
    found = analyze(table, RaceSettings(seed=1, draws=200, alpha=0.8), about)
    return RaceResult(state=found.state, stopped=names[1], _posterior=found.posterior, failures=failures, about=about)


@pytest.fixture(scope="module")
def hostile() -> RaceResult:
    return shown_result(HOSTILE)


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, its scripts and its texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[tuple[str, str]] = set()
        self.values: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.shown = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements |= {(tag, name) for name, _ in attrs} | {(tag, "")}
        self.values += [(name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.shown += data


def test_a_report_has_no_elements_and_no_scripts_from_names(hostile: RaceResult) -> None:
    html = render(hostile, plugins=Plugins())
    page = Elements(html)
    tags = {tag for tag, _ in page.elements}
    assert tags <= IN_REPORTS, tags - IN_REPORTS
    assert not [name for _, name in page.elements if name.startswith("on")]
    choices, explorer, *scripts = page.scripts
    assert scripts == [LIBRARY, SCRIPT]
    for data in (choices, explorer):
        json.loads(data)
        assert not set("<>&") & set(data)
    links = [value for name, value in page.values if name.endswith(("href", "src"))]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert html.encode() == visible(html).encode()  # nothing turns or steers, and all of it is UTF-8
    for name in HOSTILE:
        assert visible(name) in page.shown


def test_notebooks_show_hostile_names_as_text(hostile: RaceResult) -> None:
    posterior = hostile.posterior
    for shown in (hostile, posterior, hostile.state.table, select(posterior), compare(posterior)):
        make = getattr(shown, "_repr_html_", None)
        if make is not None:
            html = make()
            assert html == visible(html)
            tags = {tag for tag, _ in Elements(html).elements}
            assert tags <= {
                "p",
                "table",
                "thead",
                "tbody",
                "tr",
                "th",
                "td",
                "caption",
                "dl",
                "dt",
                "dd",
                "div",
                "span",
            }
            assert not [name for _, name in Elements(html).elements if name.startswith("on") or name == "src"]


def runs_file(folder: Path, names: tuple[str, ...]) -> Path:
    rows = [
        [name, instance, str(seed), str(time), str((place + 1) / time + 0.1 * seed)]
        for place, name in enumerate(names)
        for instance in ("<i>f1</i>", "\x1b[1mf2")
        for seed in (0, 1)
        for time in (1, 2, 4)
    ]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path = folder / "runs.csv"
    path.write_text("\n".join(["algorithm,instance,seed,time,value", *quoted, ""]), encoding="utf-8", newline="\n")
    return path


# pandas ends a text at NUL.
IN_FILES = tuple(name.replace("\x00", "") for name in HOSTILE)


@pytest.mark.parametrize("command", ["analyze", "measures"])
def test_the_terminal_shows_names_as_they_are_and_obeys_none(tmp_path: Path, command: str) -> None:
    path = runs_file(tmp_path, IN_FILES)
    chosen = {"analyze": ["--draws", "200", "--seed", "1", "--timepoints", "1,4"], "measures": []}[command]
    printed = Command(command).succeed(str(path), *chosen)
    assert printed == visible(printed)
    for name in ("[red]csa[/red][/]", "\\u001b[31mred"):
        assert name in printed.replace("\n", "")
    data = Command(command).succeed(str(path), *chosen, "--json")
    assert data == visible(data)
    assert "\x1b[31mred\x1b]0;title\x07" in json.dumps(json.loads(data), ensure_ascii=False).encode().decode(
        "unicode_escape"
    )


def test_an_error_with_text_from_data_is_one_harmless_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("algorithm,instance,time,\x1b[31mred\u202e\na,f,1,1\n")  # the columns that there are, as they are
    says = Command("analyze").fail(str(path))
    assert "\\u001b[31mred" in says
    assert says == visible(says)


def test_a_name_with_an_unpaired_surrogate_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="not valid text: it contains an unpaired surrogate"):
        Trajectory(algorithm="a\ud800", instance="f", times=[1], best=[1.0], horizon=1)


def test_escapes_are_those_of_json() -> None:
    for text in (*HOSTILE, "\ud800"):
        assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text
    run = Trajectory(algorithm="a", instance="ü\t", times=[1], best=[1.0], horizon=1)
    assert visible(run.instance) == "ü\t"
