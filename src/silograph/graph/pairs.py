"""Which pairs of nodes may be connected, and the degree operator S with its adjoint, without a matrix.

    (S w)_v = sum of w over the pairs at node v        (Sᵀ y)_(i,j) = y_i + y_j

A `Pairs` is either *all* pairs, in the order of the upper triangle row by row (scipy's condensed order), or a sorted
list of them. All pairs need no index arrays: at 10 000 nodes these alone would take 400 MB.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import scratch
from silograph.errors import PairsError

NO_PAIRS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs of nodes that may carry an edge: `Pairs.all(d)` or `Pairs.listed(d, pairs)`."""

    n_nodes: int
    listed_rows: IntVector | None = None
    listed_cols: IntVector | None = None

    @classmethod
    def all(cls, n_nodes: int) -> "Pairs":
        """Every pair of `n_nodes` nodes."""
        return cls(n_nodes)

    @classmethod
    def listed(cls, n_nodes: int, pairs: ArrayLike) -> "Pairs":
        """The pairs given as rows (i, j) of node numbers, in any order and direction; doubles count once."""
        index = _check_pairs(n_nodes, pairs)
        rows, cols = index.min(axis=1), index.max(axis=1)
        code = np.unique(rows * n_nodes + cols)
        return cls.from_sorted(n_nodes, code // n_nodes, code % n_nodes)

    @classmethod
    def from_sorted(cls, n_nodes: int, rows: ArrayLike, cols: ArrayLike) -> "Pairs":
        """Pairs already known to be valid, without doubles, rows < cols, sorted by row and then column."""
        return cls(n_nodes, np.ascontiguousarray(rows, dtype=np.int32), np.ascontiguousarray(cols, dtype=np.int32))

    @classmethod
    def all_but(cls, n_nodes: int, forbidden: ArrayLike) -> "Pairs":
        """Every pair except the ones given: known zeros."""
        index = _check_pairs(n_nodes, forbidden)
        keep = np.ones(n_nodes * (n_nodes - 1) // 2, dtype=bool)
        keep[condensed_index(n_nodes, index.min(axis=1), index.max(axis=1))] = False
        rows, cols = endpoints(n_nodes)
        return cls.from_sorted(n_nodes, rows[keep], cols[keep])

    @property
    def is_all(self) -> bool:
        """Whether no pair is left out."""
        return self.listed_rows is None

    @property
    def size(self) -> int:
        """The number of pairs."""
        if self.listed_rows is None:
            return self.n_nodes * (self.n_nodes - 1) // 2
        return int(self.listed_rows.size)

    @property
    def rows(self) -> IntVector:
        """The smaller node number of each pair."""
        return endpoints(self.n_nodes)[0] if self.listed_rows is None else self.listed_rows

    @property
    def cols(self) -> IntVector:
        """The larger node number of each pair."""
        return endpoints(self.n_nodes)[1] if self.listed_cols is None else self.listed_cols

    def at(self, index: np.ndarray) -> tuple[IntVector, IntVector]:
        """The node numbers of the pairs that stand at `index`."""
        if self.listed_rows is not None and self.listed_cols is not None:
            return self.listed_rows[index], self.listed_cols[index]
        starts = condensed_index(self.n_nodes, np.arange(self.n_nodes), np.arange(self.n_nodes) + 1)
        rows = np.searchsorted(starts, index, side="right") - 1
        # The last node starts no pair, yet its (empty) start equals the number of pairs
        return rows.astype(np.int32), (index - starts[rows] + rows + 1).astype(np.int32)

    @property
    def index(self) -> tuple[bool, IntVector, IntVector]:
        """The pairs as compiled loops take them: whether they are all, and if not, their rows and cols."""
        if self.listed_rows is None or self.listed_cols is None:
            return True, NO_PAIRS, NO_PAIRS
        return False, self.listed_rows, self.listed_cols

    def degrees(self, w: Vector) -> Vector:
        """S w: for each node, the sum of the weights at it."""
        out = scratch(self.n_nodes)
        fill_degrees(*self.index, w, out)
        return out

    def sums(self, y: Vector) -> Vector:
        """Sᵀ y: for each pair, the sum of its two nodes' values."""
        out = np.empty(self.size)
        fill_sums(*self.index, y, 1.0, out)
        return out

    def differences(self, x: Vector) -> Vector:
        """For each pair, x_i − x_j."""
        out = np.empty(self.size)
        fill_sums(*self.index, x, -1.0, out)
        return out

    def products(self, x: Vector) -> Vector:
        """For each pair, x_i · x_j."""
        if self.listed_rows is not None and self.listed_cols is not None:
            return x[self.listed_rows] * x[self.listed_cols]
        out = np.empty(self.size)
        _products_all(x, out)
        return out

    def same(self, other: "Pairs") -> bool:
        """Whether both are the same pairs of as many nodes."""
        if self.n_nodes != other.n_nodes or self.is_all != other.is_all:
            return False
        return self.is_all or (np.array_equal(self.rows, other.rows) and np.array_equal(self.cols, other.cols))

    def union(self, rows: IntVector, cols: IntVector) -> "Pairs":
        """These pairs and the ones given (rows < cols)."""
        return self._of_codes(np.union1d(self._codes(self.rows, self.cols), self._codes(rows, cols)))

    def lacking(self, rows: IntVector, cols: IntVector) -> "Pairs":
        """Those of the pairs given (rows < cols) that are not among these."""
        return self._of_codes(np.setdiff1d(self._codes(rows, cols), self._codes(self.rows, self.cols)))

    def _codes(self, rows: IntVector, cols: IntVector) -> np.ndarray:
        return rows.astype(np.int64) * self.n_nodes + cols

    def _of_codes(self, codes: np.ndarray) -> "Pairs":
        return Pairs.from_sorted(self.n_nodes, codes // self.n_nodes, codes % self.n_nodes)

    def within(self, nodes: IntVector) -> tuple["Pairs", IntVector]:
        """The pairs among some nodes, which are numbered anew in their (rising) order, and where these pairs stand."""
        number = np.full(self.n_nodes, -1, dtype=np.int32)
        number[nodes] = np.arange(len(nodes), dtype=np.int32)
        rows, cols = number[self.rows], number[self.cols]
        place = np.flatnonzero((rows >= 0) & (cols >= 0)).astype(np.int32)
        if self.is_all:
            return Pairs.all(len(nodes)), place
        return Pairs.from_sorted(len(nodes), rows[place], cols[place]), place

    def isolated(self) -> IntVector:
        """The nodes that no pair touches."""
        if self.is_all:
            return np.flatnonzero(np.full(self.n_nodes, self.n_nodes < 2)).astype(np.int32)
        touched = np.zeros(self.n_nodes, dtype=bool)
        touched[self.rows] = True
        touched[self.cols] = True
        return np.flatnonzero(~touched).astype(np.int32)


def default_names(n_nodes: int) -> tuple[str, ...]:
    """The names of nodes that have none: '0', '1', …"""
    return tuple(str(node) for node in range(n_nodes))


def condensed_index(n_nodes: int, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
    """Where the pairs (rows < cols) stand in the order of all pairs."""
    i, j = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
    return i * (2 * n_nodes - i - 1) // 2 + j - i - 1


def endpoints(n_nodes: int) -> tuple[IntVector, IntVector]:
    """The node numbers (rows, cols) of all pairs, in order."""
    rows, cols = np.triu_indices(n_nodes, 1)
    return rows.astype(np.int32), cols.astype(np.int32)


def _check_pairs(n_nodes: int, pairs: ArrayLike) -> np.ndarray:
    index = np.asarray(pairs)
    if index.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if index.ndim != 2 or index.shape[1] != 2 or not np.issubdtype(index.dtype, np.integer):
        raise PairsError(
            f"pairs: expected an (n, 2) array of node numbers, got shape {index.shape} of {index.dtype}. "
            "Give one row (i, j) per pair."
        )
    index = index.astype(np.int64)
    outside = np.flatnonzero(((index < 0) | (index >= n_nodes)).any(axis=1))
    if outside.size:
        i, j = index[outside[0]]
        raise PairsError(
            f"pairs, pair {outside[0] + 1}: expected node numbers from 0 to {n_nodes - 1}, got ({i}, {j}). "
            "Number the nodes by column, from 0."
        )
    same = np.flatnonzero(index[:, 0] == index[:, 1])
    if same.size:
        raise PairsError(
            f"pairs, pair {same[0] + 1}: a node cannot be paired with itself ({index[same[0], 0]}). Drop the pair."
        )
    return index


# Loops over all pairs take one slice per row of the upper triangle: with plain indices the compiler finds no vectors.


@kernel
def fill_degrees(all_pairs: bool, rows: IntVector, cols: IntVector, w: Vector, out: Vector) -> None:
    """Fill `out` with S w."""
    for v in range(out.size):
        out[v] = 0.0
    if not all_pairs:
        for e in range(rows.size):
            out[rows[e]] += w[e]
            out[cols[e]] += w[e]
        return
    n = out.size
    start = 0
    for i in range(n):
        total = 0.0
        row, rest = w[start : start + n - i - 1], out[i + 1 :]
        for k in range(row.size):
            total += row[k]
            rest[k] += row[k]
        out[i] += total
        start += n - i - 1


@kernel
def fill_sums(all_pairs: bool, rows: IntVector, cols: IntVector, y: Vector, sign: float, out: Vector) -> None:
    """Fill `out` with y_i + sign · y_j: Sᵀ y, or differences."""
    if not all_pairs:
        for e in range(rows.size):
            out[e] = y[rows[e]] + sign * y[cols[e]]
        return
    n = y.size
    start = 0
    for i in range(n):
        row, others = out[start : start + n - i - 1], y[i + 1 :]
        for k in range(row.size):
            row[k] = y[i] + sign * others[k]
        start += n - i - 1


@kernel
def _products_all(x: Vector, out: Vector) -> None:
    n = x.size
    start = 0
    for i in range(n):
        row, others = out[start : start + n - i - 1], x[i + 1 :]
        for k in range(row.size):
            row[k] = x[i] * others[k]
        start += n - i - 1
