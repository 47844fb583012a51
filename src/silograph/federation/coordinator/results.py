"""What a federation's run ends with: the same folder that `silograph learn` writes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from silograph._util.files import writing_folder
from silograph.engine.study import StudyResult
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.study_file import StudyFile
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.runs.folder import fill, finite, result_record
from silograph.runs.record import versions

FORMAT = 1


def write_results(
    run: CoordinatorRun, study: StudyFile, learned: StudyResult, pairs: Pairs, history: History, *, seconds: float
) -> None:
    """Write graphs, history and record, whole or not at all."""
    consensus = graph_on(pairs, learned.consensus, run.nodes)
    graphs = {name: graph_on(pairs, w, run.nodes) for name, w in learned.graphs.items()}
    record = _record(run, study, learned, consensus, graphs, history, seconds=seconds)
    with writing_folder(run.results, replace=True) as inside:
        fill(inside, consensus, graphs, learned.history, record)


def _record(
    run: CoordinatorRun,
    study: StudyFile,
    learned: StudyResult,
    consensus: Graph,
    graphs: dict[str, Graph],
    history: History,
    *,
    seconds: float,
) -> dict[str, Any]:
    rounds, events = history.rounds(), history.events()
    return {
        "format": FORMAT,
        "kind": "silos",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "silos": [_silo(site, learned, graphs.get(site), len(run.nodes)) for site in run.sites],
        "resumed": any(event.kind == "resumed" for event in events),
        "parameters": study.settings.parameters | {"standardize": study.standardize},
        "result": result_record(learned, consensus, seconds=seconds),
        "federation": {
            "run": run.name,
            "study": study.name,
            "study_sha256": study.sha256,
            "policy": asdict(study.policy),
            "left_out": dict(run.left_out),
            "attempts": sum(event.kind in ("started", "resumed") for event in events),
            "rejected_answers": sum(event.kind == "rejected" and event.file is not None for event in events),
            "bytes_down": sum(one.bytes_down for one in rounds),
            "bytes_up": sum(one.bytes_up for one in rounds),
        },
        "versions": versions(),
    }


def _silo(site: str, learned: StudyResult, graph: Graph | None, n_nodes: int) -> dict[str, Any]:
    told = learned.reported.get(site, {})
    edges = finite(told.get("edges")) if graph is None else graph.n_edges
    samples = finite(told.get("samples"))
    return {
        "name": site,
        "n_samples": None if samples is None else int(samples),
        "n_nodes": n_nodes,
        "edges": None if edges is None else int(edges),
        "mean_degree": None if edges is None else finite(2 * edges / n_nodes),
        "contribution": finite(told.get("contribution")),
        "is_consensus": told.get("distance") == 0,
        "graph_shared": graph is not None,
    }
