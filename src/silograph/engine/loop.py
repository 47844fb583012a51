"""The one loop that runs every method on every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from silograph._util.types import Vector
from silograph.engine.checkpoint import Checkpoint
from silograph.protocol.messages import Header, Reported, Task, Total, check_parts
from silograph.protocol.method import Cohort, Method
from silograph.protocol.silo import Memory

RoundRecord = Mapping[str, float]


class Engine(Protocol):
    """All that the loop asks of an engine."""

    @property
    def cohort(self) -> Cohort:
        """What everyone knows."""

    def exchange(self, method: Method, task: Task) -> Total:
        """Bring a task to every silo, and the sum of their answers back."""

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Let silos know what set-up found, from which they make the method's own half."""

    def finish(self, consensus: Vector) -> Mapping[str, Vector]:
        """Tell the silos the consensus that the run ended at; receive the graphs of those that give theirs away."""

    @property
    def memory(self) -> Memory:
        """What the silos keep between rounds, if it is kept here."""

    def restore(self, memory: Memory) -> None:
        """Put back what a checkpoint kept."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopResult:
    """How a run ended."""

    state: Memory  # what the coordinator kept
    history: tuple[RoundRecord, ...]  # one record per round
    reported: Reported  # what silos told singly, as far as they were allowed to


def run(
    method: Method,
    engine: Engine,
    *,
    run_id: str,
    checkpoint: Checkpoint | None = None,
    on_round: Callable[[RoundRecord], None] = lambda record: None,
) -> LoopResult:
    """Exchange tasks and sums until the method has no more to ask.

    With a checkpoint, every round is written down before the next begins, and a run that was written down goes on from
    there: each round being a function of what was written, it ends as if it had never stopped.
    """
    cohort = engine.cohort
    kept = checkpoint.load() if checkpoint is not None else None
    if kept is None:
        decision = method.begin(cohort)
        kept = {"state": decision.state, "step": decision.step, "parts": dict(decision.parts), "history": []}
        kept["reported"] = {}
    else:
        engine.restore(kept["silos"])
    while kept["step"] is not None:
        kept = _round(method, engine, cohort, run_id, kept)
        if checkpoint is not None:
            checkpoint.save(kept | {"silos": engine.memory})
        on_round(kept["history"][-1])
    return LoopResult(state=kept["state"], history=tuple(kept["history"]), reported=kept["reported"])


def _round(method: Method, engine: Engine, cohort: Cohort, run_id: str, kept: dict[str, Any]) -> dict[str, Any]:
    number = len(kept["history"]) + 1
    header = Header(run=run_id, method=method.name, step=kept["step"], round=number)
    step, n_pairs = method.steps[kept["step"]], cohort.pairs.size
    check_parts(kept["parts"], step.down, n_pairs=n_pairs, header=header, source="coordinator")
    total = engine.exchange(method, Task(header=header, parts=kept["parts"]))
    check_parts(total.parts, step.up, n_pairs=n_pairs, header=header, source="sum")
    decision = method.merge(cohort, kept["state"], total)
    record = {"round": number, "step": kept["step"], "silos": total.n_silos, **decision.record}
    return {
        "state": decision.state,
        "step": decision.step,
        "parts": dict(decision.parts),
        "history": [*kept["history"], record],
        "reported": {**kept["reported"], **total.reported},
    }
