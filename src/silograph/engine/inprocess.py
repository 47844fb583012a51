"""The engine that runs every silo in this process, in parallel threads: the compiled loops release the lock."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from silograph._util.plain import to_plain
from silograph._util.types import IntVector, Vector
from silograph.errors import ProtocolError, SilosError
from silograph.graph.pairs import Pairs
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import Task, Total, Update
from silograph.protocol.method import Cohort, Method
from silograph.protocol.silo import Silo, SiloState, restore_silo_state
from silograph.protocol.sums import add_up

THREADS_FROM = 3000  # pairs; below, handing a silo to a thread costs more than its step


class InProcess:
    """Silos of one owner, on one machine."""

    def __init__(
        self, silos: Sequence[Silo], *, nodes: Sequence[str] = (), report: bool = True, workers: int | None = None
    ) -> None:
        if not silos:
            raise SilosError("Expected at least one silo, got none.")
        for silo in silos[1:]:
            mine, first = silo.study_pairs, silos[0].study_pairs
            if not mine.same(first):
                raise SilosError(
                    f"{silo.name}: expected the pairs of {silos[0].name} ({first.size}), got others "
                    f"({mine.size}). Every silo needs the same nodes and the same allowed pairs."
                )
        self.silos, self._names = tuple(silos), tuple(nodes)
        self._states: dict[str, SiloState[Any]] = {silo.name: SiloState() for silo in silos}
        self._report = report
        n_threads = min(len(silos), workers or os.cpu_count() or 1)
        small = silos[0].study_pairs.size < THREADS_FROM and workers is None
        self._pool = None if small or n_threads == 1 else ThreadPoolExecutor(n_threads)

    @property
    def cohort(self) -> Cohort:
        """What everyone knows."""
        pairs: Pairs = self.silos[0].study_pairs
        return Cohort(pairs=pairs, silos=tuple(silo.name for silo in self.silos), nodes=self._names)

    @property
    def nodes(self) -> Mapping[str, IntVector | None]:
        """The nodes that each silo has."""
        return {silo.name: silo.nodes for silo in self.silos}

    def exchange(self, method: Method, task: Task) -> Total:
        """Ask every silo, and add up."""
        each = map if self._pool is None else self._pool.map
        answers = list(each(lambda silo: self._ask(method, silo, task), self.silos))
        self._states = {silo.name: state for silo, (_, state) in zip(self.silos, answers, strict=True)}
        return add_up([update for update, _ in answers], method.steps[task.header.step].up, method.units(task))

    def _ask(self, method: Method, silo: Silo, task: Task) -> tuple[Update, SiloState[Any]]:
        return answer_task(method, silo, self._states[silo.name], task, report=self._report, checked=True)

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Nothing to do: silos here share the coordinator's method."""

    def finish(self, consensus: Vector) -> Mapping[str, Vector]:
        """Every silo's graph: they have one owner."""
        graphs = {
            silo.name: silo.spread(graph) for silo in self.silos if (graph := self._states[silo.name].graph) is not None
        }
        if len(graphs) < len(self.silos):
            raise ProtocolError("The method ended, but its silos have no graphs: it never answered with graph=.")
        return graphs

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """What silos know of their own graphs."""
        return {name: state.evidence for name, state in self._states.items() if state.evidence}

    def silo_states(self) -> dict[str, Any]:
        """All silos' states, for a checkpoint."""
        return {name: to_plain(state) for name, state in self._states.items()}

    def restore(self, method: Method, states: dict[str, Any]) -> None:
        """Put back what a checkpoint kept."""
        self._states = {silo.name: restore_silo_state(states[silo.name], method.states.silo) for silo in self.silos}

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
