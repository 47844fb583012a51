"""CVXPY with Clarabel, the independent judge of our optima."""

import warnings

import cvxpy as cp

# What comparisons to 1e-6 need. Clarabel's own 1e-8 is out of its reach on some machines where silos nearly fuse.
ENOUGH = {"tol_gap_abs": 1e-7, "tol_gap_rel": 1e-7, "tol_feas": 1e-7, "tol_ktratio": 1e-5}


def minimum(objective: cp.Expression) -> float:
    """The least value of a convex expression; its variables hold where it is reached."""
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        problem.solve(solver=cp.CLARABEL, **ENOUGH)
    return float(problem.value)
