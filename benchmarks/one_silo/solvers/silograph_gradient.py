"""The paper's accelerated projected gradient method, as in `silograph.local.solvers.gradient`, in fused passes.

    w_ex = w + ξ (w − w_before)        w_next = max(w_ex − η ∇(w_ex), 0)        ξ = 0.9

Once with the paper's η = 0.005 (its α = 1 is this benchmark's unit), once with the library's backtracking. Both start
at the library's uniform weights. A test holds both to the library's iterates; only NumPy's temporaries are gone.
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
from silograph.local.solvers.gradient import GROWTH, MOMENTUM, uniform_start

PAPER_STEP = 0.005
MAX_HALVINGS = 200


class Gradient:
    """A run with a constant step, or with backtracking when none is given."""

    def __init__(self, problem: LocalProblem, *, step: float | None) -> None:
        self.problem, self.fixed = problem, step is not None
        self.step = step or 1 / problem.quadratic
        self.w = uniform_start(problem)
        self.before = self.w.copy()
        self.spare = np.empty_like(self.w)

    def advance(self, n_iter: int) -> None:
        """Do `n_iter` more iterations."""
        p = self.problem
        state = (self.step, self.w, self.before, self.spare)
        self.step, self.w, self.before, self.spare = _advance(
            p.cost, p.quadratic, p.alpha, p.n_nodes, self.fixed, n_iter, *state
        )

    def answers(self) -> Iterator[Answer]:
        """The weights, and those that their own multipliers call for."""
        yield Answer(w=self.w)
        degrees = self.problem.pairs.degrees(self.w)
        if degrees.min() > 0:
            yield from recovered(self.problem, self.problem.alpha / degrees)


SOLVERS = {
    "gradient-paper": Iterative(start=partial(Gradient, step=PAPER_STEP)),
    "gradient": Iterative(start=partial(Gradient, step=None)),
}


@kernel
def _advance(
    cost: Vector, quadratic: float, alpha: float, n_nodes: int, fixed: bool, n_iter: int, step: float,
    w: Vector, before: Vector, spare: Vector,
) -> tuple[float, Vector, Vector, Vector]:  # fmt: skip
    for _ in range(n_iter):
        step = _iterate(cost, quadratic, alpha, n_nodes, fixed, step, w, before, spare)
        w, before, spare = spare, w, before
    return step, w, before, spare


@kernel
def _iterate(
    cost: Vector, quadratic: float, alpha: float, n_nodes: int, fixed: bool, step: float,
    w: Vector, before: Vector, after: Vector,
) -> float:  # fmt: skip
    """Write the next weights into `after`; return the step used."""
    degrees, degrees_after = np.empty(n_nodes), np.empty(n_nodes)
    momentum = MOMENTUM
    linear, squares = _look(cost, momentum, w, before, degrees)
    if not fixed and degrees.min() <= 0:
        momentum = 0.0
        linear, squares = _look(cost, momentum, w, before, degrees)
    pull = alpha / degrees
    if fixed:
        _descend(cost, quadratic, step, momentum, w, before, pull, after, degrees_after)
        return step
    value = linear + 0.5 * quadratic * squares - alpha * np.log(degrees).sum()
    step *= GROWTH
    for _ in range(MAX_HALVINGS):
        linear, squares, slope, length = _descend(
            cost, quadratic, step, momentum, w, before, pull, after, degrees_after
        )
        if degrees_after.min() > 0:
            reached = linear + 0.5 * quadratic * squares - alpha * np.log(degrees_after).sum()
            if reached <= value + slope + length / (2 * step) + 1e-14 * abs(value):
                break
        step /= 2
    return step


@kernel
def _look(cost: Vector, momentum: float, w: Vector, before: Vector, degrees: Vector) -> tuple[float, float]:
    """The degrees, cᵀw and ‖w‖² of the extrapolated weights."""
    n = degrees.size
    degrees[:] = 0.0
    linear = squares = 0.0
    start = 0
    for i in range(n):
        total, stop = 0.0, start + n - i - 1
        costs, now, past, sums = cost[start:stop], w[start:stop], before[start:stop], degrees[i + 1 :]
        for k in range(costs.size):
            value = now[k] + momentum * (now[k] - past[k])
            linear += costs[k] * value
            squares += value * value
            total += value
            sums[k] += value
        degrees[i] += total
        start = stop
    return linear, squares


@kernel
def _descend(
    cost: Vector, quadratic: float, step: float, momentum: float, w: Vector, before: Vector, pull: Vector,
    after: Vector, degrees: Vector,
) -> tuple[float, float, float, float]:  # fmt: skip
    """The projected step into `after`; its cᵀw, ‖w‖² and degrees, and what the quadratic model needs."""
    n = degrees.size
    degrees[:] = 0.0
    linear = squares = slope = length = 0.0
    start = 0
    for i in range(n):
        own, total, stop = pull[i], 0.0, start + n - i - 1
        costs, now, past, new = cost[start:stop], w[start:stop], before[start:stop], after[start:stop]
        others, sums = pull[i + 1 :], degrees[i + 1 :]
        for k in range(costs.size):
            point = now[k] + momentum * (now[k] - past[k])
            gradient = costs[k] + quadratic * point - own - others[k]
            value = point - step * gradient
            value = value if value > 0.0 else 0.0
            new[k] = value
            linear += costs[k] * value
            squares += value * value
            slope += gradient * (value - point)
            length += (value - point) * (value - point)
            total += value
            sums[k] += value
        degrees[i] += total
        start = stop
    return linear, squares, slope, length
