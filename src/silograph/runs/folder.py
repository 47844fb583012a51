"""The folder of a run over several silos: while it goes on, its checkpoint; at the end, graphs, history and record.

    run.json              the record: inputs, parameters, result, versions
    history.csv           one row per round
    consensus/            graph.graphml, edges.csv, graph.npz
    silos/NAME/           the same for each silo
    checkpoint/           only while the run is unfinished: what `--resume` needs

Results are made to the side and moved in one after the other, the record last; then the checkpoint goes. A run killed
at any of these moments still has its checkpoint, and finishes the moves when it is resumed.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from silograph.engine.study import StudyResult
from silograph.errors import CheckpointError, OutputError
from silograph.graph.files import write_graph
from silograph.graph.graph import Graph
from silograph.protocol.method import RoundRecord
from silograph.runs.record import CHECKPOINT, GRAPH_FILES, OURS, RECORD, REQUEST

DONE = ".checkpoint.done"  # what the checkpoint is called when the results are in place
CONSENSUS, SILOS, HISTORY = "consensus", "silos", "history.csv"


def begin(folder: Path, request: Mapping[str, Any]) -> Path:
    """Make the folder, keep what was asked for, and return where checkpoints go."""
    place = folder / CHECKPOINT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tidy(folder)
        if place.exists():
            place.replace(folder / DONE)
        made = Path(tempfile.mkdtemp(prefix=".checkpoint.", dir=folder))
        text = json.dumps(request, indent=2, ensure_ascii=False) + "\n"
        (made / REQUEST).write_text(text, encoding="utf-8")
        made.replace(place)  # from here on there is a run to resume
        tidy(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}). Choose another place.") from error
    return place


def abandon(folder: Path) -> None:
    """Undo `begin`: the run failed before it had a result, for a reason that resuming cannot mend."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    tidy(folder)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def finished_record(folder: Path) -> dict[str, Any] | None:
    """The record of a run that is finished; nothing while it is not."""
    path = folder / RECORD
    if (folder / CHECKPOINT).exists() or not path.is_file():
        return None
    tidy(folder)
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}).") from error


def request_of(folder: Path) -> dict[str, Any]:
    """What an unfinished run was asked for."""
    path = folder / CHECKPOINT / REQUEST
    if not path.is_file():
        raise CheckpointError(f"{folder}: no unfinished run is kept here. Start one with --out {folder}.")
    try:
        request = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Start the run anew.") from error
    return dict(request)


def finish(
    folder: Path,
    consensus: Graph,
    silos: Mapping[str, Graph],
    history: Sequence[RoundRecord],
    record: Mapping[str, Any],
) -> None:
    """Put the results in place, the record last, and let the checkpoint go."""
    _put_in_place(folder, lambda made: fill(made, consensus, silos, history, record))


def adopt(folder: Path, results: Path) -> None:
    """The same with results that were written elsewhere."""
    _put_in_place(folder, lambda made: shutil.copytree(results, made, dirs_exist_ok=True))


def _put_in_place(folder: Path, fill_in: Callable[[Path], object]) -> None:
    try:
        made = Path(tempfile.mkdtemp(prefix=".results.", dir=folder))
        try:
            fill_in(made)
            for name in (CONSENSUS, SILOS, HISTORY, RECORD):
                _move(made / name, folder / name)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        (folder / CHECKPOINT).replace(folder / DONE)  # at once; removing it takes longer
        tidy(folder)
    except OSError as error:
        raise OutputError(f"{folder}: the results cannot be written ({error.strerror}).") from error


def fill(
    folder: Path,
    consensus: Graph,
    silos: Mapping[str, Graph],
    history: Sequence[RoundRecord],
    record: Mapping[str, Any],
) -> None:
    """Write all results into an empty folder."""
    write_graphs(folder / CONSENSUS, consensus)
    (folder / SILOS).mkdir()
    for name, graph in silos.items():
        write_graphs(folder / SILOS / name, graph)
    _write_history(folder / HISTORY, history)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def result_record(study: StudyResult, consensus: Graph, *, seconds: float) -> dict[str, Any]:
    """What came out, as plain data."""
    return {
        "nodes": consensus.n_nodes,
        "consensus_edges": consensus.n_edges,
        "mean_degree": finite(study.degree),
        "degree_asked": study.degree_asked,
        "degree_alone": study.degree_alone,
        "degree_reached": study.degree_reached,
        "alpha": study.alpha,
        "beta": study.beta,
        "coupling": study.coupling,
        "sparsity": study.sparsity,
        "nu": finite(study.nu),
        "lam": study.lam,
        "rho": study.rho,
        "objective": study.objective,
        "relative_gap": finite(study.gap),
        "certified": bool(np.isfinite(study.gap)),
        "converged": None if np.isnan(study.gap) else study.converged,  # None: a method without a certificate
        "rounds": study.n_rounds,
        "setup_rounds": study.n_setup_rounds,
        "seconds": round(seconds, 4),
    }


def finite(value: float | None) -> float | None:
    """The number, or nothing: JSON has no infinity."""
    return value if value is not None and np.isfinite(value) else None


def tidy(folder: Path) -> None:
    """Remove what a finished run, or one that was killed while it finished, left behind."""
    for left in [entry for entry in folder.iterdir() if entry.name.startswith(OURS)]:
        shutil.rmtree(left, ignore_errors=True)


def write_graphs(folder: Path, graph: Graph) -> None:
    """Write one graph in every format, into a folder that is made for it."""
    folder.mkdir(parents=True)
    for name in GRAPH_FILES:
        write_graph(graph, folder / name)


def _write_history(path: Path, history: Sequence[RoundRecord]) -> None:
    names = list(dict.fromkeys(name for record in history for name in record))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(history)


def _move(source: Path, target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    source.replace(target)
