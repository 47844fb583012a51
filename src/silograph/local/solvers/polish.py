"""A local problem solved until its edges are settled: to a small gap, then two Newton steps beyond it.

At a gap of 1e-8 weights are good to 1e-4 only, and the digits beyond depend on the start and on the order of nodes.
Convergence being quadratic, two steps settle nearly all of them. Measured on 72 problems of 20 and 60 nodes, from two
starts each: weights differ by 1e-5 (of the largest; nine of ten problems) at the gap, by 1e-10 after one step, by 1e-15
after two, and no less after three.
"""

from dataclasses import replace

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact, newton
from silograph.local.solvers.solution import Solution

POLISH_TOL = 1e-10
POLISH_STEPS = 2


def solve_to_rounding(problem: LocalProblem, start: Vector | None) -> Solution:
    """The solution with all digits settled."""
    return polish(problem, exact.solve(problem, start=start, tol=POLISH_TOL))


def polish(problem: LocalProblem, solution: Solution) -> Solution:
    """The solution, two Newton steps on, if it was one and they make it better."""
    if not solution.converged:
        return solution
    beyond = newton.solve(problem, start=solution.y, tol=0.0, max_iter=POLISH_STEPS)
    if beyond.gap >= solution.gap:
        return solution
    return replace(beyond, n_iter=solution.n_iter + beyond.n_iter, converged=True)
