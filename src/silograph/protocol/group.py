"""Silos of one owner, asked together: all of a study in this process, or the patients of one site.

Sums are exact, so what a group answers is the same whether its silos are added up here or one by one elsewhere.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from silograph._util.plain import to_plain
from silograph._util.types import Vector
from silograph.errors import SilosError
from silograph.protocol.exchange import answer_task, check_task
from silograph.protocol.messages import Task, Update
from silograph.protocol.method import Method
from silograph.protocol.silo import Silo, SiloState, restore_silo_state

THREADS_FROM = 3000  # pairs; below, handing a silo to a thread costs more than its step


class SiloGroup:
    """Silos on one machine, in parallel threads (the compiled loops release the lock), and what each keeps."""

    def __init__(self, silos: Sequence[Silo], *, workers: int | None = None) -> None:
        if not silos:
            raise SilosError("Expected at least one silo, got none.")
        self.silos, self.pairs = tuple(silos), silos[0].study_pairs
        for silo in silos[1:]:
            if not silo.study_pairs.same(self.pairs):
                raise SilosError(
                    f"{silo.name}: expected the pairs of {silos[0].name} ({self.pairs.size}), got others "
                    f"({silo.study_pairs.size}). Every silo needs the same nodes and the same allowed pairs."
                )
        self.states: Mapping[str, SiloState[Any]] = {silo.name: SiloState() for silo in silos}
        n_threads = min(len(silos), workers or os.cpu_count() or 1)
        small = self.pairs.size < THREADS_FROM and workers is None
        self._pool = None if small or n_threads == 1 else ThreadPoolExecutor(n_threads)

    def ask(self, method: Method, task: Task, *, report: bool, checked: bool) -> list[Update]:
        """Every silo's answer; what they keep changes together, once all have answered.

        `checked`: the coordinator's half is in this process and has checked its task. Otherwise it is checked once.
        """
        if not checked:
            check_task(method, task, pairs=self.pairs, source="task")

        def ask(silo: Silo) -> tuple[Update, SiloState[Any]]:
            return answer_task(method, silo, self.states[silo.name], task, report=report, checked=True)

        answers = list((map if self._pool is None else self._pool.map)(ask, self.silos))
        self.states = {silo.name: state for silo, (_, state) in zip(self.silos, answers, strict=True)}
        return [update for update, _ in answers]

    def graphs(self) -> dict[str, Vector]:
        """The graphs of those that have one, on the study's pairs."""
        kept = {silo.name: (silo, self.states[silo.name].graph) for silo in self.silos}
        return {name: silo.spread(graph) for name, (silo, graph) in kept.items() if graph is not None}

    def plain(self) -> dict[str, Any]:
        """All that the silos keep, for a checkpoint."""
        return {name: to_plain(state) for name, state in self.states.items()}

    def restore(self, method: Method, states: Mapping[str, Any]) -> None:
        """Put back what a checkpoint kept."""
        self.states = {silo.name: restore_silo_state(states[silo.name], method.states.silo) for silo in self.silos}

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
