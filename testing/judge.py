"""CVXPY with Clarabel, the independent judge of our optima."""

import warnings

import cvxpy as cp

# What comparisons to 1e-6 need. Clarabel's own 1e-8 is out of its reach on some machines where silos nearly fuse.
ENOUGH = {"tol_gap_abs": 1e-7, "tol_gap_rel": 1e-7, "tol_feas": 1e-7, "tol_ktratio": 1e-5}

# Out of reach: Clarabel goes on to where rounding stops it. Where a value is good to 1e-8, its place is to 1e-4 only
MOST = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "tol_ktratio": 1e-9}


def minimum(objective: cp.Expression, *, tight: bool = False) -> float:
    """The least value of a convex expression; its variables hold where it is reached, if `tight` as near as may be."""
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, **(MOST if tight else {}))
    if problem.status != cp.OPTIMAL and not tight:
        problem.solve(solver=cp.CLARABEL, **ENOUGH)
    return float(problem.value)
