"""The one loop that runs every method on every engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from silograph._util.plain import restore, to_plain
from silograph._util.types import IntVector, Vector
from silograph.engine.checkpoint import Checkpoint
from silograph.protocol.checks import check_parts
from silograph.protocol.messages import Header, Parts, Reported, Task, Total
from silograph.protocol.method import Cohort, Decision, Method, Outcome, RoundRecord


class Engine(Protocol):
    """All that the loop asks of an engine."""

    @property
    def cohort(self) -> Cohort:
        """What everyone knows."""

    def exchange(self, method: Method, task: Task) -> Total:
        """Bring a task to every silo, and the sum of their answers back."""

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Let silos know what set-up found, from which they make the method's own half."""

    def finish(self, outcome: Outcome) -> Mapping[str, Vector]:
        """Tell the silos where the run ended; receive the graphs of those that give theirs away.

        Graphs are on the pairs of the study, zero on those that a silo lacks.
        """

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """What silos know of their own graphs, by silo; only of those whose owner this process is."""

    @property
    def nodes(self) -> Mapping[str, IntVector | None]:
        """The nodes that each silo has, None for all; after the end, and only of silos that tell."""

    def silo_states(self) -> dict[str, Any]:
        """What the silos keep between rounds as plain data, if it is kept here."""

    def restore(self, method: Method, states: dict[str, Any]) -> None:
        """Put back what a checkpoint kept of the silos."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoordinatorState:
    """All that the coordinator keeps between two rounds."""

    own: Any = None  # what the method keeps
    step: str | None = None  # what to ask next; None: the run is over
    parts: Parts = field(default_factory=dict)
    outcome: Any = None  # once the run is over
    history: tuple[RoundRecord, ...] = ()
    reported: Reported = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopResult:
    """How a run ended."""

    outcome: Any
    history: tuple[RoundRecord, ...]  # one record per round
    reported: Reported  # what silos told of themselves, as far as they were allowed to


def run_loop(
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
    kept = checkpoint.load() if checkpoint is not None else None
    if kept is None:
        state = _after(method.begin(engine.cohort), history=(), reported={})
    else:
        engine.restore(method, kept["silos"])
        state = _restore(method, kept["coordinator"])
    while state.step is not None:
        state = _round(method, engine, run_id, state)
        if checkpoint is not None:
            checkpoint.save({"coordinator": to_plain(state), "silos": engine.silo_states()})
        on_round(state.history[-1])
    return LoopResult(outcome=state.outcome, history=state.history, reported=state.reported)


def _round(method: Method, engine: Engine, run_id: str, state: CoordinatorState) -> CoordinatorState:
    assert state.step is not None
    number, cohort = len(state.history) + 1, engine.cohort
    header = Header(run=run_id, method=method.name, step=state.step, round=number)
    fields = method.steps[state.step].down
    check_parts(state.parts, fields, pairs=cohort.pairs, header=header, source="coordinator")
    total = engine.exchange(method, Task(header=header, parts=state.parts))
    decision = method.merge(cohort, state.own, total)
    place = {"round": number, "step": state.step, "silos": total.n_silos}
    record = {**place, **decision.record, **place}  # first, and not the method's to say
    return _after(decision, history=(*state.history, record), reported={**state.reported, **total.reported})


def _after(decision: Decision[Any], *, history: tuple[RoundRecord, ...], reported: Reported) -> CoordinatorState:
    return CoordinatorState(
        own=decision.state,
        step=decision.step,
        parts=dict(decision.parts),
        outcome=decision.outcome,
        history=history,
        reported=reported,
    )


def _restore(method: Method, tree: dict[str, Any]) -> CoordinatorState:
    """The state that a checkpoint kept; what is the method's own, by the method's own types."""
    own = restore(method.states.coordinator, tree["own"])
    outcome = restore(method.states.outcome, tree["outcome"])
    restored: CoordinatorState = restore(CoordinatorState, tree | {"own": own, "outcome": outcome})
    return restored
