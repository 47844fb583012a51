"""Graph: named nodes and weighted edges, and the formats in which other tools want them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from silograph._util.extras import required
from silograph._util.types import IntVector, Matrix, Vector
from silograph.errors import GraphError
from silograph.graph.pairs import Pairs

if TYPE_CHECKING:
    import networkx
    import pandas
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """An undirected graph with named nodes and positive edge weights.

    Two graphs are equal when they have the same names and, between the same names, the same weights; the order in which
    nodes are stored does not matter.
    """

    names: tuple[str, ...]
    rows: IntVector  # the edges' smaller node number
    cols: IntVector  # and the larger
    weights: Vector

    @classmethod
    def from_edges(cls, names: Sequence[str], rows: ArrayLike, cols: ArrayLike, weights: ArrayLike) -> "Graph":
        """A graph from edges between node numbers, in any order and direction."""
        names = tuple(str(name) for name in names)
        left, right = np.asarray(rows, dtype=np.int64).ravel(), np.asarray(cols, dtype=np.int64).ravel()
        weight = np.asarray(weights, dtype=np.float64).ravel()
        if not left.size == right.size == weight.size:
            raise GraphError(f"graph: rows, cols and weights differ in number ({left.size, right.size, weight.size}).")
        if len(set(names)) != len(names):
            raise GraphError("graph: expected different node names. Rename the nodes that share one.")
        low, high = np.minimum(left, right), np.maximum(left, right)
        if low.size and (low.min() < 0 or high.max() >= len(names) or (low == high).any()):
            raise GraphError(f"graph: expected edges between different nodes from 0 to {len(names) - 1}.")
        if not (np.isfinite(weight).all() and (weight > 0).all()):
            raise GraphError("graph: expected finite weights > 0. Leave absent edges out.")
        order = np.lexsort((high, low))
        low, high = low[order], high[order]
        if ((low[1:] == low[:-1]) & (high[1:] == high[:-1])).any():
            raise GraphError("graph: expected each edge once.")
        return cls(names, low.astype(np.int32), high.astype(np.int32), weight[order])

    @classmethod
    def from_adjacency(cls, adjacency: ArrayLike, names: Sequence[str] | None = None) -> "Graph":
        """A graph from a symmetric matrix of weights ≥ 0."""
        matrix = np.asarray(adjacency, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
            raise GraphError(f"graph: expected a symmetric matrix, got shape {matrix.shape}.")
        rows, cols = np.nonzero(np.triu(matrix, 1))
        labels = [str(node) for node in range(matrix.shape[0])] if names is None else names
        return cls.from_edges(labels, rows, cols, matrix[rows, cols])

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return int(self.weights.size)

    @property
    def mean_degree(self) -> float:
        """The mean number of neighbours."""
        return 2 * self.n_edges / self.n_nodes

    def adjacency(self) -> Matrix:
        """The dense matrix of weights (nodes, nodes)."""
        out = np.zeros((self.n_nodes, self.n_nodes))
        out[self.rows, self.cols] = self.weights
        out[self.cols, self.rows] = self.weights
        return out

    def to_scipy(self) -> "csr_array":
        """The sparse matrix of weights."""
        from scipy.sparse import coo_array  # a third of a second to import, for those who ask

        ends = (np.concatenate([self.rows, self.cols]), np.concatenate([self.cols, self.rows]))
        return coo_array((np.tile(self.weights, 2), ends), shape=(self.n_nodes, self.n_nodes)).tocsr()

    def to_networkx(self) -> "networkx.Graph":
        """A networkx graph whose nodes are the names and whose edges have a `weight`."""
        nx = required("networkx", extra="networkx", purpose="to make a networkx graph")
        graph = nx.Graph()
        graph.add_nodes_from(self.names)
        graph.add_weighted_edges_from(self.edges())
        return graph

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per edge: source, target, weight."""
        frames = required("pandas", extra="files", purpose="to make a data frame")
        return frames.DataFrame(self.edges(), columns=["source", "target", "weight"])

    def edges(self) -> list[tuple[str, str, float]]:
        """(source, target, weight) of each edge."""
        return [
            (self.names[i], self.names[j], weight)
            for i, j, weight in zip(self.rows.tolist(), self.cols.tolist(), self.weights.tolist(), strict=True)
        ]

    def reordered(self, names: Sequence[str]) -> "Graph":
        """The same graph with its nodes stored in the order of `names`."""
        if set(names) != set(self.names) or len(names) != self.n_nodes:
            raise GraphError("graph: expected the same node names in another order.")
        number = {name: node for node, name in enumerate(names)}
        new = np.array([number[name] for name in self.names], dtype=np.int64)
        return Graph.from_edges(names, new[self.rows], new[self.cols], self.weights)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if set(self.names) != set(other.names) or self.n_edges != other.n_edges:
            return False
        same = other if other.names == self.names else other.reordered(self.names)
        return (
            np.array_equal(self.rows, same.rows)
            and np.array_equal(self.cols, same.cols)
            and np.array_equal(self.weights, same.weights)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Graph({self.n_nodes} nodes, {self.n_edges} edges)"


def graph_on(pairs: Pairs, w: Vector, names: Sequence[str], nodes: IntVector | None = None) -> "Graph":
    """The graph of the weights w, one per pair, where they are not zero; on some of the nodes alone, if given."""
    edges = np.flatnonzero(w)
    rows, cols = pairs.at(edges)
    if nodes is None:
        return Graph(tuple(names), rows, cols, w[edges])
    number = np.searchsorted(nodes, np.arange(pairs.n_nodes)).astype(np.int32)
    return Graph(tuple(names[node] for node in nodes), number[rows], number[cols], w[edges])
