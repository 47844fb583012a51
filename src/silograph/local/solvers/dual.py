"""The dual function's loops over pairs, compiled; all of Newton's method is made of them.

They take 1/q as an array of one number for all pairs, or of one per pair: one type, so that each is compiled once. What
is the same for all pairs is multiplied once, after the sum, and a problem of that kind pays nothing for the others.

Each takes the pairs as `all_pairs, rows, cols` (`Pairs.index`), the arrays being empty when all pairs are meant. Loops
over all pairs take one slice per row of the upper triangle: with plain indices the compiler finds no vectors.
"""

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import scratch
from silograph.local.problem import LocalProblem

BLOCK = 64  # pairs looked at together


def gap_at(problem: LocalProblem, y: Vector) -> float:
    """The duality gap at w(y), with a bound on its rounding."""
    degrees = scratch(problem.n_nodes)
    weight_sums(*problem.pairs.index, problem.cost, problem.inverse, y, degrees)
    return problem.node_gap(degrees, y) + problem.rounding(y)


def active_pairs(problem: LocalProblem, y: Vector) -> tuple[IntVector, IntVector]:
    """The pairs (rows, cols) with y_i + y_j > c_e: the edges of w(y)."""
    index, inverse = problem.pairs.index, problem.inverse
    _, n_active = weight_sums(*index, problem.cost, inverse, y, scratch(problem.n_nodes))
    left, right, _ = list_active(*index, problem.cost, inverse, y, n_active)
    return left, right


def weights_at(problem: LocalProblem, y: Vector) -> Vector:
    """w(y), in one pass."""
    w = np.empty(problem.pairs.size)
    fill_weights(*problem.pairs.index, problem.cost, y, problem.inverse, w)
    return w


@kernel
def weight_sums(
    all_pairs: bool, rows: IntVector, cols: IntVector, cost: Vector, inverse: Vector, y: Vector, degrees: Vector
) -> tuple[float, int]:
    """Fill `degrees` with S w(y); return Σ (y_i + y_j − c_e)₊²/q_e and the number of edges."""
    n = y.size
    alike = inverse.size == 1
    same = inverse[0] if alike else 1.0
    squares = 0.0
    count = 0
    for v in range(n):
        degrees[v] = 0.0
    start = 0
    if not all_pairs:
        for e in range(rows.size):
            slack = y[rows[e]] + y[cols[e]] - cost[e]
            if slack > 0.0:
                weight = slack if alike else slack * inverse[e]
                squares += slack * weight
                count += 1
                degrees[rows[e]] += weight
                degrees[cols[e]] += weight
    elif alike:
        for i in range(n):
            own, total, stop = y[i], 0.0, start + n - i - 1
            costs, others, rest = cost[start:stop], y[i + 1 :], degrees[i + 1 :]
            for k in range(costs.size):
                slack = max(own + others[k] - costs[k], 0.0)
                squares += slack * slack
                count += slack > 0.0
                total += slack
                rest[k] += slack
            degrees[i] += total
            start = stop
    else:
        for i in range(n):
            own, total, stop = y[i], 0.0, start + n - i - 1
            costs, factors, others, rest = cost[start:stop], inverse[start:stop], y[i + 1 :], degrees[i + 1 :]
            for k in range(costs.size):
                slack = max(own + others[k] - costs[k], 0.0)
                weight = slack * factors[k]
                squares += slack * weight
                count += slack > 0.0
                total += weight
                rest[k] += weight
            degrees[i] += total
            start = stop
    for v in range(n):
        degrees[v] *= same
    return squares * same, count


@kernel
def list_active(
    all_pairs: bool, rows: IntVector, cols: IntVector, cost: Vector, inverse: Vector, y: Vector, n_active: int
) -> tuple[IntVector, IntVector, Vector]:
    """The active pairs, of which there are `n_active`, in order, and their 1/q."""
    left, right = np.empty(n_active, np.int32), np.empty(n_active, np.int32)
    alike = inverse.size == 1
    factors = inverse if alike else np.empty(n_active)
    filled = 0
    if not all_pairs:
        for e in range(rows.size):
            if y[rows[e]] + y[cols[e]] - cost[e] > 0.0:
                left[filled] = rows[e]
                right[filled] = cols[e]
                if not alike:
                    factors[filled] = inverse[e]
                filled += 1
        return left, right, factors
    n = y.size
    start = 0
    for i in range(n):
        own = y[i]
        costs, others = cost[start : start + n - i - 1], y[i + 1 :]
        for first in range(0, costs.size, BLOCK):
            some, theirs = costs[first : first + BLOCK], others[first : first + BLOCK]
            hits = 0
            for k in range(some.size):
                hits += 1 if own + theirs[k] - some[k] > 0.0 else 0
            if hits > 0:
                for k in range(some.size):
                    if own + theirs[k] - some[k] > 0.0:
                        left[filled] = i
                        right[filled] = i + 1 + first + k
                        if not alike:
                            factors[filled] = inverse[start + first + k]
                        filled += 1
        start += n - i - 1
    return left, right, factors


@kernel
def fill_weights(
    all_pairs: bool, rows: IntVector, cols: IntVector, cost: Vector, y: Vector, inverse: Vector, w: Vector
) -> None:
    """Fill `w` with w(y)."""
    alike = inverse.size == 1
    same = inverse[0]
    if not all_pairs:
        for e in range(rows.size):
            w[e] = max(y[rows[e]] + y[cols[e]] - cost[e], 0.0) * (same if alike else inverse[e])
        return
    n = y.size
    start = 0
    if alike:
        for i in range(n):
            own, stop = y[i], start + n - i - 1
            costs, others, out = cost[start:stop], y[i + 1 :], w[start:stop]
            for k in range(costs.size):
                out[k] = max(own + others[k] - costs[k], 0.0) * same
            start = stop
        return
    for i in range(n):
        own, stop = y[i], start + n - i - 1
        costs, factors, others, out = cost[start:stop], inverse[start:stop], y[i + 1 :], w[start:stop]
        for k in range(costs.size):
            out[k] = max(own + others[k] - costs[k], 0.0) * factors[k]
        start = stop
