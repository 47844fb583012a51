"""The command `silograph learn` for several tables: each a silo, learned together; and its resumption."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from silograph.cli.one_table import check_force, options_record
from silograph.cli.progress import doubts, progress_bar
from silograph.data.alignment import check_silo_names, order_of
from silograph.data.costs import TableOptions, read_costs
from silograph.engine.study import StudyResult, learn_silos
from silograph.errors import CheckpointError, OutputError, SilographError, SilosError
from silograph.graph.graph import Graph, graph_on
from silograph.methods.common.settings import StudySettings
from silograph.protocol.method import RoundRecord
from silograph.protocol.silo import Silo
from silograph.runs import folder as study_runs
from silograph.runs.record import CHECKPOINT, GRAPH_FILES, RECORD, Input, sha256_of, versions

FORMAT = 1
UNLIKE = 30.0  # ratio of silos' mean squared differences that is worth a word
BARS = 10  # silos beyond which the summary shows only the first and the last


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRequest:
    """What the user asked for."""

    signals: tuple[Path, ...]
    settings: StudySettings
    tables: TableOptions
    out: Path | None
    force: bool
    resumed: bool = False
    checksums: tuple[str, ...] = ()  # of the tables, when resumed

    def as_data(self, checksums: Sequence[str]) -> dict[str, Any]:
        """The request as plain data, for a later resumption from anywhere."""
        options = options_record(self.tables)
        for name in ("allow", "forbid"):
            options[name] = None if options[name] is None else str(Path(options[name]).absolute())
        return {
            "format": FORMAT,
            "signals": [str(path.absolute()) for path in self.signals],
            "sha256": list(checksums),
            "settings": asdict(self.settings),
            "tables": options,
        }


def resumed(out: Path) -> StudyRequest:
    """The request of an unfinished run."""
    data = study_runs.request_of(out)
    known = {field.name for field in fields(StudySettings)}
    if data.get("format") != FORMAT or set(data["settings"]) != known:
        raise CheckpointError(f"{out}: made by another version of silograph. Start the run anew.")
    options = data["tables"]
    tables = TableOptions(
        **options
        | {
            "drop": tuple(options["drop"]),
            "allow": None if options["allow"] is None else Path(options["allow"]),
            "forbid": None if options["forbid"] is None else Path(options["forbid"]),
        }
    )
    return StudyRequest(
        signals=tuple(Path(path) for path in data["signals"]),
        settings=StudySettings(**data["settings"]),
        tables=tables,
        out=out,
        force=True,
        resumed=True,
        checksums=tuple(data["sha256"]),
    )


def silo_names(paths: Sequence[Path]) -> list[str]:
    """The files' names without suffix; where two agree, with their folder's name before."""
    for path in paths:
        if [other.absolute() for other in paths].count(path.absolute()) > 1:
            raise SilosError(f"{path}: was given twice. Give each silo's table once.")
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.absolute().parent.name}_{path.stem}" for path in paths]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SilosError(f"Two tables would both be called {twice!r}. Give each silo's file a name of its own.")
    check_silo_names(names)
    return names


def run(request: StudyRequest, *, show_progress: bool) -> tuple[StudyResult, dict[str, Any]]:
    """Read, learn and write; the record is that of run.json."""
    started = time.perf_counter()
    if not request.resumed:
        check_force(request.out, request.force)
    names = silo_names(request.signals)
    with progress_bar(show_progress) as progress:
        silos, inputs, nodes = _read(request, names, progress)
        checkpoint = None
        if request.out is not None:
            if request.resumed:
                _check_same(request, inputs)
                checkpoint = request.out / CHECKPOINT
            else:
                checkpoint = study_runs.begin(request.out, request.as_data([source.sha256 for source in inputs]))
        task = progress.add_task(f"Learning {len(silos)} silos", total=None)

        def tell(stage: str, record: RoundRecord) -> None:
            gap = record.get("gap", np.nan)
            so_far = f", certified gap {gap:.1e}" if np.isfinite(gap) else ""
            what = "Set-up" if stage == "setup" else f"Round {record['round']}"
            progress.update(task, description=f"{what} of {len(silos)} silos{so_far}")

        try:
            study = learn_silos(silos, request.settings, checkpoint=checkpoint, on_round=tell)
        except SilographError as error:
            # It would fail again; only a full disk may be emptied
            if request.out is not None and not request.resumed and not isinstance(error, OutputError):
                study_runs.abandon(request.out)
            raise
        pairs = silos[0].pairs
        graphs = {name: graph_on(pairs, w, nodes) for name, w in study.graphs.items()}
        consensus = graph_on(pairs, study.consensus, nodes)
        record = _record(request, study, consensus, graphs, inputs, silos, seconds=time.perf_counter() - started)
        if request.out is not None:
            study_runs.finish(request.out, consensus, graphs, study.history, record)
    return study, record


def _read(
    request: StudyRequest, names: Sequence[str], progress: Progress
) -> tuple[list[Silo], list[Input], tuple[str, ...]]:
    """Every table as a silo, its nodes in the order of the first."""
    options = request.tables
    tables = options.open_all(request.signals)
    first = tables[0]
    pairs = options.pairs(first.names, zeta=request.settings.zeta_used)
    orders = [
        order_of(first.names, table.names, first=request.signals[0].name, silo=path.name)
        for path, table in zip(request.signals, tables, strict=True)
    ]
    silos, inputs = [], []
    with ThreadPoolExecutor(1) as pool:  # checksums read the files once more, beside the reading
        checksums = [pool.submit(sha256_of, path) for path in request.signals]
        for name, path, table, order, checksum in zip(names, request.signals, tables, orders, checksums, strict=True):
            task = progress.add_task(f"Reading {path.name}", total=1.0)
            read = read_costs(
                path,
                table,
                pairs,
                options,
                order=order,
                on_progress=lambda part, task=task: progress.update(task, completed=part),  # type: ignore[misc]
            )
            progress.update(task, completed=1.0, visible=False)
            silos.append(Silo(name=name, pairs=pairs, cost=read.cost, n_samples=read.n_samples))
            inputs.append(
                Input(
                    file=str(path),
                    sha256=checksum.result(),
                    n_samples=read.n_samples,
                    n_nodes=len(first.names),
                    row_counter=read.row_counter,
                )
            )
    return silos, inputs, tuple(first.names)


def _check_same(request: StudyRequest, inputs: Sequence[Input]) -> None:
    for source, checksum in zip(inputs, request.checksums, strict=True):
        if source.sha256 != checksum:
            raise CheckpointError(
                f"{source.file}: has changed since the run began, so the run cannot go on. Bring the old file back, or "
                "start a new run."
            )


def _record(
    request: StudyRequest,
    study: StudyResult,
    consensus: Graph,
    graphs: dict[str, Graph],
    inputs: Sequence[Input],
    silos: Sequence[Silo],
    *,
    seconds: float,
) -> dict[str, Any]:
    """Everything needed to trust the run and to repeat it, as plain data."""
    told = study.reported
    each = [
        {
            "name": name,
            **asdict(source),
            "edges": graph.n_edges,
            "mean_degree": graph.mean_degree,
            "mean_squared_difference": float(silo.cost.mean()),
            "contribution": study_runs.finite(told.get(name, {}).get("contribution")),
            "is_consensus": told.get(name, {}).get("distance") == 0,
        }
        for (name, graph), source, silo in zip(graphs.items(), inputs, silos, strict=True)
    ]
    return {
        "format": FORMAT,
        "kind": "silos",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "silos": each,
        "resumed": request.resumed,
        "parameters": request.settings.parameters | options_record(request.tables),
        "result": study_runs.result_record(study, consensus, seconds=seconds),
        "versions": versions(),
    }


def summary(record: dict[str, Any], out: Path | None) -> Group:
    """The table that ends a run, and what is to be said of all silos together."""
    result = record["result"]
    n_silos = len(record["silos"])
    title = Text(
        f"{n_silos} silo{'' if n_silos == 1 else 's'}, {result['nodes']} nodes, method {record['parameters']['method']}"
    )
    table = Table(title=title, title_justify="left")
    for name in ("silo", "samples", "edges", "degree", "contribution"):
        table.add_column(name, justify="left" if name == "silo" else "right")
    shown = record["silos"]
    if len(shown) > 2 * BARS:
        shown = shown[:BARS] + shown[-BARS:]
    for number, silo in enumerate(shown):
        if len(record["silos"]) > 2 * BARS and number == BARS:
            table.add_row("…", "", "", "", "")
        table.add_row(*_silo_row(silo))
    table.add_section()
    degree = 2 * result["consensus_edges"] / result["nodes"]
    table.add_row("consensus", "", str(result["consensus_edges"]), f"{degree:.2f}", "")
    return Group(table, *(Text(fact) for fact in _facts(result, out)))


def _silo_row(silo: dict[str, Any]) -> list[Text]:
    contribution = silo["contribution"]
    weight = "fused" if silo["is_consensus"] else "not told" if contribution is None else f"{contribution:.3g}"
    samples = "–" if silo["n_samples"] is None else str(silo["n_samples"])
    edges = "not told" if silo["edges"] is None else str(silo["edges"])
    degree = "" if silo["mean_degree"] is None else f"{silo['mean_degree']:.2f}"
    return [Text(part) for part in (silo["name"], samples, edges, degree, weight)]


def _facts(result: dict[str, Any], out: Path | None) -> list[str]:
    parameters = f"parameters: alpha = {result['alpha']:.4g}, beta = {result['beta']:.4g}"
    if result["rho"] > 0:
        nu = "inf" if result["nu"] is None else f"{result['nu']:.4g}"
        parameters += f", nu = {nu}, lambda = {result['lam']:.4g}"
    gap = result["relative_gap"]
    certificate = "infinite" if gap is None else "below 1e-15" if gap < 1e-15 else f"{gap:.1e}"
    if result["converged"] is None:
        certificate = "none, as this method has none,"
    elif not result["converged"]:
        certificate += " (tolerance not met)"
    facts = [
        parameters,
        f"certified gap: {certificate} after {result['rounds']} rounds (and {result['setup_rounds']} of set-up)",
        f"time: {result['seconds']:.2f} s",
    ]
    if result["degree_alone"] is not None:
        alone = f"mean degree alone: {result['degree_alone']:.2f} (aim: {result['degree_asked']:g})"
        facts.insert(0, alone + ("; coupling adds weak edges, so rank edges by weight" if result["rho"] > 0 else ""))
    if out is not None:
        parts = f"{study_runs.CONSENSUS}/ and {study_runs.SILOS}/*/ ({', '.join(GRAPH_FILES)}), "
        facts.append(f"written: {out}/: {parts}{study_runs.HISTORY}, {RECORD}")
    return facts


def advice(request: StudyRequest, record: dict[str, Any]) -> list[str]:
    """What a user should look at twice."""
    notes = [
        note
        for silo in record["silos"]
        for note in doubts(silo["name"], silo["n_nodes"], silo["n_samples"], silo["row_counter"])
    ]
    sizes = {silo["name"]: silo["mean_squared_difference"] for silo in record["silos"]}
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[large] > UNLIKE * sizes[small]:
        notes.append(
            f"Squared differences in {large} are {sizes[large] / max(sizes[small], 1e-300):.3g} times those in "
            f"{small}. "
            "Are all tables in the same units? If not, convert them, or use --standardize."
        )
    n_nodes = record["result"]["nodes"]
    if record["result"]["consensus_edges"] in (0, n_nodes * (n_nodes - 1) // 2):
        notes.append("The consensus is empty or complete: another --coupling or --sparsity may tell more.")
    if request.out is None:
        notes.append("Nothing was written; keep the graphs with --out FOLDER.")
    return notes
