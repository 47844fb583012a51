"""Runs' folders made at once, without learning: graphs drawn at random, a part of each shared, written as a run is."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from silograph.analysis.false_edges import bound_false_edges
from silograph.analysis.stability import GraphStability, StudyStability
from silograph.engine.study import TriedCoupling
from silograph.graph.graph import Graph
from silograph.graph.pairs import Pairs, condensed_index
from silograph.runs.reader import RunData
from silograph.runs.record import FederationRecord, ResultRecord, RunRecord, TimesRecord
from silograph.runs.results import silo_record, with_stability
from silograph.runs.stability import RunStability
from silograph.runs.writer import write_results

CREATED = "2026-01-01T00:00:00+00:00"
SOURCE = {"sha256": "0" * 64, "mean_squared_difference": 1.0}
RESULT = {
    "alpha": 0.5, "beta": 0.25, "objective": 12.5, "relative_gap": 4.2e-7, "certified": True, "converged": True,
    "degree_asked": 4.0, "degree_reached": True, "seconds": 0.5,
}  # fmt: skip
CHOSEN = {
    "optimum_degree": 9.3,
    "coupling_curve": tuple(TriedCoupling(coupling=c, loss=5 + (c - 0.7) ** 2) for c in (0.0, 0.2, 0.35, 0.7, 1.2)),
}


def ring(names, rng, n_more):
    """A ring, so that all are connected, and some edges within groups of nearby nodes."""
    n_nodes = len(names)
    rows = np.concatenate([np.arange(n_nodes), rng.integers(0, n_nodes, n_more)])
    cols = np.concatenate([(np.arange(n_nodes) + 1) % n_nodes, (rows[n_nodes:] + rng.integers(2, 6, n_more)) % n_nodes])
    low, high = np.minimum(rows, cols), np.maximum(rows, cols)
    pairs = np.unique(low * n_nodes + high)
    pairs = pairs[pairs // n_nodes != pairs % n_nodes]
    return Graph.from_edges(names, pairs // n_nodes, pairs % n_nodes, rng.gamma(1.0, 0.1, pairs.size) + 1e-6)


def with_more(graph, rng, n_more):
    """The same edges with other weights, and a few more."""
    n_nodes = graph.n_nodes
    known = set((graph.rows.astype(int) * n_nodes + graph.cols).tolist())
    tried = {int(min(i, j) * n_nodes + max(i, j)) for i, j in rng.integers(0, n_nodes, (n_more, 2)) if i != j}
    new = np.array(sorted(tried - known), dtype=int)
    weights = graph.weights * rng.uniform(0.5, 1.5, graph.n_edges)
    return Graph.from_edges(
        graph.names,
        np.concatenate([graph.rows, new // n_nodes]),
        np.concatenate([graph.cols, new % n_nodes]),
        np.concatenate([weights, rng.gamma(1.0, 0.03, new.size) + 1e-7]),
    )


def without(graph, names):
    """The graph on its other nodes."""
    kept = [node for node, name in enumerate(graph.names) if name not in names]
    edges = np.isin(graph.rows, kept) & np.isin(graph.cols, kept)
    ends = (np.searchsorted(kept, end[edges]) for end in (graph.rows, graph.cols))
    return Graph.from_edges([graph.names[node] for node in kept], *ends, graph.weights[edges])


def study_run(
    folder: Path,
    *,
    n_nodes=12,
    silos=("oslo", "lima", "kyoto"),
    names=None,
    seed=0,
    more=2,
    change=None,
    absent=None,
    halves=0,
):
    """A finished run over several silos.

    `change` may alter its record, as JSON holds it, before it is written; `absent` are nodes by silo that it lacks.
    With `halves`, so many half-samples tell of stability, the coupling was chosen, and graphs are strongest edges.
    """
    rng = np.random.default_rng(seed)
    names = tuple(names or (f"node{node}" for node in range(n_nodes)))
    consensus = ring(names, rng, more * len(names))
    graphs = {name: with_more(consensus, rng, more * len(names)) for name in silos}
    graphs |= {name: without(graphs[name], lacking) for name, lacking in (absent or {}).items()}
    each = tuple(
        replace(
            silo_record(
                name, graph, {"contribution": 2.0 + k}, n_nodes=graph.n_nodes, n_samples=100 + k, file=f"{name}.csv",
                **SOURCE,
            ),
            missing_nodes=tuple((absent or {}).get(name, ())),
        )
        for k, (name, graph) in enumerate(graphs.items())
    )  # fmt: skip
    result = ResultRecord(
        **RESULT, nodes=len(names), edges=consensus.n_edges, mean_degree=4.0, coupling=0.5, sparsity=0.4, nu=3.0,
        lam=1.0, rho=3.0, rounds=8, setup_rounds=2, **(CHOSEN if halves else {}),
    )  # fmt: skip
    parameters = {"method": "exact", "degree": 4.0, "tol": 1e-6}
    record = RunRecord(
        kind="silos", created=CREATED, silos=each, resumed=False, parameters=parameters, result=result, warnings={}
    )
    history = tuple(
        {"round": k, "objective": 12.5 + 10.0**-k, "gap": math.inf if k == 1 else 10.0 ** (1 - k)} for k in range(1, 9)
    )
    run = RunData(folder=folder, record=record, main=consensus, graphs=graphs, history=history)
    if halves:
        run = with_stability(run, made_stability(run, halves, rng), threshold=0.9)
    data = json.loads(run.record.to_json())
    if change is not None:
        change(data)
    shared = {silo["name"] for silo in data["silos"] if silo["graph_shared"]}
    kept = {name: graph for name, graph in graphs.items() if name in shared}
    folder.mkdir(parents=True)
    write_results(folder, replace(run, graphs=kept))
    (folder / "run.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def made_stability(run, n_halves, rng):
    """Stability drawn at random: what is an edge is found in some half-samples, what is none in none."""
    pairs = Pairs.all(len(run.names))

    def one(graph):
        number = np.array([run.names.index(name) for name in graph.names])
        code = condensed_index(len(run.names), number[graph.rows], number[graph.cols])
        frequency, mean = np.zeros(pairs.size), np.zeros(pairs.size)
        frequency[code] = np.minimum(rng.integers(n_halves // 2, 2 * n_halves, code.size), n_halves) / n_halves
        mean[code] = graph.weights * frequency[code]
        strength = pairs.degrees(mean)
        return GraphStability(
            frequency=frequency, mean=mean, low=0.5 * mean, high=1.5 * mean, score=mean, strength_low=strength,
            strength_high=strength, false_edges=bound_false_edges(frequency, n_halves=n_halves),
        )  # fmt: skip

    silos = {name: one(graph) for name, graph in run.graphs.items()}
    study = StudyStability(n_halves=n_halves, of="rows", consensus=one(run.main), silos=silos)
    return RunStability(names=run.names, pairs=pairs, study=study)


def table_run(folder: Path, *, n_nodes=12, seed=0, halves=0):
    """A finished run over one table."""
    rng = np.random.default_rng(seed)
    graph = ring([f"node{node}" for node in range(n_nodes)], rng, 2 * n_nodes)
    source = silo_record("brain", graph, {}, n_nodes=n_nodes, n_samples=8, file="brain.csv", **SOURCE)
    result = ResultRecord(
        **RESULT, nodes=n_nodes, edges=graph.n_edges, mean_degree=graph.mean_degree, iterations=4, solves=2
    )
    parameters = {"degree": 4.0, "tol": 1e-8, "solver": "newton"}
    record = RunRecord(
        kind="table", created=CREATED, silos=(source,), resumed=False, parameters=parameters, result=result, warnings={}
    )
    run = RunData(folder=folder, record=record, main=graph, graphs={}, history=())
    folder.mkdir(parents=True)
    write_results(folder, with_stability(run, made_stability(run, halves, rng), threshold=0.9) if halves else run)
    return folder


def federated(data, **changes):
    """Make the record of a run, as JSON holds it, that of a federation."""
    spent = TimesRecord(computing=12.0, starting=9.0, approval=3600.0, sites=0.0, server=0.0, turn=0.0, total=3621.0)
    about = FederationRecord(
        run="first", study="brains", study_sha256="0" * 64, policy={}, left_out={}, attempts=1, times=spent,
        rejected_answers=0, bytes_down=0, bytes_up=0,
    )  # fmt: skip
    data["federation"] = asdict(about) | changes
