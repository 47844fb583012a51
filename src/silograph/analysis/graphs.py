"""Which silos are doubtful after learning: by their graphs, or, where these stay at their sites, by what these tell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.checks import list_names
from silograph.analysis.doubts import Doubt, list_remarks
from silograph.engine.study import StudyResult
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs, condensed_index

FEWEST_NODES, FEWEST_SILOS = 6, 3  # below, honest silos part by chance
FAR = 0.75  # of the consensus' norm
TIMES = 10.0  # as far as the median of the others, or more
SMALL = 2.0  # times the usual degree: up to there, the complete graph of a silo that lacks nodes is no wonder
DENSE = 0.6  # part of all pairs that most graphs have: from there on, a complete one is no wonder in any silo
NOTHING, MOST = 0.05, 0.5  # parts of a silo's weight on edges of the consensus: almost none, and what others have


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFacts:
    """What is known of a silo's graph. None: not known here."""

    name: str
    n_nodes: int
    n_pairs: int  # that may be edges
    edges: int | None = None
    distance: float | None = None  # to the consensus, over the consensus' norm; 0: fused
    shared: float | None = None  # part of its weight that lies on edges of the consensus


def doubts_about_study(
    learned: StudyResult, silos: Iterable[str], graphs: Mapping[str, Graph], consensus: Graph, pairs: Pairs
) -> tuple[Doubt, ...]:
    """What is doubtful of these silos of a study, by the graphs that are here and by what else is known of them.

    Where graphs are the strongest edges of an optimum, it is the whole optimum that counts.
    """
    if learned.optimum is not None:
        names, whole = consensus.names, learned.optimum.graphs
        consensus = graph_on(pairs, learned.optimum.consensus, names)
        graphs = {name: graph_on(pairs, w, names, learned.nodes.get(name)) for name, w in whole.items()}
    known = {silo: {**learned.reported.get(silo, {}), **learned.evidence.get(silo, {})} for silo in silos}
    return doubts_about_graphs([_facts(silo, graphs.get(silo), consensus, pairs, told) for silo, told in known.items()])


def _facts(silo: str, graph: Graph | None, consensus: Graph, pairs: Pairs, told: Mapping[str, float]) -> GraphFacts:
    if graph is not None and graph.n_nodes < consensus.n_nodes:  # it lacks nodes that others have
        names = set(graph.names)
        pairs = pairs.within(np.flatnonzero([name in names for name in consensus.names]).astype(np.int32))[0]
    edges, norm = told.get("edges", np.nan), float(np.linalg.norm(consensus.weights))
    far = np.nan if "pull" in told else told.get("distance", np.nan)  # whoever chooses its pull may go its own way
    return GraphFacts(
        name=silo,
        n_nodes=pairs.n_nodes,
        n_pairs=pairs.size,
        edges=graph.n_edges if graph is not None else int(edges) if np.isfinite(edges) else None,
        distance=far / norm if norm > 0 and np.isfinite(far) else None,
        shared=None if graph is None or consensus.n_edges == 0 else 1 - own_part(graph, consensus),
    )


def own_edges(graph: Graph, consensus: Graph) -> np.ndarray:
    """Whether each edge of a silo's graph is one that the consensus does not have; the silo may lack some nodes."""
    number = {name: node for node, name in enumerate(consensus.names)}
    place = np.array([number[name] for name in graph.names], dtype=np.int64)
    ends = np.sort([place[graph.rows], place[graph.cols]], axis=0)
    theirs = condensed_index(consensus.n_nodes, consensus.rows, consensus.cols)
    return ~np.isin(condensed_index(consensus.n_nodes, ends[0], ends[1]), theirs)


def own_part(graph: Graph, consensus: Graph) -> float:
    """The part of a silo's weight on edges of its own."""
    total = float(graph.weights.sum())
    return float(graph.weights[own_edges(graph, consensus)].sum()) / total if total else 0.0


def doubts_about_graphs(graphs: Sequence[GraphFacts]) -> tuple[Doubt, ...]:
    """What is doubtful of these silos' graphs."""
    return tuple(doubt for doubt in (_complete(graphs), _apart(graphs)) if doubt is not None)


def _complete(graphs: Sequence[GraphFacts]) -> Doubt | None:
    """A graph that fused is the consensus' own matter."""
    known = [graph for graph in graphs if graph.n_nodes >= FEWEST_NODES and graph.distance != 0]
    full = [graph.name for graph in known if graph.edges == graph.n_pairs and not _is_no_wonder(graph, graphs)]
    empty = [graph.name for graph in known if graph.edges == 0]
    parts = [f"{what} in {list_names(names)}" for what, names in (("every pair", full), ("no pair", empty)) if names]
    if not parts:
        return None
    text = (
        f"Graphs that tell nothing: {' and '.join(parts)} is an edge. Are these tables in the units of the others, and "
        "are their columns signals? Leave them out, or learn with standardize."
    )
    return Doubt("complete", (*full, *empty), text)


def _is_no_wonder(graph: GraphFacts, graphs: Sequence[GraphFacts]) -> bool:
    """Whether all pairs are edges because most are in the others, or because the silo has so few of their nodes."""
    others = [one for one in graphs if one is not graph and one.distance != 0]
    parts = [one.edges / one.n_pairs for one in others if one.edges is not None]
    if parts and np.median(parts) >= DENSE:
        return True
    if graph.n_nodes == max(one.n_nodes for one in graphs):
        return False
    usual = float(np.median([2 * one.edges / one.n_nodes for one in graphs if one.edges is not None]))
    return 2 * graph.n_pairs / graph.n_nodes <= SMALL * usual


def _apart(graphs: Sequence[GraphFacts]) -> Doubt | None:
    """Silos that took no part in the consensus, while the others did."""
    if len(graphs) < FEWEST_SILOS:
        return None
    found = {graph.name: seen for graph in graphs if graph.n_nodes >= FEWEST_NODES and (seen := _seen(graph, graphs))}
    if not found:
        return None
    text = (
        f"Graphs that stand apart from the consensus: {list_remarks(found)}. The consensus is that of the others. "
        "Check units and columns of these tables; if they are right, these silos differ from the others."
    )
    return Doubt("apart", tuple(found), text)


def _seen(graph: GraphFacts, graphs: Sequence[GraphFacts]) -> str | None:
    others = [one for one in graphs if one is not graph]
    shared = float(np.median([one.shared for one in others if one.shared is not None] or [0.0]))
    if graph.shared is not None and graph.shared < NOTHING and shared > MOST:
        return f"{graph.shared:.0%} of its weight on edges of the consensus, {shared:.0%} in most others"
    far = [one.distance for one in others if one.distance is not None]
    if graph.distance is None or len(far) < FEWEST_SILOS - 1:
        return None
    usual = float(np.median(far))
    if graph.distance < max(FAR, TIMES * usual):
        return None
    most = "most others fused with it" if usual == 0 else f"most others about {usual:.2f}"
    return f"{graph.distance:.2f} of the consensus' norm away from it, {most}"
