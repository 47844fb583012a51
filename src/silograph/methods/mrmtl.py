"""MRMTL (Liu et al. 2022): mean-regularised multi-task learning, each silo pulled to the mean of all.

    minimise   Σ_i g_i(w_i) + (μ/2) Σ_i ‖w_i − w̄‖² ,   w̄ the mean

It is convex. `ExactMrmtl` alternates exact local solves and means, accelerated (mixing.py), with a certificate from
sums: the forces v_i = μ(w_i − u) less their mean are dual feasible, and with δ = −Σ v_i/I

    optimum ≥ Σ [g_i(w_i) + v_iᵀw_i] + δᵀΣ w_i − I‖δ‖²/(2q) − (Σ‖v_i‖² − I‖δ‖²)/(2μ).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._types import Vector
from silograph.federation.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Step, Task, Total
from silograph.federation.silo import Memory, Silo
from silograph.methods.averaging import Averaging, Rounds, closed_own, first_own, go_on, is_closing, told
from silograph.methods.bounds import relative_gap
from silograph.methods.method import Answer, Decision, Federation, Parts, distance, dot, of_graph
from silograph.methods.mixing import coefficients
from silograph.methods.pull import anchored, solved

HISTORY = 10

EXACT_STEPS = MappingProxyType(
    {
        "learn": Step(
            down={"u": PAIRS_NONNEGATIVE},
            up={
                "w": PAIRS_NONNEGATIVE,
                "value": NUMBER,
                "gap": NUMBER_NONNEGATIVE,
                "square": NUMBER_NONNEGATIVE,  # ‖w − u‖²
                "work": NUMBER,  # (w − u)ᵀw
            },
        )
    }
)


def mrmtl(settings: Rounds) -> Averaging:
    """The papers' iteration."""
    return Averaging(name="mrmtl", settings=settings, half=_local)


def _local(settings: Rounds, silo: Silo, task: Task) -> Answer:
    mean, problem = task.vector("mean"), settings.problem(silo)
    first_own(silo.memory, mean)
    if is_closing(task):
        return closed_own(settings, silo, mean)
    return Answer(parts=told(go_on(settings, silo, problem, mean), mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMrmtl:
    """The optimum; `pooled` is the start."""

    name: ClassVar[str] = "mrmtl"
    steps: ClassVar[Mapping[str, Step]] = EXACT_STEPS

    alpha: float
    beta: float
    pull: float  # μ > 0
    pooled: Vector
    zeta: float = 0.0
    tol: float = 1e-6
    max_rounds: int = 200

    def local(self, silo: Silo, task: Task) -> Answer:
        u = task.vector("u")
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        solution = solved(anchored(problem, u, self.pull), silo.memory.get("y"))
        w = solution.w
        silo.memory["y"] = solution.y
        parts: Parts = {
            "w": w,
            "value": problem.value(w),
            "gap": solution.gap,
            "square": distance(w, u) ** 2,
            "work": dot(w - u, w),
        }
        return Answer(parts=parts, singly=of_graph(silo, w, u))

    def begin(self, federation: Federation) -> Decision:
        state = {"u": self.pooled, "points": [], "residuals": [], "diverged": False, "bound": -np.inf}
        return Decision(state=state, step="learn", parts={"u": self.pooled})

    def merge(self, federation: Federation, state: Memory, total: Total) -> Decision:
        u, mean, n = state["u"], total.vector("w") / total.n_silos, total.n_silos
        residual = mean - u
        shift = self.pull**2 * dot(residual, residual)  # ‖δ‖²
        square = total.number("square")
        objective = total.number("value") + 0.5 * self.pull * (square - n * shift / self.pull**2)
        # What a local solve is short of its optimum, a force taken from it may be short of by the pull over q more
        short = (1 + self.pull / (4 * self.beta)) * total.number("gap")
        bound = total.number("value") - short + self.pull * total.number("work")
        bound -= self.pull * n * dot(residual, mean) + n * shift / (8 * self.beta)
        bound -= (self.pull**2 * square - n * shift) / (2 * self.pull)
        bound = max(bound, state["bound"])
        gap = relative_gap(objective, bound, alpha=self.alpha, n_nodes=federation.pairs.n_nodes, n_silos=n)
        state = state | {"objective": objective, "gap": gap, "converged": bool(gap <= self.tol), "consensus": mean}
        state["bound"] = bound
        record = {"objective": objective, "bound": bound, "gap": gap}
        if state["converged"] or total.header.round >= self.max_rounds:
            return Decision(state=state, step=None, record=record)
        points = [*state["points"], mean][-HISTORY:]
        residuals = [*state["residuals"], residual][-HISTORY:]
        gram = np.array([[dot(a, b) for a in residuals] for b in residuals])
        mixing = coefficients(gram)
        following = np.maximum(sum((a * x for a, x in zip(mixing, points, strict=True)), np.zeros_like(u)), 0.0)
        state.update(u=following, points=points, residuals=residuals)
        return Decision(state=state, step="learn", parts={"u": following}, record=record)
