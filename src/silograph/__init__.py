"""silograph learns graphs from signals that may not leave their silos.

    from silograph import ConsensusGraph, SmoothGraph
    model = SmoothGraph(degree=5).fit(X)                          # one silo; X: (samples, nodes)
    model.adjacency_, model.graph_, model.gap_
    model = ConsensusGraph(degree=5).fit({"oslo": X1, "lima": X2})    # several
    model.graphs_, model.consensus_graph_, model.contributions_, model.gap_
    PartialCorrelationGraph().fit({"oslo": X1, "lima": X2}).consensus_    # a second opinion, with signs
    run = learn_files(["oslo.csv", "lima.csv"], degree=5, out="run")  # what `silograph learn` does
    compare_groups(run, "people.csv", column="dx").says               # do two groups of silos differ?

The public names are those of ``__all__``; they are imported on first use, so that ``import silograph`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from silograph.data.moments import Moments as Moments
    from silograph.data.readers import Signals as Signals
    from silograph.data.readers import open_signals as open_signals
    from silograph.errors import CheckpointError as CheckpointError
    from silograph.errors import DataError as DataError
    from silograph.errors import DegreeWarning as DegreeWarning
    from silograph.errors import DoubtfulSilosWarning as DoubtfulSilosWarning
    from silograph.errors import GraphError as GraphError
    from silograph.errors import MissingExtraError as MissingExtraError
    from silograph.errors import NodesWarning as NodesWarning
    from silograph.errors import OutputError as OutputError
    from silograph.errors import PairsError as PairsError
    from silograph.errors import ParameterError as ParameterError
    from silograph.errors import ProtocolError as ProtocolError
    from silograph.errors import SignalError as SignalError
    from silograph.errors import SilographError as SilographError
    from silograph.errors import SilosError as SilosError
    from silograph.estimators.consensus import ConsensusGraph as ConsensusGraph
    from silograph.estimators.partial import PartialCorrelationGraph as PartialCorrelationGraph
    from silograph.estimators.smooth import SmoothGraph as SmoothGraph
    from silograph.graph.files import read_graph as read_graph
    from silograph.graph.files import write_graph as write_graph
    from silograph.graph.graph import Graph as Graph
    from silograph.graph.pairs import Pairs as Pairs
    from silograph.local.problem import LocalProblem as LocalProblem
    from silograph.local.solvers.solution import Solution as Solution
    from silograph.metrics import Scores as Scores
    from silograph.metrics import score as score
    from silograph.runs.comparing import compare_groups as compare_groups
    from silograph.runs.learn import learn_files as learn_files
    from silograph.runs.reader import read_run as read_run

__version__ = "0.1.0"

_NAMES = {
    "data.moments": ("Moments",),
    "data.readers": ("Signals", "open_signals"),
    "errors": (
        "CheckpointError", "DataError", "DegreeWarning", "DoubtfulSilosWarning", "GraphError", "MissingExtraError",
        "NodesWarning",
        "OutputError", "PairsError", "ParameterError", "ProtocolError", "SignalError", "SilographError", "SilosError",
    ),
    "estimators.consensus": ("ConsensusGraph",),
    "estimators.partial": ("PartialCorrelationGraph",),
    "estimators.smooth": ("SmoothGraph",),
    "graph.files": ("read_graph", "write_graph"),
    "graph.graph": ("Graph",),
    "graph.pairs": ("Pairs",),
    "local.problem": ("LocalProblem",),
    "local.solvers.solution": ("Solution",),
    "metrics": ("Scores", "score"),
    "runs.comparing": ("compare_groups",),
    "runs.learn": ("learn_files",),
    "runs.reader": ("read_run",),
}  # fmt: skip
_HOME = {name: home for home, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'silograph' has no attribute {name!r}")
    value = getattr(import_module(f"silograph.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
