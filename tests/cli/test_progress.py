from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from rich.console import Console

from polarbear_plugins.cli import leaderboard, measures, output

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
    out = output._Terminal(file=file, width=30, force_terminal=True, color_system=None)
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
