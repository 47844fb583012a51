"""The dual Newton method: d variables instead of d(d−1)/2, and a certificate at the end.

    minimise F(y) = (1/2q) Σ_e (y_i + y_j − c_e)₊² − α Σ_v log y_v + ζ Σ_v y_v        over y > 0
    gradient        S w(y) + ζ − α/y
    Hessian         (1/q)·(signless Laplacian of the edges of w(y)) + diag(α/y²)       (generalised)

F is convex, once differentiable and piecewise smooth: a damped semismooth Newton method converges from anywhere and
quadratically at the end. The direction comes from conjugate gradients on the few active edges, or from a dense factor
where d is small or conjugate gradients do not settle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from silograph._kernel import kernel
from silograph._types import IntVector, Matrix, Vector
from silograph.nearest import cheapest_cost, cheapest_pair
from silograph.problem import LocalProblem, active_pairs, evaluate_dual
from silograph.solvers.solution import Solution, certified

DENSE_UP_TO = 48  # nodes; up to here a dense factor is cheaper than conjugate gradients
DENSE_FALLBACK_UP_TO = 300  # nodes; beyond, an unsettled direction is taken as it is: it still descends
CG_TOL = 1e-2  # how well a direction is solved for, far from the optimum; near it, as well as the gap demands
CG_BEST = 1e-12  # what rounding allows
CG_MAX_ITER = 500
KEEP_POSITIVE = 0.95  # the part of the way to the boundary y = 0 that one step may go
SUFFICIENT_DECREASE = 1e-4
MAX_HALVINGS = 60
ROUNDING = 1e-13  # relative error of F, below which its differences say nothing


def solve(problem: LocalProblem, *, start: Vector | None = None, tol: float = 1e-8, max_iter: int = 200) -> Solution:
    """Minimise the dual until the relative duality gap is at most `tol`.

    `start` are the multipliers of a similar problem (a warm start); they are not altered.
    """
    point = _point(problem, default_start(problem) if start is None else start)
    n_iter = 0
    while point.relative_gap > tol and n_iter < max_iter:
        direction = _direction(problem, point)
        moved = None if direction is None else _line_search(problem, point, direction)
        if moved is None:  # no digit left to gain
            break
        point = moved
        n_iter += 1
    w, gap = problem.weights(point.y), point.gap
    if not np.isfinite(gap):
        w = _with_an_edge_everywhere(problem, w, point)
        gap = problem.gap(w, point.y)
    return certified(problem, w, point.y, gap=gap, n_iter=n_iter, tol=tol)


def default_start(problem: LocalProblem) -> Vector:
    """The multipliers of a node whose three cheapest pairs cost alike, taken for each node alone."""
    cheapest = cheapest_cost(problem.pairs, problem.cost)
    bulk = 8 * problem.alpha * problem.quadratic / 3
    root = np.sqrt(cheapest**2 + bulk)
    # (m + √(m² + b))/4, written so that a very negative m does not cancel
    y = np.where(cheapest > 0, cheapest + root, bulk / (root - np.minimum(cheapest, 0.0))) / 4
    if problem.zeta > 0:  # no multiplier of the optimum is larger: (Sw)_v ≥ 0
        y = np.minimum(y, problem.alpha / problem.zeta)
    return y


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Multipliers and what is known there."""

    y: Vector
    degrees: Vector
    objective: float
    magnitude: float  # sum of the absolute terms of the objective
    gradient: Vector
    gap: float
    relative_gap: float


def _point(problem: LocalProblem, y: Vector) -> _Point:
    squares, degrees = evaluate_dual(problem, y)
    logs = np.log(y)
    quadratic, linear = squares / (2 * problem.quadratic), problem.zeta * y.sum()
    objective = quadratic - problem.alpha * logs.sum() + linear
    gap = problem.node_gap(degrees, y)
    dual = -objective + problem.alpha * problem.n_nodes * (1 - np.log(problem.alpha))
    return _Point(
        y=y,
        degrees=degrees,
        objective=objective,
        magnitude=quadratic + problem.alpha * np.abs(logs).sum() + linear,
        gradient=degrees + problem.zeta - problem.alpha / y,
        gap=gap,
        relative_gap=gap / problem.scale(dual + gap) if np.isfinite(gap) else np.inf,
    )


def _direction(problem: LocalProblem, point: _Point) -> Vector | None:
    rows, cols = active_pairs(problem, point.y)
    barrier = problem.alpha / point.y**2
    if problem.n_nodes > DENSE_UP_TO:
        tol = max(min(CG_TOL, 0.1 * np.sqrt(point.relative_gap)), CG_BEST)
        step, settled = _conjugate_gradients(
            rows, cols, 1 / problem.quadratic, barrier, -point.gradient, tol, CG_MAX_ITER
        )
        if settled or problem.n_nodes > DENSE_FALLBACK_UP_TO:
            return step
    return _dense_direction(rows, cols, 1 / problem.quadratic, barrier, point.gradient)


def _dense_direction(
    rows: IntVector, cols: IntVector, weight: float, barrier: Vector, gradient: Vector
) -> Vector | None:
    hessian = _dense_hessian(rows, cols, weight, barrier)
    # Unit diagonal: multipliers may differ by many orders of magnitude from node to node
    scaling = 1 / np.sqrt(np.diag(hessian))
    hessian *= scaling[:, None]
    hessian *= scaling
    try:
        factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:  # singular to working precision
        return None
    direction: Vector = scaling * cho_solve(factor, -scaling * gradient, check_finite=False)
    return direction


def _line_search(problem: LocalProblem, point: _Point, direction: Vector) -> _Point | None:
    slope = float(point.gradient @ direction)
    if not slope < 0:
        return None
    shrinking = direction < 0
    room = np.min(-point.y[shrinking] / direction[shrinking]) if shrinking.any() else np.inf
    step = min(1.0, KEEP_POSITIVE * room)
    noise = ROUNDING * point.magnitude
    for _ in range(MAX_HALVINGS):
        y = point.y + step * direction
        if (y == point.y).all():
            return None
        trial = _point(problem, y)
        change = trial.objective - point.objective
        if change <= SUFFICIENT_DECREASE * step * slope:
            return trial
        # Near the optimum F is flat to rounding, while its slope can still be told: a slope well reduced is progress.
        if change <= noise and abs(trial.gradient @ direction) <= 0.9 * abs(slope):
            return trial
        step /= 2
    return None


def _with_an_edge_everywhere(problem: LocalProblem, w: Vector, point: _Point) -> Vector:
    """Feasible weights near w: a node left without an edge gets its cheapest one."""
    bare = np.flatnonzero(point.degrees + problem.zeta <= 0)
    _, where = cheapest_pair(problem.pairs, problem.cost)
    w = w.copy()
    w[where[bare]] = np.maximum(w[where[bare]], problem.alpha / point.y[bare])
    return w


@kernel
def _dense_hessian(rows: IntVector, cols: IntVector, weight: float, barrier: Vector) -> Matrix:
    n = barrier.size
    out = np.zeros((n, n))
    for v in range(n):
        out[v, v] = barrier[v]
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        out[i, i] += weight
        out[j, j] += weight
        out[i, j] += weight
        out[j, i] += weight
    return out


@kernel
def _conjugate_gradients(
    rows: IntVector, cols: IntVector, weight: float, barrier: Vector, rhs: Vector, tol: float, max_iter: int
) -> tuple[Vector, bool]:
    """Solve (weight·Q + diag(barrier)) x = rhs, Q the signless Laplacian of the edges; Jacobi-preconditioned."""
    n = rhs.size
    diagonal = barrier.copy()
    for e in range(rows.size):
        diagonal[rows[e]] += weight
        diagonal[cols[e]] += weight
    x = np.zeros(n)
    residual = rhs.copy()
    search = residual / diagonal
    product = np.empty(n)
    size = 0.0
    for v in range(n):
        size += residual[v] * search[v]
    goal = tol * tol * size
    for _ in range(max_iter):
        for v in range(n):
            product[v] = barrier[v] * search[v]
        for e in range(rows.size):
            value = weight * (search[rows[e]] + search[cols[e]])
            product[rows[e]] += value
            product[cols[e]] += value
        curvature = 0.0
        for v in range(n):
            curvature += search[v] * product[v]
        if curvature <= 0.0:
            return x, size == 0.0
        length = size / curvature
        new_size = 0.0
        for v in range(n):
            x[v] += length * search[v]
            residual[v] -= length * product[v]
            new_size += residual[v] * residual[v] / diagonal[v]
        if new_size <= goal:
            return x, True
        for v in range(n):
            search[v] = residual[v] / diagonal[v] + new_size / size * search[v]
        size = new_size
    return x, False
