"""The command `silograph learn` for one table: from a file to a run's folder."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from silograph.cli.progress import doubts, progress_bar
from silograph.data.costs import TableOptions, read_costs
from silograph.errors import ParameterError
from silograph.local.learn import LearnResult, Settings, graph_of, learn
from silograph.runs.record import GRAPH_FILES, RECORD, Input, check_output, run_record, sha256_of, write_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    signals: Path
    settings: Settings
    tables: TableOptions
    out: Path | None
    force: bool


def run(request: Request, *, show_progress: bool) -> tuple[LearnResult, dict[str, Any]]:
    """Read, learn and write; the record is that of run.json."""
    started = time.perf_counter()
    check_force(request.out, request.force)
    options = request.tables
    signals = options.open(request.signals)
    pairs = options.pairs(signals.names, zeta=request.settings.zeta)
    # The checksum reads the file once more; on a thread of its own that costs no time
    with ThreadPoolExecutor(1) as pool, progress_bar(show_progress) as progress:
        checksum = pool.submit(sha256_of, request.signals)
        task = progress.add_task(f"Reading {request.signals.name}", total=1.0)
        read = read_costs(
            request.signals, signals, pairs, options, on_progress=lambda part: progress.update(task, completed=part)
        )
        progress.update(task, completed=1.0)
        task = progress.add_task(f"Learning {signals.n_nodes} nodes", total=None)
        learned = learn(read.cost, pairs, request.settings)
        graph = graph_of(learned, signals.names)
        record = run_record(
            learned,
            graph,
            request.settings,
            Input(
                file=str(request.signals),
                sha256=checksum.result(),
                n_samples=read.n_samples,
                n_nodes=signals.n_nodes,
                row_counter=read.row_counter,
            ),
            options=options_record(options),
            seconds=time.perf_counter() - started,
        )
        if request.out is not None:
            write_run(request.out, graph, record, force=request.force)
    return learned, record


def check_force(out: Path | None, force: bool) -> None:
    """Raise, before any work is done, when results could not be written."""
    if force and out is None:
        raise ParameterError("--force: there is nothing to replace without --out. Name the folder, or leave it out.")
    if out is not None:
        check_output(out, force=force)


def options_record(options: TableOptions) -> dict[str, Any]:
    """How tables were read, as plain data."""
    return {
        "standardize": options.standardize,
        "precomputed": options.precomputed,
        "drop": list(options.drop),
        "key": options.key,
        "header": options.header,
        "allow": None if options.allow is None else str(options.allow),
        "forbid": None if options.forbid is None else str(options.forbid),
    }


def summary(request: Request, record: dict[str, Any]) -> Table:
    """The table that ends a run."""
    result, source = record["result"], record["input"]
    table = Table(title=Text(f"Graph of {request.signals.name}"), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    samples = "precomputed distances" if source["n_samples"] is None else f"{source['n_samples']} samples"
    aim = result["degree_asked"]
    asked = "" if aim is None else f" ({'default' if request.settings.degree is None else 'asked'}: {aim:g})"
    rows = {
        "nodes": f"{result['nodes']} ({samples})",
        "edges": str(result["edges"]),
        "mean degree": f"{result['mean_degree']:.2f}{asked}",
        "parameters": f"alpha = {result['alpha']:.4g}, beta = {result['beta']:.4g}",
        "certified gap": f"{result['relative_gap']:.1e}" + ("" if result["converged"] else " (tolerance not met)"),
        "time": f"{result['seconds']:.2f} s ({result['solves']} solve{'' if result['solves'] == 1 else 's'})",
    }
    for name, value in rows.items():
        table.add_row(name, Text(value))
    if request.out is not None:
        table.add_row("written", Text(f"{request.out}/ ({', '.join((*GRAPH_FILES, RECORD))})"))
    return table


def advice(request: Request, record: dict[str, Any]) -> list[str]:
    """What a user should look at twice."""
    source = record["input"]
    notes = doubts(request.signals.name, source["n_nodes"], source["n_samples"], source["row_counter"])
    if request.out is None:
        notes.append("Nothing was written; keep the graph with --out FOLDER.")
    return notes
