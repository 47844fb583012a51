"""The fast dual proximal gradient method (FDPG) of Saboksayr and Mateos, 2021.

Accelerated proximal gradient on the dual, split into f(y) = (1/2q) Σ_e (y_i + y_j − c_e)₊² and −α Σ_v log y_v:

    x = u − S w(u)/L,   y⁺ = (x + √(x² + 4α/L))/2,   u⁺ = y⁺ + ((t − 1)/t⁺)(y⁺ − y),   L = 2(d−1)/q = ‖S‖²/q

L is the authors' (N−1)/β, as their 2zᵀw + β‖w‖² makes q = 2β. Three forms: as printed; with the adaptive restart of
O'Donoghue and Candès; and, stronger than what was published, with restart and a line search for L, which profits from
few pairs being active. All start at the multipliers from which silograph's Newton method starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.one_silo.solvers.recovery import recovered
from benchmarks.solver import Answer, Iterative
from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.local.problem import LocalProblem
from silograph.local.solvers.newton import default_start

SHRINK = 0.9  # of L per iteration, so that the line search follows the local curvature down as well as up


class DualProximalGradient:
    """A run; with `search`, always restarted."""

    def __init__(self, problem: LocalProblem, *, restart: bool = False, search: bool = False) -> None:
        self.problem, self.restart, self.search = problem, restart, search
        self.y = default_start(problem)
        self.point = self.y.copy()
        self.momentum = 1.0
        self.lipschitz = 2 * (problem.n_nodes - 1) / problem.quadratic

    def advance(self, n_iter: int) -> None:
        """Do `n_iter` more iterations."""
        facts = (self.problem.cost, self.problem.quadratic, self.problem.alpha, self.lipschitz)
        state = (n_iter, self.y, self.point, self.momentum)
        if self.search:
            self.momentum, self.lipschitz = _searched(*facts, *state)
        else:
            self.momentum = _fixed(*facts, self.restart, *state)

    def answers(self) -> Iterator[Answer]:
        """The weights that the multipliers call for."""
        return recovered(self.problem, self.y)


SOLVERS = {
    "fdpg": Iterative(start=DualProximalGradient),
    "fdpg-restart": Iterative(start=partial(DualProximalGradient, restart=True)),
    "fdpg-search": Iterative(start=partial(DualProximalGradient, search=True)),
}


@kernel
def _degrees(cost: Vector, quadratic: float, y: Vector, out: Vector) -> None:
    """S w(y); one slice per row of the upper triangle, which is what lets the compiler use vector instructions."""
    n = y.size
    out[:] = 0.0
    start = 0
    for i in range(n):
        own, total = y[i], 0.0
        row, others, sums = cost[start : start + n - i - 1], y[i + 1 :], out[i + 1 :]
        for k in range(row.size):
            slack = own + others[k] - row[k]
            slack = slack if slack > 0.0 else 0.0
            total += slack
            sums[k] += slack
        out[i] += total
        start += n - i - 1
    out /= quadratic


@kernel
def _prox(point: Vector, gradient: Vector, alpha: float, lipschitz: float, out: Vector) -> None:
    for v in range(point.size):
        x = point[v] - gradient[v] / lipschitz
        out[v] = 0.5 * (x + np.sqrt(x * x + 4 * alpha / lipschitz))


@kernel
def _extrapolate(y: Vector, point: Vector, after: Vector, momentum: float, restart: bool) -> float:
    """Move y to `after` and the point beyond it; where the momentum points uphill, drop it."""
    uphill = 0.0
    for v in range(y.size):
        uphill += (point[v] - after[v]) * (after[v] - y[v])
    grown = 1.0 if restart and uphill > 0 else 0.5 * (1 + np.sqrt(1 + 4 * momentum * momentum))
    share = 0.0 if restart and uphill > 0 else (momentum - 1) / grown
    for v in range(y.size):
        point[v] = after[v] + share * (after[v] - y[v])
        y[v] = after[v]
    return grown


@kernel
def _fixed(
    cost: Vector, quadratic: float, alpha: float, lipschitz: float, restart: bool,
    n_iter: int, y: Vector, point: Vector, t: float,
) -> float:  # fmt: skip
    gradient, after = np.empty(y.size), np.empty(y.size)
    for _ in range(n_iter):
        _degrees(cost, quadratic, point, gradient)
        _prox(point, gradient, alpha, lipschitz, after)
        t = _extrapolate(y, point, after, t, restart)
    return t


@kernel
def _searched(
    cost: Vector, quadratic: float, alpha: float, lipschitz: float, n_iter: int, y: Vector, point: Vector, t: float
) -> tuple[float, float]:
    n = y.size
    gradient, after, gradient_after = np.empty(n), np.empty(n), np.empty(n)
    for _ in range(n_iter):
        _degrees(cost, quadratic, point, gradient)
        lipschitz *= SHRINK
        while True:
            _prox(point, gradient, alpha, lipschitz, after)
            _degrees(cost, quadratic, after, gradient_after)
            bend = length = 0.0
            for v in range(n):
                bend += (gradient_after[v] - gradient[v]) * (after[v] - point[v])
                length += (after[v] - point[v]) ** 2
            # The curvature met on the way; differences of f itself drown in rounding near the optimum
            if bend <= lipschitz * length or length == 0.0:
                break
            lipschitz *= 2.0
        t = _extrapolate(y, point, after, t, True)
    return t, lipschitz
