"""One silo's answer to one task, checked on the way in and on the way out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from silograph.errors import ProtocolError
from silograph.graph.pairs import Pairs
from silograph.protocol.checks import check_parts, check_update
from silograph.protocol.messages import Field, Parts, Task, Update, update_of
from silograph.protocol.method import Method
from silograph.protocol.silo import Silo, SiloState


def answer_task(
    method: Method, silo: Silo, state: SiloState[Any], task: Task, *, report: bool, checked: bool = False
) -> tuple[Update, SiloState[Any]]:
    """What the silo says, and what it keeps from now on.

    Numbers that belong to it alone go along only if the run's settings say so. `checked`: the task was checked already,
    by the coordinator's half in this process or for all silos of a group.
    """
    header = task.header
    if not checked:
        check_task(method, task, pairs=silo.study_pairs, source=f"{silo.name}, task")
    kept = _check_turn(silo, state, task)
    step, pairs = method.steps[header.step], silo.study_pairs
    answer = method.local(silo, kept, _take_own(silo, task, step.down))
    parts = _spread_parts(silo, answer.parts, step.up)
    update = update_of(header, silo.name, parts, reported=answer.reported if report else None)
    check_update(update, task, step.up, pairs=pairs, units=method.units(task))
    return update, SiloState(
        run=header.run,
        method=header.method,
        round=header.round,
        own=answer.state,
        start=kept.start if answer.start is None else answer.start,
        graph=kept.graph if answer.graph is None else answer.graph,
        evidence=kept.evidence if answer.evidence is None else answer.evidence,
    )


def check_task(method: Method, task: Task, *, pairs: Pairs, source: str) -> None:
    """Raise unless the task is a step of this method, with just what that step sends down."""
    header = task.header
    if header.method != method.name or header.step not in method.steps:
        raise ProtocolError(
            f"{source}: expected a step of {method.name!r}, got {header.step!r} of {header.method!r}. "
            "Do both sides run one study?"
        )
    check_parts(task.parts, method.steps[header.step].down, pairs=pairs, header=header, source=source)


def _take_own(silo: Silo, task: Task, fields: Mapping[str, Field]) -> Task:
    """What the silo's half sees: of numbers by pair those of its own pairs, unless it needs them all."""
    if silo.place is None:
        return task
    own = {name for name, field in fields.items() if field.kind == "pairs" and not field.whole}
    parts = {name: silo.take(np.asarray(part)) if name in own else part for name, part in task.parts.items()}
    return replace(task, parts=parts)


def _spread_parts(silo: Silo, parts: Parts, fields: Mapping[str, Field]) -> Parts:
    """What the silo's half answers, on the study's pairs: updates add up."""
    if silo.place is None:
        return parts
    by_pair = {name for name, field in fields.items() if field.kind == "pairs"}
    return {name: silo.spread(np.asarray(part)) if name in by_pair else part for name, part in parts.items()}


def _check_turn(silo: Silo, state: SiloState[Any], task: Task) -> SiloState[Any]:
    """A silo answers one run, and each of its rounds once, in order. A new method begins with nothing of its own."""
    header = task.header
    if state.run and header.run != state.run:
        raise ProtocolError(f"{silo.name}: expected a task of run {state.run}, got one of run {header.run}.")
    same = header.method == state.method
    due = state.round + 1 if same else 1
    if header.round != due:
        raise ProtocolError(f"{silo.name}: expected round {due} of {header.method!r}, got round {header.round}.")
    return state if same else replace(state, own=None)
