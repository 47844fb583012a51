"""The paper's accelerated projected gradient method on the primal problem.

    w_ex    = w + ξ (w − w_before)                     (2-0)
    w̆       = w_ex − η (∇(w_ex) + ργ (w_ex − w_con))   (2-1); alone, a silo is not pulled and ργ = 0
    w_next  = max(w̆, 0)                                (2-2)

With a step η given, these are iterated as printed. Without one, η is found by backtracking and the momentum is dropped
where it would leave the domain, so that the method descends on data of any scale; it remains a first-order method.
"""

from dataclasses import replace

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import scratch
from silograph.graph.pairs import fill_degrees, fill_sums
from silograph.local.problem import LocalProblem
from silograph.local.solvers.broadcast import value_at
from silograph.local.solvers.solution import Solution, certify

CHECK_EVERY = 10  # iterations for each look at the gap, which costs as much as one: 6 % more work at 3, 19 % at 30
MOMENTUM = 0.9  # the paper's ξ
DIVERGED = 1e100  # a weight beyond which a fixed step was too long
LARGEST_WEIGHT = 2.0**30  # the same of many silos, in √(α/q): sums of such weights and of their squares have room
GROWTH = 1.5  # how fast a backtracked step may recover; 1.1 takes a fifth more iterations, 2 and 4 take 3 % fewer


def solve(
    problem: LocalProblem,
    *,
    start: Vector | None = None,
    step: float | None = None,
    momentum: float = MOMENTUM,
    tol: float = 1e-8,
    max_iter: int = 20_000,
) -> Solution:
    """Iterate from the weights `start` until the relative duality gap is at most `tol`; return the best point met.

    A step that is too long diverges: then the iteration ends early and the answer says that it did not converge.
    """
    w = uniform_start(problem) if start is None else start.copy()
    before = w
    length = 1 / float(np.max(problem.quadratic)) if step is None else step
    best = _certify(problem, w, 0, tol)
    for n_iter in range(1, max_iter + 1):
        if step is None:
            after, length = _backtrack(problem, w, before, GROWTH * length, momentum)
        else:
            after = iterate(problem, w, before, step=step, momentum=momentum)
        before, w = w, after
        if n_iter % CHECK_EVERY == 0 or n_iter == max_iter:
            if not w.max() < DIVERGED:  # also when it is NaN
                return replace(best, n_iter=n_iter)
            best = min(best, _certify(problem, w, n_iter, tol), key=lambda solution: solution.relative_gap)
            if best.converged:
                break
    return replace(best, n_iter=n_iter)


def iterate(problem: LocalProblem, w: Vector, before: Vector, *, step: float, momentum: float) -> Vector:
    """One iteration, equations (2-0) to (2-2), as printed."""
    return take_gradient_steps(problem, w, before, n_steps=1, step=step, momentum=momentum)[0]


def take_gradient_steps(
    problem: LocalProblem,
    w: Vector,
    before: Vector,
    *,
    n_steps: int,
    step: float,
    momentum: float,
    anchor: Vector | None = None,
    pull: float = 0.0,
) -> tuple[Vector, Vector]:
    """(w, w_before) after `n_steps` iterations; with an anchor, `pull` is the paper's ργ and it is w_con.

    A step too long shows in the answer: weights beyond all bounds, infinite or NaN.
    """
    after, before = w.copy(), before.copy()
    step_in_place(
        *problem.pairs.index,
        problem.cost,
        problem.quadratic,
        problem.alpha,
        problem.zeta,
        problem.n_nodes,
        w if anchor is None else anchor,
        0.0 if anchor is None else float(pull),
        float(step),
        float(momentum),
        n_steps,
        after,
        before,
    )
    return after, before


@kernel
def step_in_place(
    all_pairs: bool,
    rows: IntVector,
    cols: IntVector,
    cost: Vector,
    quadratic: float | Vector,
    alpha: float,
    zeta: float,
    n_nodes: int,
    anchor: Vector,
    pull: float,
    step: float,
    momentum: float,
    n_steps: int,
    w: Vector,
    before: Vector,
) -> None:
    """Bring `w` and `before` forward, in place."""
    ahead, sums, y = scratch(w.size), scratch(w.size), scratch(n_nodes)
    for _ in range(n_steps):
        for e in range(w.size):
            ahead[e] = w[e] + momentum * (w[e] - before[e])
        fill_degrees(all_pairs, rows, cols, ahead, y)
        for v in range(n_nodes):
            y[v] = alpha / (y[v] + zeta)
        fill_sums(all_pairs, rows, cols, y, 1.0, sums)
        for e in range(w.size):
            slope = cost[e] + value_at(quadratic, e) * ahead[e] - sums[e] + pull * (ahead[e] - anchor[e])
            following = ahead[e] - step * slope
            before[e] = w[e]
            w[e] = 0.0 if following <= 0.0 else following  # NaN stays, which max would hide


def uniform_start(problem: LocalProblem) -> Vector:
    """The best weights among those that are alike everywhere (for ζ = 0)."""
    size = problem.pairs.size
    linear, quadratic = problem.cost.sum(), float(np.mean(problem.quadratic)) * size
    root = np.hypot(linear, 2 * np.sqrt(quadratic * problem.alpha * problem.n_nodes))
    # (root − linear)/(2·quadratic), written so that it does not cancel
    weight = 2 * problem.alpha * problem.n_nodes / (root + linear) if linear > 0 else (root - linear) / (2 * quadratic)
    return np.full(size, weight)


def _backtrack(problem: LocalProblem, w: Vector, before: Vector, step: float, momentum: float) -> tuple[Vector, float]:
    """One iteration with the longest step, halving `step`, that the quadratic model of the objective allows."""
    point = w + momentum * (w - before)
    value = problem.value(point)
    if not np.isfinite(value):
        point, value = w, problem.value(w)
    gradient = problem.gradient(point)
    for _ in range(200):
        after = np.maximum(point - step * gradient, 0.0)
        change = after - point
        model = value + gradient @ change + (change @ change) / (2 * step)
        if problem.value(after) <= model + 1e-14 * abs(value):
            break
        step /= 2
    return after, step


def _certify(problem: LocalProblem, w: Vector, n_iter: int, tol: float) -> Solution:
    feasible = bool((problem.pairs.degrees(w) + problem.zeta).min() > 0)
    y = problem.multipliers(w) if feasible else np.ones(problem.n_nodes)
    gap = problem.gap(w, y) if feasible else np.inf
    return certify(problem, w, y, primal=problem.value(w), gap=gap, n_iter=n_iter, tol=tol)


@kernel
def is_sound(w: Vector, alpha: float, quadratic: float) -> bool:
    """Whether an iterate is still a graph: a step too long ends in weights beyond all bounds."""
    sound, largest = True, LARGEST_WEIGHT * np.sqrt(alpha / quadratic)
    for e in range(w.size):
        sound &= abs(w[e]) < largest  # which NaN is not
    return sound
