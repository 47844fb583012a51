"""The engine that runs every silo in this process."""

from collections.abc import Mapping, Sequence
from typing import Any

from silograph._util.types import IntVector, Vector
from silograph.engine.noise import add_noise
from silograph.errors import ProtocolError
from silograph.privacy.noise import Noise
from silograph.protocol.group import SiloGroup
from silograph.protocol.messages import Task, Total
from silograph.protocol.method import Cohort, Method, Outcome
from silograph.protocol.silo import Silo
from silograph.protocol.sums import add_up


class InProcess:
    """Silos of one owner, on one machine."""

    def __init__(
        self,
        silos: Sequence[Silo],
        *,
        nodes: Sequence[str] = (),
        report: bool = True,
        workers: int | None = None,
        noise: Noise | None = None,
    ) -> None:
        self.group, self._names = SiloGroup(silos, workers=workers), tuple(nodes)
        self._report, self._noise = report, noise

    @property
    def cohort(self) -> Cohort:
        """What everyone knows."""
        names = tuple(silo.name for silo in self.group.silos)
        return Cohort(pairs=self.group.pairs, silos=names, n_silos=len(names), nodes=self._names)

    @property
    def nodes(self) -> Mapping[str, IntVector | None]:
        """The nodes that each silo has."""
        return {silo.name: silo.nodes for silo in self.group.silos}

    def exchange(self, method: Method, task: Task) -> Total:
        """Ask every silo, and add up."""
        updates = self.group.ask(method, task, report=self._report, checked=True)
        fields = method.steps[task.header.step].up
        if self._noise is not None:
            updates = add_noise(updates, fields, self._noise, self.group.pairs)
        return add_up(updates, fields, method.units(task))

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Nothing to do: silos here share the coordinator's method."""

    def finish(self, outcome: Outcome) -> Mapping[str, Vector]:
        """Every silo's graph: they have one owner."""
        graphs = self.group.graphs()
        if len(graphs) < len(self.group.silos):
            raise ProtocolError("The method ended, but its silos have no graphs: it never answered with graph=.")
        return graphs

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """What silos know of their own graphs."""
        return {name: state.evidence for name, state in self.group.states.items() if state.evidence}

    def silo_states(self) -> dict[str, Any]:
        """All silos' states, for a checkpoint."""
        return self.group.plain()

    def restore(self, method: Method, states: dict[str, Any]) -> None:
        """Put back what a checkpoint kept."""
        self.group.restore(method, states)

    def close(self) -> None:
        """Let the threads go."""
        self.group.close()
