"""Independent graph learning (IGL): each silo alone, exactly or by the paper's gradient steps.

One exchange: every silo learns, and the mean of the graphs stands in for a consensus, which this method does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph.local.solvers.gradient import take_gradient_steps
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.bounds import joint_scale
from silograph.methods.common.steps import FIRST_WEIGHT, is_sound, steps_of
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, of_graph
from silograph.protocol.silo import Memory, Silo

STEPS = MappingProxyType(
    {
        "learn": Step(
            down={},
            up={
                "objective": NUMBER,
                "gap": NUMBER_NONNEGATIVE,
                "diverged": NUMBER_NONNEGATIVE,
                "w": PAIRS_NONNEGATIVE,
            },
        ),
        "close": Step(down={"u": PAIRS_NONNEGATIVE}, up={"edges": NUMBER_NONNEGATIVE}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Every silo for itself."""

    name: ClassVar[str] = "independent"
    steps: ClassVar[Mapping[str, Step]] = STEPS

    alpha: float
    beta: float
    zeta: float = 0.0
    exact: bool = True
    rounds: int = 50  # T of the gradient method,
    local_steps: int = 5  # and K: they make T·K steps
    step: float = 0.005
    momentum: float = 0.9
    first_weight: float = FIRST_WEIGHT
    tol: float = 1e-6

    def local(self, silo: Silo, task: Task) -> Answer:
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        if task.header.step == "close":
            w = silo.memory["w"]
            reported = of_graph(silo, w, task.vector("u"))
            return Answer(parts={"edges": float(np.count_nonzero(w))}, reported=reported)
        diverged = False
        if self.exact:
            solution = solve_to_rounding(problem, silo.memory.get("y"))
            w, gap = solution.w, solution.gap
            silo.memory["y"] = solution.y
        else:
            first = np.full(silo.pairs.size, self.first_weight)
            n_steps = self.rounds * steps_of(silo, self.local_steps)
            w, _ = take_gradient_steps(problem, first, first, n_steps=n_steps, step=self.step, momentum=self.momentum)
            diverged = not is_sound(w)
            w = first if diverged else w
            gap = problem.gap(w, problem.multipliers(w))
        silo.memory["w"] = w
        parts = {"objective": problem.value(w), "gap": gap, "diverged": float(diverged), "w": w}
        return Answer(parts=parts)

    def begin(self, cohort: Cohort) -> Decision:
        return Decision(state={}, step="learn")

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        if total.header.step == "close":
            return Decision(state=state, step=None, record={"edges": total.number("edges")})
        objective = total.number("objective")
        n_nodes, n_silos = cohort.pairs.n_nodes, cohort.n_silos
        gap = total.number("gap") / joint_scale(objective, alpha=self.alpha, n_nodes=n_nodes, n_silos=n_silos)
        mean = total.vector("w") / cohort.n_silos
        state = {
            "consensus": mean,
            "objective": objective,
            "gap": gap,
            "converged": bool(gap <= self.tol),
            "diverged": bool(total.number("diverged")),
        }
        record = {"objective": objective, "gap": gap}
        return Decision(state=state, step="close", parts={"u": mean}, record=record)
