"""The command `silograph learn`: from a file to a run's folder."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from silograph._types import Vector
from silograph.distances import costs_of_distances
from silograph.edges import Pairs, chosen_pairs
from silograph.errors import PairsError, ParameterError
from silograph.learning import Learned, Settings, graph_of, learn
from silograph.moments import Moments
from silograph.runs import GRAPH_FILES, RECORD, Input, check_output, run_record, sha256_of, write_run
from silograph.signals import Signals, open_signals

HEADER_WORDS = {"source", "target", "from", "to", "node1", "node2", "node_1", "node_2", "node a", "node b", "i", "j"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    signals: Path
    settings: Settings
    out: Path | None
    force: bool
    standardize: bool
    drop: tuple[str, ...]
    key: str | None
    header: bool | None
    precomputed: bool
    allow: Path | None
    forbid: Path | None


def run(request: Request, *, show_progress: bool) -> tuple[Learned, dict[str, Any]]:
    """Read, learn and write; the record is that of run.json."""
    started = time.perf_counter()
    if request.precomputed and request.standardize:
        raise ParameterError("--standardize: precomputed distances cannot be standardised. Leave it out.")
    if request.force and request.out is None:
        raise ParameterError("--force: there is nothing to replace without --out. Name the folder, or leave it out.")
    if request.out is not None:
        check_output(request.out, force=request.force)
    signals = open_signals(request.signals, drop=request.drop, key=request.key, header=request.header)
    listed = request.allow or request.forbid
    pairs = chosen_pairs(
        signals.names,
        allowed=None if request.allow is None else read_pairs(request.allow, signals.names),
        forbidden=None if request.forbid is None else read_pairs(request.forbid, signals.names),
        may_isolate=request.settings.zeta > 0,
        source=None if listed is None else listed.name,
    )
    # The checksum reads the file once more; on a thread of its own that costs no time
    with ThreadPoolExecutor(1) as pool, _progress(show_progress) as progress:
        checksum = pool.submit(sha256_of, request.signals)
        task = progress.add_task(f"Reading {request.signals.name}", total=1.0)
        read = _read_costs(request, signals, pairs, lambda part: progress.update(task, completed=part))
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
            options={
                "standardize": request.standardize,
                "precomputed": request.precomputed,
                "drop": list(request.drop),
                "key": request.key,
                "header": request.header,
                "allow": None if request.allow is None else str(request.allow),
                "forbid": None if request.forbid is None else str(request.forbid),
            },
            seconds=time.perf_counter() - started,
        )
        if request.out is not None:
            write_run(request.out, graph, record, force=request.force)
    return learned, record


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What reading a table yields."""

    cost: Vector
    n_samples: int | None
    row_counter: str | None  # a column that looks like row numbers


def _read_costs(request: Request, signals: Signals, pairs: Pairs, on_progress: Callable[[float], None]) -> _Read:
    if request.precomputed:
        matrix = np.vstack(list(signals.chunks(on_progress)))
        cost = costs_of_distances(matrix, pairs, signals.names, source=request.signals.name)
        return _Read(cost=cost, n_samples=None, row_counter=None)
    moments = Moments(pairs)
    row_counter = None
    for chunk in signals.chunks(on_progress):
        if moments.n_samples == 0 and chunk.shape[0] > 2 and (np.diff(chunk[:, 0]) == 1).all():
            row_counter = signals.names[0]
        moments.update(chunk)
    cost = moments.costs(standardize=request.standardize, names=signals.names, source=request.signals.name)
    return _Read(cost=cost, n_samples=moments.n_samples, row_counter=row_counter)


def read_pairs(path: Path, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of node names, two per row; a first row like "source,target" is a header, further columns are ignored."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise PairsError(f"{path}: the list of pairs cannot be read ({error}). Check the path.") from error
    if rows and {cell.casefold() for cell in rows[0][:2]} <= HEADER_WORDS and not set(rows[0][:2]) <= set(names):
        rows = rows[1:]
    for line, row in enumerate(rows, start=1):
        if len(row) < 2:
            raise PairsError(f"{path.name}, pair {line}: expected two node names, got {row[0]!r}. Separate by a comma.")
    return [(row[0], row[1]) for row in rows]


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
    source, notes = record["input"], []
    if source["n_samples"] is not None and source["n_nodes"] > 2 * source["n_samples"]:
        notes.append(
            f"There are {source['n_nodes']} nodes (columns) but only {source['n_samples']} samples (rows). "
            "Is the table the other way round?"
        )
    if source["row_counter"] is not None:
        notes.append(
            f"Column {source['row_counter']!r} counts the rows and was taken for a node. "
            f"If it is not one: --drop {source['row_counter']}"
        )
    if request.out is None:
        notes.append("Nothing was written; keep the graph with --out FOLDER.")
    return notes


def _progress(shown: bool) -> AbstractContextManager[Progress]:
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    return progress if shown else nullcontext(progress)  # never started, it draws nothing
