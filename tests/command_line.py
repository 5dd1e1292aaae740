"""Commands and examples of polarbear in tests; pyproject.toml puts this folder on the path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from polarbear_plugins.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"


def run_example(name: str, *arguments: object) -> str:
    """What an example prints; a warning is an error, and nothing may go to stderr."""
    command = [sys.executable, "-W", "error", EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class Command:
    """A command, or all of them, with the arguments that a test always gives."""

    def __init__(self, *always: str) -> None:
        self.always = always

    def run(self, *arguments: str) -> Result:
        """Run it, whatever comes of it."""
        return CliRunner().invoke(main, (*self.always, *arguments), catch_exceptions=False)

    def succeed(self, *arguments: str) -> str:
        """What it prints if all is well; nothing on stderr."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def data(self, *arguments: str) -> dict[str, Any]:
        """What it prints as JSON."""
        found: dict[str, Any] = json.loads(self.succeed(*arguments, "--json"))
        return found

    def fail(self, *arguments: str) -> str:
        """Message of a command that fails as it should: one line on stderr, exit code 2."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith("\n")
        return result.stderr
