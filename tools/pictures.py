"""Pictures of the README: the report of the demo in a browser, and its race in a terminal.

    python tools/pictures.py                 both, into docs/figures
    python tools/pictures.py --only race     race.svg alone, which needs no browser

The extras ioh and plots are needed, and chromium for report.png.  The race is that of ``polarbear demo``: it takes
half a minute, and the same versions give the same pictures, but for the fonts of the browser.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path

from PIL import Image
from rich.console import Console

from polarbear_plugins.cli.output import Terminal, show_next, show_result
from polarbear_plugins.cli.progress import round_text
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.next_steps import Kept

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
COLUMNS = 120
COLOURS = 256  # of the screenshot, which are enough and make it small
SECONDS = 2.0  # that a frame is shown, the last one four times as long
CHARACTER, LINE, MARGIN, SIZE = 7.3, 16, 16, 12  # pixels
# Nothing of the user's own profile is read or written.
BROWSER = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --window-size=1300,900"
)


def frames(result: RaceResult, known: Computed, journal: Path) -> list[list[str]]:
    """Lines of the terminal after each round of a race, and in the end."""
    begun = ["$ polarbear demo --journal demo.db", ""]
    found = [begun]
    for finished in result.rounds:
        found.append([*found[-1], round_text(finished)])
    return [*found, [*found[-1], *_shown(lambda out: _end(out, result, known, journal))]]


def _end(out: Console, result: RaceResult, known: Computed, journal: Path) -> None:
    show_result(out, result, "evaluations", known)
    show_next(out, result, known, Kept(journal=journal))


def _shown(print_to: Callable[[Console], None]) -> list[str]:
    file = io.StringIO()
    print_to(Terminal(file=file, width=COLUMNS))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def animation(shown: list[list[str]]) -> str:
    """SVG that shows one frame after the other; where nothing moves, as in print, the last one."""
    rows = max(map(len, shown))
    width, height = round(2 * MARGIN + COLUMNS * CHARACTER), 2 * MARGIN + rows * LINE
    last = len(shown) - 1
    total = SECONDS * (last + 4)
    style, body = "", ""
    for place, lines in enumerate(shown):
        start, end = (100 * SECONDS * time / total for time in (place, place + 1))
        until = f"{end:.2f}% {{ opacity: 0 }}" if place < last else "100% { opacity: 1 }"
        style += f"@keyframes f{place} {{ 0% {{ opacity: {int(not place)} }} {start:.2f}% {{ opacity: 1 }} {until} }}\n"
        style += f"#f{place} {{ animation: f{place} {total:g}s steps(1) infinite; opacity: {int(place == last)} }}\n"
        texts = "".join(
            f'<text x="{MARGIN}" y="{MARGIN + LINE * (row + 1) - 4}">{escape(line)}</text>\n'
            for row, line in enumerate(lines)
            if line
        )
        body += f'<g id="f{place}">\n{texts}</g>\n'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="polarbear demo in a terminal">\n'
        f"<style>\ntext {{ font: {SIZE}px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #e6e9ee; "
        f"white-space: pre }}\n{style}@media (prefers-reduced-motion) {{ g {{ animation: none !important }} }}\n"
        "</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1d2430"/>\n{body}</svg>\n'
    )


def photograph(page: Path, picture: Path) -> None:
    """First screen of a page, as a browser shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("tools/pictures.py: chromium is not installed; --only race needs none.")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *BROWSER.split(), f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    with Image.open(picture) as full:
        small = full.convert("RGB").quantize(COLOURS)
    small.save(picture, optimize=True)


def main() -> None:
    """Run the demo and make the pictures of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["report", "race"])
    parser.add_argument("--folder", type=Path, default=FIGURES, help="where the pictures go")
    only, folder = vars(parser.parse_args()).values()
    with tempfile.TemporaryDirectory() as work:
        demo = [sys.executable, "-m", "polarbear_plugins.cli", "demo", "--journal", "demo.db", "--no-open"]
        subprocess.run(demo, cwd=work, check=True, stdout=subprocess.DEVNULL)
        if only != "report":
            result = load_result(Path(work) / "demo.db")
            shown = frames(result, compute(result), Path("demo.db"))
            (folder / "race.svg").write_text(animation(shown))
        if only != "race":
            photograph(Path(work) / "demo-report.html", (folder / "report.png").resolve())


if __name__ == "__main__":
    main()
