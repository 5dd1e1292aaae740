"""Evaluations a second on a surrogate of YAHPO Gym: single, batched, and the bare session of onnxruntime.

    python benchmarks/speed/yahpo.py --data yahpo_data
    python benchmarks/speed/yahpo.py

The named alternative, measured in turn with ours, is onnxruntime by itself: the same session on one thread, fed with
arrays that are ready, so that nothing is checked, encoded or read out.  It bounds what any way of calling the surrogate
can reach; the ratio is what checking and encoding leave of it.  yahpo_gym cannot be installed beside numpy 2.  Without
data a tiny surrogate is made (needs the package onnx), on which our share is all there is to see.  Targets for lcbench:
3,000 single and 15,000 batched evaluations a second.  Others may use the machine: CPU time, median over the turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from polarbear_plugins.adapters.yahpo import load_surrogate
from polarbear_plugins.plugins.manager import load_plugins

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def rate(evaluate: Callable[[], object], evaluations: int) -> float:
    """Measure evaluations in a second of CPU time."""
    began = time.process_time()
    evaluate()
    return evaluations / (time.process_time() - began)


def measure(scenario: str, data: str, evaluations: int, batch: int, turns: int) -> None:
    """Measure single and batched evaluations of both, in turn, and print the medians."""
    suite = load_plugins().suite(f"yahpo:{scenario}", data=data)
    problem = suite.build(next(suite.identities(1)))
    rng = np.random.default_rng(1)
    drawn = [problem.space.sample(rng) for _ in range(evaluations)]
    surrogate = load_surrogate(scenario, data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(Path(data) / scenario / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    codes, numbers = (entry.name for entry in session.get_inputs())
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    rows = surrogate.encode(drawn, problem.instance, full)
    feeds = [
        {codes: rows[0][start : start + size], numbers: rows[1][start : start + size]}
        for size in (1, batch)
        for start in range(0, evaluations, size)
    ]
    single, batched = feeds[:evaluations], feeds[evaluations:]
    parts = [drawn[start : start + batch] for start in range(0, evaluations, batch)]
    ways: list[Callable[[], object]] = [
        lambda: [problem.evaluate(each) for each in drawn],
        lambda: [session.run(None, feed) for feed in single],
        lambda: [problem.evaluate_many(part) for part in parts],
        lambda: [session.run(None, feed) for feed in batched],
    ]
    rates = np.array([[rate(way, evaluations) for way in ways] for _ in range(turns)])
    ours, bare = rates[:, ::2], rates[:, 1::2]
    print(f"{scenario}: {evaluations} evaluations, batches of {batch}, median of {turns} turns")
    for column, kind in enumerate(("single", "batched")):
        ratio = float(np.median(ours[:, column] / bare[:, column]))
        report_figure(
            f"{kind:8} {np.median(ours[:, column]):9,.0f}/s  bare onnxruntime {np.median(bare[:, column]):9,.0f}/s  "
            f"ratio {ratio:.2f}",
            f"evaluations/s on {scenario}, {kind}",
            ratio,
            "bare onnxruntime",
            "higher",
        )


def main() -> None:
    """Measure on real data if there are any, on a tiny surrogate otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("YAHPO_DATA"))
    parser.add_argument("--scenario", default="lcbench")
    parser.add_argument("--evaluations", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--turns", type=int, default=7)
    options = parse_arguments(parser, {"evaluations": 200, "batch": 50, "turns": 2})
    with tempfile.TemporaryDirectory() as folder:
        if options.data is None:
            sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
            from make_surrogate import build

            options.data = str(build(Path(folder), options.scenario))
            print("no data: a tiny surrogate in the layout of", options.scenario)
        measure(options.scenario, options.data, options.evaluations, options.batch, options.turns)


if __name__ == "__main__":
    main()
