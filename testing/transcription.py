"""Algorithm 1 of the paper, transcribed line by line into NumPy: what the library's own code is compared with.

    minimise   Σ_i [ c_iᵀw_i + 2β‖w_i‖² − α Σ_v log((S w_i)_v + ζ) + ρ‖w_i − u‖ ] + λ‖u‖₁ ,   ρ = λν,  c_i = z_i/N_i

Vectors hold one number per pair, in the order of `numpy.triu_indices(d, 1)`. Nothing of silograph is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Run:
    """What Algorithm 1 returns, and what it went through; entry t belongs to w^(t), so entry 0 to the start."""

    w: list[np.ndarray]  # one vector per silo
    u: np.ndarray  # the consensus
    gammas: np.ndarray  # (rounds + 1, silos); row 0 is 1/I
    objectives: np.ndarray  # (rounds + 1,)

    @property
    def rises(self) -> np.ndarray:
        """By how much each round raised the objective: entry t is round t; negative where it fell."""
        return np.diff(self.objectives)


def algorithm1(
    costs: Sequence[np.ndarray],
    *,
    alpha: float,
    beta: float,
    nu: float,
    lam: float,
    zeta: float,
    step: float | Callable[[float], float],
    momentum: float,
    local_steps: int,
    rounds: int,
    epsilon: float = 1e-8,
    start: float | np.ndarray = 0.1,
) -> Run:
    """Algorithm 1 as printed, for ν > 0 and λ > 0.

    `step` is the constant η_w of the paper, or, to see what a safe one would do, a function of the pull ργ_i.
    """
    n_silos, rho = len(costs), lam * nu
    incidence = degree_matrix(costs[0].size)
    u = np.broadcast_to(np.asarray(start, dtype=float), costs[0].shape).copy()
    gamma = np.full(n_silos, 1 / n_silos)  # line 1
    w, before = [u.copy() for _ in costs], [u.copy() for _ in costs]
    gammas, objectives = [gamma], [objective(costs, w, u, alpha=alpha, beta=beta, nu=nu, lam=lam, zeta=zeta)]

    with np.errstate(all="ignore"):  # a step too long shows in the answer
        for _ in range(rounds):
            for i, cost in enumerate(costs):  # lines 4 to 11
                eta = step(rho * gamma[i]) if callable(step) else step
                for _ in range(local_steps):
                    extrapolated = w[i] + momentum * (w[i] - before[i])  # (2-0)
                    degrees = incidence @ extrapolated + zeta
                    gradient = cost - alpha * incidence.T @ (1 / degrees) + 4 * beta * extrapolated
                    gradient += rho * gamma[i] * (extrapolated - u)
                    before[i], w[i] = w[i], np.maximum(extrapolated - eta * gradient, 0)  # (2-1), (2-2)
            total = gamma.sum()
            mean = sum(g * x for g, x in zip(gamma, w, strict=True)) / total
            u = np.maximum(mean - lam / (total * rho), 0)  # line 13, equation (45)
            gamma = np.array([1 / (np.linalg.norm(x - u) + epsilon) for x in w])  # line 14
            gammas.append(gamma)
            objectives.append(objective(costs, w, u, alpha=alpha, beta=beta, nu=nu, lam=lam, zeta=zeta))
    return Run(w=w, u=u, gammas=np.array(gammas), objectives=np.array(objectives))


def objective(
    costs: Sequence[np.ndarray],
    w: Sequence[np.ndarray],
    u: np.ndarray,
    *,
    alpha: float,
    beta: float,
    nu: float,
    lam: float,
    zeta: float,
) -> float:
    """The joint objective at the local graphs `w` and the consensus `u`."""
    incidence = degree_matrix(u.size)
    total = lam * np.abs(u).sum()
    for cost, x in zip(costs, w, strict=True):
        total += cost @ x + 2 * beta * (x @ x) - alpha * np.log(incidence @ x + zeta).sum()
        total += lam * nu * np.linalg.norm(x - u)
    return float(total)


def degree_matrix(n_pairs: int) -> np.ndarray:
    """S, one row per node and one column per pair."""
    n_nodes = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    rows, cols = np.triu_indices(n_nodes, 1)
    out = np.zeros((n_nodes, n_pairs))
    out[rows, np.arange(n_pairs)] = out[cols, np.arange(n_pairs)] = 1
    return out
