"""From what was learned to a run: named graphs, and the record of how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from silograph.engine import study as several
from silograph.engine.study import StudyResult
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.local import learn as one
from silograph.local.learn import LearnResult, Settings
from silograph.methods.settings import StudySettings
from silograph.runs.reader import RunData
from silograph.runs.record import FederationRecord, ResultRecord, RunRecord, SiloRecord, finite

Sources = Mapping[str, Mapping[str, Any]]  # silo → the fields of its record that tell what it was learned from


def table_run(
    learned: LearnResult,
    settings: Settings,
    nodes: Sequence[str],
    sources: Sources,
    *,
    folder: Path | None,
    options: Mapping[str, Any],
    resumed: bool,
    seconds: float,
) -> RunData:
    """The run over one table."""
    graph = one.graph_of(learned, nodes)
    warnings = {}
    if one.worth_telling(learned, settings):
        warnings["degree"] = one.degree_missed(learned)
    if not learned.solution.converged:
        warnings["convergence"] = one.not_converged(learned, settings)
    record = RunRecord(
        kind="table",
        silos=tuple(
            SiloRecord.describe(name, graph, {}, n_nodes=len(nodes), **source) for name, source in sources.items()
        ),
        resumed=resumed,
        parameters=asdict(settings) | dict(options),
        result=_table_result(learned, graph, seconds),
        warnings=warnings,
    )
    return RunData(folder=folder, record=record, main=graph, graphs={}, history=())


def study_run(
    learned: StudyResult,
    settings: StudySettings,
    pairs: Pairs,
    nodes: Sequence[str],
    sources: Sources,
    *,
    folder: Path | None,
    options: Mapping[str, Any],
    resumed: bool,
    seconds: float,
    federation: FederationRecord | None = None,
) -> RunData:
    """The run over several silos, here or at their sites."""
    consensus = graph_on(pairs, learned.consensus, nodes)
    graphs = {name: graph_on(pairs, learned.graphs[name], nodes) for name in sources if name in learned.graphs}
    told = {
        "degree": several.degree_missed(learned, settings),
        "convergence": several.not_converged(learned, settings),
    }
    record = RunRecord(
        kind="silos",
        silos=tuple(
            SiloRecord.describe(name, graphs.get(name), learned.reported.get(name, {}), n_nodes=len(nodes), **source)
            for name, source in sources.items()
        ),
        resumed=resumed,
        parameters=asdict(settings) | dict(options),
        result=_study_result(learned, consensus, seconds),
        warnings={about: text for about, text in told.items() if text is not None},
        federation=federation,
    )
    return RunData(folder=folder, record=record, main=consensus, graphs=graphs, history=learned.history)


def _table_result(learned: LearnResult, graph: Graph, seconds: float) -> ResultRecord:
    solution = learned.solution
    return ResultRecord(
        nodes=graph.n_nodes,
        edges=graph.n_edges,
        mean_degree=graph.mean_degree,
        degree_asked=learned.degree_asked,
        degree_reached=learned.degree_reached,
        alpha=learned.alpha,
        beta=learned.beta,
        objective=finite(solution.primal),
        relative_gap=finite(solution.relative_gap),
        certified=bool(np.isfinite(solution.relative_gap)),
        converged=solution.converged,
        iterations=solution.n_iter,
        solves=learned.n_solves,
        seconds=round(seconds, 4),
    )


def _study_result(learned: StudyResult, consensus: Graph, seconds: float) -> ResultRecord:
    return ResultRecord(
        nodes=consensus.n_nodes,
        edges=consensus.n_edges,
        mean_degree=finite(learned.degree),
        degree_asked=learned.degree_asked,
        degree_alone=learned.degree_alone,
        degree_reached=learned.degree_reached,
        alpha=learned.alpha,
        beta=learned.beta,
        coupling=learned.coupling,
        sparsity=learned.sparsity,
        nu=finite(learned.nu),
        lam=learned.lam,
        rho=learned.rho,
        objective=finite(learned.objective),
        relative_gap=finite(learned.gap),
        certified=bool(np.isfinite(learned.gap)),
        converged=None if np.isnan(learned.gap) else learned.converged,
        rounds=learned.n_rounds,
        setup_rounds=learned.n_setup_rounds,
        seconds=round(seconds, 4),
    )
