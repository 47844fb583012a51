"""Ditto (Li et al. 2021): FedAvg for one graph of all, and beside it each silo's own, pulled to it by (μ/2)‖w − mean‖².

Exactly, it is two problems one after the other: the pooled one, and each silo's own with the pull. `ExactDitto` solves
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import dot
from silograph.local.prox import add_pull
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.averaging import Averaging, Rounds, closed_own, first_own, go_on, is_closing, told
from silograph.methods.common.bounds import joint_scale
from silograph.methods.common.steps import is_sound
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, of_graph
from silograph.protocol.silo import Memory, Silo

EXACT_STEPS = MappingProxyType(
    {
        "learn": Step(
            down={"u": PAIRS_NONNEGATIVE},
            up={"objective": NUMBER, "gap": NUMBER_NONNEGATIVE, "edges": NUMBER_NONNEGATIVE},
        )
    }
)


def ditto(settings: Rounds) -> Averaging:
    """The papers' iteration."""
    return Averaging(name="ditto", settings=settings, half=_local)


def _local(settings: Rounds, silo: Silo, task: Task) -> Answer:
    mean, problem = task.vector("mean"), settings.problem(silo)
    first_own(silo.memory, mean)
    if is_closing(task):
        return closed_own(settings, silo, mean)
    personal = go_on(settings, silo, problem, mean)
    w, _ = settings.take_gradient_steps(silo, problem, mean, mean)
    return Answer(parts=told(w if is_sound(personal) else personal, mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDitto:
    """Both problems solved; `pooled` is the first one's solution, found in the set-up exchange."""

    name: ClassVar[str] = "ditto"
    steps: ClassVar[Mapping[str, Step]] = EXACT_STEPS

    alpha: float
    beta: float
    pull: float
    pooled: Vector
    zeta: float = 0.0
    tol: float = 1e-6

    def local(self, silo: Silo, task: Task) -> Answer:
        u = task.vector("u")
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        solution = solve_to_rounding(add_pull(problem, u, self.pull), silo.memory.get("y"))
        objective = solution.primal + 0.5 * self.pull * dot(u, u)
        edges = float(np.count_nonzero(solution.w))
        parts = {"objective": objective, "gap": solution.gap, "edges": edges}
        return Answer(parts=parts, reported=of_graph(silo, solution.w, u))

    def begin(self, cohort: Cohort) -> Decision:
        return Decision(state={"consensus": self.pooled}, step="learn", parts={"u": self.pooled})

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        objective = total.number("objective")
        n_nodes, n_silos = cohort.pairs.n_nodes, cohort.n_silos
        gap = total.number("gap") / joint_scale(objective, alpha=self.alpha, n_nodes=n_nodes, n_silos=n_silos)
        state = state | {"objective": objective, "gap": gap, "converged": bool(gap <= self.tol), "diverged": False}
        return Decision(state=state, step=None, record={"objective": objective, "gap": gap})
