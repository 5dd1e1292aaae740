"""Look for known vulnerabilities in everything that is installed here; needs pip-audit and PyPI's advisories.

    python tools/audit.py

Ends with 0 if nothing is known, 1 if something is, and 2 if that could not be found out.  Among the packages is one
that is known to be vulnerable: if nothing is reported of it, nobody has answered, and silence means nothing.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OWN = "polarbear-plugins"
KNOWN = ("django", "2.0")  # never one of ours


def installed() -> dict[str, str]:
    """Versions of all packages here but our own."""
    found = {dist.name.lower(): dist.version for dist in importlib.metadata.distributions()}
    return {name: version for name, version in sorted(found.items()) if name not in (OWN, KNOWN[0])}


def ask(packages: Mapping[str, str]) -> dict[str, Any]:
    """Report of pip-audit on these packages and the one with known vulnerabilities; empty if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "installed.txt"
        pinned.write_text("".join(f"{name}=={version}\n" for name, version in [*packages.items(), KNOWN]))
        options = ["--no-deps", "--disable-pip", "--vulnerability-service=pypi", "--progress-spinner=off"]
        command = [sys.executable, "-m", "pip_audit", *options, "--format=json", f"--requirement={pinned}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        sys.stderr.write(done.stderr.strip()[-1000:] + "\n")
        return {}
    return report


def verdict(report: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Exit code, and what to say about a report."""
    entries = {entry["name"].lower(): entry for entry in report.get("dependencies", [])}
    if not entries.get(KNOWN[0], {}).get("vulns"):
        return 2, ["NOT AUDITED: PyPI's advisories cannot be reached from here, so nothing is known of any package."]
    del entries[KNOWN[0]]
    found = [
        f"{entry['name']} {entry['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no release'}"
        for entry in entries.values()
        for flaw in entry.get("vulns", [])
    ]
    skipped = [f"NOT AUDITED: {entry['skip_reason']}" for entry in entries.values() if "skip_reason" in entry]
    if found:
        return 1, found + skipped
    if skipped:
        return 2, skipped
    return 0, [f"{len(entries)} packages, no known vulnerability."]


def main() -> int:
    """Ask, and say what came back."""
    code, lines = verdict(ask(installed()))
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
