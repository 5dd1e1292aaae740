"""Whether all runs of COCO archives are read, and with the values that COCO's own cocopp reads.

    python benchmarks/evidence/coco_archives.py exdata DIRECT_posik_noiseless.tgz

Sources are exdata folders and archives of https://numbbo.github.io/data-archive.  Printed for each: the runs that were
read and those that stand in its .info files, counted by a regular expression; how many have reached the final target;
seconds.  If cocopp is installed, also in how many runs the final value is the same, and for how many pairs of a run and
a target the evaluation at which it was first reached.  cocopp looks for targets in the .dat files alone, and does not
end a run where its .info file says that it ended.
"""

import argparse
import contextlib
import importlib.util
import io
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import Trajectory
from polarbear_plugins.adapters import coco
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.trajectories import hitting_times

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, skip

_RUN = re.compile(rb"[,\s]\d+(?::\d+\|[^,\s]+)?(?=\s*(?:,|$))", re.MULTILINE)


@contextlib.contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Folder with the files of a source."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        if source.suffix == ".zip":
            shutil.unpack_archive(source, folder)
        else:
            shutil.unpack_archive(source, folder, "gztar", filter="data")
        yield Path(folder)


def read(source: Path) -> list[Trajectory]:
    """What the adapter reads."""
    plugins = Plugins()
    plugins.register(coco, "coco")
    return list(plugins.read_trajectories(source))


def count_runs(folder: Path) -> int:
    """Runs in the .info files: their lines about .dat files, split at commas."""
    lines = [
        line
        for path in folder.rglob("*.info")
        for line in path.read_bytes().splitlines()
        if re.search(rb"dat\s*,", line) and not line.startswith(b"%")
    ]
    return sum(len(_RUN.findall(line.partition(b"dat")[2])) for line in lines)


def read_by_cocopp(folder: Path) -> list[Any]:
    """Data sets that cocopp finds in a folder."""
    from cocopp.pproc import DataSetList

    with contextlib.redirect_stdout(io.StringIO()):
        return list(DataSetList([str(folder)]))


def compare(folder: Path) -> Counter[str]:
    """Agreement with cocopp on the runs in a folder with .info files."""
    ours = {(run.instance, run.seed): run for run in read(folder)}
    found: Counter[str] = Counter()
    for data in read_by_cocopp(folder):
        seeds: Counter[str] = Counter()
        targets = data.evals[data.evals[:, 0] > data.precision, 0]
        for column, number in enumerate(data.instancenumbers):
            instance = f"f{data.funcId}_d{data.dim}_i{number}"
            run = ours.pop((instance, seeds[instance]))
            seeds[instance] += 1
            hits = data.evals[: targets.size, 1 + column]
            there = np.where(np.isnan(hits), np.inf, hits)
            here = hitting_times(run, targets)
            found["runs"] += 1
            found["final values"] += bool(run.best[-1] == data.finalfunvals[column])
            found["targets"] += targets.size
            found["same"] += int((here == there).sum())
            found["earlier here"] += int((here < there).sum())
            found["past the end"] += int((np.isinf(here) & (there > run.horizon) & np.isfinite(there)).sum())
    found["only here"] = len(ours)
    return found


def main() -> None:
    """Read every source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, metavar="SOURCE", help="exdata folder or archive")
    arguments = parse_arguments(parser, {})
    if not arguments.sources:
        skip("give exdata folders or archives of COCO")
    with_cocopp = importlib.util.find_spec("cocopp") is not None
    warnings.simplefilter("ignore")  # of files that contradict themselves, and of cocopp
    for source in arguments.sources:
        start = time.perf_counter()
        runs = read(source)
        seconds = time.perf_counter() - start
        with unpacked(source) as folder:
            described = count_runs(folder)
            done = sum(run.end == "done" for run in runs)
            report_figure(
                f"{source.name}: {len(runs)} of {described} runs read, {done} of them reached the final target, "
                f"{seconds:.2f} s",
                "share of runs read",
                len(runs) / described,
                "the .info files",
                "higher",
            )
            if not with_cocopp:
                continue
            found: Counter[str] = Counter()
            start = time.perf_counter()
            for each in sorted({path.parent for path in folder.rglob("*.info")}):
                found += compare(each)
            both = time.perf_counter() - start
            report_figure(
                f"  cocopp: {found['runs']} runs, {found['final values']} with the same final value; {found['targets']}"
                f" pairs of run and target, {found['same']} reached at the same evaluation, {found['earlier here']} "
                f"earlier here, {found['past the end']} after the run ended according to its .info file "
                f"({both:.2f} s to read both)",
                "share of targets as in cocopp",
                found["same"] / found["targets"],
                "cocopp",
                "higher",
            )


if __name__ == "__main__":
    main()
