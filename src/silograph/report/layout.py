"""Where nodes are drawn, in which order they stand in a matrix, and which of them belong together.

Without coordinates, nodes are placed by stress majorisation (Gansner, Koren & North 2004): the drawing's distances
follow those along the graph, an edge of weight w being 1/√w long. It starts from classical scaling, so that the same
graph is always drawn the same way.

The order of the matrix is that of a hierarchical clustering by the same distances, and communities are its cut with the
highest modularity.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import shortest_path
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform

from silograph._util.types import IntVector, Matrix
from silograph.graph.graph import Graph
from silograph.runs.reader import RunData

Source = Literal["coordinates", "main", "silos"]
MOST_WEIGHTED_NODES = 600  # up to which near pairs count more than far ones, which takes a factorisation
MOST_ORDERED_NODES = 300  # up to which neighbouring leaves are put side by side, which takes their cube
STRESS_STEPS = 150  # of the majorisation; a fifth of them without the factorisation
SHORTEST_EDGE, LONGEST_EDGE = 1.0, 6.0  # an edge's length, the strongest's and the weakest's, before it is drawn
APART, FAR = 1.1, 0.9  # an unconnected pair lies a little farther apart than nine of ten connected ones
MOST_COMMUNITIES = 40


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


def graph_distances(graph: Graph) -> Matrix:
    """Lengths of shortest paths; between nodes that no path joins, a little more than most of them."""
    if graph.n_edges == 0:
        return 1.0 - np.eye(graph.n_nodes)
    lengths = np.clip(np.sqrt(graph.weights.max() / graph.weights), SHORTEST_EDGE, LONGEST_EDGE)
    edges = Graph(graph.names, graph.rows, graph.cols, lengths).to_scipy()
    distance: Matrix = shortest_path(edges, directed=False)
    reached = np.isfinite(distance)
    distance[~reached] = APART * np.quantile(distance[reached & (distance > 0)], FAR)
    return np.minimum(distance, distance.T)


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


def communities(graph: Graph, distance: Matrix) -> tuple[IntVector, IntVector]:
    """The order of nodes that shows communities, and each node's community, numbered in that order."""
    n_nodes = graph.n_nodes
    if n_nodes < 3:
        return np.arange(n_nodes, dtype=np.int32), np.zeros(n_nodes, dtype=np.int32)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=n_nodes <= MOST_ORDERED_NODES)
    order = leaves_list(tree)
    cuts = [fcluster(tree, count, "maxclust") for count in range(1, min(MOST_COMMUNITIES, n_nodes) + 1)]
    best = max(cuts, key=lambda cut: round(modularity(graph, cut), 12))  # of equal ones, the fewest communities
    first_seen = {label: number for number, label in enumerate(dict.fromkeys(best[order].tolist()))}
    return order.astype(np.int32), np.array([first_seen[label] for label in best.tolist()], dtype=np.int32)


def modularity(graph: Graph, community: IntVector) -> float:
    """The weight within communities beyond what strengths alone would give, as a part of all weight (Newman 2004)."""
    total = graph.weights.sum()
    if total == 0:
        return 0.0
    strength = np.bincount(graph.rows, graph.weights, graph.n_nodes) + np.bincount(
        graph.cols, graph.weights, graph.n_nodes
    )
    within = graph.weights[community[graph.rows] == community[graph.cols]].sum() / total
    expected = np.bincount(community.astype(np.int64), strength / (2 * total)) ** 2
    return float(within - expected.sum())


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


def mean_graph(graphs: list[Graph]) -> Graph:
    """The mean of graphs on the same nodes."""
    total = sum((graph.to_scipy() for graph in graphs[1:]), graphs[0].to_scipy()).tocoo() / len(graphs)
    upper = total.row < total.col
    return Graph.from_edges(graphs[0].names, total.row[upper], total.col[upper], total.data[upper])


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
