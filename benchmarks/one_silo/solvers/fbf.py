"""The forward-backward-forward primal-dual method of Kalofolias (2016), as in GSPBox (Komodakis and Pesquet's MLFBF).

With multipliers y (GSPBox's dual variable is −y), primal step τ and dual step σ, one iteration is

    P = max(w − τ(q w − Sᵀy + c), 0)          x = y − σ S w,  p = (x + √(x² + 4ασ))/2
    w⁺ = P + τ(q w − Sᵀy) − τ(q P − Sᵀp)      y⁺ = p + σ(S w − S P)

GSPBox takes τ = σ = s/(q + ‖S‖), ‖S‖ = √(2(d−1)), with s = 0.5 unless told otherwise; theory allows s < 1, and s = 0.99
was twice as fast. A second form balances the two steps by scaling the weights (τ/σ = scale²): of the scales tried from
3 to 0.02, 0.05 was good wherever 1 was bad. Both start at silograph's first multipliers y and w(y), not at zero.
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

SHARE = 0.99


class ForwardBackwardForward:
    """A run on the problem in w/scale, with nearly the longest safe step."""

    def __init__(self, problem: LocalProblem, *, scale: float = 1.0) -> None:
        self.problem = problem
        norm = np.sqrt(2 * (problem.n_nodes - 1))
        self.dual_step = SHARE / (problem.quadratic * scale**2 + scale * norm)
        self.primal_step = scale**2 * self.dual_step
        self.y = default_start(problem)
        self.w = problem.weights(self.y)
        self.degrees = problem.pairs.degrees(self.w)
        self.prox = self.y.copy()

    def advance(self, n_iter: int) -> None:
        """Do `n_iter` more iterations."""
        p = self.problem
        _advance(
            p.cost, p.quadratic, p.alpha, self.primal_step, self.dual_step, n_iter,
            self.w, self.y, self.degrees, self.prox,
        )  # fmt: skip

    def answers(self) -> Iterator[Answer]:
        """The primal iterate without its negative parts, and what the dual iterate calls for."""
        yield Answer(w=np.maximum(self.w, 0.0))
        yield from recovered(self.problem, self.prox)


SOLVERS = {
    "fbf": Iterative(start=ForwardBackwardForward),
    "fbf-scaled": Iterative(start=partial(ForwardBackwardForward, scale=0.05)),
}


@kernel
def _advance(
    cost: Vector, quadratic: float, alpha: float, primal_step: float, dual_step: float, n_iter: int,
    w: Vector, y: Vector, degrees: Vector, prox: Vector,
) -> None:  # fmt: skip
    n = y.size
    middle_degrees, moved = np.empty(n), np.empty(n)
    for _ in range(n_iter):
        _middle_degrees(cost, quadratic, primal_step, w, y, middle_degrees)
        for v in range(n):
            x = y[v] - dual_step * degrees[v]
            prox[v] = 0.5 * (x + np.sqrt(x * x + 4 * alpha * dual_step))
        _move_weights(cost, quadratic, primal_step, w, y, prox, moved)
        for v in range(n):
            y[v] = prox[v] + dual_step * (degrees[v] - middle_degrees[v])
            degrees[v] = moved[v]


@kernel
def _middle_degrees(cost: Vector, quadratic: float, step: float, w: Vector, y: Vector, out: Vector) -> None:
    """S P; one slice per row of the upper triangle, which is what lets the compiler use vector instructions."""
    n = y.size
    out[:] = 0.0
    start = 0
    for i in range(n):
        own, total, stop = y[i], 0.0, start + n - i - 1
        costs, weights, others, sums = cost[start:stop], w[start:stop], y[i + 1 :], out[i + 1 :]
        for k in range(costs.size):
            middle = weights[k] - step * (quadratic * weights[k] - own - others[k] + costs[k])
            middle = middle if middle > 0.0 else 0.0
            total += middle
            sums[k] += middle
        out[i] += total
        start = stop


@kernel
def _move_weights(
    cost: Vector, quadratic: float, step: float, w: Vector, y: Vector, prox: Vector, degrees: Vector
) -> None:
    """w⁺ and its degrees; P is computed again, which is cheaper than storing it."""
    n = y.size
    degrees[:] = 0.0
    start = 0
    for i in range(n):
        own, own_prox, total, stop = y[i], prox[i], 0.0, start + n - i - 1
        costs, weights, sums = cost[start:stop], w[start:stop], degrees[i + 1 :]
        others, others_prox = y[i + 1 :], prox[i + 1 :]
        for k in range(costs.size):
            forward = step * (quadratic * weights[k] - own - others[k])
            middle = weights[k] - forward - step * costs[k]
            middle = middle if middle > 0.0 else 0.0
            value = middle + forward - step * (quadratic * middle - own_prox - others_prox[k])
            weights[k] = value
            total += value
            sums[k] += value
        degrees[i] += total
        start = stop
