"""One silo's answer to one task, checked on the way in and on the way out."""

from __future__ import annotations

from silograph.errors import ProtocolError
from silograph.federation.messages import Task, Update, check_parts, update_of
from silograph.federation.silo import Silo
from silograph.methods.method import Method


def answered(method: Method, silo: Silo, task: Task, *, report: bool) -> Update:
    """What the silo says. Numbers that belong to it alone go along only if the run's settings say so."""
    header = task.header
    if header.method != method.name or header.step not in method.steps:
        raise ProtocolError(
            f"{silo.name}: expected a step of {method.name!r}, got {header.step!r} of {header.method!r}. "
            "Do both sides run one study?"
        )
    step = method.steps[header.step]
    check_parts(task.parts, step.down, n_pairs=silo.pairs.size, header=header, source="task")
    answer = method.local(silo, task)
    check_parts(answer.parts, step.up, n_pairs=silo.pairs.size, header=header, source=silo.name)
    return update_of(header, silo.name, answer.parts, reported=answer.singly if report else None)
