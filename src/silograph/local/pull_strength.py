"""The search for the strength of a pull at which the force is ρ, compiled as a whole: solves, forces, steps.

The coordinate is a = log(1 + unit/s), zero where the silo is fused; the excess e(a) = log(‖v‖/ρ) falls as a grows and
is nearly straight. Newton's method, kept within a bracket, takes three solves as a rule. Its slope comes from the
solution's own derivative, which costs one more solve with the matrix of the last Newton direction: with k' = dk/da, b =
k'(w − x) and D = diag(1/(q + k)) on the edges of w,

    (S D Sᵀ + diag(α/y²)) y' = S D b ,    w' = D (Sᵀy' − b) ,    v' = b + k w' ,    de/da = vᵀv'/‖v‖²

and y + y'Δa is where the next solve starts.
"""

from typing import cast

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import scratch
from silograph.graph.pairs import fill_degrees
from silograph.local.solvers.dual import fill_weights
from silograph.local.solvers.newton import direction, minimise

# Measured on the tests' 116 joint problems of up to 40 nodes (tests/silo_problems.py): 17 593 searches take 54 112
# solves, at most 29 each. None of what is below changes the number of rounds.
FORCE_TOL = 1e-11  # relative, the finest; 1e-10 saves 4 % of the solves, 1e-12 costs 4 % and up to 54 in one search
SOLVE_TOL = 1e-20  # relative gap of a solve: weights to 1e-10. At 1e-14 some searches take all 60, 1e-24 gains nothing
FINER = 0.1  # the weights of a solve, than the force that is asked for
ROUGH_TOL = 1e-9  # where rounding forbids that; between 1e-8 and 1e-12 nothing changes
MAX_NEWTON_ITER = cast(int, np.int64(60))  # a plain 60 is a type of its own: `minimise` would be compiled once more
MAX_PROX_SOLVES = 60
SLOPE_TOL = 1e-4  # of the derivative; between 1e-3 and 1e-6 nothing changes, 1e-2 costs 3 % more solves
WITHIN_RHO = 1 - 1e-14  # a force no larger than this part of ρ is within ρ, however it is rounded
LONGEST_STEP = 3.0  # of the coordinate into the unknown; between 1 and 9 nothing changes
BISECT_EVERY = 6  # solves, against a slope that misleads; 3 costs 61 % more solves, 18 saves 5 %
FOUND, TOO_HARD = 0, 1


@kernel
def next_coordinate(at: float, excess: float, slope: float, strong_at: float, weak_at: float, turn: int) -> float:
    """Where to look next. The force is over ρ at `strong_at` and under it at `weak_at`, each NaN while unknown."""
    guess = at - excess / slope if slope < 0.0 else at + 2.0 * excess
    guess = min(guess, at + LONGEST_STEP)
    if np.isnan(strong_at):  # too small a force so far: pull harder, or fuse
        return max(guess, 0.0)
    if np.isnan(weak_at):
        return max(guess, strong_at + 1e-12)
    if turn % BISECT_EVERY == BISECT_EVERY - 1 or not strong_at < guess < weak_at:
        return 0.5 * (strong_at + weak_at)
    return guess


@kernel
def find_pull_strength(
    all_pairs: bool, rows: IntVector, cols: IntVector, cost: Vector, quadratic: float, alpha: float,
    zeta: float, anchor: Vector, metric: Vector, rho: float, unit: float, at: float, fused: bool, y: Vector, tol: float,
    w: Vector, force: Vector, space: tuple[Vector, ...],
) -> tuple[int, float, Vector, int]:  # fmt: skip
    """Fill w and force; whether the search was done or too hard, where it ended, multipliers, the number of solves.

    `metric` may be infinite; then the fused end a = 0 cannot be solved for, and `fused` says that its force is over ρ.
    """
    n_pairs = cost.size
    k, own_cost, inverse, push = space
    strong_at = 0.0 if fused else np.nan
    weak_at = np.nan
    solve_tol = max(SOLVE_TOL, (FINER * tol) ** 2)
    for turn in range(MAX_PROX_SOLVES):
        loose = np.expm1(at) / unit  # 1/s
        inverses, largest = 0.0, 0.0
        for e in range(n_pairs):
            k[e] = 1.0 / (1.0 / metric[e] + loose)
            own_cost[e] = cost[e] - k[e] * anchor[e]
            inverse[e] = 1.0 / (quadratic + k[e])
            inverses += inverse[e]
        y, primal, gap, _ = minimise(
            all_pairs, rows, cols, own_cost, inverse, alpha, zeta, y, solve_tol, MAX_NEWTON_ITER
        )
        for v in range(y.size):
            largest = max(largest, y[v])
        rounding = 0.5 * inverses * (4 * 2.220446049250313e-16 * largest) ** 2  # as LocalProblem.rounding
        if not gap + rounding <= ROUGH_TOL * max(abs(primal), 1e-6 * alpha * y.size):
            return TOO_HARD, at, y, turn + 1
        fill_weights(all_pairs, rows, cols, own_cost, y, inverse, w)
        if zeta == 0.0 and _some_node_is_bare(all_pairs, rows, cols, w, y.size):
            return TOO_HARD, at, y, turn + 1
        square = 0.0
        for e in range(n_pairs):
            force[e] = k[e] * (w[e] - anchor[e])
            square += force[e] * force[e]
        size = np.sqrt(square)
        excess = np.log(size / rho) if size > 0.0 else -np.inf
        done = abs(excess) <= tol or (at == 0.0 and excess <= 0.0)
        if not done:
            if excess > 0.0:
                strong_at = at
            else:
                weak_at = at
            # Without a bracket the first condition is false
            done = weak_at - strong_at <= 1e-14 * weak_at or turn == MAX_PROX_SOLVES - 1
        if done:
            if size > WITHIN_RHO * rho:  # by less than the accuracy
                for e in range(n_pairs):
                    force[e] *= WITHIN_RHO * rho / size
            return FOUND, at, y, turn + 1
        steepness = -np.exp(at) / unit
        for e in range(n_pairs):
            push[e] = k[e] * k[e] * steepness * (w[e] - anchor[e])
        drift, product = _drift(all_pairs, rows, cols, k, inverse, alpha, y, w, force, push)
        slope = product / square
        place = next_coordinate(at, excess, slope, strong_at, weak_at, turn)
        for v in range(y.size):
            y[v] = max(y[v] + drift[v] * (place - at), 0.1 * y[v])
        at = place
    return FOUND, at, y, MAX_PROX_SOLVES


@kernel
def _some_node_is_bare(all_pairs: bool, rows: IntVector, cols: IntVector, w: Vector, n_nodes: int) -> bool:
    """Whether rounding took a node's last edge: a weight that is there in the sums may vanish on its own."""
    degrees = scratch(n_nodes)
    fill_degrees(all_pairs, rows, cols, w, degrees)
    least = np.inf
    for v in range(n_nodes):
        least = min(least, degrees[v])
    return least == 0.0


@kernel
def _drift(
    all_pairs: bool, rows: IntVector, cols: IntVector, k: Vector, inverse: Vector, alpha: float, y: Vector,
    w: Vector, force: Vector, push: Vector,
) -> tuple[Vector, float]:  # fmt: skip
    """dy/da, from the pairs' pushes b, and the product vᵀ dv/da."""
    product, n_edges = 0.0, 0
    for e in range(w.size):
        product += force[e] * push[e]
        n_edges += w[e] > 0.0
    left, right, edges = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32), np.empty(n_edges, np.int64)
    factors, target = np.empty(n_edges), scratch(y.size)
    for v in range(y.size):
        target[v] = 0.0
    filled, i, j = 0, 0, 0
    for e in range(w.size):
        if all_pairs:
            j += 1
            if j == y.size:
                i += 1
                j = i + 1
        else:
            i, j = rows[e], cols[e]
        if w[e] > 0.0:
            left[filled], right[filled], edges[filled], factors[filled] = i, j, e, inverse[e]
            target[i] -= inverse[e] * push[e]
            target[j] -= inverse[e] * push[e]
            filled += 1
    drift = direction(left, right, factors, alpha, y, target, SLOPE_TOL)
    for f in range(n_edges):
        e = edges[f]
        product += force[e] * k[e] * inverse[e] * (drift[left[f]] + drift[right[f]] - push[e])
    return drift, product


@kernel
def harmonic_mean(values: Vector) -> float:
    """The number whose inverse is the mean of the inverses."""
    inverses = 0.0
    for e in range(values.size):
        inverses += 1.0 / values[e]
    return values.size / inverses
