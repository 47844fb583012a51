"""The cheapest pairs at each node: starting points, candidate pairs and the degree rule need them."""

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Matrix, Vector
from silograph.graph.pairs import Pairs

BLOCK = 64  # pairs looked at together


def cheapest_pair(pairs: Pairs, cost: Vector) -> tuple[Vector, np.ndarray]:
    """For each node the cost of its cheapest pair (infinite without one), and where that pair stands."""
    value = np.full(pairs.n_nodes, np.inf)
    where = np.full(pairs.n_nodes, -1, dtype=np.int64)
    if pairs.listed_rows is None or pairs.listed_cols is None:
        _cheapest_all(cost, value, where)
    else:
        _cheapest_listed(pairs.listed_rows, pairs.listed_cols, cost, value, where)
    return value, where


def cheapest_cost(pairs: Pairs, cost: Vector) -> Vector:
    """For each node the cost of its cheapest pair; infinite without one."""
    if not pairs.is_all:
        return cheapest_pair(pairs, cost)[0]
    value = np.full(pairs.n_nodes, np.inf)
    _cheapest_cost_all(cost, value)
    return value


def nearest_neighbours(pairs: Pairs, cost: Vector, k: int) -> tuple[Matrix, np.ndarray]:
    """The k cheapest costs at each node, ascending, and the neighbours they lead to; ∞ and −1 where there are fewer."""
    value = np.full((pairs.n_nodes, k), np.inf)
    neighbour = np.full((pairs.n_nodes, k), -1, dtype=np.int32)
    if pairs.listed_rows is None or pairs.listed_cols is None:
        _nearest_all(cost, value, neighbour)
    else:
        _nearest_listed(pairs.listed_rows, pairs.listed_cols, cost, value, neighbour)
    return value, neighbour


@kernel
def _cheapest_cost_all(cost: Vector, value: Vector) -> None:
    """As `_cheapest_all`, in loops that become vectors: where the cheapest pair stands would hide them."""
    n = value.size
    lanes = np.empty(BLOCK)
    start = 0
    for i in range(n):
        costs, others = cost[start : start + n - i - 1], value[i + 1 :]
        for k in range(costs.size):
            others[k] = costs[k] if costs[k] < others[k] else others[k]
        whole = costs.size // BLOCK * BLOCK
        lanes[:] = np.inf
        for first in range(0, whole, BLOCK):
            some = costs[first : first + BLOCK]
            for k in range(BLOCK):
                lanes[k] = some[k] if some[k] < lanes[k] else lanes[k]
        for k in range(BLOCK):
            value[i] = min(value[i], lanes[k])
        for k in range(whole, costs.size):
            value[i] = min(value[i], costs[k])
        start += n - i - 1


@kernel
def _cheapest_all(cost: Vector, value: Vector, where: np.ndarray) -> None:
    n = value.size
    e = 0
    for i in range(n):
        for j in range(i + 1, n):
            if cost[e] < value[i]:
                value[i] = cost[e]
                where[i] = e
            if cost[e] < value[j]:
                value[j] = cost[e]
                where[j] = e
            e += 1


@kernel
def _cheapest_listed(rows: IntVector, cols: IntVector, cost: Vector, value: Vector, where: np.ndarray) -> None:
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        if cost[e] < value[i]:
            value[i] = cost[e]
            where[i] = e
        if cost[e] < value[j]:
            value[j] = cost[e]
            where[j] = e


@kernel
def _insert(value: Matrix, neighbour: np.ndarray, node: int, cost: float, other: int) -> None:
    k = value.shape[1] - 1
    while k > 0 and value[node, k - 1] > cost:
        value[node, k] = value[node, k - 1]
        neighbour[node, k] = neighbour[node, k - 1]
        k -= 1
    value[node, k] = cost
    neighbour[node, k] = other


@kernel
def _nearest_all(cost: Vector, value: Matrix, neighbour: np.ndarray) -> None:
    n = value.shape[0]
    worst = value[:, -1].copy()
    start = 0
    for i in range(n):
        costs, others = cost[start : start + n - i - 1], worst[i + 1 :]
        for first in range(0, costs.size, BLOCK):
            some, theirs = costs[first : first + BLOCK], others[first : first + BLOCK]
            # Nearly all blocks hold nothing of interest once a few rows are through; that is told with vectors
            own, hits = worst[i], 0
            for k in range(some.size):
                hits += 1 if some[k] < own or some[k] < theirs[k] else 0
            if hits == 0:
                continue
            for k in range(some.size):
                j = i + 1 + first + k
                if some[k] < worst[i]:
                    _insert(value, neighbour, i, some[k], j)
                    worst[i] = value[i, -1]
                if some[k] < theirs[k]:
                    _insert(value, neighbour, j, some[k], i)
                    theirs[k] = value[j, -1]
        start += n - i - 1


@kernel
def _nearest_listed(rows: IntVector, cols: IntVector, cost: Vector, value: Matrix, neighbour: np.ndarray) -> None:
    k = value.shape[1]
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        if cost[e] < value[i, k - 1]:
            _insert(value, neighbour, i, cost[e], j)
        if cost[e] < value[j, k - 1]:
            _insert(value, neighbour, j, cost[e], i)
