from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from builders import race_by_hand
from command_line import Command
from rich.console import Console

from polarbear_plugins.cli import leaderboard, measures, output, progress
from polarbear_plugins.cli.progress import activity_text
from polarbear_plugins.experiments import Progress

POLARBEAR = Command()


def stop(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


def test_measures_are_shown_if_the_posterior_is_interrupted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[measures.callback.__module__], "analyze_table", stop)
    done = POLARBEAR.run("measures", str(root / "examples" / "runs.csv"))
    assert done.exit_code == 0
    assert "Note: interrupted before the posterior was ready; the rest follows." in done.stderr
    assert "AOCC" in done.stdout
    assert "Probability of being best" not in done.stdout


def test_the_leaderboard_is_shown_if_the_posterior_is_interrupted(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[leaderboard.callback.__module__], "analyze_table", stop)
    done = POLARBEAR.run("leaderboard", str(shared / "bayesmark" / "sample"), "--bootstrap", "0")
    assert done.exit_code == 0
    assert "interrupted before the posterior" in done.stderr
    assert "PySOT" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_slow_engine_is_shown_at_a_terminal_and_ended_by_ctrl_c(root: Path, tmp_path: Path) -> None:
    """An engine that never finishes, in a process of its own with a terminal as standard error."""
    code = (
        "import time\n"
        "from polarbear_plugins.cli import analyze, main\n"
        "import sys\n"
        "module = sys.modules[analyze.callback.__module__]\n"
        "module.analyze_table = lambda *_, **__: time.sleep(600)\n"
        "main(['analyze', 'examples/runs.csv', '--output', sys.argv[1]])\n"
    )
    kept = tmp_path / "result.npz"
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(kept)],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(root)},
        start_new_session=True,
    )
    os.close(end)
    shown, asked, deadline = b"", False, time.monotonic() + 300
    try:
        while time.monotonic() < deadline and process.poll() is None:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65536)
            if b"engine native" in shown and not asked:
                process.send_signal(signal.SIGINT)
                asked = True
        process.wait(10)
        while select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536)
    except OSError:  # the other end is closed
        pass
    finally:
        process.kill()
        out, _ = process.communicate()
        os.close(terminal)
    assert b"inferring ratings of 5 algorithms at 50 timepoints: prior dirichlet, engine native" in shown
    assert b"Note: interrupted before there was a result. Fewer --timepoints" in shown
    assert (process.returncode, out) == (130, b"")
    assert not kept.exists()


def test_nothing_is_shown_where_standard_error_is_not_a_terminal(root: Path) -> None:
    POLARBEAR.succeed("analyze", str(root / "examples" / "runs.csv"), "--timepoints", "2", "--draws", "200")


def test_a_terminal_breaks_sentences_between_words_and_leaves_a_long_path_whole() -> None:
    file = io.StringIO()
    out = output.Terminal(file=file, width=30, force_terminal=True, color_system=None)
    out.print("Choose differential-evolution up to 500 evaluations.", soft_wrap=True)
    out.print("saved /a/path/that/is/longer/than/a/line.npz", soft_wrap=True)
    assert file.getvalue().splitlines() == [
        "Choose differential-evolution ",
        "up to 500 evaluations.",
        "saved /a/path/that/is/longer/than/a/line.npz",
    ]


def test_a_narrow_table_cuts_no_name() -> None:
    file = io.StringIO()
    view = output.text_table("algorithm", ">score")
    view.add_row("OpenTuner-BanditA_0.8.8_a376313", "0.5")
    Console(file=file, width=20).print(view)
    assert "…" not in file.getvalue()
    assert "".join(line.split("0.5")[0].strip() for line in file.getvalue().splitlines()[3:]) == (
        "OpenTuner-BanditA_0.8.8_a376313"
    )


# A race


def progress_of(**fields: Any) -> Progress:
    """Progress in a round with 10 runs."""
    return Progress(state=race_by_hand().state, posterior=None, **{"done": 0, "planned": 10, "failed": 0, **fields})


@pytest.mark.parametrize(
    ("fields", "quiet", "wide", "expected"),
    [
        ({}, 0.0, True, ""),
        ({"utilisation": 0.966}, 0.0, True, "workers 97% busy"),
        ({"utilisation": 1.0, "under_way": 16}, 0.0, True, "workers 100% busy · 16 under way"),
        ({"under_way": 16, "ahead": 9}, 0.0, True, "16 under way, 9 of them ahead"),
        ({"under_way": 16, "ahead": 9}, 0.0, False, "16 under way"),
        # Few are missing.
        ({"done": 8, "waited_for": {"slow": 1, "csa": 1}}, 0.0, True, "waiting for slow, csa"),
        ({"done": 7, "waited_for": {"slow": 3}}, 0.0, True, ""),
        ({"done": 10, "under_way": 2, "ahead": 2}, 60.0, True, "2 under way, 2 of them ahead"),
        # Many are missing, for long.
        ({"done": 7, "waited_for": {"slow": 3}}, 6.0, True, "waiting for slow x3"),
        (
            {"done": 2, "waited_for": {"d": 1, "a": 3, "b": 2, "c": 2}},
            6.0,
            True,
            "waiting for a x3, b x2, c x2 and 1 more",
        ),
        ({"done": 2, "waited_for": {"d": 1, "a": 3, "b": 2, "c": 2}}, 6.0, False, "waiting for a x3 and 3 more"),
        ({"waited_for": {"slow": 10}}, 6.0, True, ""),
    ],
)
def test_a_race_says_what_its_workers_do_and_whom_it_waits_for(
    fields: dict[str, Any], quiet: float, wide: bool, expected: str
) -> None:
    assert activity_text(progress_of(**fields), quiet, wide=wide) == expected


@pytest.mark.parametrize("width", [60, 150])
def test_what_the_workers_do_is_a_line_below_the_bar_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    file = io.StringIO()

    def console(**_: object) -> output.PlainConsole:
        return output.PlainConsole(file=file, width=width, force_terminal=True, color_system=None)

    monkeypatch.setattr(progress, "PlainConsole", console)
    with progress.ProgressView() as view:
        view(progress_of(done=9, utilisation=0.5, under_way=7, ahead=6, waited_for={"slow\x1b" + "o" * 60: 1}))
        view._bar.refresh()
        shown = [line for line in re.split(r"[\r\n]|\x1b\[\S*?[A-Za-z]", file.getvalue()) if "busy" in line][-1]
    whole = f"  workers 50% busy · 7 under way, 6 of them ahead · waiting for slow\\u001b{'o' * 60}"
    if width == 150:
        assert shown.rstrip() == whole
    else:
        assert shown.startswith("  workers 50% busy · 7 under way · waiting for slow")
        assert shown.rstrip().endswith("…")
