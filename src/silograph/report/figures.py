"""Figures for a paper, from the same numbers as the page: graphs, matrices, contributions, similarity, degrees, gap.

Each is a file of its own. The same run gives the same SVG, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silograph._util.extras import required
from silograph._util.files import make_folder, writing
from silograph._util.types import Matrix
from silograph.analysis.graphs import own_edges
from silograph.analysis.overlap import overlaps
from silograph.errors import ParameterError
from silograph.graph.graph import Graph
from silograph.report.brain import VIEWS, outlines
from silograph.report.coordinates import read_coordinates
from silograph.report.layout import Layout, layout_of
from silograph.report.measures import absent_nodes, degree, drawn_silos, first_threshold, on_all_nodes, shares
from silograph.report.palette import BLUE, INK, OUTLINE, OWN_DASH, RED, SOFT
from silograph.runs.reader import RunData, read_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
METADATA: dict[str, dict[str, None]] = {  # what would make the same figure another file tomorrow
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
MOST_PANELS, MOST_BRAINS = 12, 6  # graphs in one figure
MOST_NAMED_NODES = 40  # up to which matrices name them

Drawing = Callable[[RunData, Layout], "Figure"]


def write_figures(
    run_folder: Path, out: Path, *, formats: Sequence[str] = ("svg",), coordinates: Path | None = None
) -> list[Path]:
    """Write a run's figures into the folder `out`, each in every format, and return where they are."""
    required("matplotlib", extra="report", purpose="to draw figures")
    from silograph.report.drawing import styled

    wrong = [name for name in formats if name not in FORMATS]
    if wrong or not formats:
        raise ParameterError(f"formats: expected some of {', '.join(FORMATS)}, got {', '.join(wrong) or 'none'}.")
    run = on_all_nodes(read_run(run_folder))
    layout = layout_of(run, None if coordinates is None else read_coordinates(coordinates, run.names))
    make_folder(out)
    written = []
    with styled():
        for name, draw in _drawings(run, layout).items():
            figure = draw(run, layout)
            for suffix in formats:
                path = out / f"{name}.{suffix}"
                with writing(path) as beside:
                    figure.savefig(beside, format=suffix, metadata=METADATA[suffix])
                written.append(path)
    return written


def _drawings(run: RunData, layout: Layout) -> dict[str, Drawing]:
    """The figures that this run has."""
    chosen: dict[str, Drawing] = {"graphs": _graphs, "matrices": _matrices, "degrees": _degrees}
    if layout.space is not None:
        chosen["brain"] = _brain
    if shares(run.silos) is not None:
        chosen["contributions"] = _contributions
    if len(run.graphs) > 1:
        chosen["similarity"] = _similarity
    if any(_gap(row) is not None for row in run.history):
        chosen["convergence"] = _convergence
    return chosen


def _panels(count: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with as many panels as asked for, in rows of four at most."""
    from silograph.report.drawing import panels

    columns = min(count, 4) if count != 6 else 3
    rows = -(-count // columns)
    figure, axes = panels(rows, columns, width=width * columns, height=height * rows)
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count]


def _every(run: RunData) -> dict[str, Graph]:
    """The main graph and as many silos' as fit."""
    return {"consensus" if run.silos else "graph": run.main} | dict(list(run.graphs.items())[: MOST_PANELS - 1])


def _title(run: RunData, name: str, graph: Graph, threshold: float) -> str:
    shown = int((graph.weights >= threshold).sum())
    part = f"{shown} of {graph.n_edges}" if shown < graph.n_edges else f"{shown}"
    return f"{plain(name)} ({part} edges)"


def plain(name: str) -> str:
    """A name as text: between dollar signs, Matplotlib would read a formula."""
    return name.replace("$", r"\$")


def _graphs(run: RunData, layout: Layout) -> Figure:
    every, threshold = _every(run), first_threshold(run)
    figure, axes = _panels(len(every), width=2.6, height=2.6)
    for ax, (name, graph) in zip(axes, every.items(), strict=True):
        draw_edges(ax, graph, run, layout.places, threshold)
        ax.set_title(_title(run, name, graph, threshold))
    _legend(figure, run, len(every))
    return figure


def _brain(run: RunData, layout: Layout) -> Figure:
    from silograph.report.drawing import panels

    assert layout.space is not None
    every, threshold = dict(list(_every(run).items())[:MOST_BRAINS]), first_threshold(run)
    figure, axes = panels(len(every), 3, width=7.5, height=2.4 * len(every))
    heads = outlines()
    for row, (name, graph) in enumerate(every.items()):
        for ax, (view, kept) in zip(axes[3 * row : 3 * row + 3], VIEWS.items(), strict=True):
            draw_head(ax, heads[view]["path"])
            draw_edges(ax, graph, run, layout.space[:, kept], threshold)
            ax.set_title(f"{plain(name)}: {view.lower()}")
    _legend(figure, run, len(every))
    return figure


def draw_edges(ax: Axes, graph: Graph, run: RunData, places: Matrix, threshold: float) -> None:
    """A graph at these places: edges of the consensus red, a silo's own blue and dashed, wider for larger weights."""
    from matplotlib.collections import LineCollection

    from silograph.report.drawing import without_frame

    seen, own = graph.weights >= threshold, own_edges(graph, run.main)
    top = max((float(one.weights.max(initial=0.0)) for one in (run.main, *run.graphs.values())), default=1.0)
    for chosen, colour, dash in ((seen & own, BLUE, OWN_DASH), (seen & ~own, RED if run.silos else SOFT, "solid")):
        lines = np.stack([places[graph.rows[chosen]], places[graph.cols[chosen]]], axis=1)
        widths = 0.3 + 1.9 * np.sqrt(graph.weights[chosen] / top)
        ax.add_collection(LineCollection(list(lines), colors=colour, linewidths=widths, linestyles=[dash], alpha=0.8))
    ax.scatter(places[:, 0], places[:, 1], s=9 if len(places) <= 100 else 3, c=INK, zorder=2, linewidths=0)
    ax.set_aspect("equal")
    without_frame(ax)


def draw_head(ax: Axes, path: str) -> None:
    """The outline of a head, from an SVG path in millimetres whose y points down."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    codes = {"M": Curve.MOVETO, "L": Curve.LINETO, "Q": Curve.CURVE3, "C": Curve.CURVE4}
    points: list[list[float]] = []
    kinds: list[int] = []
    for letter, numbers in re.findall(r"([MLQC])([^MLQC]*)", path):
        values = [float(number) for number in numbers.split()]
        points += [[x, -y] for x, y in zip(values[::2], values[1::2], strict=True)]
        kinds += [int(codes[letter])] * (len(values) // 2)
    ax.add_patch(PathPatch(Curve(points, kinds), facecolor="none", edgecolor=OUTLINE, linewidth=0.6, zorder=0))


def _legend(figure: Figure, run: RunData, n_drawn: int) -> None:
    """What red and blue mean, and how many silos are not drawn."""
    from silograph.report.drawing import edge_legend

    if not run.silos:
        return
    left = len(run.graphs) + 1 - n_drawn
    more = "" if left <= 0 else f" ({left} more silo{'' if left == 1 else 's'} not drawn)"
    edge_legend(figure, shared="in the consensus", own=f"in this silo only{more}")


def _matrices(run: RunData, layout: Layout) -> Figure:
    every = _every(run)
    figure, axes = _panels(len(every), width=2.7, height=2.7)
    top = max(float(graph.weights.max(initial=0.0)) for graph in every.values()) or 1.0
    named = len(run.names) <= MOST_NAMED_NODES and len(every) <= 4
    image: Any = None
    for ax, (name, graph) in zip(axes, every.items(), strict=True):
        weights = graph.adjacency()
        absent = absent_nodes(run, name)
        weights[absent], weights[:, absent] = np.nan, np.nan  # not observed: the hatched ground shows
        ax.patch.set(hatch="////" if absent else None, edgecolor=OUTLINE)
        ordered = weights[np.ix_(layout.order, layout.order)]
        # The root shows weak weights beside strong ones; the bar says which shade is which weight
        image = ax.imshow(ordered, cmap="Greys", norm=_root(top), interpolation="nearest")
        ax.set_title(plain(name))
        names = [plain(run.names[node]) for node in layout.order] if named else []
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=5)
        ax.set_yticks(range(len(names)), names, fontsize=5)
        if not named:
            ax.set_xlabel("nodes, group by group", fontsize=7)
    hatched = ", hatched: not observed" if any(absent_nodes(run, name) for name in every) else ""
    figure.colorbar(image, ax=axes, label=f"weight{hatched}", shrink=0.7)
    return figure


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _root(top: float) -> Any:
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0.0, vmax=top)


def _contributions(run: RunData, layout: Layout) -> Figure:
    every, drawn = shares(run.silos), set(drawn_silos(run))
    assert every is not None
    silos = [silo for silo in run.silos if silo.name in drawn]
    part = every[[silo.name in drawn for silo in run.silos]]
    figure, (ax,) = _panels(1, width=4.2, height=0.9 + 0.28 * len(silos))
    top = 1.08 * max(float(part.max()), 1 / len(every))
    ax.barh(range(len(part)), part, color=SOFT)
    for place, silo in enumerate(silos):
        text = "fused, γ = ∞" if silo.is_consensus else f"γ = {silo.contribution:.3g}"
        ax.text(0.01 * top, place, text, va="center", fontsize=7, color="white" if part[place] > 0.3 * top else INK)
    ax.axvline(1 / len(every), color=INK, linestyle=":", linewidth=1)
    ax.set_yticks(range(len(part)), [plain(silo.name) for silo in silos])
    left = f"\n{len(every) - len(part)} silos nearer to the consensus not drawn" if len(part) < len(every) else ""
    ax.set(xlabel=f"share of contributions (dotted: equal shares){left}", xlim=(0, top))
    ax.invert_yaxis()
    return figure


def _similarity(run: RunData, layout: Layout) -> Figure:
    drawn = [name for name in drawn_silos(run) if name in run.graphs]
    absent = [absent_nodes(run, name) for name in (*drawn, "")]
    names, alike = [*map(plain, drawn), "consensus"], overlaps([*map(run.graphs.__getitem__, drawn), run.main], absent)
    figure, (ax,) = _panels(1, width=1.6 + 0.42 * len(names), height=1.2 + 0.42 * len(names))
    image = ax.imshow(alike, cmap="Greys", vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(alike) if len(names) <= MOST_PANELS else ():
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="white" if value > 0.5 else INK)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=ax, label="overlap of weights", shrink=0.8)
    return figure


def _degrees(run: RunData, layout: Layout) -> Figure:
    threshold = first_threshold(run)
    figure, (ax,) = _panels(1, width=4.2, height=2.8)
    main = degree(run.main, threshold)
    for name, graph in run.graphs.items():
        ax.plot(*_counts(degree(graph, threshold)), color=BLUE, alpha=0.45, linewidth=1, label="silos", gid=name)
    ax.plot(*_counts(main), color=RED if run.silos else SOFT, marker="o", label="consensus" if run.silos else "graph")
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend(handles.values(), handles.keys())
    ax.set(xlabel=f"neighbours by edges of weight ≥ {threshold:g}" if threshold else "neighbours", ylabel="nodes")
    ax.xaxis.set_major_locator(_whole_numbers())
    return figure


def _counts(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(degrees)
    return np.arange(counts.size), counts


def _convergence(run: RunData, layout: Layout) -> Figure:
    known = [(int(float(row["round"])), gap) for row in run.history if (gap := _gap(row)) is not None]
    figure, (ax,) = _panels(1, width=4.2, height=2.8)
    ax.semilogy(*zip(*known, strict=True), color=RED, marker="o", markersize=3, label="certified relative gap")
    ax.axhline(run.parameters["tol"], color=INK, linestyle="--", linewidth=1, label="tolerance")
    ax.set(xlabel="round", ylabel="relative gap")
    ax.xaxis.set_major_locator(_whole_numbers())
    ax.legend()
    return figure


def _gap(row: Any) -> float | None:
    value = float(row.get("gap") or "nan")
    return value if np.isfinite(value) and value > 0 else None
