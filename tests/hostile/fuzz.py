"""Hand changed, damaged and hostile input to everything that reads a user's file.

    python tests/hostile/fuzz.py --reader csv --inputs 100000 --seed 1
    python tests/hostile/fuzz.py --reader slow --seconds 3600
    python tests/hostile/fuzz.py --reader csv --replay findings/csv/17
    python tests/hostile/fuzz.py --guided coco --seconds 600

Each input is a real file that was changed, from a seed (the parts are in tests/hostile/fuzzing).  Some changes declare
their effect: none, this value, this run, refused; then the answer is compared with what they say.  After other damage
an answer must be valid and repeatable, or there is a PolarBearError in one line that names a file.  Anything else is a
finding: another answer, another exception, a warning that is not ours, a crash, more than --input-seconds of processor
time, or more than --input-megabytes beyond what the process had.  Findings are kept in a folder, with the command that
repeats each.  --guided lets atheris choose the changes by the code that they reach.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzing.readers import READERS
from fuzzing.working import RIGHT, Limits, fuzz, keep, seeds_of

_COLUMNS = ("reader", "inputs", "declared", "refused", "read, equal", "read, other", "findings", "seconds")


def _row(name: str, counts: Counter[str], seconds: float) -> dict[str, object]:
    inputs = sum(counts.values()) - counts["declared"]
    numbers = (inputs, counts["declared"], counts["refused"], counts["equal"], counts["other"])
    wrong = inputs - sum(counts[kind] for kind in RIGHT)
    return dict(zip(_COLUMNS, (name, *numbers, wrong, round(seconds)), strict=True))


def _line(cells: object) -> str:
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |"  # type: ignore[attr-defined]


def _chosen(wanted: str) -> list[str]:
    groups = {
        "all": list(READERS),
        "slow": [name for name, reader in READERS.items() if reader.slow],
        "quick": [name for name, reader in READERS.items() if not reader.slow],
    }
    return groups.get(wanted) or wanted.split(",")


def main() -> None:
    """Fuzz, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(READERS)
    parser.add_argument("--reader", default="all", help=f"all, quick, slow, or some of {names}, with commas between")
    parser.add_argument("--guided", metavar="READER", help="let atheris choose the inputs of this reader")
    parser.add_argument("--inputs", type=int, help="of each reader; by default 1,000, or any number within --seconds")
    parser.add_argument("--seconds", type=float, help="stop a reader after so long")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--input-seconds", type=float, default=5.0, help="processor time that an input may take")
    parser.add_argument("--input-megabytes", type=int, default=1024, help="memory that an input may take")
    parser.add_argument("--checksummed", default="", help="more readers whose answer no damage may change")
    parser.add_argument("--keep", type=Path, default=Path("findings"))
    parser.add_argument("--json", type=Path, help="append the counts of each reader to this file")
    parser.add_argument("--replay", type=Path, help="read this input, and let its error be seen")
    options = parser.parse_args()
    if options.replay:
        print(READERS[options.reader].read(options.replay))
        return
    limits = Limits(
        inputs=options.inputs or (1000 if options.seconds is None else 10**12),
        seed=options.seed,
        first=options.first,
        duration=1e9 if options.seconds is None else options.seconds,
        seconds=options.input_seconds,
        megabytes=options.input_megabytes,
    )
    limits = limits.also_checksummed(name for name in options.checksummed.split(",") if name)
    if options.guided:
        from fuzzing.guided import guide

        raise SystemExit(guide(options.guided, limits, options.keep))
    print(_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    total = 0
    for name in _chosen(options.reader):
        if READERS[name].missing:
            print(f"{name}: skipped, needs {', '.join(READERS[name].missing)}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as place:
            seeds = seeds_of(READERS[name], Path(place) / "seeds")
        began = time.perf_counter()
        counts, findings = fuzz(name, seeds, limits)
        row = _row(name, counts, time.perf_counter() - began)
        total += int(str(row["findings"]))
        print(_line(row.values()), flush=True)
        for line in keep(name, seeds, findings, limits, options.keep):
            print(line, flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps({**row, "seed": options.seed, "kinds": counts}) + "\n")
    raise SystemExit(1 if total else 0)


if __name__ == "__main__":
    main()
