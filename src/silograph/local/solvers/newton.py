"""The dual Newton method: d variables instead of d(d−1)/2, and a certificate at the end.

    minimise F(y) = (1/2q) Σ_e (y_i + y_j − c_e)₊² − α Σ_v log y_v + ζ Σ_v y_v        over y > 0
    gradient        S w(y) + ζ − α/y
    Hessian         (1/q)·(signless Laplacian of the edges of w(y)) + diag(α/y²)       (generalised)

F is convex, once differentiable and piecewise smooth: a damped semismooth Newton method converges from anywhere and
quadratically at the end. The direction comes from conjugate gradients on the few active edges. The whole iteration is
compiled: at fifty nodes a step takes ten microseconds, less than one call of NumPy after another would.
"""

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import scratch
from silograph.graph.nearest import cheapest_cost, cheapest_pair
from silograph.local.problem import SERIES, LocalProblem
from silograph.local.solvers.dual import list_active, weight_sums, weights_at
from silograph.local.solvers.solution import Solution, certify

# Measured on the benchmarks' signals (12 problems of 100 and 500 nodes, 121 steps to a gap of 1e-10) and on 648
# problems of the tests' stress set, all of which are solved with any of these values
CG_TOL = 1e-2  # of a direction, far from the optimum; near it, what the gap demands. 1e-1 takes 143 steps, 1e-3 119
CG_BEST = 1e-12  # what rounding allows; between 1e-10 and 1e-14 nothing changes
CG_MAX_ITER = 500  # an unsettled direction still descends; 150 takes 123 steps, 50 takes 140
KEEP_POSITIVE = 0.95  # part of the way to the boundary y = 0 that one step may go; 0.99 is the same, 0.7 takes 133
SUFFICIENT_DECREASE = 1e-4  # of what the slope promises; 1e-2 is the same
SLOPE_REDUCTION = 0.9  # 0.3 is the same but for 14 of 4844 steps on the stress set
MAX_HALVINGS = 60
NEGLIGIBLE = 1e-12  # relative error of the gap, beyond which it is computed in twice the precision
ROUNDING = 1e-13  # relative error of F, below which its differences say nothing; 1e-12 and 1e-14 are the same


def solve(problem: LocalProblem, *, start: Vector | None = None, tol: float = 1e-8, max_iter: int = 200) -> Solution:
    """Minimise the dual until the relative duality gap is at most `tol`.

    `start` are the multipliers of a similar problem (a warm start); they are not altered.
    """
    y = default_start(problem) if start is None else start
    y, primal, gap, n_iter = minimise(
        *problem.pairs.index, problem.cost, problem.inverse, problem.alpha, problem.zeta, y, tol, max_iter
    )
    w = weights_at(problem, y)
    rounding = problem.rounding(y)
    has_edges = problem.zeta > 0 or float(problem.pairs.degrees(w).min()) > 0  # a lone weight may round to nothing
    if has_edges and gap + rounding < np.inf and rounding <= max(0.01 * tol, NEGLIGIBLE) * problem.scale(primal):
        return certify(problem, w, y, primal=primal, gap=gap + rounding, n_iter=n_iter, tol=tol)
    w = _with_an_edge_everywhere(problem, w, y)
    return certify(problem, w, y, primal=problem.value(w), gap=problem.gap(w, y), n_iter=n_iter, tol=tol)


def default_start(problem: LocalProblem) -> Vector:
    """The multipliers of a node whose three cheapest pairs cost alike, taken for each node alone."""
    y = cheapest_cost(problem.pairs, problem.cost)
    quadratic = problem.quadratic
    typical = float(np.median(quadratic)) if isinstance(quadratic, np.ndarray) else quadratic
    _turn_into_multipliers(y, problem.alpha, typical, problem.zeta)
    return y


def _with_an_edge_everywhere(problem: LocalProblem, w: Vector, y: Vector) -> Vector:
    """Feasible weights near w: a node left without an edge gets its cheapest one."""
    bare = np.flatnonzero(problem.pairs.degrees(w) + problem.zeta <= 0)
    _, where = cheapest_pair(problem.pairs, problem.cost)
    w[where[bare]] = np.maximum(w[where[bare]], problem.alpha / y[bare])
    return w


@kernel
def _turn_into_multipliers(cheapest: Vector, alpha: float, quadratic: float, zeta: float) -> None:
    bulk = 8 * alpha * quadratic / 3
    for v in range(cheapest.size):
        cost = cheapest[v]
        root = np.sqrt(cost * cost + bulk)
        # (m + √(m² + b))/4, written so that a very negative m does not cancel
        y = (cost + root if cost > 0 else bulk / (root - cost)) / 4
        # With ζ > 0 no multiplier of the optimum is larger than α/ζ, as degrees are not negative
        cheapest[v] = min(y, alpha / zeta) if zeta > 0 else y


@kernel
def minimise(
    all_pairs: bool,
    rows: IntVector,
    cols: IntVector,
    cost: Vector,
    inverse: Vector,
    alpha: float,
    zeta: float,
    start: Vector,
    tol: float,
    max_iter: int,
) -> tuple[Vector, float, float, int]:
    """The multipliers reached, primal and duality gap there, and the number of steps.

    The start is judged as a step of length 0 would be, so that the loops over pairs stand, and are compiled, once.
    """
    n = start.size
    degrees, gradient, trial_gradient = scratch(n), scratch(n), scratch(n)
    y, trial, way = scratch(n), scratch(n), scratch(n)
    for v in range(n):
        y[v], way[v] = start[v], 0.0
    value, noise, gap, relative = np.inf, 0.0, np.inf, np.inf
    slope, step = 0.0, 0.0
    n_iter, halvings = -1, 0
    while halvings <= MAX_HALVINGS:
        for v in range(n):
            trial[v] = y[v] + step * way[v]
        squares, n_active = weight_sums(all_pairs, rows, cols, cost, inverse, trial, degrees)
        trial_value, noise_here, gap_here, relative_here = _measure(
            trial, degrees, squares, alpha, zeta, trial_gradient
        )
        slope_here = 0.0
        for v in range(n):
            slope_here += trial_gradient[v] * way[v]
        change = trial_value - value
        # Near the optimum F is flat to rounding, while its slope can still be told: a slope well reduced is progress
        if not (
            n_iter < 0
            or change <= SUFFICIENT_DECREASE * step * slope
            or (change <= noise and abs(slope_here) <= SLOPE_REDUCTION * abs(slope))
        ):
            step /= 2.0
            halvings += 1
            continue
        y, trial = trial, y
        gradient, trial_gradient = trial_gradient, gradient
        value, noise, gap, relative = trial_value, noise_here, gap_here, relative_here
        n_iter += 1
        if not relative > tol or n_iter >= max_iter:
            break
        left, right, factors = list_active(all_pairs, rows, cols, cost, inverse, y, n_active)
        # Without a finite gap yet, the first tolerance will do
        accuracy = max(min(CG_TOL, 0.1 * np.sqrt(relative)), CG_BEST)
        way = direction(left, right, factors, alpha, y, gradient, accuracy)
        slope, step, halvings = 0.0, 1.0, 1
        for v in range(n):
            slope += gradient[v] * way[v]
            if way[v] < 0.0:
                step = min(step, -KEEP_POSITIVE * y[v] / way[v])
        if not slope < 0.0:  # no digit left to gain
            break
    return y, gap - value + alpha * n * (1 - np.log(alpha)), gap, n_iter


@kernel
def _measure(
    y: Vector, degrees: Vector, squares: float, alpha: float, zeta: float, gradient: Vector
) -> tuple[float, float, float, float]:
    """F(y), its rounding error, the duality gap at w(y) and the gap relative to the primal; fills the gradient."""
    n = y.size
    value = squares / 2
    size = value
    gap = 0.0
    for v in range(n):
        degree = degrees[v] + zeta
        gradient[v] = degree - alpha / y[v]
        log = alpha * np.log(y[v])
        value += zeta * y[v] - log
        size += zeta * y[v] + abs(log)
        excess = degree * y[v] / alpha - 1.0
        if excess <= -1.0:
            gap = np.inf
        elif abs(excess) < SERIES:  # as in LocalProblem.node_gap
            gap += alpha * excess**2 * (0.5 - excess * (1 / 3 - excess * (0.25 - excess * (0.2 - excess / 6))))
        else:
            gap += alpha * (excess - np.log1p(excess))
    primal = gap - value + alpha * n * (1 - np.log(alpha))
    relative = gap / max(abs(primal), 1e-6 * alpha * n) if gap < np.inf else np.inf
    return value, ROUNDING * size, gap, relative


@kernel
def direction(
    rows: IntVector, cols: IntVector, factors: Vector, alpha: float, y: Vector, gradient: Vector, tol: float
) -> Vector:
    """Newton's direction by conjugate gradients, preconditioned by the diagonal."""
    n = y.size
    alike = factors.size == 1
    same = factors[0] if alike else 1.0
    barrier, diagonal, product = scratch(n), scratch(n), scratch(n)
    x, residual, search = scratch(n), scratch(n), scratch(n)
    for v in range(n):
        barrier[v] = alpha / (y[v] * y[v])
        diagonal[v] = barrier[v]
    for e in range(rows.size):
        factor = same if alike else factors[e]
        diagonal[rows[e]] += factor
        diagonal[cols[e]] += factor
    size = 0.0
    for v in range(n):
        x[v] = 0.0
        residual[v] = -gradient[v]
        search[v] = residual[v] / diagonal[v]
        size += residual[v] * search[v]
    goal = tol * tol * size
    for _ in range(CG_MAX_ITER):
        for v in range(n):
            product[v] = 0.0
        if alike:
            for e in range(rows.size):
                value = search[rows[e]] + search[cols[e]]
                product[rows[e]] += value
                product[cols[e]] += value
        else:
            for e in range(rows.size):
                value = factors[e] * (search[rows[e]] + search[cols[e]])
                product[rows[e]] += value
                product[cols[e]] += value
        curvature = 0.0
        for v in range(n):
            product[v] = same * product[v] + barrier[v] * search[v]
            curvature += search[v] * product[v]
        if curvature <= 0.0:
            break
        length = size / curvature
        new_size = 0.0
        for v in range(n):
            x[v] += length * search[v]
            residual[v] -= length * product[v]
            new_size += residual[v] * residual[v] / diagonal[v]
        if new_size <= goal:
            break
        for v in range(n):
            search[v] = residual[v] / diagonal[v] + new_size / size * search[v]
        size = new_size
    return x
