"""Where nodes are drawn, in which order they stand in a matrix, and which of them belong together.

Without coordinates, nodes are placed by stress majorisation (Gansner, Koren & North 2004): the drawing's distances
follow those along the graph, an edge of weight w being 1/√w long. It starts from classical scaling, so that the same
graph is always drawn the same way.

The order of the matrix is that of a hierarchical clustering by the same distances (`analysis/communities.py`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform

from silograph._util.types import IntVector, Matrix
from silograph.analysis.communities import communities, graph_distances, mean_graph
from silograph.graph.graph import Graph
from silograph.runs.reader import RunData

Source = Literal["coordinates", "main", "silos"]
MOST_WEIGHTED_NODES = 600  # up to which near pairs count more than far ones, which takes a factorisation
STRESS_STEPS = 150  # of the majorisation; a fifth of them without the factorisation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Nodes' places in a unit square (y upwards), their order in a matrix, and their communities."""

    places: Matrix  # (nodes, 2)
    space: Matrix | None  # (nodes, 3), in MNI space, of a brain
    source: Source
    order: IntVector
    community: IntVector  # of each node, numbered as they come in the order


def layout_of(run: RunData, coordinates: Matrix | None = None) -> Layout:
    """Place the nodes of a run by their coordinates, or else by its consensus (by all silos', where it says little)."""
    graph, source = _graph_to_place_by(run)
    distance = graph_distances(graph)
    order, community = communities(graph, distance)
    space = None
    if coordinates is None:
        places = stress_places(distance)
    else:
        places, source = coordinates[:, :2], "coordinates"
        space = coordinates if coordinates.shape[1] == 3 else None
    return Layout(places=unit_square(places), space=space, source=source, order=order, community=community)


def stress_places(distance: Matrix) -> Matrix:
    """Places in the plane whose distances follow those given."""
    n_nodes = len(distance)
    if n_nodes < 3:
        return np.column_stack([np.arange(n_nodes, dtype=np.float64), np.zeros(n_nodes)])
    places = _classical_scaling(distance)
    off = distance + np.eye(n_nodes)
    pull = off**-2.0 if n_nodes <= MOST_WEIGHTED_NODES else np.ones_like(off)
    np.fill_diagonal(pull, 0.0)
    grounded = cho_factor(np.diag(pull.sum(axis=1))[1:, 1:] - pull[1:, 1:]) if n_nodes <= MOST_WEIGHTED_NODES else None
    for _ in range(STRESS_STEPS if n_nodes <= MOST_WEIGHTED_NODES else STRESS_STEPS // 5):
        drawn = squareform(pdist(places))
        ratio = np.divide(pull * distance, drawn, out=np.zeros_like(drawn), where=drawn > 1e-12)
        force = ratio.sum(axis=1)[:, None] * places - ratio @ places
        # Only differences matter, so that the first node may stay at the origin
        places = force / n_nodes if grounded is None else np.vstack([np.zeros(2), cho_solve(grounded, force[1:])])
    return _turn_flat(places)


def unit_square(places: Matrix) -> Matrix:
    """The same drawing within 0 to 1, its middle in the middle, without stretching it."""
    low, high = places.min(axis=0), places.max(axis=0)
    size = float((high - low).max())
    square: Matrix = (places - (low + high) / 2) / (size if size > 0 else 1.0) + 0.5
    return square


def _graph_to_place_by(run: RunData) -> tuple[Graph, Source]:
    """The graph to place nodes by: the main one, or all silos' together where it leaves nodes without a place."""
    touched = np.union1d(run.main.rows, run.main.cols).size
    if touched >= 0.6 * run.main.n_nodes or not run.graphs:
        return run.main, "main"
    return mean_graph([run.main, *run.graphs.values()]), "silos"


def _classical_scaling(distance: Matrix) -> Matrix:
    """The plane that keeps most of the distances' variance; signs fixed, so that it is always the same."""
    n_nodes = len(distance)
    square = distance**2
    centred = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    if n_nodes > MOST_WEIGHTED_NODES:
        values, vectors = eigsh(centred, k=2, which="LA", v0=np.ones(n_nodes) + np.arange(n_nodes) / n_nodes)
    else:
        values, vectors = (part[..., -2:] for part in np.linalg.eigh(centred))
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(2)] < 0, -1.0, 1.0)
    # Equal nodes would never part: a spiral of a thousandth of the drawing tells them apart
    angle, radius = 2.4 * np.arange(n_nodes), 1e-3 * np.sqrt(np.arange(n_nodes) / n_nodes) * distance.max()
    places: Matrix = (
        vectors * np.sqrt(np.maximum(values, 0.0)) + np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    )
    return places


def _turn_flat(places: Matrix) -> Matrix:
    """The widest direction lies flat, as screens are wider than high."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]
    turned: Matrix = centred @ axes.T
    return turned
