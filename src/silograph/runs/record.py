"""A run's folder: the graph in the formats people open, and run.json, the record of how it came about."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from silograph._util.files import check_writable, writing_folder
from silograph.errors import OutputError
from silograph.graph.files import write_graph
from silograph.graph.graph import Graph
from silograph.local.learn import LearnResult, Settings

RECORD = "run.json"
CHECKPOINT, REQUEST = "checkpoint", "request.json"  # of a run that is not finished
OURS = (".checkpoint.", ".results.")  # what a run that was killed as it began or ended may leave
GRAPH_FILES = ("graph.graphml", "edges.csv", "graph.npz")
FORMAT = 1  # of run.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What was learned from."""

    file: str
    sha256: str
    n_samples: int | None  # None: precomputed distances
    n_nodes: int
    row_counter: str | None  # a node whose signal counts the rows: perhaps an index, and no node


def run_record(
    learned: LearnResult, graph: Graph, settings: Settings, source: Input, *, options: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Everything needed to trust the run and to repeat it, as plain data."""
    solution = learned.solution
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": asdict(source),
        "parameters": asdict(settings) | options,
        "result": {
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "mean_degree": graph.mean_degree,
            "degree_asked": learned.degree_asked,
            "degree_reached": learned.degree_reached,
            "alpha": learned.alpha,
            "beta": learned.beta,
            "objective": solution.primal,
            "relative_gap": solution.relative_gap,
            "converged": solution.converged,
            "iterations": solution.n_iter,
            "solves": learned.n_solves,
            "seconds": round(seconds, 4),
        },
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What a run was made with."""
    return {"python": platform.python_version()} | {
        name: version(name) for name in ("silograph", "numpy", "scipy", "numba")
    }


def check_output(folder: Path, *, force: bool, command: str = "silograph learn") -> None:
    """Raise, before any work is done, when a run could not be written to `folder`."""
    if not folder.exists():
        check_writable(folder.absolute())
        return
    if not folder.is_dir():
        raise OutputError(f"{folder}: expected a folder or a new name, got a file. Choose another --out.")
    if not any(entry for entry in folder.iterdir() if not entry.name.startswith(OURS)):  # nothing to lose
        check_writable(folder.absolute())
        return
    unfinished = (folder / CHECKPOINT / REQUEST).is_file()
    if unfinished and not force:
        raise OutputError(
            f"{folder}: holds an unfinished run. Go on with `{command} --resume {folder}`, or replace it with --force."
        )
    if not force:
        raise OutputError(f"{folder}: exists already. Choose another --out, or replace it with --force.")
    check_writable(folder.absolute())
    if any(folder.iterdir()) and not (folder / RECORD).is_file() and not unfinished:
        raise OutputError(
            f"{folder}: holds other things than a run ({RECORD} is missing), so --force leaves it alone. "
            "Choose another --out."
        )


def write_run(folder: Path, graph: Graph, record: dict[str, Any], *, force: bool) -> None:
    """Write the run, whole or not at all."""
    with writing_folder(folder.absolute(), replace=force) as inside:
        for name in GRAPH_FILES:
            write_graph(graph, inside / name)
        (inside / RECORD).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256_of(path: Path) -> str:
    """The checksum of a file, by which a run names its input."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
