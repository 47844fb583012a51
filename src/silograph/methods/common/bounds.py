"""Both sides of the joint problem's certificate, from sums alone.

    primal   P(u) = Σ_i min over w of [g_i(w) + ρ‖w − u‖] + λ 1ᵀu           any w is an upper bound
    dual     D(v) = Σ_i min over w of [g_i(w) + v_iᵀw]                      for ‖v_i‖ ≤ ρ and Σ_i v_i ≤ λ

The forces v_i of a round miss Σ v_i ≤ λ by a little. The coordinator tells what is missing, r = λ − Σ v_i (all of it on
the edges of u, only what is too much elsewhere), and the silos take equal shares δ of it: the fused ones if there are
any, as their forces have room to grow and their graphs are u, where a change of force costs nothing to first order;
otherwise all. Where silos lack nodes, all of this is pair by pair, among those that have the pair, and λ is λ_e.
A silo whose ‖v_i + δ‖ exceeds ρ lessens its positive entries until it does not, which keeps Σ v_i ≤ λ.
"""

from dataclasses import replace

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import dot
from silograph.local.problem import LocalProblem
from silograph.local.prox import solve_exactly
from silograph.local.pull_strength import MAX_NEWTON_ITER
from silograph.local.solvers.newton import minimise
from silograph.protocol.messages import BOUND, FLAG, Total

BOUND_TOL, LOOSE = 1e-12, 1e-9  # relative gap of the solve behind a bound: the finest asked for, and accepted
DUAL_FIELDS = {"bound": BOUND, "boundless": FLAG}


def missing_share(force_sum: Vector, u: Vector, *, lam: float | Vector, n_sharing: float | Vector) -> Vector:
    """δ, the share of what the forces miss, for each silo that takes one."""
    missing = lam - force_sum
    share: Vector = np.where(u > 0, missing, np.minimum(missing, 0.0)) / n_sharing
    return share


def shrink_into(force: Vector, rho: float) -> Vector | None:
    """A force no larger than ρ and nowhere above `force`; nothing if its negative part alone is too large."""
    squares = dot(force, force)
    if squares <= rho**2:
        return force
    positive = np.maximum(force, 0.0)
    rising = dot(positive, positive)
    room = rho**2 - (squares - rising)
    if room < 0:
        return None
    lessened: Vector = np.minimum(force, 0.0) + positive * np.sqrt(room / rising)
    return lessened


def dual_parts(
    problem: LocalProblem, force: Vector, *, rho: float, start: Vector, tol: float = BOUND_TOL
) -> tuple[dict[str, float], Vector]:
    """A silo's part of the lower bound, or the word that it has none, and the multipliers that prove it.

    `tol` is the relative gap of the solve behind it, by which the bound is lower than it could be.
    """
    feasible = shrink_into(force, rho)
    if feasible is None:
        return {"bound": 0.0, "boundless": 1.0}, start
    # Any multipliers make a bound: that they are near the best ones is all that is asked of the solver
    y, primal, gap, _ = minimise(
        *problem.pairs.index,
        problem.cost + feasible,
        problem.inverse,
        problem.alpha,
        problem.zeta,
        start,
        tol,
        MAX_NEWTON_ITER,
    )
    if gap == np.inf or gap > max(tol, LOOSE) * problem.scale(primal):
        solution = solve_exactly(replace(problem, cost=problem.cost + feasible), start)
        y, primal, gap = solution.y, solution.primal, solution.gap
    return {"bound": primal - gap, "boundless": 0.0}, y


def dual_bound(total: Total) -> float:
    """The lower bound on the optimum."""
    return -np.inf if total.number("boundless") else total.number("bound")


def joint_scale(primal: float, *, alpha: float, n_nodes: int, n_silos: int) -> float:
    """What a gap of all silos together is measured against: |primal|, but never less than a millionth of αdI."""
    return max(abs(primal), 1e-6 * alpha * n_nodes * n_silos)
