"""One graph for all: the optimum of all silos' data together, each silo counting alike, exactly.

    minimise   Σ_i g_i(w)   over w ≥ 0

It is what FedAvg aims at, and the limit of every coupling as it grows. The set-up exchange has solved it already (the
sum of costs is all it takes); here the silos receive it and say how it suits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.bounds import relative_gap
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS, PAIRS_NONNEGATIVE, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Parts, of_graph
from silograph.protocol.silo import Memory, Silo

STEPS = MappingProxyType(
    {
        "close": Step(
            down={"u": PAIRS_NONNEGATIVE}, up={"objective": NUMBER, "slope": PAIRS, "edges": NUMBER_NONNEGATIVE}
        ),
        "certify": Step(down={"share": PAIRS}, up={"bound": NUMBER}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The pooled graph, everywhere."""

    name: ClassVar[str] = "pooled"
    steps: ClassVar[Mapping[str, Step]] = STEPS

    alpha: float
    beta: float
    pooled: Vector
    zeta: float = 0.0
    tol: float = 1e-6

    def local(self, silo: Silo, task: Task) -> Answer:
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        if task.header.step == "certify":
            # Forces that sum to zero: no silo's gain is another's loss, so the parts of the bound may be added
            solution = solve_to_rounding(
                replace(problem, cost=problem.cost + silo.memory["force"] + task.vector("share")), None
            )
            return Answer(parts={"bound": solution.primal - solution.gap})
        u = task.vector("u")
        force = -problem.gradient(u)
        silo.memory["force"] = force
        parts: Parts = {"objective": problem.value(u), "slope": force, "edges": float(np.count_nonzero(u))}
        return Answer(parts=parts, reported=of_graph(silo, u, u))

    def begin(self, cohort: Cohort) -> Decision:
        return Decision(state={"consensus": self.pooled}, step="close", parts={"u": self.pooled})

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        if total.header.step == "close":
            objective = total.number("objective")
            share = -total.vector("slope") / cohort.n_silos
            state = state | {"objective": objective, "diverged": False}
            return Decision(state=state, step="certify", parts={"share": share}, record={"objective": objective})
        bound = total.number("bound")
        gap = relative_gap(
            state["objective"], bound, alpha=self.alpha, n_nodes=cohort.pairs.n_nodes, n_silos=cohort.n_silos
        )
        state = state | {"gap": gap, "converged": bool(gap <= self.tol)}
        return Decision(state=state, step=None, record={"objective": state["objective"], "bound": bound, "gap": gap})
