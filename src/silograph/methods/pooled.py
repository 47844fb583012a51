"""One graph for all: the optimum of all silos' data together, each silo counting alike, exactly.

    minimise   Σ_i g_i(w)   over w ≥ 0

It is what FedAvg aims at, and the limit of every coupling as it grows. It takes one sum, and is the consensus of
one-shot (oneshot.py): everybody gets the sum and solves for the graph, which is then every silo's own. A silo that
lacks nodes has the part on its own ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from silograph.methods.common.pooling import CostSum
from silograph.methods.common.registry import MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters, degree_asked
from silograph.methods.oneshot import STEPS, STEPS_OF_SOME, OneSum, check_sum, conclude
from silograph.protocol.messages import Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units


@dataclass(frozen=True, slots=True)
class Pooled:
    """The pooled graph, everywhere."""

    name: ClassVar[str] = "pooled"
    states: ClassVar[States] = States()

    settings: StudySettings
    model: ModelParameters
    from_one_sum: bool = True  # whether the parameters are; those of the exact method were checked with its set-up

    @property
    def steps(self) -> Mapping[str, Step]:
        """Nothing is asked after the sum but whether it came back."""
        steps = STEPS_OF_SOME if self.settings.may_lack_nodes else STEPS
        return MappingProxyType({"close": steps["personal"]})

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[None], task: Task) -> Answer[None]:
        cost, weight, pairs = task.vector("cost"), task.parts["weight"], silo.study_pairs
        if self.from_one_sum:
            check_sum(self.settings, self.model, cost, weight, pairs)
        u = silo.take(self.model.pooled_optimum(CostSum.of(pairs, cost, weight)).u)
        return Answer(parts={"silos": 1.0}, graph=u, evidence=report_on(silo, u, u))

    def begin(self, cohort: Cohort) -> Decision[None]:
        assert self.model.cost_sum is not None
        parts: Parts = {"cost": self.model.cost_sum, "weight": self.model.weight}
        return Decision(step="close", parts=parts)

    def merge(self, cohort: Cohort, state: None, total: Total) -> Decision[None]:
        assert self.model.cost_sum is not None
        return conclude(self.settings, self.model, CostSum.of(cohort.pairs, self.model.cost_sum, self.model.weight))


METHOD = MethodSpec(
    about="One graph was learned for all silos together, so that there is nothing in which they could differ.",
    build=Pooled,
    newton=Solver(
        settings=frozenset({"missing_nodes"}), degree_of="the graph of all silos together", consensus="pooled"
    ),
    setup=lambda settings, pairs: OneSum(settings=settings, degree=degree_asked(settings, pairs)),
    one_sum=True,
    own_graphs=False,
)
