"""What the scripts share: a clock, a quick size for every script, and figures for the table of a whole folder.

A script finds this module wherever it is started from, because it puts the folder above its own on the path.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

#: Names the file in which ``run_folder.py`` collects the figures of a script.
FIGURES_FILE = "POLARBEAR_BENCHMARK_FIGURES"
#: Exit code of a script that cannot run here, which is not a failure.
SKIPPED = 77


def seconds(action: Callable[[], object], repetitions: int, clock: Callable[[], float] = time.process_time) -> float:
    """Least processor time of an action, or what another clock says."""
    times = []
    for _ in range(repetitions):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)


def parse_arguments(parser: argparse.ArgumentParser, quick: Mapping[str, Any]) -> argparse.Namespace:
    """Read the command line; with ``--quick`` the given small sizes are the defaults."""
    unknown = quick.keys() - {action.dest for action in parser._actions}
    if unknown:
        raise TypeError(f"no such options: {', '.join(sorted(unknown))}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, to see that the script works; its figures are then only noise",
    )
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick)
    return parser.parse_args()


def report_figure(
    line: str, name: str, value: float, against: str, better: Literal["higher", "lower", ""] = "", end: str = "\n"
) -> None:
    """Print a line, and hand its figure to ``run_folder.py`` if that has started the script.

    Parameters
    ----------
    line
        What people read.
    name
        What was measured.
    value
        A ratio, or another figure that is compared with something.
    against
        What it is compared with: another package, a bare loop, a nominal probability.
    better
        Which direction is the better one; empty if neither is.
    end
        What follows the line.
    """
    print(line, end=end, flush=True)
    path = os.environ.get(FIGURES_FILE)
    if path is not None:
        figure = {"name": name, "value": float(value), "against": against, "better": better}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(figure) + "\n")


def skip(reason: str) -> NoReturn:
    """End a script that cannot run here, for instance without its data."""
    print(reason, file=sys.stderr, flush=True)
    sys.exit(SKIPPED)
