"""Sixteen contiguous blocks of a table's rows, each by its sum of squared differences.

Folds to hold out and half-samples are made of blocks, so that a table is read once. What a block keeps is linear in its
rows: with `standardize`, rows are centred and scaled by the whole table's means and deviations, so that a node that is
constant within a block is no trouble, and the blocks' sums add up to the whole table's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import IntVector, Matrix, Vector
from silograph.data.bounded import RowBounds
from silograph.data.pairwise import COUNT, AnyMoments, PairMoments, add_rows, alike, merged, moments_of, no_moments
from silograph.graph.pairs import Pairs

N_BLOCKS = 16
MOST_NUMBERS = 2**24  # that a table's blocks may hold: 128 MB, 1448 nodes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Blocks of rows, in the order of the table."""

    counts: IntVector  # rows of each
    sums: Matrix  # (blocks, pairs): the squared difference of each pair, summed over the block's rows
    pair_counts: Matrix | None = None  # (blocks, pairs): rows of each that have both; None: a table without gaps

    def cost(self, chosen: Sequence[int]) -> Vector:
        """z/N of the rows of some blocks; of a pair that is together in none of them, that of the whole table."""
        index = np.asarray(chosen)
        sums: Vector = self.sums[index].sum(axis=0)
        if self.pair_counts is None:
            cost: Vector = sums / self.counts[index].sum()
            return cost
        counts = self.pair_counts[index].sum(axis=0)
        whole = self.sums.sum(axis=0) / self.pair_counts.sum(axis=0)
        return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1.0), whole))

    def at(self, place: IntVector) -> "Blocks":
        """The blocks on some of the pairs."""
        counts = None if self.pair_counts is None else self.pair_counts[:, place]
        return Blocks(counts=self.counts, sums=self.sums[:, place], pair_counts=counts)

    def folds(self, most: int) -> list[list[int]]:
        """The blocks in at most so many contiguous parts of about as many rows."""
        return [part.tolist() for part in np.array_split(np.arange(len(self.counts)), most) if part.size]


class BlockReader:
    """Takes in a table chunk by chunk, however long it turns out to be, and ends with sixteen blocks of it.

    What fits one chunk is split evenly. Beyond, whenever there are twice as many blocks as wanted, neighbours are
    merged, and from then on blocks are twice as long.
    """

    def __init__(self, pairs: Pairs, bounds: RowBounds | None = None) -> None:
        self._pairs, self._bounds = pairs, bounds
        self._held: Matrix | None = None  # the first chunk, until it is known whether it is the only one
        self._blocks: list[AnyMoments] = []
        self._rows = 0  # of a block

    def update(self, chunk: Matrix) -> None:
        """Take in rows."""
        if self._held is None and not self._blocks:
            self._held = chunk
            return
        if self._held is not None:
            first, self._held = self._held, None
            self._rows = max(1, first.shape[0] // N_BLOCKS)
            self._fill(first)
        self._fill(chunk)

    def finish(self) -> list[AnyMoments]:
        """The moments of the blocks; fewer than sixteen where there are fewer rows."""
        if self._held is not None:
            return moments_of_blocks(self._held, self._pairs, self._bounds)
        if not self._blocks:
            return [no_moments(self._pairs, self._bounds)]
        ends = np.cumsum([block.n_samples for block in self._blocks])
        # Which of sixteen even parts of the table the middle of each block lies in
        middles = ends - np.array([block.n_samples for block in self._blocks]) / 2
        part = np.minimum((N_BLOCKS * middles / ends[-1]).astype(int), N_BLOCKS - 1)
        groups = [np.flatnonzero(part == k) for k in range(N_BLOCKS)]
        return [merged([self._blocks[k] for k in group]) for group in groups if group.size]

    def _fill(self, chunk: Matrix) -> None:
        start = 0
        while start < chunk.shape[0]:
            if not self._blocks or self._blocks[-1].n_samples >= self._rows:
                self._make_room()
                self._blocks.append(no_moments(self._pairs, self._bounds))
            stop = start + self._rows - self._blocks[-1].n_samples
            self._blocks[-1] = add_rows(self._blocks[-1], chunk[start:stop])
            start = stop

    def _make_room(self) -> None:
        if len(self._blocks) == 2 * N_BLOCKS:
            pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
            self._blocks = [merged(two) for two in pairs]
            self._rows *= 2


def moments_of_blocks(table: Matrix, pairs: Pairs, bounds: RowBounds | None = None) -> list[AnyMoments]:
    """The moments of sixteen blocks of a table; of fewer where it has fewer rows."""
    parts = [rows for rows in np.array_split(table, N_BLOCKS) if rows.shape[0]] or [table]
    return [moments_of(rows, pairs, bounds) for rows in parts]


def fit_in_memory(pairs: Pairs) -> bool:
    """Whether blocks are kept for so many pairs."""
    return N_BLOCKS * pairs.size <= MOST_NUMBERS


def blocks_of(parts: Sequence[AnyMoments], whole: AnyMoments, *, standardize: bool) -> Blocks:
    """The blocks, from the moments of each and of the whole table, which must have passed the checks of its costs."""
    sums = np.empty((len(parts), whole.pairs.size))
    for row, part in zip(sums, alike(parts), strict=True):
        row[:] = part.squared_differences(whole, standardize=standardize)
    gappy = isinstance(whole, PairMoments)
    return Blocks(
        counts=np.array([part.n_samples for part in parts]),
        sums=sums,
        pair_counts=np.array([part.sums[COUNT] for part in alike(parts)]) if gappy else None,
    )
