"""Every error and warning a user of silograph can meet, one tree.

    SilographError
    ├── SignalError       a table of signals cannot be read or used
    ├── PairsError        a list of allowed or forbidden pairs is wrong
    ├── ParameterError    an argument is out of its range, or two contradict each other
    ├── GraphError        a graph file or its parts do not fit together
    ├── DataError         a published data set is not there, or not as published
    ├── SilosError        silos that do not fit together
    ├── ProtocolError     a message between silo and coordinator is wrong
    ├── CheckpointError   a stopped run cannot be taken up again
    ├── OutputError       a result cannot be written where it was asked for
    └── MissingExtraError an optional dependency is not installed

All but the last two are also `ValueError`, as scikit-learn's callers expect of bad input. Each message says what was
expected, what came, and what to do.
"""


class SilographError(Exception):
    """The root of the tree: catch this to catch them all."""


class SignalError(SilographError, ValueError):
    """A table of signals cannot be read or used."""


class PairsError(SilographError, ValueError):
    """A list of node pairs is malformed or names a node that does not exist."""


class ParameterError(SilographError, ValueError):
    """An argument is out of its range, or two arguments contradict each other."""


class GraphError(SilographError, ValueError):
    """A graph file is malformed, or its parts do not fit together."""


class DataError(SilographError, ValueError):
    """A published data set is not where it was looked for, or not as it was published."""


class SilosError(SilographError, ValueError):
    """Silos that do not fit together: other nodes, the same name twice, or none at all."""


class ProtocolError(SilographError, ValueError):
    """A message between a silo and the coordinator is malformed, out of place or out of bounds."""


class CheckpointError(SilographError, ValueError):
    """A stopped run cannot be taken up again: its checkpoint is missing, damaged, or of another run."""


class OutputError(SilographError, OSError):
    """A result cannot be written where it was asked for."""


class MissingExtraError(SilographError, ImportError):
    """An optional dependency is needed and not installed."""


class NodesWarning(UserWarning):
    """Pairs of nodes that one silo alone has, or none."""


class DegreeWarning(UserWarning):
    """The mean degree asked for cannot be reached on these data; the nearest one was taken."""


class DoubtfulSilosWarning(UserWarning):
    """Silos that should be looked at twice: in other units, given twice, with few samples, or apart from the others."""
