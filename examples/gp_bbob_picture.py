"""Draw a GP-BBOB instance in two dimensions: which function weighs most, how many count, and the landscape.

    python examples/gp_bbob_picture.py --seed 6 --output examples/gp_bbob.png

Needs the extras ioh and plots.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from polarbear_plugins.integrations.gp_bbob import GpBbobSuite


def main() -> None:
    """Draw, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--points", type=int, default=161, help="on each axis")
    parser.add_argument("--output", type=Path, default=Path("gp_bbob.png"))
    options = parser.parse_args()

    suite = GpBbobSuite({"dimension": 2})
    identity = next(suite.identities(options.seed))
    problem = suite.build(identity)
    axis = np.linspace(-5, 5, options.points)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    shape = options.points, options.points
    weights, counts = problem.mixture.weights(points), problem.mixture.sparsity(points)
    values = np.array([problem.evaluate(point) for point in points])

    figure = Figure(figsize=(11, 3.4), dpi=90, layout="constrained")
    largest, count, landscape = figure.subplots(1, 3, sharex=True, sharey=True)
    leaders, places = np.unique(weights.argmax(axis=1), return_inverse=True)
    colors = ListedColormap([*colormaps["tab20"].colors, *colormaps["tab20b"].colors][: len(leaders)])
    image = largest.pcolormesh(axis, axis, places.reshape(shape), cmap=colors, vmin=-0.5, vmax=len(leaders) - 0.5)
    bar = figure.colorbar(image, ax=largest, ticks=range(len(leaders)))
    bar.ax.set_yticklabels([f"f{leader + 1}" for leader in leaders])
    largest.set_title("function of the largest weight")
    levels = np.arange(counts.min(), counts.max() + 2)
    image = count.pcolormesh(axis, axis, counts.reshape(shape), norm=BoundaryNorm(levels - 0.5, 256))
    figure.colorbar(image, ax=count, ticks=levels[:-1])
    count.set_title("functions that count, k(x)")
    heights = np.log10(values - values.min() + 1).reshape(shape)
    image = landscape.contourf(axis, axis, heights, levels=30, cmap="magma")
    figure.colorbar(image, ax=landscape, ticks=range(int(heights.max()) + 1))
    landscape.set_title("log10(f(x) - least f + 1)")
    for axes in (largest, count, landscape):
        axes.set_aspect("equal")
    figure.savefig(options.output)
    print(f"{identity.name}: wrote {options.output}")


if __name__ == "__main__":
    main()
