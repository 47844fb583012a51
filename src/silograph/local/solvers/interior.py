"""A primal-dual interior-point method: slower than Newton's, and at home where α·q is tiny beside the costs squared.

There the weights hide in the last digits of the multipliers (w = (y_i + y_j − c)/q cancels), so no method that keeps y
alone can reach them. Here w is a variable of its own. The optimality conditions, with slacks s and degrees x,

    c + q w − Sᵀy − s = 0      Sw + ζ − x = 0      x_v y_v = α      w_e s_e = μ → 0

are linearised and reduced to one d × d system, S θ Sᵀ + diag(x/y) with θ = 1/(q + s/w), as in Mehrotra's
predictor-corrector method.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Matrix, Vector
from silograph.local.problem import LocalProblem
from silograph.local.solvers.solution import Solution, certify

# Measured on the 24 problems of the tests' stress set that come here (exact.py), 343 steps in all
KEEP_POSITIVE = 0.995  # part of the way to the boundary; 0.9 takes 390 steps, 0.9995 takes 348
FREE_STEPS = 30  # the first ones mend what the start violates, and the gap may rise; from 10 on nothing changes
STALLED_STEPS = 25  # without progress, after which no more is expected; between 8 and 75 nothing changes
RIDGE = 1e-15  # relative; keeps the factor of a singular system finite. 1e-13 changes nothing, 1e-10 takes 383 steps


@dataclass(frozen=True, slots=True, eq=False)
class _Iterate:
    w: Vector
    slack: Vector
    y: Vector
    degrees: Vector

    def moved(self, step: float, direction: "_Iterate") -> "_Iterate":
        return _Iterate(
            self.w + step * direction.w,
            self.slack + step * direction.slack,
            self.y + step * direction.y,
            self.degrees + step * direction.degrees,
        )

    def longest_step(self, direction: "_Iterate") -> float:
        """The longest step, up to 1, that keeps everything positive."""
        ratios = [
            float(np.max(-change / value))
            for value, change in (
                (self.w, direction.w),
                (self.slack, direction.slack),
                (self.y, direction.y),
                (self.degrees, direction.degrees),
            )
        ]
        return min(1.0, KEEP_POSITIVE / max(*ratios, 1e-300))


def solve(problem: LocalProblem, *, start: Vector, tol: float = 1e-8, max_iter: int = 200) -> Solution:
    """Follow the central path from the multipliers `start` until the relative duality gap is at most `tol`."""
    iterate = _first_iterate(problem, start)
    best = _certify(problem, iterate, 0, tol)
    stalled = 0  # steps since the gap last fell
    for n_iter in range(1, max_iter + 1):
        with np.errstate(all="ignore"):  # what rounding spoils ends the loop, and the best point before it counts
            iterate = _step(problem, iterate, cautious=n_iter > FREE_STEPS and stalled > 3)
        if not all(np.isfinite(part).all() for part in (iterate.w, iterate.slack, iterate.y, iterate.degrees)):
            break
        solution = _certify(problem, iterate, n_iter, tol)
        stalled = 0 if solution.relative_gap < 0.9 * best.relative_gap else stalled + 1
        if solution.relative_gap < best.relative_gap:
            best = solution
        if best.converged or (n_iter > FREE_STEPS and stalled > STALLED_STEPS and best.relative_gap < 1):
            break
    return best


def _first_iterate(problem: LocalProblem, y: Vector) -> _Iterate:
    degrees = problem.alpha / y
    neighbours = 2 * problem.pairs.size / problem.n_nodes
    share = np.minimum(degrees[problem.pairs.rows], degrees[problem.pairs.cols]) / neighbours
    reach = problem.pairs.sums(y)
    slack = np.maximum(problem.cost - reach, 0.1 * reach)
    # Pairs far beyond reach start with so little weight that w·s is alike everywhere
    return _Iterate(share * reach / (reach + slack), slack, y, degrees)


def _step(problem: LocalProblem, at: _Iterate, *, cautious: bool) -> _Iterate:
    """One predictor-corrector step; a cautious one only centres, as the corrector can lead in a circle."""
    theta = 1 / (problem.quadratic + at.slack / at.w)
    matrix = _weighted_signless_laplacian(problem, theta)
    matrix[np.diag_indices_from(matrix)] += at.degrees / at.y
    scaling = 1 / np.sqrt(np.diag(matrix))
    matrix *= scaling[:, None]
    matrix *= scaling
    matrix[np.diag_indices_from(matrix)] += RIDGE
    factor = _factor(matrix)

    dual_residual = problem.cost + problem.quadratic * at.w - problem.pairs.sums(at.y) - at.slack
    degree_residual = problem.pairs.degrees(at.w) + problem.zeta - at.degrees

    def direction(pair_target: Vector, node_target: Vector) -> _Iterate:
        """Towards w·s = pair_target and x·y = node_target."""
        push = theta * (pair_target / at.w - at.slack - dual_residual)
        rhs = node_target / at.y - at.degrees - degree_residual - problem.pairs.degrees(push)
        dy = scaling * cho_solve(factor, scaling * rhs, check_finite=False)
        dw = theta * problem.pairs.sums(dy) + push
        slack = (pair_target - at.slack * dw) / at.w - at.slack
        return _Iterate(dw, slack, dy, problem.pairs.degrees(dw) + degree_residual)

    product = at.w * at.slack
    mu = product.mean()
    alpha = np.full(problem.n_nodes, problem.alpha)
    predictor = direction(np.zeros_like(product), alpha)
    tried = at.moved(at.longest_step(predictor), predictor)
    centring = ((tried.w * tried.slack).mean() / mu) ** 3
    if cautious:
        corrector = direction(np.full_like(product, max(centring, 0.3) * mu), alpha)
    else:
        pair_target = np.maximum(centring * mu - predictor.w * predictor.slack, 0.1 * centring * mu)
        corrector = direction(pair_target, np.maximum(alpha - predictor.degrees * predictor.y, 0.1 * alpha))
    return at.moved(at.longest_step(corrector), corrector)


def _factor(matrix: Matrix) -> tuple[Matrix, bool]:
    """The Cholesky factor; where rounding made the matrix indefinite, that of one with a larger diagonal."""
    for _ in range(12):
        try:
            factor: tuple[Matrix, bool] = cho_factor(matrix, lower=True, check_finite=False)
            return factor
        except LinAlgError:
            matrix[np.diag_indices_from(matrix)] *= 1 + 1e-10
    return np.full_like(matrix, np.nan), True


def _certify(problem: LocalProblem, at: _Iterate, n_iter: int, tol: float) -> Solution:
    """The iterate with the pairs on their way to zero set there, which the central path itself never does."""
    reach = problem.pairs.sums(at.y)
    w = np.where(at.w * reach**2 > problem.alpha * at.slack, at.w, 0.0)
    return certify(problem, w, at.y, primal=problem.value(w), gap=problem.gap(w, at.y), n_iter=n_iter, tol=tol)


def _weighted_signless_laplacian(problem: LocalProblem, theta: Vector) -> Matrix:
    pairs = problem.pairs
    out = np.zeros((pairs.n_nodes, pairs.n_nodes))
    if pairs.listed_rows is None or pairs.listed_cols is None:
        _fill_all(theta, out)
    else:
        _fill_listed(pairs.listed_rows, pairs.listed_cols, theta, out)
    out[np.diag_indices_from(out)] = pairs.degrees(theta)
    return out


@kernel
def _fill_all(theta: Vector, out: Matrix) -> None:
    n = out.shape[0]
    e = 0
    for i in range(n):
        for j in range(i + 1, n):
            out[i, j] = theta[e]
            out[j, i] = theta[e]
            e += 1


@kernel
def _fill_listed(rows: IntVector, cols: IntVector, theta: Vector, out: Matrix) -> None:
    for e in range(rows.size):
        out[rows[e], cols[e]] = theta[e]
        out[cols[e], rows[e]] = theta[e]
