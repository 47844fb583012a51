"""Ditto (Li et al. 2021): FedAvg for one graph of all, and beside it each silo's own, pulled to it by (μ/2)‖w − mean‖².

Exactly, it is two problems one after the other: the pooled one, and each silo's own with the pull. `ExactDitto` solves
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.vectors import dot
from silograph.methods.common.averaging import (
    Averaging,
    OwnGraph,
    advance_own,
    close_at_own,
    is_closing,
    own_graph,
    round_parts,
)
from silograph.methods.common.personal import personal_graph
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import LocalSteps
from silograph.protocol.messages import COUNT, GAP, OBJECTIVE, PAIRS_NONNEGATIVE, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Method, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

EXACT_STEPS = MappingProxyType(
    {"learn": Step(down={"u": PAIRS_NONNEGATIVE}, up={"objective": OBJECTIVE, "gap": GAP, "edges": COUNT})}
)


def local(steps: LocalSteps, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
    """A silo's half of the papers' iteration."""
    mean = task.vector("mean")
    own = own_graph(state, mean)
    if is_closing(task):
        return close_at_own(steps, silo, own, mean)
    own, personal = advance_own(steps, silo, own, mean)
    w, _ = steps.advance(silo, mean, mean)
    sound = steps.model.is_sound(personal)
    return Answer(parts=round_parts(steps, w if sound else personal, mean), state=own)


@dataclass(frozen=True, slots=True)
class ExactDitto:
    """Both problems solved; `pooled` is the first one's solution, found in the set-up exchange."""

    name: ClassVar[str] = "ditto"
    steps: ClassVar[Mapping[str, Step]] = EXACT_STEPS
    states: ClassVar[States] = States()

    settings: StudySettings
    model: ModelParameters

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[None], task: Task) -> Answer[None]:
        u, pull = task.vector("u"), LocalSteps(self.settings, self.model).pull
        solution = personal_graph(self.model.problem(silo), u, pull, state.start)
        objective = solution.primal + 0.5 * pull * dot(u, u)
        parts: Parts = {"objective": objective, "gap": solution.gap, "edges": float(np.count_nonzero(solution.w))}
        return Answer(parts=parts, graph=solution.w, reported=report_on(silo, solution.w, u))

    def begin(self, cohort: Cohort) -> Decision[None]:
        return Decision(step="learn", parts={"u": self.model.pooled})

    def merge(self, cohort: Cohort, state: None, total: Total) -> Decision[None]:
        objective = total.number("objective")
        gap = total.number("gap") / self.model.scale(objective, cohort)
        converged = bool(gap <= self.settings.tol)
        outcome = Outcome(consensus=self.model.pooled, objective=objective, gap=gap, converged=converged)
        return Decision(outcome=outcome, record={"objective": objective, "gap": gap})


def build(settings: StudySettings, model: ModelParameters) -> Method:
    """The method for a study."""
    if settings.by_gradient:
        return Averaging("ditto", local, settings, model)
    return ExactDitto(settings, model)


METHOD = MethodSpec(
    build=build,
    newton=Solver(settings=frozenset({"pull"}), consensus="pooled"),
    gradient=Solver(settings=GRADIENT_SETTINGS | {"pull"}, certified=False),
)
