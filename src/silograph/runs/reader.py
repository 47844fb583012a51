"""A run's folder, read back: of one table, of several silos, or of a federation whose sites may keep their graphs."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph.data.alignment import check_silo_names
from silograph.errors import GraphError
from silograph.graph.files import read_graph
from silograph.graph.graph import Graph
from silograph.runs.folder import CONSENSUS, HISTORY, SILOS
from silograph.runs.record import CHECKPOINT, FORMAT, RECORD

GRAPH = "graph.npz"
RESULTS = "results"  # of a federation's run, inside the coordinator's folder
AGAIN = "Run `silograph learn` again, or bring the folder back as it was."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiloData:
    """One silo of a run."""

    name: str
    graph: Graph | None  # None: a federation's site that keeps it
    n_samples: int | None  # None: precomputed distances, or not told
    n_edges: int | None  # None: not told
    contribution: float | None  # γ, infinite where the silo fused with the consensus; None: not told

    @property
    def fused(self) -> bool:
        """Whether its graph is the consensus."""
        return self.contribution == math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunData:
    """A finished run: its record, its graphs on the same nodes in the same order, and its rounds."""

    name: str
    record: Mapping[str, Any]
    main: Graph  # the consensus, or the only graph
    silos: tuple[SiloData, ...]  # none for a run over one table
    history: tuple[Mapping[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return self.main.names

    @property
    def result(self) -> Mapping[str, Any]:
        """What came out."""
        return dict(self.record["result"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was asked for."""
        return dict(self.record["parameters"])

    @property
    def federation(self) -> Mapping[str, Any] | None:
        """How sites took part, if the run was a federation's."""
        told = self.record.get("federation")
        return dict(told) if isinstance(told, Mapping) else None

    @property
    def graphs(self) -> dict[str, Graph]:
        """The silos' graphs, as far as they are here."""
        return {silo.name: silo.graph for silo in self.silos if silo.graph is not None}


def read_run(folder: Path) -> RunData:
    """Read a finished run; a coordinator's folder stands for the results in it."""
    place, record = _record(folder)
    try:
        name = folder.resolve().name
        if record.get("kind") == "silos":
            return _study(place, record, name)
        _needs(record["result"], "edges")
        _needs(record["input"], "file")
        return RunData(name=name, record=record, main=_graph(place / GRAPH), silos=(), history=())
    except (KeyError, TypeError, AttributeError) as error:
        raise GraphError(
            f"{place / RECORD}: expected the record of a run, but {error!r} is missing. {AGAIN}"
        ) from error


def _needs(part: Mapping[str, Any], name: str) -> None:
    if name not in part:
        raise KeyError(name)


def _record(folder: Path) -> tuple[Path, dict[str, Any]]:
    if not folder.is_dir():
        raise GraphError(f"{folder}: expected the folder of a run, got no folder. Check the path.")
    if (folder / RESULTS / RECORD).is_file():
        return _record(folder / RESULTS)
    if (folder / CHECKPOINT).is_dir():
        raise GraphError(f"{folder}: this run is not finished. Go on with: silograph learn --resume {folder}")
    path = folder / RECORD
    if not path.is_file():
        raise GraphError(f"{folder}: expected the folder of a run, but {RECORD} is missing. Give what --out named.")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GraphError(f"{path}: cannot be read ({error}). {AGAIN}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or "result" not in record:
        raise GraphError(f"{path}: expected the record of a finished run in format {FORMAT}, got another. {AGAIN}")
    return folder, record


def _study(folder: Path, record: dict[str, Any], name: str) -> RunData:
    main = _graph(folder / CONSENSUS / GRAPH)
    check_silo_names([silo["name"] for silo in record["silos"]])
    silos = tuple(_silo(folder, silo, main) for silo in record["silos"])
    history = _history(folder / HISTORY)
    _needs(record["result"], "consensus_edges")
    return RunData(name=name, record=record, main=main, silos=silos, history=history)


def _silo(folder: Path, told: Mapping[str, Any], main: Graph) -> SiloData:
    graph = None
    if told.get("graph_shared", True):
        graph = _graph(_inside(folder / SILOS, told["name"]) / GRAPH)
        if set(graph.names) != set(main.names):
            raise GraphError(f"{told['name']}: expected the nodes of the consensus, got others. {AGAIN}")
        graph = graph if graph.names == main.names else graph.reordered(main.names)
    return SiloData(
        name=told["name"],
        graph=graph,
        n_samples=told["n_samples"],
        n_edges=told["edges"],
        contribution=math.inf if told["is_consensus"] else told["contribution"],
    )


def _inside(folder: Path, name: str) -> Path:
    """A silo's folder; a record from elsewhere may not point out of the run."""
    if name in (".", "..") or any(letter in name for letter in "/\\\0"):
        raise GraphError(f"{folder}: expected silos' names that are names of folders, got {name!r}.")
    return folder / name


def _graph(path: Path) -> Graph:
    if not path.is_file():
        raise GraphError(f"{path}: missing, though the run's record speaks of it. {AGAIN}")
    return read_graph(path)


def _history(path: Path) -> tuple[Mapping[str, str], ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(csv.DictReader(file))
    except OSError as error:
        raise GraphError(f"{path}: cannot be read ({error.strerror}). {AGAIN}") from error
