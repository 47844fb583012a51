"""The default solver: Newton's method, with help where it needs some.

- Many nodes: candidate pairs first; the answer stays that of all pairs.
- α·q tiny beside the costs squared: an interior-point method takes over, and Newton's method polishes its answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem
from silograph.local.solvers import candidates, interior, newton
from silograph.local.solvers.solution import Solution

NEWTON_STEPS = 60  # Newton steps; what needs more, the interior-point method has solved sooner
POLISH_STEPS = 8  # Newton steps from the interior point's answer
TIGHTER = 1e-4  # of the tolerance; the interior point's last steps are cheap beside its first
CANDIDATES_FROM = 3000  # nodes; below, testing all pairs in each step is as cheap
NEIGHBOURS = 20  # candidate pairs per node


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
    direct = newton.solve(problem, start=start, tol=tol, max_iter=min(NEWTON_STEPS, max_iter))
    if direct.converged or max_iter <= NEWTON_STEPS:
        return direct
    start = newton.default_start(problem)
    path = interior.solve(problem, start=start, tol=TIGHTER * tol, max_iter=max_iter - NEWTON_STEPS)
    path = replace(path, converged=path.relative_gap <= tol)
    polish = newton.solve(problem, start=path.y, tol=TIGHTER * tol, max_iter=POLISH_STEPS)
    best = min(polish, path, direct, key=lambda solution: solution.relative_gap)
    n_iter = direct.n_iter + path.n_iter + polish.n_iter
    return replace(best, n_iter=n_iter, converged=best.relative_gap <= tol)
