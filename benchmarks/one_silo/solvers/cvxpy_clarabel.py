"""The problem as a user would state it in CVXPY, solved by Clarabel, an interior-point method for cones.

A call includes CVXPY's translation; the solver's own time, its set-up included, is noted beside it. Tolerances start at
the target gap and are tightened until the answer, with its tiny negative weights cut off, meets it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from benchmarks.solver import Answer, WholeCall
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem


def call(problem: LocalProblem, tol: float, limit: float) -> Answer:
    """The weights of one call; all zero when it failed or ran out of time."""
    import cvxpy

    pairs = problem.pairs
    ends = np.concatenate([pairs.rows, pairs.cols])
    both = np.tile(np.arange(pairs.size), 2)
    degree_operator = csr_array((np.ones(2 * pairs.size), (ends, both)), shape=(pairs.n_nodes, pairs.size))
    w = cvxpy.Variable(pairs.size, nonneg=True)
    objective = (
        problem.cost @ w
        + 0.5 * problem.quadratic * cvxpy.sum_squares(w)
        - problem.alpha * cvxpy.sum(cvxpy.log(degree_operator @ w))
    )
    stated = cvxpy.Problem(cvxpy.Minimize(objective))
    try:
        stated.solve(
            solver=cvxpy.CLARABEL,
            tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol, time_limit=limit, max_threads=1,
        )  # fmt: skip
    except cvxpy.SolverError:
        return Answer(w=np.zeros(pairs.size))
    if w.value is None:
        return Answer(w=np.zeros(pairs.size))
    stats = stated.solver_stats
    return Answer(w=np.maximum(w.value, 0.0), solver_seconds=stats.solve_time + (stats.setup_time or 0.0))


def warm_up(problem: LocalProblem) -> None:
    """Load CVXPY on a toy problem."""
    toy = LocalProblem(cost=np.ones(10), pairs=Pairs.all(5), quadratic=1.0, alpha=1.0)
    call(toy, 1e-4, 10.0)


SOLVERS = {
    "clarabel": WholeCall(call=call, settings=lambda target: (target, target / 100, target / 10_000), warm_up=warm_up)
}
