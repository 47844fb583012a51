"""Costs of all pairs that are never stored: made tile by tile from the table, as often as they are asked for.

    c_ij = Σ_k (s_i (x_ki − m_i) − s_j (x_kj − m_j))² + (o_i − o_j)²

m are the nodes' means. Plain signals have s = 1/√N and o = m, standardised ones s = 1/√squares and o = 0.

A tile is one matrix product, in single precision. Its rounding is bounded node by node, and pairs that it does not rule
out by more than the bound are computed anew by these differences, in double precision. So no pair is missed and no
near-duplicate cancels, while memory grows with the table and with the pairs found.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Matrix, Vector
from silograph.data.moments import Moments
from silograph.graph.pairs import NO_PAIRS, Pairs

TILE_ROWS, TILE_COLUMNS = 1024, 512  # 2 MB, so that a product is still in the cache when it is looked through
SINGLE_UP_TO = 50_000  # samples; beyond, the bound on a sum's rounding would rule out too little in single precision
TINY = 1e-25  # of the typical cost: what underflows, counted as if it might matter
ZERO = 8 * np.finfo(np.float64).eps ** 2  # relative to sizes: a cost that is the square of rounding
BLOCK = 64  # pairs looked at together

R = TypeVar("R")


def node_moments(n_nodes: int) -> Moments:
    """Moments of nodes alone, which take the samples' checks with them."""
    return Moments(Pairs.from_sorted(n_nodes, NO_PAIRS, NO_PAIRS))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostTiles:
    """The costs of all pairs of a table's nodes, by way of the table."""

    columns: NDArray[Any]  # x as (nodes, samples), in the precision in which it came
    mean: Vector  # m
    scale: Vector  # s
    offset: Vector  # o
    sizes: Vector  # what a node would cost with one that is zero throughout
    typical: float  # their mean: the unit of tiles, so that single precision has room for any signals

    @classmethod
    def of(
        cls,
        signals: NDArray[Any],
        moments: Moments,
        *,
        standardize: bool = False,
        names: Sequence[str] | None = None,
        source: str = "signals",
    ) -> "CostTiles":
        """Of a table (samples, nodes) without gaps and its nodes' moments; raises where `Moments.costs` does."""
        moments.costs(standardize=standardize, names=names, source=source)
        n_samples, n_nodes = signals.shape
        offset = np.zeros(n_nodes) if standardize else moments.mean - moments.mean.mean()
        scale = 1 / np.sqrt(moments.squares) if standardize else np.full(n_nodes, 1 / np.sqrt(n_samples))
        sizes = scale**2 * moments.squares + offset**2
        return cls(
            columns=np.ascontiguousarray(signals.T, np.float32 if signals.dtype == np.float32 else np.float64),
            mean=moments.mean,
            scale=scale,
            offset=offset,
            sizes=sizes,
            typical=float(sizes.mean()) or 1.0,
        )

    @property
    def n_nodes(self) -> int:
        """d, the number of nodes."""
        return int(self.columns.shape[0])

    def average(self) -> float:
        """The mean cost of all pairs."""
        n, total = self.n_nodes, np.zeros(self.columns.shape[1] + 1)
        for start in range(0, n, TILE_ROWS):
            total += self._panel(start, start + TILE_ROWS, np.float64).sum(axis=0)
        return float((n * self.sizes.sum() - self.typical * (total @ total) / 2) / (n * (n - 1) / 2))

    def at(self, rows: IntVector, cols: IntVector) -> Vector:
        """The costs of some pairs."""
        out = np.empty(rows.size)
        _fill_costs(self.columns, self.mean, self.scale, self.offset, rows, cols, out)
        # Of duplicates, the rounding of products may be left
        out[out <= ZERO * (self.sizes[rows] + self.sizes[cols])] = 0.0
        return out

    def nearest(self, k: int) -> np.ndarray:
        """The k nearest neighbours of each node, (nodes, k); between those that tiles cannot tell apart, any."""
        reach = (-self.sizes / self.typical).astype(self._precision)

        def one_panel(start: int) -> np.ndarray:
            n_rows = min(TILE_ROWS, self.n_nodes - start)
            best = np.full((n_rows, k), -np.inf, self._precision)
            neighbour = np.full((n_rows, k), -1, np.int32)
            for first, tile in self._tiles(start, 0):
                _keep_nearest(tile, reach[first : first + TILE_COLUMNS], start, first, best, neighbour)
            return neighbour

        return np.concatenate(self._by_panels(one_panel))

    def active(self, y: Vector) -> tuple[IntVector, IntVector]:
        """The pairs (rows, cols) with y_i + y_j > c_ij."""
        reach = self._reach(y)

        def one_panel(start: int) -> list[tuple[IntVector, IntVector]]:
            return [self._active_in(tile, start, first, reach, y) for first, tile in self._tiles(start, start)]

        found = [some for panel in self._by_panels(one_panel) for some in panel]
        return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])

    def _active_in(
        self, tile: NDArray[Any], start: int, first: int, reach: NDArray[Any], y: Vector
    ) -> tuple[IntVector, IntVector]:
        left, right = _not_ruled_out(tile, start, first, reach)
        called_for = y[left] + y[right] > self.at(left, right)
        return left[called_for], right[called_for]

    def _reach(self, y: Vector) -> NDArray[Any]:
        """What a node adds to the product, for it to be y_i + y_j − c_ij, and its share of the bound on rounding.

        A product of n terms is off by at most (n + 3)ε/2 times the lengths of both vectors, and so times the sum of
        both sizes; what it is added to, by a few ε more.
        """
        multiplier, size = y / self.typical, self.sizes / self.typical
        rounding = (self.columns.shape[1] + 16) * np.finfo(self._precision).eps
        return np.asarray((multiplier - size + rounding * (multiplier + size) + TINY).astype(self._precision))

    @property
    def _precision(self) -> type[np.floating[Any]]:
        return np.float32 if self.columns.shape[1] <= SINGLE_UP_TO else np.float64

    def _tiles(self, start: int, first: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Products of the panel at `start` with all nodes from `first` on, and where each begins."""
        own = self._panel(start, start + TILE_ROWS, self._precision)
        for begin in range(first, self.n_nodes, TILE_COLUMNS):
            yield begin, own @ self._panel(begin, begin + TILE_COLUMNS, self._precision).T

    def _panel(self, start: int, stop: int, precision: Any) -> NDArray[Any]:
        """Some nodes' vectors u, such that c_ij = typical·|u_i − u_j|²/2 for any two."""
        chosen, unit = slice(start, min(stop, self.n_nodes)), np.sqrt(2 / self.typical)
        out = np.empty((chosen.stop - start, self.columns.shape[1] + 1), precision)
        _fill_panel(self.columns[chosen], self.mean[chosen], unit * self.scale[chosen], out)
        out[:, -1] = unit * self.offset[chosen]
        return out

    def _by_panels(self, work: Callable[[int], R]) -> list[R]:
        """Work on all panels of rows, in order, one on each core; products and compiled loops release the lock."""
        # Products that call threads of their own would wait for a core that another panel keeps busy
        with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(work, range(0, self.n_nodes, TILE_ROWS)))


@kernel
def _fill_panel(columns: Matrix, mean: Vector, scale: Vector, out: Matrix) -> None:
    for i in range(columns.shape[0]):
        for k in range(columns.shape[1]):
            out[i, k] = (columns[i, k] - mean[i]) * scale[i]


@kernel
def _fill_costs(
    columns: Matrix, mean: Vector, scale: Vector, offset: Vector, rows: IntVector, cols: IntVector, out: Vector
) -> None:
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        left, right = columns[i], columns[j]
        total = 0.0
        for k in range(left.size):
            total += ((left[k] - mean[i]) * scale[i] - (right[k] - mean[j]) * scale[j]) ** 2
        out[e] = total + (offset[i] - offset[j]) ** 2


@kernel
def _not_ruled_out(tile: Matrix, start: int, first: int, reach: Vector) -> tuple[IntVector, IntVector]:
    """The pairs (i < j) of a tile whose product and reaches may add up to more than zero."""
    own, others = reach[start : start + tile.shape[0]], reach[first : first + tile.shape[1]]
    n_found = 0
    for i in range(tile.shape[0]):
        products = tile[i]
        for k in range(products.size):
            n_found += 1 if own[i] + others[k] + products[k] > 0 else 0
    left, right = np.empty(n_found, np.int32), np.empty(n_found, np.int32)
    filled = 0
    for i in range(tile.shape[0] if n_found > 0 else 0):
        products = tile[i]
        for k in range(max(0, start + i + 1 - first), products.size):
            if own[i] + others[k] + products[k] > 0:
                left[filled] = start + i
                right[filled] = first + k
                filled += 1
    return left[:filled], right[:filled]


@kernel
def _keep_nearest(tile: Matrix, reach: Vector, start: int, first: int, best: Matrix, neighbour: np.ndarray) -> None:
    """Take the tile's columns into the lists of its rows' nearest: those with the largest product plus reach."""
    last = best.shape[1] - 1
    for i in range(tile.shape[0]):
        for begin in range(0, tile.shape[1], BLOCK):
            products, others = tile[i, begin : begin + BLOCK], reach[begin : begin + BLOCK]
            worst, hits = best[i, last], 0
            for k in range(products.size):
                hits += 1 if products[k] + others[k] > worst else 0
            if hits == 0:
                continue
            for k in range(products.size):
                other, near = first + begin + k, products[k] + others[k]
                if near > best[i, last] and other != start + i:
                    place = last
                    while place > 0 and best[i, place - 1] < near:
                        best[i, place] = best[i, place - 1]
                        neighbour[i, place] = neighbour[i, place - 1]
                        place -= 1
                    best[i, place] = near
                    neighbour[i, place] = other
