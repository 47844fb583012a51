"""Second moments of tables with gaps: each pair's over the rows that have both its nodes.

The model needs a distance for each pair, and no positive definite matrix. So a pair's mean squared difference, or its
correlation, may rest on other rows than the next pair's. Sums are centred pair by pair and chunk by chunk, as those of
`moments.py`, which remain in use as long as no gap is met.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.data.bounded import BoundedMoments, RowBounds
from silograph.data.moments import (
    CHUNK_BYTES,
    LARGEST_SIGNAL,
    NOISE,
    Moments,
    are_constant,
    check_magnitudes,
    check_not_constant,
)
from silograph.data.readers.checks import may_lack
from silograph.errors import SignalError
from silograph.graph.pairs import Pairs, default_names

COUNT, LEFT_MEAN, RIGHT_MEAN, LEFT_SQUARES, RIGHT_SQUARES, CROSS = range(6)


class PairMoments:
    """The moments of the samples seen so far, each pair's of its own; in all else like `Moments`."""

    __slots__ = ("n_samples", "nodes", "pairs", "peak", "sums")

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.n_samples = 0  # rows, with gaps or without
        self.sums = np.zeros((6, pairs.size))  # count, both means, both centred squares, cross products
        self.nodes = np.zeros((3, pairs.n_nodes))  # each node's own count, mean and centred squares
        self.peak = np.zeros(pairs.n_nodes)  # the largest magnitude met at each node

    @classmethod
    def of_plain(cls, plain: Moments) -> "PairMoments":
        """The same moments of a table without gaps."""
        out, rows, cols = cls(plain.pairs), plain.pairs.rows, plain.pairs.cols
        out.n_samples, out.peak = plain.n_samples, plain.peak.copy()
        out.nodes = np.stack([np.full(plain.pairs.n_nodes, float(plain.n_samples)), plain.mean, plain.squares])
        out.sums[COUNT], out.sums[CROSS] = plain.n_samples, plain.cross
        out.sums[LEFT_MEAN], out.sums[RIGHT_MEAN] = plain.mean[rows], plain.mean[cols]
        out.sums[LEFT_SQUARES], out.sums[RIGHT_SQUARES] = plain.squares[rows], plain.squares[cols]
        return out

    def like(self) -> "PairMoments":
        """Those of no samples yet."""
        return PairMoments(self.pairs)

    def update(self, signals: Matrix) -> None:
        """Add samples, rows of (samples, nodes); NaN is a gap."""
        rows = max(1, CHUNK_BYTES // (8 * self.pairs.n_nodes))
        for start in range(0, signals.shape[0], rows):
            self._update_chunk(np.array(signals[start : start + rows].T, dtype=np.float64, order="C"))

    def absorb(self, other: "PairMoments") -> None:
        """Add another block's samples to these."""
        self.n_samples += other.n_samples
        self.peak = np.maximum(self.peak, other.peak)
        _merge_nodes(self.nodes, other.nodes)
        _merge_pairs(self.sums, other.sums)

    def within(self, nodes: IntVector) -> "PairMoments":
        """The moments of some nodes, by rising numbers."""
        pairs, place = self.pairs.within(nodes)
        out = PairMoments(pairs)
        out.n_samples, out.sums = self.n_samples, np.ascontiguousarray(self.sums[:, place])
        out.nodes, out.peak = self.nodes[:, nodes], self.peak[nodes]
        return out

    @property
    def fewest(self) -> int:
        """The number of rows that the pair with the fewest has."""
        return int(self.sums[COUNT].min(initial=self.n_samples))

    @property
    def gaps(self) -> int:
        """The number of empty cells."""
        return int(self.n_samples * self.pairs.n_nodes - self.nodes[0].sum())

    def constant(self) -> BoolVector:
        """Which nodes have the same value wherever they have one, or none."""
        count, mean, squares = self.nodes
        return are_constant(count, mean, squares, self.peak)

    def squared_differences(self, whole: "PairMoments", *, standardize: bool) -> Vector:
        """Σ over a pair's samples of (x_i − x_j)², x standardised, if at all, as the pair's in the whole table."""
        count, *means, left, right, cross = self.sums
        if standardize:
            a, b = (np.sqrt(whole.sums[COUNT] / whole.sums[row]) for row in (LEFT_SQUARES, RIGHT_SQUARES))
            shift = (means[0] - whole.sums[LEFT_MEAN]) * a - (means[1] - whole.sums[RIGHT_MEAN]) * b
            spread = left * a**2 + right * b**2 - 2 * cross * a * b
        else:
            shift, spread = means[0] - means[1], left + right - 2 * cross
        out: Vector = np.maximum(spread, 0.0) + count * shift**2
        return out

    def costs(
        self, *, standardize: bool = False, names: Sequence[str] | None = None, source: str = "signals"
    ) -> Vector:
        """z/N for each pair over the rows that have both: mean squared differences, or 2(1 − correlation)."""
        labels = default_names(self.pairs.n_nodes) if names is None else names
        self._check_counts(labels, source)
        check_magnitudes(self.peak, labels, source, each=standardize)
        count, left_mean, right_mean, left, right, cross = self.sums
        if standardize:
            check_not_constant(self.constant(), labels, source)
            self._check_pairs_vary(labels, source)
            cost: Vector = 1.0 - cross / (np.sqrt(left) * np.sqrt(right))
            cost[cost < NOISE] = 0.0
            return np.minimum(2.0 * cost, 4.0)
        both = left + right
        cost = both - 2 * cross
        cost[cost < NOISE * both] = 0.0
        cost /= count
        cost += (left_mean - right_mean) ** 2
        return cost

    def _check_counts(self, names: Sequence[str], source: str) -> None:
        few = np.flatnonzero(self.sums[COUNT] < 2)
        if not few.size:
            return
        empty = np.flatnonzero(self.nodes[COUNT] == 0)
        if empty.size:
            raise SignalError(
                f"{source}, column {names[int(empty[0])]!r}: expected numbers, got gaps only. "
                f"Drop it, or, {may_lack()}."
            )
        left, right = self._pair_names(few[0], names)
        more = f" (and {few.size - 1} more pairs have too few)" if few.size > 1 else ""
        raise SignalError(
            f"{source}: expected at least 2 rows that have both {left!r} and {right!r}, got "
            f"{self.sums[COUNT, few[0]]:.0f}{more}. Drop one of them, or forbid the pair."
        )

    def _check_pairs_vary(self, names: Sequence[str], source: str) -> None:
        count, _, _, left, right, _ = self.sums
        for squares, node, side in ((left, self.pairs.rows, 0), (right, self.pairs.cols, 1)):
            # Not relative to the pair's own mean: a node's values are centred by the mean of all its rows, so that even
            # where the pair has zeros alone, rounding is of the size of the node's other values
            still = np.flatnonzero(np.sqrt(squares) <= 1e-13 * np.sqrt(count) * self.peak[node])
            if still.size:
                both = self._pair_names(still[0], names)
                raise SignalError(
                    f"{source}: what is constant cannot be standardised, and {both[side]!r} is in the "
                    f"{count[still[0]]:.0f} rows that have {both[1 - side]!r} too. Drop one of them, forbid the pair, "
                    "or learn without standardize and transform."
                )

    def _pair_names(self, pair: int, names: Sequence[str]) -> tuple[str, str]:
        rows, cols = self.pairs.at(np.array([pair]))
        return names[int(rows[0])], names[int(cols[0])]

    def _update_chunk(self, columns: Matrix) -> None:
        """Add samples given as rows of (nodes, samples), which are altered."""
        here = ~np.isnan(columns)
        columns[~here] = 0.0
        self.n_samples += columns.shape[1]
        self.peak = np.maximum(self.peak, np.abs(columns).max(axis=1, initial=0.0))
        if self.peak.max() > LARGEST_SIGNAL:  # would overflow; `costs` refuses it, and can name the node
            _merge_nodes(self.nodes, np.stack([here.sum(axis=1), *np.zeros((2, len(here)))]))
            self.sums[COUNT] += columns.shape[1]
            return
        count = here.sum(axis=1)
        mean = columns.sum(axis=1) / np.maximum(count, 1)
        columns -= mean[:, None]
        columns *= here
        _merge_nodes(self.nodes, np.stack([count, mean, np.einsum("ij,ij->i", columns, columns)]))
        fresh = np.empty((6, self.pairs.size))
        _pair_sums(*self.pairs.index, columns, here.astype(np.float64), mean, fresh)
        _merge_pairs(self.sums, fresh)


AnyMoments = Moments | PairMoments | BoundedMoments


def no_moments(pairs: Pairs, bounds: RowBounds | None = None) -> AnyMoments:
    """Moments of no samples yet; with `bounds`, of rows that are bounded first."""
    return Moments(pairs) if bounds is None else BoundedMoments(pairs, bounds)


def moments_of(signals: Matrix, pairs: Pairs, bounds: RowBounds | None = None) -> AnyMoments:
    """The moments of one table, plain ones if it has no gaps."""
    return add_rows(no_moments(pairs, bounds), signals)


def add_rows(moments: AnyMoments, signals: Matrix) -> AnyMoments:
    """The moments with more samples; the first gap turns plain ones into those of pairs."""
    if isinstance(moments, Moments) and np.isnan(signals).any():
        moments = PairMoments.of_plain(moments)
    moments.update(signals)
    return moments


def alike(some: Sequence[AnyMoments]) -> list[Any]:
    """Moments that can be added: all of one kind."""
    if not any(isinstance(each, PairMoments) for each in some):
        return list(some)
    return [PairMoments.of_plain(each) if isinstance(each, Moments) else each for each in some]


def merged(some: Sequence[AnyMoments]) -> AnyMoments:
    """The moments of all their rows."""
    parts = alike(some)
    out: AnyMoments = parts[0].like()
    for part in parts:
        out.absorb(part)
    return out


def _merge_nodes(mine: Matrix, theirs: Matrix) -> None:
    """Take in other samples of the nodes, known by count, mean and centred squares."""
    total = np.maximum(mine[0] + theirs[0], 1.0)
    shift = theirs[1] - mine[1]
    mine[2] += theirs[2] + mine[0] * theirs[0] / total * shift**2
    mine[1] += shift * (theirs[0] / total)
    mine[0] += theirs[0]


@kernel
def _merge_pairs(mine: Matrix, theirs: Matrix) -> None:
    """The same of pairs."""
    for e in range(mine.shape[1]):
        n = theirs[0, e]
        if n == 0.0:
            continue
        total = mine[0, e] + n
        weight = mine[0, e] * n / total
        left, right = theirs[1, e] - mine[1, e], theirs[2, e] - mine[2, e]
        mine[3, e] += theirs[3, e] + weight * left * left
        mine[4, e] += theirs[4, e] + weight * right * right
        mine[5, e] += theirs[5, e] + weight * left * right
        mine[1, e] += left * (n / total)
        mine[2, e] += right * (n / total)
        mine[0, e] = total


@kernel
def _pair_sums(
    all_pairs: bool, rows: IntVector, cols: IntVector, columns: Matrix, here: Matrix, offset: Vector, out: Matrix
) -> None:
    """Fill `out` with the sums of one chunk; its columns are centred by the offset, and 0 in gaps."""
    if not all_pairs:
        for e in range(rows.size):
            _one_pair(columns, here, offset, rows[e], cols[e], out, e)
        return
    e = 0
    for i in range(offset.size):
        for j in range(i + 1, offset.size):
            _one_pair(columns, here, offset, i, j, out, e)
            e += 1


@kernel
def _one_pair(columns: Matrix, here: Matrix, offset: Vector, i: int, j: int, out: Matrix, e: int) -> None:
    left, right, here_left, here_right = columns[i], columns[j], here[i], here[j]
    count = left_mean = right_mean = 0.0
    for k in range(left.size):
        count += here_left[k] * here_right[k]
        left_mean += left[k] * here_right[k]
        right_mean += right[k] * here_left[k]
    left_mean /= max(count, 1.0)
    right_mean /= max(count, 1.0)
    left_squares = right_squares = cross = 0.0
    for k in range(left.size):
        both = here_left[k] * here_right[k]
        x, y = (left[k] - left_mean) * both, (right[k] - right_mean) * both
        left_squares += x * x
        right_squares += y * y
        cross += x * y
    out[0, e] = count
    out[1, e] = left_mean + offset[i]
    out[2, e] = right_mean + offset[j]
    out[3, e] = left_squares
    out[4, e] = right_squares
    out[5, e] = cross
