"""The problem that is timed, and how an answer to it is scored.

    min over w ≥ 0   cᵀw + (q/2)‖w‖² − α Σ_v log (Sw)_v

    relative gap of w  =  (primal(w) − lower bound) / |primal(w)|

The lower bound is the dual value at the best multipliers known for the instance. Weak duality makes it a bound whoever
found them, so the score trusts no solver's own stopping rule. Primal and dual are written here a second time, apart
from the library's, and allocate nothing per pair, so that scoring does not show in a solver's peak memory.
"""

from __future__ import annotations

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.local.problem import LocalProblem


def relative_gap(problem: LocalProblem, w: Vector, lower_bound: float) -> float:
    """How far w is from the optimum, at most, as a share of its objective; infinite where w is not feasible."""
    value = primal(problem, w)
    return max(value - lower_bound, 0.0) / abs(value) if np.isfinite(value) else np.inf


def primal(problem: LocalProblem, w: Vector) -> float:
    """The objective at w; infinite where a weight is negative or not a number, or a node has no edge."""
    degrees = np.zeros(problem.n_nodes)
    linear, squares, lowest = _primal_sums(problem.cost, w, degrees)
    if not (lowest >= 0 and np.isfinite(linear) and np.isfinite(squares) and degrees.min() > 0):
        return np.inf
    return float(linear + 0.5 * problem.quadratic * squares - problem.alpha * np.log(degrees).sum())


def dual(problem: LocalProblem, y: Vector) -> float:
    """The dual value at y > 0: no feasible w has a lower objective."""
    squares = _dual_squares(problem.cost, y)
    constant = problem.alpha * problem.n_nodes * (1 - np.log(problem.alpha))
    return float(constant + problem.alpha * np.log(y).sum() - squares / (2 * problem.quadratic))


@kernel
def _primal_sums(cost: Vector, w: Vector, degrees: Vector) -> tuple[float, float, float]:
    """cᵀw, ‖w‖² and the least weight, filling in the degrees; summed row by row, which keeps rounding small."""
    n = degrees.size
    linear = squares = lowest = 0.0
    start = 0
    for i in range(n):
        row_linear = row_squares = row_degree = 0.0
        for j in range(i + 1, n):
            value = w[start + j - i - 1]
            row_linear += cost[start + j - i - 1] * value
            row_squares += value * value
            row_degree += value
            degrees[j] += value
            lowest = min(lowest, value)
        linear += row_linear
        squares += row_squares
        degrees[i] += row_degree
        start += n - i - 1
    return linear, squares, lowest


@kernel
def _dual_squares(cost: Vector, y: Vector) -> float:
    n = y.size
    total = 0.0
    start = 0
    for i in range(n):
        row = 0.0
        for j in range(i + 1, n):
            slack = max(y[i] + y[j] - cost[start + j - i - 1], 0.0)
            row += slack * slack
        total += row
        start += n - i - 1
    return total
