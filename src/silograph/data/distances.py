"""Costs that somebody else computed: a symmetric matrix of distances, checked."""

from collections.abc import Sequence

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.data.moments import LARGEST_SIGNAL, SMALLEST_SIGNAL
from silograph.errors import SignalError
from silograph.graph.pairs import Pairs

NOT_SIMILAR = "Give squared distances, not similarities or correlations."
SYMMETRY = 1e-10  # relative to the largest entry; what two ways of rounding may differ by


def costs_of_distances(distances: Matrix, pairs: Pairs, names: Sequence[str], *, source: str = "distances") -> Vector:
    """The costs of the pairs from a full matrix of mean squared differences z/N (nodes, nodes)."""
    n_nodes = pairs.n_nodes
    if distances.shape != (n_nodes, n_nodes):
        raise SignalError(f"{source}: expected a square matrix, got shape {distances.shape}. Give one row per node.")
    negative = np.argwhere(distances < 0)
    if negative.size:
        i, j = negative[0]
        raise SignalError(
            f"{source}, row {i + 1}, column {names[j]!r}: expected a distance ≥ 0, got {distances[i, j]:g}. "
            f"{NOT_SIMILAR}"
        )
    largest = float(distances.max())
    if largest > 0 and not SMALLEST_SIGNAL**2 <= largest <= LARGEST_SIGNAL**2:
        raise SignalError(
            f"{source}: expected distances between {SMALLEST_SIGNAL**2:g} and {LARGEST_SIGNAL**2:g}, got {largest:g}. "
            "Use another unit."
        )
    skew = np.argwhere(np.abs(distances - distances.T) > SYMMETRY * largest)
    if skew.size:
        i, j = skew[0]
        raise SignalError(
            f"{source}, row {i + 1}, column {names[j]!r}: expected a symmetric matrix, got {distances[i, j]:g} here "
            f"and {distances[j, i]:g} in row {j + 1}, column {names[i]!r}. "
            "Check that rows and columns are in the same order."
        )
    diagonal = np.flatnonzero(np.diag(distances) > SYMMETRY * largest)
    if diagonal.size:
        i = diagonal[0]
        raise SignalError(
            f"{source}, row {i + 1}, column {names[i]!r}: expected 0 from a node to itself, got {distances[i, i]:g}. "
            f"{NOT_SIMILAR}"
        )
    if pairs.is_all:
        return distances[np.triu_indices(n_nodes, 1)]
    return np.ascontiguousarray(distances[pairs.rows, pairs.cols])
