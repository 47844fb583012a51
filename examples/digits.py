"""Which pixels of handwritten digits move together? A graph learned from data that comes with scikit-learn.

    python examples/digits.py run

writes the run's folder (graph.graphml, edges.csv, graph.npz, run.json) and a picture of the graph, graph.png.

Pixels are the nodes and images the samples. Nothing tells the method where a pixel lies: that the learned graph is
mostly the grid of the image, and that the top and the bottom stroke of a digit go together, comes from the signals.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from silograph import Graph, read_graph
from silograph.report.palette import BLUE, RED

SIDE = 8


def main(folder: Path) -> None:
    """Write the signals to a CSV file, learn from it as a user would, and draw the result."""
    images = load_digits().data
    varying = images.std(axis=0) > 0  # the corners are always white
    names = [f"row{pixel // SIDE}_col{pixel % SIDE}" for pixel in np.flatnonzero(varying)]
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch, "digits.csv")
        np.savetxt(table, images[:, varying], delimiter=",", fmt="%g", header=",".join(names), comments="")
        command = [sys.executable, "-m", "silograph", "learn", str(table), "--degree", "4", "--standardize"]
        subprocess.run([*command, "--out", str(folder), "--force"], check=True)
    graph = read_graph(folder / "graph.npz")
    draw(graph, images, folder / "graph.png")
    share = joins_neighbours(graph).mean()
    print(f"{share:.0%} of the edges join neighbouring pixels. Look at {folder / 'graph.png'}")


def place(graph: Graph) -> np.ndarray:
    """The (column, row) of each node in the image."""
    return np.array([[int(name[-1]), int(name[3])] for name in graph.names])


def joins_neighbours(graph: Graph) -> np.ndarray:
    """Whether each edge joins two pixels that touch."""
    where = place(graph)
    return np.abs(where[graph.rows] - where[graph.cols]).max(axis=1) <= 1


def draw(graph: Graph, images: np.ndarray, path: Path) -> None:
    """The graph over the mean image: wider lines for larger weights, red between neighbours and blue beyond."""
    figure = Figure(figsize=(5, 5.2), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(images.mean(axis=0).reshape(SIDE, SIDE), cmap="Greys", alpha=0.35)
    where = place(graph)
    near = joins_neighbours(graph)
    pairs = zip(where[graph.rows], where[graph.cols], near, strict=True)
    axes.add_collection(
        LineCollection(
            [arc(start, end, bow=0.0 if close else 0.18) for start, end, close in pairs],
            linewidths=0.5 + 4 * graph.weights / graph.weights.max(),
            colors=np.where(near, RED, BLUE),
            alpha=0.75,
        )
    )
    axes.scatter(*where.T, s=18, color="#222222", zorder=3)
    title = f"{graph.n_edges} edges among {graph.n_nodes} pixels, learned from {len(images)} digits"
    axes.set(xticks=[], yticks=[], title=title)
    axes.title.set_fontsize(10)
    figure.savefig(path, dpi=150)


def arc(start: np.ndarray, end: np.ndarray, bow: float) -> np.ndarray:
    """Points on a curve that leaves the straight line, so that lines along one row do not hide each other."""
    t = np.linspace(0, 1, 20)[:, None]
    across = np.array([start[1] - end[1], end[0] - start[0]])
    return (1 - t) * start + t * end + 4 * t * (1 - t) * bow * across / 2


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "run"))
