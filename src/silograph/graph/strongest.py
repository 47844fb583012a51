"""The strongest edges of a graph: as many as are asked for, and of every node one."""

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.graph.pairs import Pairs


def keep_strongest(pairs: Pairs, w: Vector, degree: float, rank: Vector | None = None) -> Vector:
    """The weights with all but the strongest at zero, so that the mean degree is the one given, or what there is.

    Each node that has an edge keeps its strongest, so that none is lost for being weakly tied to all others. `rank`
    says which edges are the strongest, if not their weights do.
    """
    rank = w if rank is None else rank
    wanted, edges = round(min(degree, pairs.n_nodes) * pairs.n_nodes / 2), np.flatnonzero(w).astype(np.int32)
    if edges.size <= wanted:
        return w
    order = edges[np.argsort(-rank[edges], kind="stable")]
    kept = _one_of_each_node(pairs, order)
    rest = order[~np.isin(order, kept)]
    kept = np.concatenate([kept, rest[: max(wanted - kept.size, 0)]])
    out = np.zeros_like(w)
    out[kept] = w[kept]
    return out


def _one_of_each_node(pairs: Pairs, order: IntVector) -> IntVector:
    """Of edges by falling weight, each node's first."""
    rows, cols = pairs.at(order)
    ends, places = np.concatenate([rows, cols]), np.tile(np.arange(order.size), 2)
    first = np.full(pairs.n_nodes, order.size)
    np.minimum.at(first, ends, places)
    chosen: IntVector = order[np.unique(first[first < order.size])]
    return chosen
