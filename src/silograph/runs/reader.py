"""A run's folder, read back: of one table, of several silos, or of a federation whose sites may keep their graphs."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph._util.naming import setting
from silograph.data.alignment import check_silo_names
from silograph.errors import GraphError
from silograph.graph.files import read_graph
from silograph.graph.graph import Graph
from silograph.runs.consensus import FixedConsensus
from silograph.runs.layout import COORDINATED, GRAPH, RECORD, RunLayout
from silograph.runs.record import AGAIN, ResultRecord, RunRecord, SiloRecord, read_record
from silograph.runs.signs import RunSigns, read_signs
from silograph.runs.stability import PairScores, RunStability, read_stability


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunData:
    """A finished run: its record, its graphs on the same nodes in the same order, and its rounds."""

    folder: Path | None  # None: not written
    record: RunRecord
    main: Graph  # the consensus, or the only graph
    graphs: Mapping[str, Graph]  # by silo, as far as they are here; none of a run over one table
    history: tuple[Mapping[str, Any], ...]
    stability: RunStability | None = None
    signs: RunSigns | None = None
    fixed: FixedConsensus | None = None  # of several silos just learned; on disk, consensus.json
    alone: Graph | None = None  # of a newcomer just learned: edges that neither the consensus nor a silo has
    scores: PairScores | None = None  # of a run that was just learned; on disk they are scores.npz

    @property
    def name(self) -> str:
        """The folder's name."""
        return "" if self.folder is None else self.folder.resolve().name

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return self.main.names

    @property
    def consensus_graph(self) -> Graph:
        """The consensus; of one table, its graph."""
        return self.main

    @property
    def silos(self) -> tuple[SiloRecord, ...]:
        """The silos; none of a run over one table."""
        return () if self.record.kind == "table" else self.record.silos

    @property
    def result(self) -> ResultRecord:
        """What came out."""
        return self.record.result

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was asked for."""
        return self.record.parameters

    @property
    def converged(self) -> bool | None:
        """Whether the tolerance was met; None for a method without a certificate."""
        return self.record.result.converged

    @property
    def warnings(self) -> Mapping[str, str]:
        """What a user should know, by what it is about: "degree", "convergence"."""
        return self.record.warnings


def read_run(folder: str | os.PathLike[str]) -> RunData:
    """Read a finished run; a coordinator's folder stands for the results in it."""
    folder = Path(folder)
    layout = finished_layout(folder)
    record = read_record(layout.record)
    if record.kind == "table":
        stability = _stability(layout, record)
        return RunData(
            folder=folder,
            record=record,
            main=_graph(layout.folder),
            graphs={},
            history=(),
            stability=stability,
            signs=_signs(layout),
        )
    check_silo_names([silo.name for silo in record.silos])
    main = _graph(layout.consensus)
    graphs = {silo.name: _silo(layout, silo.name, main) for silo in record.silos if silo.graph_shared}
    return RunData(
        folder=folder,
        record=record,
        main=main,
        graphs=graphs,
        history=_history(layout.history),
        stability=_stability(layout, record),
        signs=_signs(layout),
    )


def finished_layout(folder: Path) -> RunLayout:
    """Where a finished run lies: in this folder, or in the results of a coordinator's; raises if there is none."""
    layout = RunLayout(folder)
    if not folder.is_dir():
        raise GraphError(f"{folder}: expected the folder of a run, got no folder. Check the path.")
    if (inner := RunLayout(folder / COORDINATED)).record.is_file():
        layout = inner
    if layout.checkpoint.is_dir():
        raise GraphError(f"{folder}: this run is not finished. Go on with: {layout.resume_command()}")
    if not layout.record.is_file():
        raise GraphError(
            f"{folder}: expected the folder of a run, but {RECORD} is missing. Give what {setting('out')} named."
        )
    return layout


def _silo(layout: RunLayout, name: str, main: Graph) -> Graph:
    graph = _graph(layout.silo(name))
    known = set(graph.names)
    if not known <= set(main.names):
        raise GraphError(f"{name}: expected nodes of the consensus, got others. {AGAIN}")
    order = tuple(node for node in main.names if node in known)  # a node that it does not have was not observed
    return graph if graph.names == order else graph.reordered(order)


def _stability(layout: RunLayout, record: RunRecord) -> RunStability | None:
    return None if record.stability is None else read_stability(layout.stability)


def _signs(layout: RunLayout) -> RunSigns | None:
    return read_signs(layout.partial) if layout.partial.is_file() else None


def _graph(folder: Path) -> Graph:
    path = folder / GRAPH
    if not path.is_file():
        raise GraphError(f"{path}: missing, though the run's record speaks of it. {AGAIN}")
    return read_graph(path)


def _history(path: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise GraphError(f"{path}: cannot be read ({error.strerror}). {AGAIN}") from error
    return tuple({name: _cell(text) for name, text in row.items() if name and text} for row in rows)


def _cell(text: str) -> float | str:
    """A number, or the name of a step."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
