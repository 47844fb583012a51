"""How alike graphs are.

overlap(a, b)   Σ min(a, b) / Σ max(a, b) over all pairs: 1 for the same graph, 0 for graphs without a common edge
"""

from collections.abc import Sequence

import numpy as np

from silograph._util.types import Matrix
from silograph.graph.graph import Graph
from silograph.graph.pairs import condensed_index


def overlaps(graphs: Sequence[Graph], absent: Sequence[Sequence[int]] | None = None) -> Matrix:
    """The overlap of every two graphs on the same nodes, over the pairs of nodes that both have.

    `absent` are the numbers of the nodes that each lacks.
    """
    codes = [condensed_index(graph.n_nodes, graph.rows, graph.cols) for graph in graphs]
    union, first = np.unique(np.concatenate(codes), return_index=True)
    ends = np.stack([np.concatenate([getattr(graph, end) for graph in graphs])[first] for end in ("rows", "cols")])
    table, seen = np.zeros((len(graphs), union.size)), np.ones((len(graphs), union.size))
    for row, code, graph in zip(table, codes, graphs, strict=True):
        row[np.searchsorted(union, code)] = graph.weights
    for number, nodes in enumerate(absent or ()):
        seen[number] = ~np.isin(ends, nodes).any(axis=0)
    out = np.eye(len(graphs))
    for one in range(len(graphs)):
        common = np.minimum(table[one], table[one + 1 :]).sum(axis=1)
        either = seen[one + 1 :] @ table[one] + table[one + 1 :] @ seen[one] - common
        out[one, one + 1 :] = np.divide(common, either, out=np.ones_like(common), where=either > 0)
        out[one + 1 :, one] = out[one, one + 1 :]
    return out
