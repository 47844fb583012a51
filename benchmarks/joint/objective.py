"""The problem that is timed, and how an answer to it is scored.

    min over w_i, u ≥ 0   Σ_i [c_iᵀw_i + 2β‖w_i‖² − α Σ_v log (S w_i)_v + ρ h(w_i − u)] + λ 1ᵀu

where h is the norm ‖·‖₂, or in the neighbours' model half its square. An answer is all w_i and u. Its relative error is

    (objective − lower bound) / |objective|

with the bound Σ_i [min over w of g_i(w) + v_iᵀw − ρh*(v_i/ρ)] for any forces with Σ v_i ≤ λ (and ‖v_i‖ ≤ ρ for the
norm). Weak duality makes it one whoever found the forces, so the score trusts no solver's own stopping rule. The
objective is written here a second time, apart from the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.one_silo.objective import dual
from benchmarks.solver import Answer
from silograph._util.types import Matrix, Vector
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointProblem:
    """All silos' costs, one row each, and the model's parameters."""

    costs: Matrix
    alpha: float
    beta: float
    rho: float
    lam: float
    squares: bool = False  # whether h is half the square of the norm
    signals: Sequence[Matrix] = ()  # what the costs come from, for other models

    @property
    def pairs(self) -> Pairs:
        """All pairs of nodes."""
        return Pairs.all(round((1 + np.sqrt(1 + 8 * self.costs.shape[1])) / 2))

    def local(self, cost: Vector) -> LocalProblem:
        """One silo's own problem, at any cost."""
        return LocalProblem(cost=cost, pairs=self.pairs, quadratic=4 * self.beta, alpha=self.alpha)


def relative_error(problem: JointProblem, answer: Answer, lower_bound: float) -> float:
    """How far the answer is from the optimum, at most; infinite where it is not feasible."""
    assert answer.u is not None
    value = objective(problem, answer.w, answer.u)
    return max(value - lower_bound, 0.0) / abs(value) if np.isfinite(value) else np.inf


def objective(problem: JointProblem, w: Matrix, u: Vector) -> float:
    """The joint objective; infinite where a weight is negative or not a number, or a node has no edge."""
    if not (np.isfinite(w).all() and np.isfinite(u).all() and w.min() >= 0 and u.min() >= 0):
        return np.inf
    degrees = np.array([problem.pairs.degrees(row) for row in w])
    if degrees.min() <= 0:
        return np.inf
    apart = np.linalg.norm(w - u, axis=1)
    own = (problem.costs * w).sum() + 2 * problem.beta * (w**2).sum() - problem.alpha * np.log(degrees).sum()
    pull = problem.rho * float((apart**2 / 2 if problem.squares else apart).sum())
    return float(own + pull + problem.lam * u.sum())


def lower_bound(problem: JointProblem, forces: Matrix) -> float:
    """A bound on the optimum from any forces, once those are made to meet their conditions."""
    excess = np.maximum(forces.sum(axis=0) - problem.lam, 0.0) / len(forces)
    forces = forces - excess
    if problem.squares:
        conjugate = float((forces**2).sum()) / (2 * problem.rho)
    else:  # lessening all in one proportion keeps Σ v_i ≤ λ
        forces = forces * problem.rho / max(np.linalg.norm(forces, axis=1).max(), problem.rho)
        conjugate = 0.0
    local = [problem.local(cost + force) for cost, force in zip(problem.costs, forces, strict=True)]
    return sum(dual(one, exact.solve(one, tol=1e-13).y) for one in local) - conjugate
