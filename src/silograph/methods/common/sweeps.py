"""Many runs of an iteration on the same silos at once, one compiled loop each: for the grids of experiments.

The iterations are those of algorithm1.py and averaging.py, number for number (a test holds them to 1e-12), without what
a federation needs: no messages, no checks, no checkpoints, no certificate. At the paper's size they are ten times as
fast.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Matrix, Vector
from silograph._util.vectors import squared_distance
from silograph.graph.pairs import Pairs
from silograph.local.solvers.gradient import is_sound, step_in_place
from silograph.methods.common.settings import FIRST_WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """What all runs of a sweep have in common."""

    alpha: float
    zeta: float
    step: float  # η
    momentum: float  # ξ
    rounds: int  # T
    local_steps: int  # K
    first_weight: float = FIRST_WEIGHT  # w⁰


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepResult:
    """The last sound round of each run."""

    graphs: np.ndarray  # (runs, silos, pairs)
    consensus: Matrix  # (runs, pairs)
    gamma: Matrix  # (runs, silos); the paper's weights, or equal ones


def sweep_algorithm1(
    costs: Matrix,
    pairs: Pairs,
    iteration: Iteration,
    *,
    beta: float,
    rhos: Vector,
    lams: Vector,
    gamma_epsilon: float = 1e-8,
    equal: bool = False,
) -> SweepResult:
    """Algorithm 1 on silos' costs (silos, pairs), once for each ρ and λ; `equal` is its ablation."""
    n_runs, (n_silos, n_pairs) = rhos.size, costs.shape
    graphs = np.full((n_runs, n_silos, n_pairs), iteration.first_weight)
    consensus = np.full((n_runs, n_pairs), iteration.first_weight)
    gamma = np.full((n_runs, n_silos), 1 / n_silos)
    for run in range(n_runs):
        _algorithm1(
            *pairs.index, pairs.n_nodes, costs, 4 * beta, iteration.alpha, iteration.zeta, iteration.step,
            iteration.momentum, iteration.rounds, iteration.local_steps, float(rhos[run]), float(lams[run]),
            gamma_epsilon, equal, graphs[run], consensus[run], gamma[run],
        )  # fmt: skip
    return SweepResult(graphs=graphs, consensus=consensus, gamma=gamma)


def sweep_averaging(
    method: Literal["fedavg", "fedprox", "mrmtl", "ditto"],
    costs: Matrix,
    pairs: Pairs,
    iteration: Iteration,
    *,
    betas: Vector,
    strengths: Vector,
) -> SweepResult:
    """FedAvg, FedProx, MRMTL or Ditto, once for each β and strength μ; FedAvg takes no notice of the latter."""
    n_runs, (n_silos, n_pairs) = betas.size, costs.shape
    graphs = np.full((n_runs, n_silos, n_pairs), iteration.first_weight)
    consensus = np.full((n_runs, n_pairs), iteration.first_weight)
    for run in range(n_runs):
        strength = 0.0 if method == "fedavg" else float(strengths[run])
        _averaging(
            *pairs.index, pairs.n_nodes, costs, 4 * float(betas[run]), iteration.alpha, iteration.zeta, iteration.step,
            iteration.momentum, iteration.rounds, iteration.local_steps, strength, method in ("mrmtl", "ditto"),
            method != "mrmtl", 0.0 if method == "ditto" else strength, graphs[run], consensus[run],
        )  # fmt: skip
        if method in ("fedavg", "fedprox"):
            graphs[run] = consensus[run]  # one graph for all
    return SweepResult(graphs=graphs, consensus=consensus, gamma=np.full((n_runs, n_silos), 1 / n_silos))


@kernel
def _algorithm1(
    all_pairs: bool, rows: IntVector, cols: IntVector, n_nodes: int, costs: Matrix, quadratic: float, alpha: float,
    zeta: float, step: float, momentum: float, rounds: int, local_steps: int, rho: float, lam: float,
    gamma_epsilon: float, equal: bool, graphs: Matrix, consensus: Vector, gamma: Vector,
) -> None:  # fmt: skip
    """Bring graphs, consensus and γ from the start to the last sound round, in place."""
    n_silos, n_pairs = costs.shape
    before, kept = graphs.copy(), np.empty((2, n_pairs))
    for t in range(rounds):
        total, weighted, sound = 0.0, np.zeros(n_pairs), True
        for i in range(n_silos):
            w = graphs[i]
            if t > 0 and not equal:
                gamma[i] = 1 / (np.sqrt(squared_distance(w, consensus)) + gamma_epsilon)
            kept[0], kept[1] = w, before[i]
            step_in_place(
                all_pairs, rows, cols, costs[i], quadratic, alpha, zeta, n_nodes, consensus, rho * gamma[i], step,
                momentum, local_steps, w, before[i],
            )  # fmt: skip
            if not is_sound(w, alpha, quadratic):
                sound = False
                w[:], before[i][:] = kept[0], kept[1]
            total += gamma[i]
            weighted += gamma[i] * w
        if not sound:
            break
        for e in range(n_pairs):
            consensus[e] = max(weighted[e] / total - lam / (rho * total), 0.0)
    if not equal:
        for i in range(n_silos):
            gamma[i] = 1 / (np.sqrt(squared_distance(graphs[i], consensus)) + gamma_epsilon)


@kernel
def _averaging(
    all_pairs: bool, rows: IntVector, cols: IntVector, n_nodes: int, costs: Matrix, quadratic: float, alpha: float,
    zeta: float, step: float, momentum: float, rounds: int, local_steps: int, own_pull: float,
    has_own: bool, has_shared: bool, shared_pull: float, graphs: Matrix, mean: Vector,
) -> None:  # fmt: skip
    """Rounds of averaging, in place: of graphs that start at the mean (`has_shared`), or of the silos' own.

    Own graphs go on from where they were, pulled to the mean.
    """
    n_silos, n_pairs = costs.shape
    before, kept = graphs.copy(), np.empty((2, n_pairs))
    w, w_before = np.empty(n_pairs), np.empty(n_pairs)
    for _ in range(rounds):
        total, sound = np.zeros(n_pairs), True
        for i in range(n_silos):
            if has_own:
                kept[0], kept[1] = graphs[i], before[i]
                step_in_place(
                    all_pairs, rows, cols, costs[i], quadratic, alpha, zeta, n_nodes, mean, own_pull, step, momentum,
                    local_steps, graphs[i], before[i],
                )  # fmt: skip
                if not is_sound(graphs[i], alpha, quadratic):
                    sound = False
                    graphs[i][:], before[i][:] = kept[0], kept[1]
                w[:] = graphs[i]
            if has_shared:
                w[:], w_before[:] = mean, mean
                step_in_place(
                    all_pairs, rows, cols, costs[i], quadratic, alpha, zeta, n_nodes, mean, shared_pull, step, momentum,
                    local_steps, w, w_before,
                )  # fmt: skip
                sound = sound and is_sound(w, alpha, quadratic)
            total += w
        if not sound:
            break
        mean[:] = total / n_silos
