"""Numbers of whole graphs, one per silo, and how alike silos are: over the pairs that all silos have.

edges        how many
weight       the sum of all
modularity   of the communities of the mean graph of all silos, which no labels decide
similarity   the mean overlap with all other silos
distance     ‖w_i − u‖ to the consensus u
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from silograph._util.types import IntVector, Matrix, Vector
from silograph.analysis.communities import communities, graph_distances, modularity
from silograph.analysis.comparing.design import bases_of
from silograph.analysis.comparing.relabelling import Relabellings
from silograph.analysis.comparing.statistic import ROUNDING, Separation
from silograph.analysis.overlap import overlaps
from silograph.graph.graph import Graph
from silograph.graph.pairs import condensed_index

MEASURES = ("edges", "weight", "modularity", "similarity", "distance")
SAME = 1 - 1e-9
NO_MODULARITY = 1e-12  # of one community alone it is 0, but for rounding, which differs from graph to graph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairWeights:
    """The weights of silos on the pairs that are an edge in any of them, or in the consensus."""

    silos: tuple[str, ...]
    names: tuple[str, ...]
    rows: IntVector
    cols: IntVector
    values: Matrix  # (silos, pairs), NaN where a silo lacks one of the nodes
    consensus: Vector

    @classmethod
    def of(cls, graphs: Mapping[str, Graph], consensus: Graph) -> "PairWeights":
        """From graphs; of the nodes of the consensus, a silo may lack some."""
        number = {name: node for node, name in enumerate(consensus.names)}
        nodes = [np.array([number[name] for name in graph.names], dtype=np.int64) for graph in graphs.values()]
        every = [*zip(graphs.values(), nodes, strict=True), (consensus, np.arange(consensus.n_nodes))]
        ends = [np.sort([place[graph.rows], place[graph.cols]], axis=0) for graph, place in every]
        codes = [condensed_index(consensus.n_nodes, *of_one) for of_one in ends]
        union, first = np.unique(np.concatenate(codes), return_index=True)
        rows, cols = np.concatenate(ends, axis=1)[:, first].astype(np.int32)
        table = np.zeros((len(every), union.size))
        for row, code, (graph, place) in zip(table, codes, every, strict=True):
            row[~(np.isin(rows, place) & np.isin(cols, place))] = np.nan
            row[np.searchsorted(union, code)] = graph.weights
        return cls(
            silos=tuple(graphs), names=consensus.names, rows=rows, cols=cols, values=table[:-1], consensus=table[-1]
        )

    @property
    def n_pairs(self) -> int:
        """All pairs of nodes, also those that are an edge nowhere."""
        return len(self.names) * (len(self.names) - 1) // 2

    def graph(self, weights: Vector) -> Graph:
        """The graph of these weights, where they are above zero."""
        edges = np.flatnonzero(np.nan_to_num(weights) > 0)
        return Graph(self.names, self.rows[edges], self.cols[edges], weights[edges])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Likeness:
    """How alike silos of the same group and of different groups are."""

    within_first: float
    within_second: float
    between: float
    explained: float  # part of what silos differ by that their group tells
    p: float

    @property
    def is_same(self) -> bool:
        """Whether all silos have the same graph."""
        return min(self.within_first, self.within_second, self.between) >= SAME


def measures_of(pairs: PairWeights) -> tuple[Matrix, Matrix]:
    """The measures (silos, MEASURES), and the similarity of every two silos."""
    complete = np.isfinite(pairs.values).all(axis=0)
    values = np.where(complete, pairs.values, 0.0)
    graphs = [pairs.graph(row) for row in values]
    alike = overlaps(graphs)
    mean = pairs.graph(values.mean(axis=0))
    community = communities(mean, graph_distances(mean))[1]
    modularities = np.array([modularity(graph, community) for graph in graphs])
    modularities[np.abs(modularities) < NO_MODULARITY] = 0.0
    columns = (
        (values > 0).sum(axis=1),
        values.sum(axis=1),
        modularities,
        (alike.sum(axis=1) - 1) / (len(graphs) - 1),
        np.linalg.norm((values - pairs.consensus) * complete, axis=1),
    )
    return np.column_stack(columns).astype(np.float64), alike


def likeness(alike: Matrix, relabellings: Relabellings) -> Likeness:
    """Whether silos of one group are more alike than silos of different groups."""
    design = relabellings.design
    bases = bases_of(design)
    assert bases is not None  # the design was checked when it was made
    test, first, second = Separation.of(bases, alike), design.is_first, ~design.is_first
    true = np.arange(len(alike), dtype=np.int32)[None]
    seen, (told, _) = float(test(true)[0, 0]), test.parts(true)
    as_large = sum(int((test(orders) >= seen - (1 - SAME) * abs(seen)).sum()) for orders in relabellings.batches(1000))
    whole = float(np.trace(test.products))
    if whole <= ROUNDING:  # all are the same
        told, as_large = np.zeros(1), relabellings.count - (0 if relabellings.exhaustive else 1)
    return Likeness(
        within_first=_mean_off_diagonal(alike[np.ix_(first, first)]),
        within_second=_mean_off_diagonal(alike[np.ix_(second, second)]),
        between=float(alike[np.ix_(first, second)].mean()),
        explained=float(told[0]) / whole if whole > 0 else 0.0,
        p=(as_large + (0 if relabellings.exhaustive else 1)) / relabellings.count,
    )


def _mean_off_diagonal(square: Matrix) -> float:
    return float((square.sum() - np.trace(square)) / (len(square) * (len(square) - 1)))
