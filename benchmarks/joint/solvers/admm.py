"""Two-block ADMM in which every step has a closed form, as in multiview graph learning (Karaaslanli et al.).

    first block    w_i, u               a quadratic problem
    second block   D_i = S w_i          the logarithm's proximal operator, node by node
                   P_i = w_i            weights ≥ 0
                   H_i = w_i − u        the norm's proximal operator, or the square's
                   V = u                weights ≥ 0, λ 1ᵀV

The quadratic problem is solved exactly, as S Sᵀ = (d − 2)I + 11ᵀ is inverted by hand. `admm` is this on silograph's
model; `admm-squares` with half the squares of the distances instead of their norms, as multiview learning has it. The
penalty is the best of a few, over-relaxation is on, and all silos are steps of one NumPy array.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.joint.solvers.square import adjoint, answer_of, pair_norms, to_square
from benchmarks.solver import Answer, Iterative
from silograph._util.types import Matrix

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)  # times 4β
OVER = 1.6


class Run:
    """ADMM under way; capitals are the second block, `…_dual` the scaled multipliers."""

    def __init__(self, problem: JointProblem, penalty: float) -> None:
        self._problem = problem
        self._tau = penalty * 4 * problem.beta
        self._costs = to_square(problem.costs)
        n_silos, n_nodes = self._costs.shape[:2]
        self._off = 1 - np.eye(n_nodes)
        first = 1 / (n_nodes - 1) * self._off
        self._V, self._P = first, np.repeat(first[None], n_silos, axis=0)
        self._D, self._H = self._P.sum(axis=2), np.zeros_like(self._P)
        self._V_dual, self._P_dual = np.zeros_like(self._V), np.zeros_like(self._P)
        self._D_dual, self._H_dual = np.zeros_like(self._D), np.zeros_like(self._H)

    def advance(self, n_iter: int) -> None:
        """Do so many iterations."""
        for _ in range(n_iter):
            w, u = self._quadratic()
            self._proximal(w, u)

    def _quadratic(self) -> tuple[np.ndarray, np.ndarray]:
        """The first block: (4β + 2τ + τSᵀS) w_i = b_i + τu and (I + 1) u = Σ(w_i − H̃_i) + Ṽ."""
        tau, n_silos = self._tau, len(self._costs)
        near, apart, own = self._P - self._P_dual, self._H - self._H_dual, self._V - self._V_dual
        b = tau * (near + apart + self._off * adjoint(self._D - self._D_dual)) - self._costs
        diagonal = 4 * self._problem.beta + 2 * tau
        rest = own - apart.sum(axis=0)
        right = b.sum(axis=0) + diagonal * rest + tau * self._off * adjoint(rest.sum(axis=1))
        u = self._solved((n_silos + 1) * diagonal - n_silos * tau, (n_silos + 1) * tau, right)
        return self._solved(diagonal, tau, b + tau * u), u

    def _solved(self, a: float, b: float, right: np.ndarray) -> np.ndarray:
        """(aI + bSᵀS)⁻¹ times `right`, by Woodbury's and Sherman and Morrison's formulas."""
        n_nodes = right.shape[-1]
        sums: Matrix = right.sum(axis=-1)
        c = a + b * (n_nodes - 2)
        inner = (sums - b * sums.sum(axis=-1, keepdims=True) / (c + b * n_nodes)) / c
        return (right - b * self._off * adjoint(inner)) / a

    def _proximal(self, w: np.ndarray, u: np.ndarray) -> None:
        problem, tau = self._problem, self._tau
        near = OVER * w + (1 - OVER) * self._P + self._P_dual
        self._P = np.maximum(near, 0.0)
        self._P_dual = near - self._P
        degrees = OVER * w.sum(axis=2) + (1 - OVER) * self._D + self._D_dual
        self._D = (degrees + np.sqrt(degrees**2 + 4 * problem.alpha / tau)) / 2
        self._D_dual = degrees - self._D
        apart = OVER * (w - u) + (1 - OVER) * self._H + self._H_dual
        self._H = apart * self._kept(apart)
        self._H_dual = apart - self._H
        own = OVER * u + (1 - OVER) * self._V + self._V_dual
        self._V = np.maximum(own - problem.lam / tau, 0.0) * self._off
        self._V_dual = own - self._V

    def _kept(self, apart: np.ndarray) -> np.ndarray | float:
        if self._problem.squares:
            return self._tau / (self._tau + self._problem.rho)
        sizes = np.maximum(pair_norms(apart), np.finfo(float).tiny)
        return np.maximum(1 - self._problem.rho / (self._tau * sizes), 0.0)[:, None, None]

    def answers(self) -> Iterator[Answer]:
        """The feasible copies."""
        yield answer_of(self._P, self._V)


SOLVERS = {name: Iterative(start=Run, steps=PENALTIES) for name in ("admm", "admm-squares")}
