"""Scores and stability in a run's folder: scores.npz, stability.npz, and what they say of a graph's edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.analysis.false_edges import FalseEdges, bound_false_edges
from silograph.analysis.quorum import ROUNDING, quorum
from silograph.analysis.scores import StudyScores
from silograph.analysis.stability import GraphStability, Of, StudyStability
from silograph.errors import GraphError
from silograph.graph.files import read_arrays, write_arrays
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs, condensed_index

MOST_SCORES = 2**26  # numbers in scores.npz: 512 MB
VALUES = ("frequency", "mean", "low", "high", "score", "strength_low", "strength_high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScores:
    """A rank for every pair, of every graph."""

    names: tuple[str, ...]
    pairs: Pairs
    study: StudyScores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunStability:
    """The stability of a run's graphs, by the names of its nodes."""

    names: tuple[str, ...]
    pairs: Pairs
    study: StudyStability

    @property
    def n_halves(self) -> int:
        """The number of half-samples."""
        return self.study.n_halves

    @property
    def of(self) -> Of:
        """What the consensus' half-samples are halves of."""
        return self.study.of

    def knows(self, silo: str | None) -> bool:
        """Whether anything is known of the consensus or only graph (None), or of a silo's."""
        return self.study.consensus is not None if silo is None else silo in self.study.silos

    def graph(self, silo: str | None) -> GraphStability:
        """That of the consensus or only graph (None), or of a silo."""
        found = self.study.consensus if silo is None else self.study.silos.get(silo)
        if found is None:
            whose = "the consensus" if silo is None else repr(silo)
            raise GraphError(f"stability: of {whose} nothing is known here. Ask for that of silos that are here.")
        return found

    def columns(self, silo: str | None, graph: Graph) -> dict[str, Vector]:
        """What is told of each edge of a graph, by column."""
        place = _place(self.pairs, self.names, graph)
        return {name: values[place] for name, values in self.graph(silo).by_pair.items()}

    def false_edges(self, silo: str | None) -> FalseEdges:
        """On what a bound on false edges rests."""
        return self.graph(silo).false_edges

    def weights(self, graph: Graph) -> Vector:
        """A graph's weights, one per pair."""
        return weights_on(self.pairs, self.names, graph)

    def strengths(self, silo: str | None, graph: Graph) -> tuple[Vector, Vector]:
        """The interval of each node's sum of weights."""
        number = {name: node for node, name in enumerate(self.names)}
        at = np.array([number[name] for name in graph.names])
        told = self.graph(silo)
        return told.strength_low[at], told.strength_high[at]


def weights_on(pairs: Pairs, names: Sequence[str], graph: Graph) -> Vector:
    """A graph's weights, one per pair of the named nodes."""
    out = np.zeros(pairs.size)
    out[_place(pairs, names, graph)] = graph.weights
    return out


def _place(pairs: Pairs, names: Sequence[str], graph: Graph) -> IntVector:
    """Where a graph's edges stand among the pairs."""
    number = {name: node for node, name in enumerate(names)}
    new = np.array([number[name] for name in graph.names])
    ends = np.sort(np.array([new[graph.rows], new[graph.cols]]).reshape(2, -1), axis=0)
    code = condensed_index(len(names), ends[0], ends[1])
    if not pairs.is_all:
        code = np.searchsorted(condensed_index(len(names), pairs.rows, pairs.cols), code)
    return code.astype(np.int32)


def count_stable(told: RunStability, silo: str | None, graph: Graph, threshold: float) -> int:
    """How many edges of a graph are stable."""
    return int(np.count_nonzero(_is_stable(told, silo, graph, threshold)))


def stable_graph(told: RunStability, silo: str | None, graph: Graph, threshold: float) -> Graph:
    """A graph's stable edges."""
    kept = _is_stable(told, silo, graph, threshold)
    return Graph(graph.names, graph.rows[kept], graph.cols[kept], graph.weights[kept])


def _is_stable(told: RunStability, silo: str | None, graph: Graph, threshold: float) -> BoolVector:
    return np.asarray(told.columns(silo, graph)["stability"] >= threshold - ROUNDING)


def quorum_graph(told: RunStability, graphs: Mapping[str, Graph], least: int, threshold: float) -> tuple[Graph, Vector]:
    """The edges that are stable in at least so many silos, and in how many each is."""
    weights = {name: told.weights(graph) for name, graph in graphs.items()}
    found = quorum(weights, told.study.silos, least, threshold)
    graph = graph_on(told.pairs, found.weights, told.names)
    return graph, found.counts[np.flatnonzero(found.weights)]


def write_scores(path: Path, scores: PairScores) -> None:
    """`consensus` (nodes, nodes) and, of several silos, `scores` (silos, nodes, nodes), beside their names."""
    pairs, own = scores.pairs, scores.study.silos
    arrays = {"names": np.array(scores.names, dtype=str), "consensus": dense(pairs, scores.study.consensus)}
    if own:
        arrays["silos"] = np.array(list(own), dtype=str)
        arrays["scores"] = np.array([dense(pairs, values) for values in own.values()])
    write_arrays(path, arrays)


def fit_a_file(pairs: Pairs, n_silos: int) -> bool:
    """Whether scores are written for so many pairs."""
    return (n_silos + 1) * pairs.n_nodes**2 <= MOST_SCORES


def dense(pairs: Pairs, values: Vector, elsewhere: float = -np.inf) -> Matrix:
    """One number per pair as a matrix; on the diagonal and at pairs that may be no edge, `elsewhere`."""
    out = np.full((pairs.n_nodes, pairs.n_nodes), elsewhere)
    out[pairs.rows, pairs.cols] = values
    out[pairs.cols, pairs.rows] = values
    return out


def write_stability(path: Path, told: RunStability) -> None:
    """All numbers, each with one row per graph: the consensus or the only graph, where it is known, then the silos."""
    first = [] if told.study.consensus is None else [told.study.consensus]
    every = [*first, *told.study.silos.values()]
    arrays: Mapping[str, np.ndarray] = {
        "names": np.array(told.names, dtype=str),
        "rows": told.pairs.rows,
        "cols": told.pairs.cols,
        "silos": np.array(list(told.study.silos), dtype=str),
        "half_samples": np.array(told.n_halves),
        "of": np.array(told.of, dtype=str),
        "one_consensus": np.array([one.false_edges.one_consensus for one in every]),
        **{name: np.array([getattr(one, name) for one in every]) for name in VALUES},
    }
    write_arrays(path, arrays)


def read_stability(path: Path) -> RunStability:
    """What `write_stability` wrote."""
    try:
        data = read_arrays(path)
        names, silos = tuple(data["names"].tolist()), data["silos"].tolist()
        n_halves, of = int(data["half_samples"]), str(data["of"])
        pairs = Pairs.from_sorted(len(names), data["rows"], data["cols"])
        if pairs.size == len(names) * (len(names) - 1) // 2:
            pairs = Pairs.all(len(names))
        values = {name: data[name] for name in VALUES}
        one_consensus = data["one_consensus"]
        graphs = [
            GraphStability(
                **{name: values[name][k] for name in VALUES},
                false_edges=bound_false_edges(
                    _known(values["frequency"][k]), n_halves=n_halves, one_consensus=bool(one_consensus[k])
                ),
            )
            for k in range(len(values["frequency"]))
        ]
        consensus = graphs.pop(0) if len(graphs) > len(silos) else None  # a site knows its silos only
        own = dict(zip(silos, graphs, strict=True))
    except (KeyError, ValueError, IndexError) as error:
        raise GraphError(f"{path}: cannot be read ({error}). Run `silograph learn` again.") from error
    study = StudyStability(n_halves=n_halves, of="rows" if of == "rows" else "silos", consensus=consensus, silos=own)
    return RunStability(names=names, pairs=pairs, study=study)


def _known(values: Vector) -> Vector:
    known: Vector = values[~np.isnan(values)]
    return known
