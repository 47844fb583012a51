"""Brains: outlines of a head for the page's three projections, and nilearn's view in space as a file of its own."""

import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.files import writing
from silograph._util.types import Matrix
from silograph.graph.graph import Graph

VIEWS = {"Sagittal": (1, 2), "Axial": (0, 1), "Coronal": (0, 2)}  # which of x, y, z are drawn, to the right and up
MOST_EDGES_IN_SPACE = 300  # in space, where more hide each other


def outlines() -> dict[str, Any]:
    """For each view, the lines of a head in MNI millimetres as an SVG path, and the box they fill (nilearn's)."""
    text = files("silograph.report").joinpath("assets", "vendor", "brain_outlines.json").read_text(encoding="utf-8")
    return dict(json.loads(text)["views"])


def write_spatial(graph: Graph, centres: Matrix, page: Path) -> Path | None:
    """A connectome in space by nilearn, beside the page; nothing where nilearn is not installed."""
    if find_spec("nilearn") is None or graph.n_edges == 0:
        return None
    from nilearn.plotting import view_connectome

    weights = np.zeros((graph.n_nodes, graph.n_nodes))
    strongest = np.argsort(-graph.weights, kind="stable")[:MOST_EDGES_IN_SPACE]
    rows, cols = graph.rows[strongest], graph.cols[strongest]
    weights[rows, cols] = weights[cols, rows] = graph.weights[strongest]
    view = view_connectome(weights, centres, edge_cmap="Reds", symmetric_cmap=False, linewidth=3, node_size=5)
    path = page.with_name(f"{page.stem}-3d.html")
    with writing(path) as beside:
        view.save_as_html(str(beside))
    return path
