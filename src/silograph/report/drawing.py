"""One style for all figures, readable in greyscale: colours differ in lightness, and lines in dash or marker too.

Figures are built without pyplot, so that no window system is needed and none stays open.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silograph._util.files import writing
from silograph._util.types import Matrix, Vector
from silograph.report.palette import BLUE, OWN_DASH, RED

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "silograph",  # the same figure is the same file
}
KEPT = ("backend", "backend_fallback", "interactive", "toolbar", "timezone", "webagg.port")  # no matter of looks
GREY = "#8d99ae"
# Dark to light; each with a dash and a marker of its own
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#222222", "linestyle": "-", "marker": "o"},
    {"color": "#c1121f", "linestyle": "--", "marker": "s"},
    {"color": "#3a7d44", "linestyle": "-.", "marker": "^"},
    {"color": "#4a90d9", "linestyle": ":", "marker": "D"},
    {"color": "#9d7bb8", "linestyle": "-", "marker": "v"},
    {"color": "#e09f3e", "linestyle": "--", "marker": "P"},
    {"color": GREY, "linestyle": "-.", "marker": "X"},
)
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the one style, leaving the caller's settings as they were."""
    with mpl.rc_context():
        mpl.rcParams.update({name: value for name, value in mpl.rcParamsDefault.items() if name not in KEPT} | STYLE)
        yield


def panels(n_rows: int, n_columns: int, *, width: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the figure as SVG and PNG, each whole or not at all."""
    written = []
    with styled():
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            path = folder / f"{name}{suffix}"
            with writing(path) as beside:
                figure.savefig(beside, format=suffix[1:], metadata=metadata)
            written.append(path)
    return written


def draw_graph(
    axes: Axes,
    places: Matrix,
    w: Vector,
    *,
    shared: np.ndarray | None = None,
    threshold: float = 0.0,
    node_size: float = 12,
    widest: float = 2.0,
) -> None:
    """A graph with one weight per pair; edges that are `shared` are red and solid, the others blue and dashed.

    Without `shared`, all edges look alike. Lines are as wide as their weights are large.
    """
    found = w > threshold
    top = float(w.max()) if found.any() else 1.0
    kinds = (
        [(found, GREY, "solid")]
        if shared is None
        else [(found & ~shared, BLUE, OWN_DASH), (found & shared, RED, "solid")]
    )
    for chosen, color, dash in kinds:
        widths = widest * (0.25 + 0.75 * w[chosen] / top)
        draw_edges(axes, places, chosen, color, widths=widths, dash=dash)
    axes.scatter(places[:, 0], places[:, 1], s=node_size, c="#222222", zorder=2, linewidths=0)
    axes.set_aspect("equal")
    without_frame(axes)


def draw_edges(
    axes: Axes, places: Matrix, chosen: np.ndarray, color: str, *, widths: Any = 0.5, dash: Any = "solid"
) -> None:
    """Lines between the places of the chosen pairs."""
    rows, cols = np.triu_indices(len(places), 1)
    segments = list(np.stack([places[rows[chosen]], places[cols[chosen]]], axis=1))
    axes.add_collection(LineCollection(segments, colors=color, linewidths=widths, linestyles=[dash], zorder=1))


def without_frame(axes: Axes) -> None:
    """Neither ticks nor spines: places have no unit."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.margins(0.06)


def edge_legend(figure: Figure, *, shared: str, own: str) -> None:
    """What red and blue mean."""
    lines = [Line2D([], [], color=RED), Line2D([], [], color=BLUE, linestyle=OWN_DASH)]
    place = "outside lower center" if figure.get_layout_engine() is not None else "lower center"
    figure.legend(lines, [shared, own], loc=place, ncols=2)


def draw_bars(axes: Axes, groups: Iterable[str], bars: dict[str, Vector], errors: dict[str, Vector]) -> None:
    """Bars side by side, a group per silo and a bar per method."""
    names = list(groups)
    width = 0.85 / len(bars)
    for k, (label, values) in enumerate(bars.items()):
        place = np.arange(len(names)) + (k - (len(bars) - 1) / 2) * width
        look = LOOKS[k % len(LOOKS)]
        axes.bar(
            place, values, width, yerr=errors[label], label=label, color=look["color"], hatch=HATCHES[k % len(HATCHES)],
            edgecolor="white", linewidth=0.4, error_kw={"elinewidth": 0.6, "ecolor": "#555555"},
        )  # fmt: skip
    axes.set_xticks(np.arange(len(names)), names)
