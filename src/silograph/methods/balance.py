"""The search for the strength of a pull at which the force is ρ, compiled as a whole: solves, forces, steps.

The coordinate is a = log(1 + unit/s), zero where the silo is fused; the excess e(a) = log(‖v‖/ρ) falls as a grows and
is nearly straight, so that a bracketed secant method needs few solves, each starting where the last one ended.
"""

from __future__ import annotations

import numpy as np

from silograph._kernel import kernel
from silograph._types import IntVector, Vector
from silograph.solvers.dual import fill_weights
from silograph.solvers.newton import minimise

ACCURACY = 1e-12  # of the force; what a graph is must not depend on when a search stopped
SOLVE_TOL = 1e-20  # relative gap of a solve: weights to 1e-10, for one Newton step more than 1e-10 of the gap
ENOUGH = 1e-9  # where rounding forbids that
MOST_STEPS = 60  # of Newton's method
MOST_SOLVES = 60
DONE, HARD = 0, 1


@kernel
def next_place(
    at: float,
    excess: float,
    last_at: float,
    last_excess: float,
    strong_at: float,
    strong_excess: float,
    weak_at: float,
    weak_excess: float,
    turn: int,
) -> float:
    """Where to look next; what is not known yet is NaN. Force is over ρ at `strong`, under it at `weak`."""
    if np.isnan(strong_at):  # too small so far: pull harder, or fuse
        return max(at + 1.5 * max(excess, -3.0), 0.0)
    moved = not np.isnan(last_at) and last_at != at and np.isfinite(last_excess) and last_excess != excess
    if np.isnan(weak_at):
        slope = 1.0
        if moved:
            slope = min(max(-(excess - last_excess) / (at - last_at), 0.1), 2.0)
        return at + 1.2 * min(excess, 10.0) / slope
    width = weak_at - strong_at
    between = 0.5
    if np.isfinite(strong_excess) and np.isfinite(weak_excess):
        between = strong_excess / (strong_excess - weak_excess)
    share = between
    if moved and np.isfinite(excess):
        share = (at - excess * (at - last_at) / (excess - last_excess) - strong_at) / width
    if turn % 5 == 4:
        share = 0.5
    elif not 0.0 < share < 1.0:
        share = between
    return strong_at + min(max(share, 1e-8), 1 - 1e-8) * width


@kernel
def balanced(
    all_pairs: bool,
    rows: IntVector,
    cols: IntVector,
    cost: Vector,
    quadratic: float,
    alpha: float,
    zeta: float,
    anchor: Vector,
    metric: Vector,
    rho: float,
    unit: float,
    at: float,
    fused_excess: float,
    y: Vector,
) -> tuple[int, float, Vector, Vector, Vector, int]:
    """Whether the search was done or too hard, where it ended, w, force, multipliers and the number of solves.

    `metric` may be infinite; then `fused_excess` is the excess at a = 0, which cannot be solved for, and otherwise NaN.
    """
    n_pairs = cost.size
    k, own_cost, inverse = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
    w, force = np.empty(n_pairs), np.empty(n_pairs)
    strong_at, strong_excess = np.nan, np.nan
    if not np.isnan(fused_excess):
        strong_at, strong_excess = 0.0, fused_excess
    weak_at, weak_excess = np.nan, np.nan
    last_at, last_excess = np.nan, np.nan
    for turn in range(MOST_SOLVES):
        loose = np.expm1(at) / unit  # 1/s
        inverses = 0.0
        for e in range(n_pairs):
            k[e] = 1.0 / (1.0 / metric[e] + loose)
            own_cost[e] = cost[e] - k[e] * anchor[e]
            inverse[e] = 1.0 / (quadratic + k[e])
            inverses += inverse[e]
        y, primal, gap, _ = minimise(
            all_pairs, rows, cols, own_cost, inverse, alpha, zeta, y.copy(), SOLVE_TOL, MOST_STEPS
        )
        rounding = 0.5 * inverses * (4 * 2.220446049250313e-16 * y.max()) ** 2  # as LocalProblem.rounding
        if not gap + rounding <= ENOUGH * max(abs(primal), 1e-6 * alpha * y.size):
            return HARD, at, w, force, y, turn + 1
        fill_weights(all_pairs, rows, cols, own_cost, y, inverse, w)
        square = 0.0
        for e in range(n_pairs):
            force[e] = k[e] * (w[e] - anchor[e])
            square += force[e] * force[e]
        size = np.sqrt(square)
        if size > rho:  # by less than the accuracy, where this is the answer
            for e in range(n_pairs):
                force[e] *= rho / size
        excess = np.log(size / rho) if size > 0.0 else -np.inf
        if abs(excess) <= ACCURACY or (at == 0.0 and excess <= 0.0):
            return DONE, at, w, force, y, turn + 1
        if excess > 0.0:
            strong_at, strong_excess = at, excess
        else:
            weak_at, weak_excess = at, excess
        if weak_at - strong_at <= 1e-14 * weak_at:  # never, while one of them is NaN
            return DONE, at, w, force, y, turn + 1
        place = next_place(at, excess, last_at, last_excess, strong_at, strong_excess, weak_at, weak_excess, turn)
        last_at, last_excess, at = at, excess, place
    return DONE, at, w, force, y, MOST_SOLVES
