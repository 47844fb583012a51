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
from silograph.methods.common.averaging import (
    LocalSteps,
    OwnGraph,
    advance_own,
    build_averaging,
    close_at_own,
    is_closing,
    own_graph,
    round_parts,
)
from silograph.methods.common.bounds import joint_scale
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import is_sound
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Method, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState

EXACT_STEPS = MappingProxyType(
    {
        "learn": Step(
            down={"u": PAIRS_NONNEGATIVE},
            up={"objective": NUMBER, "gap": NUMBER_NONNEGATIVE, "edges": NUMBER_NONNEGATIVE},
        )
    }
)


def local(settings: LocalSteps, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
    """A silo's half of the papers' iteration."""
    mean = task.vector("mean")
    own = own_graph(state, mean)
    if is_closing(task):
        return close_at_own(settings, silo, own, mean)
    own, personal = advance_own(settings, silo, own, mean)
    w, _ = settings.advance(silo, mean, mean)
    return Answer(parts=round_parts(w if is_sound(personal) else personal, mean), state=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDitto:
    """Both problems solved; `pooled` is the first one's solution, found in the set-up exchange."""

    name: ClassVar[str] = "ditto"
    steps: ClassVar[Mapping[str, Step]] = EXACT_STEPS
    states: ClassVar[States] = States()

    alpha: float
    beta: float
    pull: float
    pooled: Vector
    zeta: float = 0.0
    tol: float = 1e-6

    def local(self, silo: Silo, state: SiloState[None], task: Task) -> Answer[None]:
        u = task.vector("u")
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        solution = solve_to_rounding(add_pull(problem, u, self.pull), state.start)
        objective = solution.primal + 0.5 * self.pull * dot(u, u)
        parts: Parts = {"objective": objective, "gap": solution.gap, "edges": float(np.count_nonzero(solution.w))}
        return Answer(parts=parts, graph=solution.w, reported=report_on(silo, solution.w, u))

    def begin(self, cohort: Cohort) -> Decision[None]:
        return Decision(step="learn", parts={"u": self.pooled})

    def merge(self, cohort: Cohort, state: None, total: Total) -> Decision[None]:
        objective = total.number("objective")
        n_nodes, n_silos = cohort.pairs.n_nodes, cohort.n_silos
        gap = total.number("gap") / joint_scale(objective, alpha=self.alpha, n_nodes=n_nodes, n_silos=n_silos)
        outcome = Outcome(consensus=self.pooled, objective=objective, gap=gap, converged=bool(gap <= self.tol))
        return Decision(outcome=outcome, record={"objective": objective, "gap": gap})


def build(settings: StudySettings, parameters: ModelParameters) -> Method:
    """The method for a study."""
    if settings.by_gradient:
        return build_averaging("ditto", local, settings, parameters)
    return ExactDitto(
        alpha=parameters.alpha,
        beta=parameters.beta,
        pull=settings.pull_used * 4 * parameters.beta,
        pooled=parameters.pooled,
        zeta=settings.zeta_used,
        tol=settings.tol,
    )


METHOD = MethodSpec(
    summary="FedAvg for all, and beside it each silo's own graph, pulled to it",
    build=build,
    newton=Solver(settings=frozenset({"pull"})),
    gradient=Solver(settings=GRADIENT_SETTINGS | {"pull"}, certified=False),
)
