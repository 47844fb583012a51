"""One graph for all: the optimum of all silos' data together, each silo counting alike, exactly.

    minimise   Σ_i g_i(w)   over w ≥ 0

It is what FedAvg aims at, and the limit of every coupling as it grows. The set-up exchange has solved it already (the
sum of costs is all it takes); here the silos receive it and say how it suits them.

Where silos may lack nodes, it is the optimum of means (common/pooling.py), and so is its certificate. A silo's graph is
the part on its own nodes. There a node may be left without a neighbour, and g_i be infinite, so that nobody is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.registry import MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.protocol.messages import (
    BOUND,
    COUNT,
    OBJECTIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Field,
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
        "close": Step(
            down={"u": PAIRS_NONNEGATIVE}, up={"objective": OBJECTIVE, "slope": Field("pairs", "slope"), "edges": COUNT}
        ),
        "certify": Step(down={"share": PAIRS}, up={"bound": BOUND}),
    }
)
STEPS_OF_SOME = MappingProxyType({"close": Step(down={"u": PAIRS_NONNEGATIVE}, up={"edges": COUNT})})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledSilo:
    """What a silo keeps."""

    force: Vector  # that holds its graph at the pooled one


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledState:
    """What the coordinator keeps."""

    objective: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """The pooled graph, everywhere."""

    name: ClassVar[str] = "pooled"
    states: ClassVar[States] = States(silo=PooledSilo, coordinator=PooledState)

    settings: StudySettings
    model: ModelParameters

    @property
    def steps(self) -> Mapping[str, Step]:
        """Where silos may lack nodes, nothing is asked but that the graph arrived."""
        return STEPS_OF_SOME if self.settings.may_lack_nodes else STEPS

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[PooledSilo], task: Task) -> Answer[PooledSilo]:
        problem = self.model.problem(silo)
        if task.header.step == "certify":
            # Forces that sum to zero: no silo's gain is another's loss, so the parts of the bound may be added
            cost = problem.cost + state.kept.force + task.vector("share")
            solution = solve_to_rounding(replace(problem, cost=cost), None)
            return Answer(parts={"bound": solution.primal - solution.gap}, state=state.own)
        u = task.vector("u")
        if self.settings.may_lack_nodes:
            return Answer(parts={"edges": float(np.count_nonzero(u))}, graph=u, reported=report_on(silo, u, u))
        force = -problem.gradient(u)
        parts: Parts = {"objective": problem.value(u), "slope": force, "edges": float(np.count_nonzero(u))}
        return Answer(parts=parts, state=PooledSilo(force=force), graph=u, reported=report_on(silo, u, u))

    def begin(self, cohort: Cohort) -> Decision[PooledState]:
        return Decision(step="close", parts={"u": self.model.pooled})

    def merge(self, cohort: Cohort, state: PooledState, total: Total) -> Decision[PooledState]:
        if self.settings.may_lack_nodes:
            return self._end_at_the_optimum_of_means(cohort)
        if total.header.step == "close":
            state = PooledState(objective=total.number("objective"))
            share = -total.vector("slope") / cohort.n_silos
            record = {"objective": state.objective}
            return Decision(state=state, step="certify", parts={"share": share}, record=record)
        objective, bound = state.objective, total.number("bound")
        gap = self.model.gap(objective, bound, cohort)
        converged = bool(gap <= self.settings.tol)
        outcome = Outcome(consensus=self.model.pooled, objective=objective, gap=gap, converged=converged)
        return Decision(outcome=outcome, record={"objective": objective, "bound": bound, "gap": gap})

    def _end_at_the_optimum_of_means(self, cohort: Cohort) -> Decision[PooledState]:
        assert self.model.cost_sum is not None
        assert self.model.count is not None
        found = self.model.pooled_optimum(CostSum.of(cohort.pairs, self.model.cost_sum, self.model.count))
        objective, converged = cohort.n_silos * found.value, bool(found.gap <= self.settings.tol)
        outcome = Outcome(consensus=found.u, objective=objective, gap=found.gap, converged=converged)
        return Decision(outcome=outcome, record={"objective": objective, "gap": found.gap})


METHOD = MethodSpec(
    about="One graph was learned for all silos together, so that there is nothing in which they could differ.",
    build=Pooled,
    newton=Solver(settings=frozenset({"missing_nodes"})),
)
