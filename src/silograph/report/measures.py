"""The few numbers that the page and the figures derive from graphs.

share           γ as a part of one; silos that fused with the consensus, whose γ is infinite, share it equally
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from silograph._util.types import Vector
from silograph.graph.graph import Graph
from silograph.runs.reader import RunData
from silograph.runs.record import SiloRecord

USUAL_DEGREE = 5.0  # where nobody asked for one
MOST_SILOS = 60  # up to which all are drawn and compared


def on_all_nodes(run: RunData) -> RunData:
    """The run with every graph on all nodes; `absent_nodes` tells which of them a silo lacks."""
    graphs = {name: _placed(graph, run.names) for name, graph in run.graphs.items()}
    return replace(run, graphs=graphs)


def _placed(graph: Graph, names: Sequence[str]) -> Graph:
    if graph.names == names:
        return graph
    number = {name: node for node, name in enumerate(names)}
    place = np.array([number[name] for name in graph.names], dtype=np.int64)
    return Graph.from_edges(names, place[graph.rows], place[graph.cols], graph.weights)


def absent_nodes(run: RunData, silo: str) -> list[int]:
    """Numbers of the nodes that a silo lacks; none for what is no silo, the consensus."""
    names = {name for one in run.silos if one.name == silo for name in one.missing_nodes}
    return [node for node, name in enumerate(run.names) if name in names]


def drawn_silos(run: RunData) -> tuple[str, ...]:
    """All silos, or, of more than a page can show, those farthest from the consensus, in the run's order."""
    names = [silo.name for silo in run.silos]
    if len(names) <= MOST_SILOS:
        return tuple(names)
    nearness = {silo.name: math.inf if silo.is_consensus else silo.contribution for silo in run.silos}
    told = {name: math.inf if near is None else near for name, near in nearness.items()}
    first = sorted(names, key=lambda name: (name not in run.graphs, told[name]))[:MOST_SILOS]
    return tuple(name for name in names if name in set(first))


def shares(silos: Sequence[SiloRecord]) -> Vector | None:
    """Contributions as parts of one, or nothing where a silo did not tell its own, or is the only one known here."""
    gamma = [math.inf if silo.is_consensus else silo.contribution for silo in silos]
    if len(gamma) < 2 or any(one is None for one in gamma):
        return None
    known = np.array(gamma, dtype=np.float64)
    if np.isinf(known).any():
        known = np.isinf(known).astype(np.float64)
    return known / known.sum() if known.sum() > 0 else None


def strength(graph: Graph) -> Vector:
    """Each node's sum of weights."""
    ends, weights = np.concatenate([graph.rows, graph.cols]), np.tile(graph.weights, 2)
    total: Vector = np.bincount(ends, weights, minlength=graph.n_nodes).astype(np.float64)
    return total


def degree(graph: Graph, threshold: float = 0.0) -> np.ndarray:
    """Each node's number of neighbours by edges of at least this weight."""
    seen = graph.weights >= threshold
    return np.bincount(np.concatenate([graph.rows[seen], graph.cols[seen]]), minlength=graph.n_nodes)


def first_threshold(run: RunData) -> float:
    """The weight from which on graphs are shown at first: where silos have as many neighbours as was asked for.

    Graphs that are the strongest edges of an optimum are shown whole. Elsewhere, as in a federation, coupling adds weak
    edges to a silo's graph beyond the degree asked for; drawn from the start, they would hide the others. It is rounded
    down to two digits, as a person would choose it.
    """
    if run.result.optimum_degree is not None:
        return 0.0
    graphs = list(run.graphs.values()) or [run.main]
    wanted = run.result.degree_asked or USUAL_DEGREE
    weights = np.sort(np.concatenate([graph.weights for graph in graphs]))[::-1]
    shown = round(wanted * run.main.n_nodes * len(graphs) / 2)
    if shown >= weights.size or (not run.silos and run.result.degree_asked):
        return 0.0
    bar = float(weights[shown - 1]) if shown else float(weights[0])
    digit = 10.0 ** (math.floor(math.log10(bar)) - 1)
    return float(f"{math.floor(bar / digit) * digit:.1e}")
