"""From what was learned to a run: named graphs, and the record of how they came about."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from silograph.analysis.doubts import Doubt, as_warnings
from silograph.analysis.graphs import doubts_about_study
from silograph.analysis.partial.judgement import Judgement
from silograph.engine import study as several
from silograph.engine.study import StudyResult
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.local import learn as one
from silograph.local.learn import LearnResult, Settings
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.privacy.statement import statement_of
from silograph.runs.reader import RunData
from silograph.runs.record import (
    FederationRecord,
    ResultRecord,
    RunRecord,
    SignedPair,
    SignsRecord,
    SiloRecord,
    StabilityRecord,
    finite,
)
from silograph.runs.signs import DIGITS, RunSigns
from silograph.runs.stability import RunStability, count_stable, quorum_graph

NOT_OF_CONSENSUS = "How stable the consensus is cannot be told from these silos' rows alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run's record tells beside what was learned."""

    nodes: Sequence[str]
    sources: Mapping[str, Mapping[str, Any]]  # silo → fields of its record: what it was learned from
    options: Mapping[str, Any]  # how tables were read
    folder: Path | None
    resumed: bool
    seconds: float
    federation: FederationRecord | None = None
    doubts: Sequence[Doubt] = ()  # about what was learned from


def table_run(learned: LearnResult, settings: Settings, context: RunContext) -> RunData:
    """The run over one table."""
    graph, solution = one.graph_of(learned, context.nodes), learned.solution
    warnings = {
        "degree": one.degree_warning(learned) if one.worth_telling(learned, settings) else None,
        "convergence": None if solution.converged else one.convergence_warning(learned, settings),
        **as_warnings(context.doubts),
    }
    result = _result(
        learned,
        graph,
        context,
        mean_degree=graph.mean_degree,
        objective=finite(solution.primal),
        relative_gap=finite(solution.relative_gap),
        converged=solution.converged,
        iterations=solution.n_iter,
        solves=learned.n_solves,
    )
    record = _record("table", dict.fromkeys(context.sources, graph), {}, asdict(settings), result, warnings, context)
    return RunData(folder=context.folder, record=record, main=graph, graphs={}, history=())


def study_run(learned: StudyResult, settings: StudySettings, pairs: Pairs, context: RunContext) -> RunData:
    """The run over several silos, here or at their sites."""
    consensus = graph_on(pairs, learned.consensus, context.nodes)
    kept = [name for name in context.sources if name in learned.graphs]
    graphs = {name: graph_on(pairs, learned.graphs[name], context.nodes, learned.nodes.get(name)) for name in kept}
    warnings = {
        "degree": several.degree_warning(learned, settings),
        "convergence": several.convergence_warning(learned, settings),
        "nodes": several.nodes_warning(learned, pairs),
        **as_warnings((*context.doubts, *doubts_about_study(learned, context.sources, graphs, consensus, pairs))),
    }
    result = _result(
        learned,
        consensus,
        context,
        mean_degree=finite(learned.degree),
        degree_alone=learned.degree_alone,
        degree_of=learned.degree_of,
        optimum_degree=None if learned.optimum is None else finite(learned.optimum.degree),
        coupling=learned.coupling,
        coupling_curve=learned.coupling_curve,
        sparsity=learned.sparsity,
        nu=finite(learned.nu),
        lam=learned.lam,
        rho=learned.rho,
        cost_unit=learned.cost_unit,
        objective=finite(learned.objective),
        relative_gap=finite(learned.gap),
        converged=None if np.isnan(learned.gap) else learned.converged,
        rounds=learned.n_rounds,
        setup_rounds=learned.n_setup_rounds,
    )
    about = spec_of(settings.method).about
    told = {name: {**learned.reported.get(name, {}), **learned.evidence.get(name, {})} for name in context.sources}
    record = _record("silos", graphs, told, settings.parameters, result, warnings, context, about)
    record = replace(record, privacy=statement_of(settings.privacy, graphs_inside=settings.graphs_inside))
    return RunData(folder=context.folder, record=record, main=consensus, graphs=graphs, history=learned.history)


def with_stability(
    run: RunData, stability: RunStability, *, threshold: float, graphs: bool = False, quorum: int | None = None
) -> RunData:
    """The run, and how stable its edges are; `graphs`: stable edges become graphs of their own."""
    known = {name: graph for name, graph in run.graphs.items() if stability.knows(name)}
    stable = {name: count_stable(stability, name, graph, threshold) for name, graph in known.items()}
    told = replace(
        stability_record(stability, None, run.main, threshold=threshold, graphs=graphs),
        quorum=quorum,
        quorum_edges=None if quorum is None else quorum_graph(stability, run.graphs, quorum, threshold)[0].n_edges,
    )
    silos = tuple(replace(silo, stable_edges=stable.get(silo.name)) for silo in run.record.silos)
    return replace(run, stability=stability, record=replace(run.record, stability=told, silos=silos))


def with_signs(run: RunData, signs: RunSigns, judgement: Judgement | None) -> RunData:
    """The run with its partial correlations and, if it was judged, whether the smooth model is wrong."""
    if judgement is None:
        return replace(run, signs=signs)
    pairs = signs.negative(run.main.n_edges) if judgement.is_wrong else []
    told = SignsRecord(
        gain=round(judgement.gain, DIGITS),
        error=round(judgement.error, DIGITS),
        blocks=judgement.n_blocks,
        smooth_is_wrong=judgement.is_wrong,
        says=judgement.says,
        negative=tuple(SignedPair(source=one, target=other, value=value) for one, other, value in pairs),
    )
    return replace(run, signs=signs, record=replace(run.record, signs=told))


def stability_record(
    stability: RunStability, silo: str | None, graph: Graph, *, threshold: float, graphs: bool
) -> StabilityRecord:
    """What half-samples tell of one graph: the consensus or the only one (None), or a silo's."""
    told = StabilityRecord(
        half_samples=stability.n_halves,
        of=stability.of,
        threshold=threshold,
        edges=graph.n_edges,
        stable_edges=None,
        bound=None,
        says=NOT_OF_CONSENSUS,
        graphs=graphs,
    )
    if not stability.knows(silo):
        return told
    n_stable, basis = count_stable(stability, silo, graph, threshold), stability.false_edges(silo)
    bound = basis.bound(threshold)
    return replace(
        told, stable_edges=n_stable, bound=bound if bound < n_stable else None, says=basis.says(threshold, n_stable)
    )


def silo_record(
    name: str, graph: Graph | None, reported: Mapping[str, float], *, n_nodes: int, **source: Any
) -> SiloRecord:
    """A silo by its graph, or, where it keeps that to itself, by what it reported."""
    edges = finite(reported.get("edges")) if graph is None else graph.n_edges
    return SiloRecord(
        name=name,
        n_nodes=n_nodes,
        edges=None if edges is None else int(edges),
        mean_degree=None if edges is None else finite(2 * edges / n_nodes),
        contribution=finite(reported.get("contribution")),
        is_consensus=reported.get("distance") == 0,
        graph_shared=graph is not None,
        pull=finite(reported.get("pull")),
        relative_gap=finite(reported.get("gap")),
        **source,
    )


def nodes_of(graph: Graph | None, nodes: Sequence[str]) -> dict[str, Any]:
    """How many nodes a silo has, and which it lacks, as far as its graph tells."""
    known = set(nodes if graph is None else graph.names)
    return {"n_nodes": len(known), "missing_nodes": tuple(name for name in nodes if name not in known)}


def _result(learned: LearnResult | StudyResult, graph: Graph, context: RunContext, **more: Any) -> ResultRecord:
    return ResultRecord(
        nodes=graph.n_nodes,
        edges=graph.n_edges,
        degree_asked=learned.degree_asked,
        degree_reached=learned.degree_reached,
        alpha=learned.alpha,
        beta=learned.beta,
        certified=more["relative_gap"] is not None,
        seconds=round(context.seconds, 4),
        **more,
    )


def _record(
    kind: Literal["table", "silos"],
    graphs: Mapping[str, Graph],
    reported: Mapping[str, Mapping[str, float]],
    parameters: Mapping[str, Any],
    result: ResultRecord,
    warnings: Mapping[str, str | None],
    context: RunContext,
    about: str = "",
) -> RunRecord:
    return RunRecord(
        kind=kind,
        silos=tuple(
            silo_record(
                name,
                graphs.get(name),
                reported.get(name, {}),
                **{**nodes_of(graphs.get(name), context.nodes), **source},
            )
            for name, source in context.sources.items()
        ),
        resumed=context.resumed,
        parameters={**parameters, **context.options},
        about=about,
        result=result,
        warnings={name: text for name, text in warnings.items() if text is not None},
        federation=context.federation,
    )
