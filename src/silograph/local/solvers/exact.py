"""The default solver: Newton's method, with help where it needs some.

- Many nodes: candidate pairs first; the answer stays that of all pairs.
- α·q tiny beside the costs squared: an interior-point method takes over, and Newton's method polishes its answer.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem
from silograph.local.solvers import candidates, interior, newton
from silograph.local.solvers.solution import Solution

# Measured on 648 problems of the tests' stress set (5, 20 and 60 nodes): all are solved with any of these values
NEWTON_STEPS = 60  # then the interior point takes over: 24 of the 648, 48 after 20 steps, 8 after 180
POLISH_STEPS = 8  # of Newton's method from the interior point's answer; between 2 and 24 as good
TIGHTER = 1e-4  # of the tolerance, for the interior point: 14 steps each, 12 without, 15 at 1e-6
# Measured on the benchmarks' signals at degree 10, against testing all pairs in each step
CANDIDATES_FROM = 3000  # nodes; candidates take 3 times as long at 1500, 1.4 times at 3000, 0.6 to 1 times at 6000
INTERIOR_UP_TO = 10_000  # nodes: a matrix of 800 MB, and minutes; beyond, Newton's method has all steps to itself
NEIGHBOURS = 20  # candidate pairs per node; 7 take up to three more steps, 60 take fewer but longer ones


def solve(
    problem: LocalProblem,
    *,
    start: Vector | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    neighbours: int | None = None,
) -> Solution:
    """Minimise the local problem to a relative duality gap of at most `tol`.

    `start` are multipliers of a similar problem. `neighbours` is how many cheapest pairs per node to try first when all
    pairs are allowed and nodes are many; 0 never leaves a pair out.
    """
    plain = partial(_newton_then_interior, tol=tol, max_iter=max_iter)
    neighbours = NEIGHBOURS if neighbours is None else neighbours
    alike = not isinstance(problem.quadratic, np.ndarray)
    if problem.pairs.is_all and neighbours and alike and problem.n_nodes >= CANDIDATES_FROM:
        solution = candidates.solve(
            problem, lambda part, y: plain(part, start=y), start=start, neighbours=neighbours, tol=tol
        )
        if solution is not None:
            return solution
    return plain(problem, start=start)


def _newton_then_interior(problem: LocalProblem, *, start: Vector | None, tol: float, max_iter: int) -> Solution:
    few = min(NEWTON_STEPS, max_iter) if problem.n_nodes <= INTERIOR_UP_TO else max_iter
    direct = newton.solve(problem, start=start, tol=tol, max_iter=few)
    if direct.converged or max_iter <= few:
        return direct
    start = newton.default_start(problem)
    path = interior.solve(problem, start=start, tol=TIGHTER * tol, max_iter=max_iter - NEWTON_STEPS)
    path = replace(path, converged=path.relative_gap <= tol)
    polish = newton.solve(problem, start=path.y, tol=TIGHTER * tol, max_iter=POLISH_STEPS)
    best = min(polish, path, direct, key=lambda solution: solution.relative_gap)
    n_iter = direct.n_iter + path.n_iter + polish.n_iter
    return replace(best, n_iter=n_iter, converged=best.relative_gap <= tol)
