"""The engine that runs every silo in this process, in parallel threads: the compiled loops release the lock."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from silograph._util.types import Vector
from silograph.errors import SilosError
from silograph.graph.pairs import Pairs
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import Task, Total, add_up, check_update
from silograph.protocol.method import Cohort, Method
from silograph.protocol.silo import Memory, Silo

THREADS_FROM = 3000  # pairs; below, handing a silo to a thread costs more than its step


class InProcess:
    """Silos of one owner, on one machine."""

    def __init__(self, silos: Sequence[Silo], *, report: bool = True, workers: int | None = None) -> None:
        if not silos:
            raise SilosError("Expected at least one silo, got none.")
        for silo in silos[1:]:
            if not silo.pairs.same(silos[0].pairs):
                raise SilosError(
                    f"{silo.name}: expected the pairs of {silos[0].name} ({silos[0].pairs.size}), got others "
                    f"({silo.pairs.size}). Every silo needs the same nodes and the same allowed pairs."
                )
        self.silos = tuple(silos)
        self._report = report
        n_threads = min(len(silos), workers or os.cpu_count() or 1)
        small = silos[0].pairs.size < THREADS_FROM and workers is None
        self._pool = None if small or n_threads == 1 else ThreadPoolExecutor(n_threads)

    @property
    def cohort(self) -> Cohort:
        """What everyone knows."""
        pairs: Pairs = self.silos[0].pairs
        return Cohort(pairs=pairs, silos=tuple(silo.name for silo in self.silos))

    def exchange(self, method: Method, task: Task) -> Total:
        """Ask every silo, and add up."""
        each = map if self._pool is None else self._pool.map
        updates = list(each(lambda silo: answer_task(method, silo, task, report=self._report), self.silos))
        fields = method.steps[task.header.step].up
        for update in updates:
            check_update(update, task.header, fields, n_pairs=self.silos[0].pairs.size, asked=task.parts)
        return add_up(updates)

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Nothing to do: silos here share the coordinator's method."""

    def finish(self, consensus: Vector) -> Mapping[str, Vector]:
        """Every silo's graph: they have one owner."""
        return {silo.name: silo.memory["graph"] for silo in self.silos}

    @property
    def memory(self) -> Memory:
        """All silos' memories, for a checkpoint."""
        return {silo.name: silo.memory for silo in self.silos}

    def restore(self, memory: Memory) -> None:
        """Put back what a checkpoint kept."""
        for silo in self.silos:
            silo.memory = memory[silo.name]

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
