"""Which nodes belong together: a hierarchical clustering by distances along the graph, cut where modularity is highest.

The same graph always has the same communities: nothing is drawn at random.
"""

import numpy as np
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import squareform

from silograph._util.types import IntVector, Matrix
from silograph.graph.graph import Graph

MOST_ORDERED_NODES = 300  # up to which neighbouring leaves are put side by side, which takes their cube
SHORTEST_EDGE, LONGEST_EDGE = 1.0, 6.0  # an edge's length, the strongest's and the weakest's, before it is drawn
APART, FAR = 1.1, 0.9  # an unconnected pair lies a little farther apart than nine of ten connected ones
MOST_COMMUNITIES = 40


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


def mean_graph(graphs: list[Graph]) -> Graph:
    """The mean of graphs on the same nodes."""
    total = sum((graph.to_scipy() for graph in graphs[1:]), graphs[0].to_scipy()).tocoo() / len(graphs)
    upper = total.row < total.col
    return Graph.from_edges(graphs[0].names, total.row[upper], total.col[upper], total.data[upper])
