"""A newcomer: one table beside the consensus of a finished run, which stays as it is."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.files import sha256_of
from silograph.analysis.tables import doubts_about_tables, facts_of
from silograph.data.alignment import order_of
from silograph.data.costs import TableCosts, TableOptions, read_costs
from silograph.data.folders import FoundTable, find_tables
from silograph.errors import CheckpointError, GraphError, ParameterError
from silograph.graph.graph import Graph, graph_on
from silograph.protocol.method import report_on
from silograph.protocol.silo import Silo
from silograph.runs.consensus import ConsensusRecord, FixedConsensus, read_fixed
from silograph.runs.layout import RunLayout
from silograph.runs.placing import Placed, place, says_of
from silograph.runs.reader import RunData, finished_layout, read_run
from silograph.runs.reading import OnProgress, source_of
from silograph.runs.record import NewcomerRecord, ResultRecord, RunRecord
from silograph.runs.results import nodes_of, silo_record
from silograph.runs.writer import begin_run, finish_run

OF_THE_TABLE = frozenset({"drop", "key", "header", "keep_rows", "missing"})  # what a newcomer's people may say of it
TOL = 1e-8  # relative gap that a newcomer's own graph is held to
MEMBER = "This table is {}'s, which made the consensus: silos that made it lie nearer to it than newcomers."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerRequest:
    """A table, the run whose consensus it is learned beside, and how to read it."""

    table: FoundTable
    consensus: Path
    given: Mapping[str, Any]

    def as_data(self) -> dict[str, Any]:
        """As plain data, for a resumption from anywhere."""
        return {
            "newcomer": [str(self.table.path.absolute()), str(self.consensus.absolute())],
            "given": {name: list(value) if isinstance(value, tuple) else value for name, value in self.given.items()},
            "sha256": sha256_of(self.table.path),
        }


def make_newcomer(places: list[Path], consensus: Path, given: Mapping[str, Any]) -> NewcomerRequest:
    """The request; raises for what the consensus' run has decided, or for more than one table."""
    if not places:
        raise ParameterError("consensus: a newcomer is one table of signals. Give its path.")
    found = find_tables(places)
    if len(found) != 1:
        raise ParameterError(f"consensus: newcomers are looked at one by one. Give one table, not {len(found)}.")
    for name in given:
        if name not in OF_THE_TABLE:
            raise ParameterError(
                f"{name}: how a newcomer is learned was decided in the run of the consensus. Leave it out; of the "
                f"table you may say {', '.join(sorted(OF_THE_TABLE))}."
            )
    table = replace(found[0], name=found[0].silo.replace("/", "_"), site=None)
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    if isinstance(plain.get("drop"), str):
        plain["drop"] = [plain["drop"]]
    return NewcomerRequest(table=table, consensus=consensus, given=plain)


def resume_newcomer(folder: Path, on_progress: OnProgress) -> RunData:
    """Finish what was killed while it was written."""
    data = RunLayout(folder).read_request()
    try:
        (table, consensus), given, known = data["newcomer"], data["given"], data["sha256"]
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{folder}: its request is damaged ({error}). Start the run anew.") from error
    request = make_newcomer([Path(table)], Path(consensus), given)
    if sha256_of(request.table.path) != known:
        raise CheckpointError(f"{table}: has changed since the run began. Bring the old file back, or start a new run.")
    return learn_newcomer(request, folder, on_progress, resumed=True)


def learn_newcomer(
    request: NewcomerRequest, out: Path | None, on_progress: OnProgress, *, resumed: bool = False
) -> RunData:
    """Read, place and write; nothing is written unless all went well."""
    started = time.perf_counter()
    run, fixed = read_run(request.consensus), read_consensus(request.consensus)
    silo, read = _read(request, fixed, on_progress)
    on_progress(f"Placing {silo.name} beside the consensus of {len(fixed.record.silos)} silos", None)
    placed = place(silo, fixed)
    made = _run(request, run, fixed, silo, read, placed)
    seconds = round(time.perf_counter() - started, 4)
    record = replace(made.record, resumed=resumed, result=replace(made.record.result, seconds=seconds))
    made = replace(made, record=record, folder=out)
    if out is not None:
        if not resumed:
            begin_run(out, request.as_data())
        finish_run(out, made)
    return made


def read_consensus(folder: Path) -> FixedConsensus:
    """What a finished run left for newcomers; raises, saying why, where there is nothing."""
    layout = finished_layout(folder)
    run = read_run(folder)
    if not run.silos:
        raise GraphError(f"{folder}: is the run of one table, which has no consensus. Give a run over several silos.")
    if run.record.newcomer is not None:
        told = run.record.newcomer.consensus
        raise GraphError(f"{folder}: is a newcomer's run. Give the run of the consensus, here {told}.")
    if not layout.fixed.is_file():
        why = "its rows were bounded for noise" if run.record.privacy else f"method {run.parameters['method']}"
        raise GraphError(
            f"{folder}: has no {layout.fixed.name} ({why}). Newcomers can be learned beside several silos' consensus "
            "by an exact method in which silos have graphs of their own, without epsilon."
        )
    return read_fixed(layout)


def _read(request: NewcomerRequest, fixed: FixedConsensus, on_progress: OnProgress) -> tuple[Silo, TableCosts]:
    told, table = fixed.record, request.table
    shared = {"standardize": told.standardize, "transform": told.transform, "precomputed": told.precomputed}
    given = dict(request.given) | ({"drop": tuple(request.given["drop"])} if "drop" in request.given else {})
    options = TableOptions(**{"missing": told.missing, **shared, **given})
    signals = options.open(table.path)
    source, allowed = table.path.name, told.missing_nodes
    order = order_of(
        told.nodes, signals.names, first="the consensus", silo=source, missing_nodes=allowed, file=True, newcomer=True
    )
    read = read_costs(
        table.path,
        signals,
        fixed.pairs,
        options,
        order=order,
        missing_nodes=allowed,
        blocks=told.rows is not None or told.chooses_pull,
        on_progress=lambda part: on_progress(f"Reading {table.path.name}", part),
    )
    silo = Silo.on(
        fixed.pairs, read.present, name=table.name, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks
    )
    return silo, read


def _run(
    request: NewcomerRequest, run: RunData, fixed: FixedConsensus, silo: Silo, read: TableCosts, placed: Placed
) -> RunData:
    told, name, sha = fixed.record, silo.name, sha256_of(request.table.path)
    graph = graph_on(fixed.pairs, silo.spread(placed.shown), told.nodes, silo.nodes)
    others = [run.main, *run.graphs.values()] if all(one.graph_shared for one in run.silos) else None
    alone = None if others is None else _without(graph, others)
    facts = facts_of(name, len(told.nodes), read, sha256=sha)
    doubts = doubts_about_tables([facts], standardize=told.standardize or told.transform == "ranks")
    members = [one.name for one in run.silos if one.sha256 == sha]
    warnings = {doubt.kind: doubt.text for doubt in doubts} | ({"member": MEMBER.format(members[0])} if members else {})
    reported = report_on(silo, placed.own.w, silo.take(fixed.weights)) | {"gap": placed.gap}
    if placed.pull is not None:
        reported["pull"] = placed.pull
    record = RunRecord(
        kind="silos",
        silos=(
            silo_record(
                name, graph, reported, **{**nodes_of(graph, told.nodes), **source_of(request.table, read, sha)}
            ),
        ),
        resumed=False,
        parameters={"method": told.method, "tol": TOL, **_parameters(told), **request.given},
        about=run.record.about,
        result=_result(told, run.main, graph, placed),
        warnings=warnings,
        newcomer=_record(request, told, fixed.sha256, placed, _without(graph, [run.main]), alone),
    )
    return RunData(folder=None, record=record, main=run.main, graphs={name: graph}, history=(), alone=alone)


def _parameters(told: ConsensusRecord) -> dict[str, Any]:
    names = {field.name for field in fields(TableOptions)} | {"zeta", "missing_nodes"}
    return {name: value for name, value in asdict(told).items() if name in names}


def _result(told: ConsensusRecord, consensus: Graph, graph: Graph, placed: Placed) -> ResultRecord:
    return ResultRecord(
        nodes=consensus.n_nodes,
        edges=consensus.n_edges,
        mean_degree=graph.mean_degree,
        degree_asked=told.degree,
        degree_reached=True,
        optimum_degree=None if told.degree is None else 2 * int(np.count_nonzero(placed.own.w)) / graph.n_nodes,
        alpha=told.alpha,
        beta=told.beta,
        rho=told.rho,
        cost_unit=told.cost_unit,
        objective=None,
        relative_gap=placed.gap,
        certified=True,
        converged=placed.gap <= TOL,
        seconds=0.0,
    )


def _record(
    request: NewcomerRequest, told: ConsensusRecord, sha256: str, placed: Placed, own: Graph, alone: Graph | None
) -> NewcomerRecord:
    found = placed.comparison
    return NewcomerRecord(
        consensus=str(request.consensus),
        sha256=sha256,
        silos=told.silos,
        distance=placed.distance,
        distances=tuple(sorted(one.distance for one in told.left_out)),
        farther_than=found.farther_than,
        p=found.p,
        usual=found.usual,
        own_edges=own.n_edges,
        alone_edges=None if alone is None else alone.n_edges,
        says=says_of(told, placed),
    )


def _without(graph: Graph, others: list[Graph]) -> Graph:
    """The graph's edges that none of the others has."""
    known = {frozenset(edge[:2]) for other in others for edge in other.edges()}
    kept = np.array([frozenset(edge[:2]) not in known for edge in graph.edges()], dtype=np.bool_)
    return Graph(graph.names, graph.rows[kept], graph.cols[kept], graph.weights[kept])
