"""Normal scores: each node's values by their ranks alone, for ordinal items, heavy tails and outliers.

    x_k ↦ r_k, its rank among the node's n values, ties having their mean ↦ Φ⁻¹((r_k − ½)/n)

Gaps stay gaps: a node's n is the number of values that it has. Scores are then standardised as signals are. So a
strictly increasing transform of any node leaves every bit of what is learned, and correlations are those of normal
scores (van der Waerden). A rank rests on the whole column, so the table is held in memory.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from silograph._util.naming import setting
from silograph._util.types import Matrix
from silograph.errors import ParameterError, SignalError

Transform = Literal["none", "ranks"]
MOST_VALUES = 2**28  # of a table that is held to be ranked: 2 GB, and about as much again for the ranks


def check_transform(transform: str, *, precomputed: bool) -> None:
    """Raise unless there is such a transform, and values to transform."""
    if transform not in get_args(Transform):
        raise ParameterError(f"transform: expected 'none' or 'ranks', got {transform!r}.")
    if precomputed and transform != "none":
        raise ParameterError("transform: precomputed distances have no values to rank. Leave it out.")


def transform_of(ranks: bool) -> Transform:
    """What estimators call `ranks`: scikit-learn takes an attribute called `transform` for the method of that name."""
    return "ranks" if ranks else "none"


def normal_scores(table: Matrix) -> Matrix:
    """The normal scores of each column of (samples, nodes); NaN is a gap, and a constant column is 0."""
    from scipy.stats import rankdata  # slow to load, and few tables are ranked

    ranks = rankdata(table, method="average", axis=0, nan_policy="omit")
    ranks -= 0.5
    ranks /= np.maximum((~np.isnan(table)).sum(axis=0), 1)
    scores: Matrix = ndtri(ranks, out=ranks)
    return scores


class HeldTable:
    """A table's rows, held until all are there."""

    def __init__(self, source: str) -> None:
        self._source, self._rows, self._size = source, list[Matrix](), 0

    def add(self, rows: Matrix) -> None:
        """Take in rows; raises where they become too many to be held."""
        self._rows.append(rows)
        self._size += rows.size
        if self._size > MOST_VALUES:
            raise SignalError(
                f"{self._source}: ranks need the whole table in memory, and it has more than {MOST_VALUES} numbers. "
                f"Learn from fewer rows or nodes, or without {setting('transform')}."
            )

    def scores(self) -> Sequence[Matrix]:
        """The normal scores of all rows, as one chunk; of none, none."""
        return [normal_scores(np.concatenate(self._rows))] if self._size else []
