"""What lies where in the folder of a run.

    run.json                  the record: inputs, parameters, result, versions
    graph.graphml, edges.csv, graph.npz    the graph of one table; or, of several silos:
    consensus/, silos/NAME/                the same three of the consensus and of each silo;
                                           silos/SITE/NAME/ where a site has several
    nodes.csv                 beside each graph, with stability: the strength of each node, and its interval
    stable/                   beside each graph, if asked for: its stable edges
    quorum/                   if asked for: edges that are stable in enough silos
    scores.npz                a rank for every pair, of every graph
    stability.npz             with stability: all that half-samples told
    partial.npz               partial correlations of all pairs, with their signs, where rows are here
    history.csv                            one row per round
    compare/                  if asked for: two groups of silos compared
    consensus.json, consensus.npz          of several silos: what a newcomer is learned beside (runs/consensus.py)
    alone/                                 of a newcomer: the edges that it alone has
    checkpoint/               only while the run is unfinished: what was asked for, and what resuming needs

A coordinator keeps all of this in results/ of its own folder of the run.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph._util.naming import setting
from silograph.errors import CheckpointError, GraphError

RECORD, CONSENSUS, SILOS, HISTORY = "run.json", "consensus", "silos", "history.csv"
SCORES, STABILITY, NODES, STABLE, QUORUM = "scores.npz", "stability.npz", "nodes.csv", "stable", "quorum"
COMPARE = "compare"  # of an earlier run, it goes with that run
PARTIAL = "partial.npz"
GRAPH_FILES = ("graph.graphml", "edges.csv", "graph.npz")
GRAPH, EDGES = "graph.npz", "edges.csv"
FIXED, FIXED_ARRAYS, ALONE = "consensus.json", "consensus.npz", "alone"
RESULT_NAMES = (
    *(*GRAPH_FILES, NODES, STABLE, QUORUM, CONSENSUS, SILOS, SCORES, STABILITY, PARTIAL, FIXED_ARRAYS, FIXED, ALONE),
    *(HISTORY, COMPARE, RECORD),
)
CHECKPOINT_DONE = ".checkpoint.done"  # what the checkpoint is called when the results are in place
TEMPORARY = (".checkpoint.", ".results.")  # what a run that was killed as it began or ended may leave
COORDINATED = "results"  # where a coordinator's folder holds the run
LEARN, FEDERATION = "silograph learn", "silograph federation run"  # the commands that write a run


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The folder of a run."""

    folder: Path

    @property
    def record(self) -> Path:
        """The record: written last, so that a run with one is whole."""
        return self.folder / RECORD

    @property
    def history(self) -> Path:
        """The rounds."""
        return self.folder / HISTORY

    @property
    def scores(self) -> Path:
        """A rank for every pair."""
        return self.folder / SCORES

    @property
    def stability(self) -> Path:
        """What half-samples told."""
        return self.folder / STABILITY

    @property
    def compare(self) -> Path:
        """The folder of a comparison of two groups."""
        return self.folder / COMPARE

    @property
    def partial(self) -> Path:
        """Partial correlations."""
        return self.folder / PARTIAL

    @property
    def fixed(self) -> Path:
        """What a newcomer is learned beside."""
        return self.folder / FIXED

    @property
    def fixed_arrays(self) -> Path:
        """The whole consensus, to which that file points."""
        return self.folder / FIXED_ARRAYS

    @property
    def consensus(self) -> Path:
        """The folder of the consensus."""
        return self.folder / CONSENSUS

    def silo(self, name: str) -> Path:
        """The folder of a silo's graph; a record from elsewhere may not point out of the run."""
        parts = name.split("/")
        if len(parts) > 2 or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
            raise GraphError(f"{self.folder / SILOS}: expected silos' names that are names of folders, got {name!r}.")
        return self.folder.joinpath(SILOS, *parts)

    @property
    def checkpoint(self) -> Path:
        """The folder that an unfinished run has."""
        return self.folder / "checkpoint"

    @property
    def request(self) -> Path:
        """What an unfinished run was asked for."""
        return self.checkpoint / "request.json"

    @property
    def is_finished(self) -> bool:
        """Whether all results are here."""
        return self.record.is_file() and not self.checkpoint.exists()

    @property
    def is_unfinished(self) -> bool:
        """Whether there is a run to resume."""
        return self.request.is_file()

    def read_request(self) -> dict[str, Any]:
        """What an unfinished run was asked for."""
        if not self.is_unfinished:
            raise CheckpointError(
                f"{self.folder}: no unfinished run is kept here. Start one with {setting('out', str(self.folder))}."
            )
        try:
            return dict(json.loads(self.request.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"{self.request}: cannot be read ({error}). Start the run anew.") from error

    def resume_command(self) -> str:
        """The command that goes on with an unfinished run."""
        federated = self.is_unfinished and "federation" in self.read_request()
        return f"{FEDERATION if federated else LEARN} --resume {self.folder}"
