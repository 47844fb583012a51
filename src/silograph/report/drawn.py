"""Graphs as SVG, drawn without a script: lines between places, names that a reader sees where the pointer rests."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from silograph._util.types import IntVector, Matrix, Vector
from silograph.analysis.communities import graph_distances
from silograph.graph.graph import Graph
from silograph.report.brain import VIEWS, outlines
from silograph.report.layout import stress_places, unit_square

WIDTH = 320.0  # of a drawing, in its own units: about a screen's pixels
MARGIN = 16.0
THINNEST, WIDEST = 0.6, 4.0
NODE, MOST_NAMED, LETTERS = 2.6, 30, 14  # of more nodes, names are told at the pointer only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """Where nodes are drawn."""

    name: str
    places: Matrix  # (nodes, 2), y upwards
    box: tuple[float, float, float, float]  # left, low, right, high
    outline: str = ""  # the path of a head's lines, in the same units, y downwards, as SVG has it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """Edges of one kind, the last on top."""

    kind: str  # the class that the page's style gives a colour
    rows: IntVector
    cols: IntVector
    sizes: Vector  # from 0 to 1


def views_of(graph: Graph, coordinates: Matrix | None) -> list[View]:
    """A brain from three sides where there are three coordinates; else one view, by coordinates or by the graph."""
    if coordinates is not None and coordinates.shape[1] == 3:
        heads = outlines()
        return [
            View(name=name, places=coordinates[:, kept], box=tuple(heads[name]["box"]), outline=heads[name]["path"])
            for name, kept in VIEWS.items()
        ]
    places = unit_square(stress_places(graph_distances(graph)) if coordinates is None else coordinates)
    (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
    return [View(name="", places=places, box=(float(left), float(low), float(right), float(high)))]


def draw(view: View, names: Sequence[str], lines: Sequence[Lines]) -> str:
    """The drawing as an SVG element."""
    left, low, right, high = view.box
    scale = (WIDTH - 2 * MARGIN) / max(right - left, 1e-9)
    height = scale * (high - low) + 2 * MARGIN
    x, y = MARGIN + scale * (view.places[:, 0] - left), height - MARGIN - scale * (view.places[:, 1] - low)
    head = ""
    if view.outline:
        moved = f"translate({MARGIN - scale * left:.2f} {height - MARGIN + scale * low:.2f}) scale({scale:.4f})"
        head = f"<path class='head' d='{escape(view.outline, quote=True)}' transform='{moved}'/>"
    edges = "".join(_edges(one, names, x, y) for one in lines)
    nodes = "".join(
        f"<circle cx='{a:.1f}' cy='{b:.1f}' r='{NODE}'><title>{escape(name)}</title></circle>"
        for name, a, b in zip(names, x.tolist(), y.tolist(), strict=True)
    )
    words = "".join(_name(*one) for one in zip(names, x.tolist(), y.tolist(), strict=True)) * (len(names) <= MOST_NAMED)
    return (
        f"<svg class='drawn' viewBox='0 0 {WIDTH:g} {height:.1f}' role='img' aria-label='{view.name} drawing'>"
        f"{head}{edges}{nodes}{words}</svg>"
    )


def _edges(lines: Lines, names: Sequence[str], x: Vector, y: Vector) -> str:
    ends = zip(lines.rows.tolist(), lines.cols.tolist(), lines.sizes.tolist(), strict=True)
    drawn = [
        f"<line x1='{x[i]:.1f}' y1='{y[i]:.1f}' x2='{x[j]:.1f}' y2='{y[j]:.1f}' "
        f"stroke-width='{THINNEST + (WIDEST - THINNEST) * size:.2f}'>"
        f"<title>{escape(names[i])} – {escape(names[j])}</title></line>"
        for i, j, size in ends
    ]
    return f"<g class='{lines.kind}'>{''.join(drawn)}</g>"


def _name(name: str, x: float, y: float) -> str:
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    anchor, aside = ("end", -5) if x > WIDTH / 2 else ("start", 5)
    return f"<text x='{x + aside:.1f}' y='{y - 4:.1f}' text-anchor='{anchor}'>{escape(short)}</text>"
