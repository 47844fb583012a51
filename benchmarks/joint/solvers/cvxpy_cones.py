"""The problem as a user would state it in CVXPY, solved by Clarabel (interior point) and by SCS (first order).

A call includes CVXPY's translation; the solver's own time, its set-up included, is noted beside it. Tolerances start
above the target error and are tightened until the answer, with its tiny negative weights cut off, meets it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.joint.objective import JointProblem
from benchmarks.solver import Answer, WholeCall

Options = Callable[[float, float], dict[str, Any]]  # tolerance, time limit


def call(problem: JointProblem, tol: float, limit: float, *, name: str, options: Options) -> Answer:
    """The graphs of one call; all zero when it failed or ran out of time."""
    import cvxpy

    pairs, n_silos = problem.pairs, len(problem.costs)
    ends = np.concatenate([pairs.rows, pairs.cols])
    both = np.tile(np.arange(pairs.size), 2)
    degree_operator = csr_array((np.ones(2 * pairs.size), (ends, both)), shape=(pairs.n_nodes, pairs.size))
    graphs = [cvxpy.Variable(pairs.size, nonneg=True) for _ in range(n_silos)]
    u = cvxpy.Variable(pairs.size, nonneg=True)
    terms = [
        cost @ w
        + 2 * problem.beta * cvxpy.sum_squares(w)
        - problem.alpha * cvxpy.sum(cvxpy.log(degree_operator @ w))
        + problem.rho * cvxpy.norm(w - u)
        for cost, w in zip(problem.costs, graphs, strict=True)
    ]
    stated = cvxpy.Problem(cvxpy.Minimize(sum(terms) + problem.lam * cvxpy.sum(u)))
    try:
        stated.solve(solver=name, **options(tol, limit))
    except cvxpy.SolverError:
        return _nothing(n_silos, pairs.size)
    if u.value is None:
        return _nothing(n_silos, pairs.size)
    stats = stated.solver_stats
    return Answer(
        w=np.maximum([w.value for w in graphs], 0.0),
        u=np.maximum(u.value, 0.0),
        solver_seconds=stats.solve_time + (stats.setup_time or 0.0),
    )


def _nothing(n_silos: int, n_pairs: int) -> Answer:
    return Answer(w=np.zeros((n_silos, n_pairs)), u=np.zeros(n_pairs))


def _clarabel(tol: float, limit: float) -> dict[str, Any]:
    return {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, "time_limit": limit, "max_threads": 1}


def _scs(tol: float, limit: float) -> dict[str, Any]:
    return {"eps_abs": tol, "eps_rel": tol, "time_limit_secs": limit, "max_iters": 1_000_000}


SOLVERS = {
    "clarabel": WholeCall(
        call=partial(call, name="CLARABEL", options=_clarabel),
        settings=lambda target: (10 * target, target, target / 10, target / 100),
        until=math.inf,  # the limit is for each call
    ),
    "scs": WholeCall(
        call=partial(call, name="SCS", options=_scs),
        settings=lambda target: (100 * target, 10 * target, target, target / 10, target / 100),
        until=math.inf,  # the limit is for each call
    ),
}
