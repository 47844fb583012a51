"""The default solver: Newton's method, with help where it needs some.

- Many nodes: candidate pairs first; the answer stays that of all pairs.
- α·q tiny beside the costs squared: an interior-point method takes over, and Newton's method polishes its answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from silograph._types import Vector
from silograph.problem import LocalProblem
from silograph.solvers import candidates, interior, newton
from silograph.solvers.solution import Solution

PATIENCE = 30  # Newton steps; what took more was never found to be worth waiting for
POLISH = 8
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
    if problem.pairs.is_all and neighbours and problem.n_nodes >= CANDIDATES_FROM:
        solution = candidates.solve(
            problem, lambda part, y: plain(part, start=y), start=start, neighbours=neighbours, tol=tol
        )
        if solution is not None:
            return solution
    return plain(problem, start=start)


def _newton_then_interior(problem: LocalProblem, *, start: Vector | None, tol: float, max_iter: int) -> Solution:
    direct = newton.solve(problem, start=start, tol=tol, max_iter=min(PATIENCE, max_iter))
    if direct.converged or max_iter <= PATIENCE:
        return direct
    path = interior.solve(problem, start=newton.default_start(problem), tol=tol, max_iter=max_iter - PATIENCE)
    polished = newton.solve(problem, start=path.y, tol=tol, max_iter=POLISH)
    best = polished if polished.converged else min(path, direct, key=lambda solution: solution.relative_gap)
    return replace(best, n_iter=direct.n_iter + path.n_iter + polished.n_iter)
