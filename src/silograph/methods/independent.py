"""Independent graph learning (IGL): each silo alone, exactly or by the paper's gradient steps.

One exchange: every silo learns, and the mean of the graphs stands in for a consensus, which this method does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.bounds import joint_scale
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import FIRST_WEIGHT, is_sound, step_of, steps_of
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndependentSilo:
    """What a silo keeps."""

    w: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Every silo for itself."""

    name: ClassVar[str] = "independent"
    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(silo=IndependentSilo, coordinator=Outcome)

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

    def local(self, silo: Silo, state: SiloState[IndependentSilo], task: Task) -> Answer[IndependentSilo]:
        if task.header.step == "close":
            w = state.begun.w
            reported = report_on(silo, w, task.vector("u"))
            return Answer(parts={"edges": float(np.count_nonzero(w))}, state=state.own, graph=w, reported=reported)
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        diverged = False
        if self.exact:
            solution = solve_to_rounding(problem, state.start)
            w, gap = solution.w, solution.gap
        else:
            first = np.full(silo.pairs.size, self.first_weight)
            n_steps = self.rounds * steps_of(silo, self.local_steps)
            w, _ = take_gradient_steps(problem, first, first, n_steps=n_steps, step=self.step, momentum=self.momentum)
            diverged = not is_sound(w)
            w = first if diverged else w
            gap = problem.gap(w, problem.multipliers(w))
        parts: Parts = {"objective": problem.value(w), "gap": gap, "diverged": float(diverged), "w": w}
        return Answer(parts=parts, state=IndependentSilo(w=w))

    def begin(self, cohort: Cohort) -> Decision[Outcome]:
        return Decision(step="learn")

    def merge(self, cohort: Cohort, state: Outcome, total: Total) -> Decision[Outcome]:
        if total.header.step == "close":
            return Decision(outcome=state, record={"edges": total.number("edges")})
        objective = total.number("objective")
        n_nodes, n_silos = cohort.pairs.n_nodes, cohort.n_silos
        gap = total.number("gap") / joint_scale(objective, alpha=self.alpha, n_nodes=n_nodes, n_silos=n_silos)
        outcome = Outcome(
            consensus=total.vector("w") / n_silos,
            objective=objective,
            gap=gap,
            converged=bool(gap <= self.tol),
            diverged=bool(total.number("diverged")),
        )
        record = {"objective": objective, "gap": gap}
        return Decision(state=outcome, step="close", parts={"u": outcome.consensus}, record=record)


def build(settings: StudySettings, parameters: ModelParameters) -> Independent:
    """The method for a study."""
    alone = Independent(alpha=parameters.alpha, beta=parameters.beta, zeta=settings.zeta_used, tol=settings.tol)
    if not settings.by_gradient:
        return alone
    return replace(
        alone,
        exact=False,
        rounds=settings.rounds_used,
        local_steps=settings.local_steps,
        step=step_of(settings, parameters.alpha),
        momentum=settings.momentum,
        first_weight=settings.first_weight,
    )


METHOD = MethodSpec(
    summary="each silo alone; the consensus is their mean",
    build=build,
    newton=Solver(),
    gradient=Solver(settings=GRADIENT_SETTINGS),
)
