"""FedProx (Li et al. 2020): FedAvg whose local steps are pulled towards the mean, by (μ/2)‖w − mean‖²."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from silograph.federation.messages import Step, Task, Total
from silograph.federation.silo import Memory, Silo
from silograph.methods import averaging
from silograph.methods.method import Answer, Decision, Federation


@dataclass(frozen=True, slots=True)
class FedProx:
    """The method."""

    settings: averaging.Rounds

    @property
    def name(self) -> str:
        return "fedprox"

    @property
    def steps(self) -> MappingProxyType[str, Step]:
        return averaging.STEPS

    def local(self, silo: Silo, task: Task) -> Answer:
        mean, problem = task.vector("mean"), self.settings.problem(silo)
        if averaging.is_closing(task):
            return averaging.closed(silo, mean, mean, problem.value(mean))
        w, _ = self.settings.advanced(silo, problem, mean, mean, mean)
        return Answer(parts=averaging.told(w, mean))

    def begin(self, federation: Federation) -> Decision:
        return averaging.begin(self.settings, federation)

    def merge(self, federation: Federation, state: Memory, total: Total) -> Decision:
        return averaging.merge(self.settings, federation, state, total)
