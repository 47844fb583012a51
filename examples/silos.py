"""Five silos, seven methods: what each learns about graphs that are known, and how well.

    python examples/silos.py demo

writes the five silos' signals, learns from them with `silograph learn` as a user would (demo/run/ and the page in it),
compares seven methods with the graphs that the signals came from, and draws what was learned, demo/silos.png.

Each silo's graph has seven tenths of its edges in common with the others, as in *Graph Learning Across Data Silos*; the
silos have 20, 40, 60, 80 and 100 samples. Every method chooses its own parameters. Pairs are ranked by scores, or by
weights where a method has none, so no method is helped or hurt by a threshold.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.exceptions import ConvergenceWarning

from silograph import ConsensusGraph, Graph, read_graph
from silograph.datasets import make_silos
from silograph.metrics import average_precision
from silograph.report.palette import BLUE, RED

NODES, SAMPLES, SHARED = 20, (20, 40, 60, 80, 100), 0.7
NAMES = ("oslo", "lima", "kyoto", "accra", "delhi")
HALF_SAMPLES = 50
METHODS = ("exact", "algorithm1", "independent", "fedavg", "fedprox", "mrmtl", "ditto")
FAINT = 0.1  # of the largest weight
GREY = "#bbbbbb"


def main(folder: Path) -> None:
    """Make the silos, learn from them, compare and draw."""
    drawn = make_silos(n_samples=SAMPLES, shared=SHARED, seed=7)
    signals = dict(zip(NAMES, drawn.signals.values(), strict=True))
    truths = {name: graph.adjacency() for name, graph in zip(NAMES, drawn.graphs.values(), strict=True)}
    place, common = drawn.places, drawn.consensus.adjacency()
    data = folder / "signals"
    files = write_signals(data, signals)
    command = [sys.executable, "-m", "silograph", "learn", *map(str, files), "--stability", str(HALF_SAMPLES)]
    command += ["--report", "--out", str(folder / "run"), "--force"]
    subprocess.run(command, check=True)
    models = {method: learned(method, signals) for method in METHODS}
    print(table(models, truths, common))
    draw(folder, place, common, truths, models)
    print(f"Look at {folder / 'silos.png'} and at the page {folder / 'run' / 'report.html'}")


def write_signals(folder: Path, signals: dict[str, np.ndarray]) -> list[Path]:
    """One CSV file per silo."""
    folder.mkdir(parents=True, exist_ok=True)
    header = ",".join(f"node{k}" for k in range(NODES))
    for name, values in signals.items():
        np.savetxt(folder / f"{name}.csv", values, delimiter=",", header=header, comments="")
    return [folder / f"{name}.csv" for name in signals]


def learned(method: str, signals: dict[str, np.ndarray]) -> ConsensusGraph:
    """One method, by its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table tells
        return ConsensusGraph(method=method).fit(signals)


def ranks(model: ConsensusGraph) -> tuple[np.ndarray, np.ndarray]:
    """The rank of every pair in each silo and in the consensus; weights, where a method has no scores."""
    try:
        return model.scores_, model.consensus_scores_
    except AttributeError:
        return model.adjacencies_, model.consensus_


def table(models: dict[str, ConsensusGraph], truths: dict[str, np.ndarray], common: np.ndarray) -> str:
    """How well each method ranks the true edges: average precision, 1 being perfect."""
    lines = [
        "",
        "Average precision against the true graphs (1 is perfect)",
        f"{'method':<13}"
        + "".join(f"{name:>8}" for name in NAMES)
        + f"{'mean':>8}{'consensus':>11}{'rounds':>8}{'gap':>9}",
    ]
    for method, model in models.items():
        silos, consensus = ranks(model)
        own = [average_precision(truths[name], ranked) for name, ranked in zip(NAMES, silos, strict=True)]
        shared = average_precision(common, consensus)
        gap = "–" if np.isnan(model.gap_) else f"{model.gap_:.0e}"
        scores = "".join(f"{score:8.3f}" for score in (*own, np.mean(own)))
        lines.append(f"{method:<13}{scores}{shared:11.3f}{model.n_rounds_:8d}{gap:>9}")
    lines.append(
        "algorithm1, fedavg and fedprox are the papers' gradient steps, with zeta = 0.5; the others are exact."
    )
    return "\n".join(lines)


def draw(
    folder: Path,
    place: np.ndarray,
    common: np.ndarray,
    truths: dict[str, np.ndarray],
    models: dict[str, ConsensusGraph],
) -> None:
    """Top: truth and consensus, contributions, scores. Below: each silo's graph, shared edges red, own edges blue."""
    figure = Figure(figsize=(13, 6.4), layout="constrained")
    axes = figure.subplots(2, 5)
    model = models["exact"]
    consensus = read_graph(folder / "run" / "consensus" / "graph.npz")
    draw_graph(axes[0, 0], place, Graph.from_adjacency(common), lambda i, j: GREY, "truth: what the silos share")
    draw_graph(axes[0, 1], place, consensus, lambda i, j: RED, "consensus learned")
    draw_bars(axes[0, 2], NAMES, model.shares_, "contribution (shares)")
    means = [
        np.mean([average_precision(truths[name], rank) for name, rank in zip(NAMES, ranks(model)[0], strict=True)])
        for model in models.values()
    ]
    draw_bars(axes[0, 3], METHODS, means, "average precision, own graphs")
    axes[0, 3].set_xlim(0, 1)
    gaps = [record["gap"] for record in model.history_[1:]]
    axes[0, 4].semilogy(range(2, len(gaps) + 2), gaps, color=RED, marker="o", markersize=3)
    axes[0, 4].set(xlabel="round", title="certified gap")
    axes[0, 4].xaxis.get_major_locator().set_params(integer=True)
    shared = {(i, j) for i, j in zip(consensus.rows, consensus.cols, strict=True)}
    for ax, name in zip(axes[1], NAMES, strict=True):
        graph = read_graph(folder / "run" / "silos" / name / "graph.npz")
        n_samples = SAMPLES[NAMES.index(name)]
        draw_graph(ax, place, graph, lambda i, j: RED if (i, j) in shared else BLUE, f"{name}, {n_samples} samples")
    for ax in axes.flat:
        ax.title.set_fontsize(10)
    legend = {"in the consensus": RED, "in this silo only": BLUE}
    handles = [Line2D([], [], color=colour, linewidth=2.5, label=label) for label, colour in legend.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(folder / "silos.png", dpi=130)


def draw_graph(ax: Axes, place: np.ndarray, graph: Graph, colour: object, title: str) -> None:
    """A graph at the nodes' places; wider lines for larger weights, the faintest left out."""
    seen = graph.weights > FAINT * graph.weights.max()
    ends = list(zip(graph.rows[seen], graph.cols[seen], strict=True))
    widths = 3.5 * graph.weights[seen] / graph.weights.max()
    colours = [colour(i, j) for i, j in ends]
    ax.add_collection(LineCollection([place[[i, j]] for i, j in ends], linewidths=widths, colors=colours, alpha=0.8))
    ax.scatter(*place.T, s=14, color="#222222", zorder=3)
    ax.set(xticks=[], yticks=[], title=title, aspect="equal")


def draw_bars(ax: Axes, names: tuple[str, ...], values: object, title: str) -> None:
    """Bars with their names, the first on top."""
    ax.barh(names, values, color=[RED] + [GREY] * (len(names) - 1) if len(names) == len(METHODS) else RED)
    ax.invert_yaxis()
    ax.set_title(title)
    ax.tick_params(labelsize=8)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
