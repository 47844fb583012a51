"""Independent graph learning (IGL): each silo alone, exactly or by the paper's gradient steps.

One exchange: every silo learns, and the mean of the graphs stands in for a consensus, which this method does not have.
At each pair it is the mean over the silos that have the pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph.errors import ProtocolError
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.pooling import mean_over
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import LocalSteps
from silograph.protocol.messages import (
    COUNT,
    FLAG,
    GAP,
    OBJECTIVE,
    PAIRS_NONNEGATIVE,
    WEIGHTS,
    Parts,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

STEPS = MappingProxyType(
    {
        "learn": Step(down={}, up={"objective": OBJECTIVE, "gap": GAP, "diverged": FLAG, "w": WEIGHTS}),
        "close": Step(down={"u": PAIRS_NONNEGATIVE}, up={"edges": COUNT}),
    }
)


@dataclass(frozen=True, slots=True)
class Independent:
    """Every silo for itself."""

    name: ClassVar[str] = "independent"
    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(coordinator=Outcome)

    settings: StudySettings
    model: ModelParameters

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[None], task: Task) -> Answer[None]:
        if task.header.step == "close":
            if state.graph is None:
                raise ProtocolError("expected to learn a graph first.")
            reported = report_on(silo, state.graph, task.vector("u"))
            return Answer(parts={"edges": reported["edges"]}, reported=reported)
        problem = self.model.problem(silo)
        diverged = False
        if not self.settings.by_gradient:
            solution = solve_to_rounding(problem, state.start)
            w, gap = solution.w, solution.gap
        else:
            steps = LocalSteps(self.settings, self.model)
            first = np.full(silo.pairs.size, self.settings.first_weight)
            w, _ = steps.advance(silo, first, first, times=self.settings.rounds_used)
            diverged = not self.model.is_sound(w)
            w = first if diverged else w
            gap = problem.gap(w, problem.multipliers(w))
        parts: Parts = {"objective": problem.value(w), "gap": gap, "diverged": float(diverged), "w": w}
        return Answer(parts=parts, graph=w)

    def begin(self, cohort: Cohort) -> Decision[Outcome]:
        return Decision(step="learn")

    def merge(self, cohort: Cohort, state: Outcome, total: Total) -> Decision[Outcome]:
        if total.header.step == "close":
            return Decision(outcome=state, record={"edges": total.number("edges")})
        objective = total.number("objective")
        gap = total.number("gap") / self.model.scale(objective, cohort)
        w, count = total.vector("w"), self.model.count
        outcome = Outcome(
            consensus=w / cohort.n_silos if count is None else mean_over(w, count),
            objective=objective,
            gap=gap,
            converged=bool(gap <= self.settings.tol),
            diverged=bool(total.number("diverged")),
        )
        record = {"objective": objective, "gap": gap}
        return Decision(state=outcome, step="close", parts={"u": outcome.consensus}, record=record)


METHOD = MethodSpec(
    about="Each silo learned alone; what is called consensus here is only the mean of their graphs.",
    build=Independent,
    newton=Solver(settings=frozenset({"missing_nodes"})),
    gradient=Solver(settings=GRADIENT_SETTINGS),
)
