"""One silo's answer to one task, checked on the way in and on the way out."""

from __future__ import annotations

from silograph.errors import ProtocolError
from silograph.protocol.messages import Task, Update, check_parts, update_of
from silograph.protocol.method import Method
from silograph.protocol.silo import Silo

TURN = "turn"  # in a silo's memory: run, method and round of the last task it answered


def answer_task(method: Method, silo: Silo, task: Task, *, report: bool) -> Update:
    """What the silo says. Numbers that belong to it alone go along only if the run's settings say so."""
    header = task.header
    if header.method != method.name or header.step not in method.steps:
        raise ProtocolError(
            f"{silo.name}: expected a step of {method.name!r}, got {header.step!r} of {header.method!r}. "
            "Do both sides run one study?"
        )
    _check_turn(silo, task)
    step = method.steps[header.step]
    check_parts(task.parts, step.down, n_pairs=silo.pairs.size, header=header, source=f"{silo.name}, task")
    answer = method.local(silo, task)
    silo.memory[TURN] = [header.run, header.method, header.round]
    check_parts(answer.parts, step.up, n_pairs=silo.pairs.size, header=header, source=silo.name)
    return update_of(header, silo.name, answer.parts, reported=answer.reported if report else None)


def _check_turn(silo: Silo, task: Task) -> None:
    """A silo answers one run, and each of its rounds once, in order."""
    header = task.header
    run, method, number = silo.memory.get(TURN, [header.run, header.method, 0])
    if header.run != run:
        raise ProtocolError(f"{silo.name}: expected a task of run {run}, got one of run {header.run}.")
    due = number + 1 if header.method == method else 1
    if header.round != due:
        raise ProtocolError(f"{silo.name}: expected round {due} of {header.method!r}, got round {header.round}.")
