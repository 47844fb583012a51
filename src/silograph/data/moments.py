"""Second moments, summed over chunks of samples, and the costs z/N that come from them.

All that learning needs of signals: the count, each node's mean and centred sum of squares, and the centred cross
products of the allowed pairs. Sums are centred chunk by chunk (Chan, Golub and LeVeque 1983), because x'x of signals
that ride on a large offset, such as temperatures in kelvin, would drown the distances in rounding.
"""

from collections.abc import Sequence

import numpy as np

from silograph._util.checks import list_names
from silograph._util.kernel import kernel
from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.data.readers.checks import may_lack
from silograph.errors import SignalError
from silograph.graph.pairs import Pairs, default_names

CHUNK_BYTES = 2**26  # of a float64 copy of samples
BLOCK_ROWS = 256  # nodes whose cross products with all others are formed at once
LARGEST_SIGNAL = 1e70  # beyond, squares of squares overflow
SMALLEST_SIGNAL = 1e-70  # and below, they underflow
NOISE = 64 * np.finfo(np.float64).eps  # relative to the squares: below this a distance is rounding


class Moments:
    """The moments of the samples seen so far; `update` with more, `+` with another silo's or file's."""

    __slots__ = ("cross", "mean", "n_samples", "pairs", "peak", "squares")

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.n_samples = 0
        self.mean = np.zeros(pairs.n_nodes)
        self.squares = np.zeros(pairs.n_nodes)
        self.cross = np.zeros(pairs.size)
        self.peak = np.zeros(pairs.n_nodes)  # the largest magnitude met at each node

    def like(self) -> "Moments":
        """Those of no samples yet."""
        return Moments(self.pairs)

    @classmethod
    def of(cls, signals: Matrix, pairs: Pairs | None = None) -> "Moments":
        """The moments of one table (samples, nodes) on all pairs, or on the pairs given."""
        out = cls(Pairs.all(signals.shape[1]) if pairs is None else pairs)
        out.update(signals)
        return out

    def update(self, signals: Matrix) -> None:
        """Add samples, rows of (samples, nodes); float32 is summed in float64."""
        if signals.ndim != 2 or signals.shape[1] != self.pairs.n_nodes:
            raise SignalError(f"signals: expected (samples, {self.pairs.n_nodes}), got shape {signals.shape}.")
        rows = max(1, CHUNK_BYTES // (8 * self.pairs.n_nodes))
        for start in range(0, signals.shape[0], rows):
            self._update_chunk(np.array(signals[start : start + rows], dtype=np.float64, order="C"))

    def __add__(self, other: "Moments") -> "Moments":
        out = Moments(self.pairs)
        for part in (self, other):
            out.absorb(part)
        return out

    def absorb(self, other: "Moments") -> None:
        """Add another silo's or block's samples to these."""
        if not other.pairs.same(self.pairs):
            raise SignalError("moments: expected the same nodes and pairs on both sides of +.")
        self._merge(other.n_samples, other.mean, other.squares)
        self.peak = np.maximum(self.peak, other.peak)
        self.cross += other.cross

    def squared_differences(self, whole: "Moments", *, standardize: bool) -> Vector:
        """Σ over samples of (x_i − x_j)² for each pair, x standardised, if at all, as the whole table's."""
        scale = np.sqrt(whole.n_samples / whole.squares) if standardize else np.ones(self.pairs.n_nodes)
        shift = self.mean - whole.mean if standardize else self.mean
        spread = self.pairs.sums(self.squares * scale**2) - 2 * self.cross * self.pairs.products(scale)
        out: Vector = np.maximum(spread, 0.0) + self.n_samples * self.pairs.differences(shift * scale) ** 2
        return out

    @property
    def gaps(self) -> int:
        """The number of empty cells: none."""
        return 0

    @property
    def fewest(self) -> int:
        """The number of rows that the pair with the fewest has: without gaps, all have all."""
        return self.n_samples

    def constant(self) -> BoolVector:
        """Which nodes have the same value in all samples."""
        return are_constant(self.n_samples, self.mean, self.squares, self.peak)

    def within(self, nodes: IntVector) -> "Moments":
        """The moments of some nodes, by rising numbers."""
        pairs, place = self.pairs.within(nodes)
        out = Moments(pairs)
        out.n_samples, out.cross = self.n_samples, self.cross[place]
        out.mean, out.squares, out.peak = self.mean[nodes], self.squares[nodes], self.peak[nodes]
        return out

    def costs(
        self, *, standardize: bool = False, names: Sequence[str] | None = None, source: str = "signals"
    ) -> Vector:
        """z/N for each pair: the mean squared difference, or 2(1 − correlation) when each node is standardised.

        `names` are the nodes', and `source` is what an error calls the table.
        """
        if self.n_samples < 2:
            raise SignalError(f"{source}: expected at least 2 samples, got {self.n_samples}. Add samples.")
        labels = default_names(self.pairs.n_nodes) if names is None else names
        check_magnitudes(self.peak, labels, source, each=standardize)
        if standardize:
            check_not_constant(self.constant(), labels, source)
            deviation = np.sqrt(self.squares)
            cost = self.cross / self.pairs.products(deviation)
            np.subtract(1.0, cost, out=cost)
            cost[cost < NOISE] = 0.0
            cost *= 2.0
            return cost
        both = self.pairs.sums(self.squares)
        cost = both - 2 * self.cross
        cost[cost < NOISE * both] = 0.0
        cost /= self.n_samples
        cost += self.pairs.differences(self.mean) ** 2
        return cost

    def _update_chunk(self, chunk: Matrix) -> None:
        self.peak = np.maximum(self.peak, np.maximum(chunk.max(axis=0), -chunk.min(axis=0)))
        if self.peak.max() > LARGEST_SIGNAL:  # would overflow; `costs` refuses it, and can name the node
            self.n_samples += chunk.shape[0]
            return
        mean = chunk.mean(axis=0)
        chunk -= mean
        self._merge(chunk.shape[0], mean, np.einsum("ij,ij->j", chunk, chunk))
        if self.pairs.listed_rows is None or self.pairs.listed_cols is None:
            for start in range(0, self.pairs.n_nodes, BLOCK_ROWS):
                add_block(chunk[:, start : start + BLOCK_ROWS].T @ chunk[:, start:], start, self.cross)
        else:
            add_listed(self.pairs.listed_rows, self.pairs.listed_cols, np.ascontiguousarray(chunk.T), self.cross)

    def _merge(self, n_samples: int, mean: Vector, squares: Vector) -> None:
        """Take in samples known by count, mean and squares; their own cross products are for the caller to add."""
        total = self.n_samples + n_samples
        if self.n_samples and n_samples:
            shift = mean - self.mean
            weight = self.n_samples * n_samples / total
            self.squares += weight * shift**2
            self.cross += weight * self.pairs.products(shift)
        if n_samples:
            self.mean = self.mean + (mean - self.mean) * (n_samples / total)
        self.squares += squares
        self.n_samples = total


def are_constant(n_samples: int | Vector, mean: Vector, squares: Vector, peak: Vector) -> BoolVector:
    """Which nodes do not vary beyond rounding; none where numbers are so large or small that nothing was summed."""
    if peak.max(initial=0.0) > LARGEST_SIGNAL:
        return np.zeros(peak.size, dtype=np.bool_)
    still = np.sqrt(squares) <= 1e-13 * np.sqrt(n_samples) * np.abs(mean)
    return np.asarray(still & ((peak == 0) | (peak >= SMALLEST_SIGNAL)))


def check_magnitudes(peak: Vector, names: Sequence[str], source: str, *, each: bool) -> None:
    """Raise where squares of squares would overflow or underflow, at a node or, unless `each` counts, at all."""
    large = np.flatnonzero(peak > LARGEST_SIGNAL)
    nonzero = peak > 0
    small = np.flatnonzero(nonzero & (peak < SMALLEST_SIGNAL))
    if large.size or (small.size and (each or small.size == nonzero.sum())):
        node = (*large, *small)[0]
        raise SignalError(
            f"{source}, column {names[node]!r}: expected magnitudes between {SMALLEST_SIGNAL:g} and "
            f"{LARGEST_SIGNAL:g}, got {peak[node]:g}. Express the signals in another unit."
        )


def check_not_constant(constant: BoolVector, names: Sequence[str], source: str) -> None:
    """Raise for nodes that cannot be standardised."""
    if constant.any():
        listed = list_names([names[int(node)] for node in np.flatnonzero(constant)], most=20)
        raise SignalError(
            f"{source}: what is constant cannot be standardised, and {constant.sum()} of the nodes are: {listed}. "
            f"Drop them; learn without standardize and transform; or, {may_lack()}."
        )


@kernel
def add_block(block: Matrix, start: int, cross: Vector) -> None:
    """Add the upper triangle's part of rows start, start + 1, …; the block's columns begin at node `start`."""
    n = start + block.shape[1]
    for a in range(block.shape[0]):
        i = start + a
        first = i * (2 * n - i - 1) // 2 - i - 1
        for j in range(i + 1, n):
            cross[first + j] += block[a, j - start]


@kernel
def add_listed(rows: IntVector, cols: IntVector, columns: Matrix, cross: Vector) -> None:
    """Add the products of each listed pair of columns."""
    for e in range(rows.size):
        left, right = columns[rows[e]], columns[cols[e]]
        total = 0.0
        for k in range(left.size):
            total += left[k] * right[k]
        cross[e] += total
