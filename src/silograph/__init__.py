"""silograph learns graphs from signals that may not leave their silos.

    from silograph import ConsensusGraph, SmoothGraph
    model = SmoothGraph(degree=5).fit(X)                          # one silo; X: (samples, nodes)
    model.adjacency_, model.graph_, model.gap_
    model = ConsensusGraph(degree=5).fit({"oslo": X1, "lima": X2})    # several
    model.graphs_, model.consensus_graph_, model.contributions_, model.gap_
    run = learn_files(["oslo.csv", "lima.csv"], degree=5, out="run")  # what `silograph learn` does

The public names are those of ``__all__``; they are imported on first use, so that ``import silograph`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from silograph.data.moments import Moments
    from silograph.data.readers import Signals, open_signals
    from silograph.errors import (
        CheckpointError,
        DataError,
        DegreeWarning,
        GraphError,
        MissingExtraError,
        OutputError,
        PairsError,
        ParameterError,
        ProtocolError,
        SignalError,
        SilographError,
        SilosError,
    )
    from silograph.estimators.consensus import ConsensusGraph
    from silograph.estimators.smooth import SmoothGraph
    from silograph.graph.files import read_graph, write_graph
    from silograph.graph.graph import Graph
    from silograph.graph.pairs import Pairs
    from silograph.local.problem import LocalProblem
    from silograph.local.solvers.solution import Solution
    from silograph.metrics import Scores, score
    from silograph.runs.learn import learn_files
    from silograph.runs.reader import read_run

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "ConsensusGraph",
    "DataError",
    "DegreeWarning",
    "Graph",
    "GraphError",
    "LocalProblem",
    "MissingExtraError",
    "Moments",
    "OutputError",
    "Pairs",
    "PairsError",
    "ParameterError",
    "ProtocolError",
    "Scores",
    "SignalError",
    "Signals",
    "SilographError",
    "SilosError",
    "SmoothGraph",
    "Solution",
    "learn_files",
    "open_signals",
    "read_graph",
    "read_run",
    "score",
    "write_graph",
]

_ERRORS = {name: "errors" for name in __all__ if name.endswith(("Error", "Warning"))}
_HOME = _ERRORS | {
    "Graph": "graph.graph",
    "LocalProblem": "local.problem",
    "Moments": "data.moments",
    "Pairs": "graph.pairs",
    "Scores": "metrics",
    "Signals": "data.readers",
    "ConsensusGraph": "estimators.consensus",
    "SmoothGraph": "estimators.smooth",
    "Solution": "local.solvers.solution",
    "learn_files": "runs.learn",
    "open_signals": "data.readers",
    "read_graph": "graph.files",
    "read_run": "runs.reader",
    "score": "metrics",
    "write_graph": "graph.files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'silograph' has no attribute {name!r}")
    value = getattr(import_module(f"silograph.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
