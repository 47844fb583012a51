"""FedAvg (McMahan et al. 2017): one graph for all, by averaging what K local steps make of it."""

from __future__ import annotations

from silograph.methods.common.averaging import Averaging, Rounds, closed, is_closing, told
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer
from silograph.protocol.silo import Silo


def fedavg(settings: Rounds) -> Averaging:
    """The method; `settings.pull` is not used."""
    return Averaging(name="fedavg", settings=settings, half=_local)


def _local(settings: Rounds, silo: Silo, task: Task) -> Answer:
    mean, problem = task.vector("mean"), settings.problem(silo)
    if is_closing(task):
        return closed(silo, mean, mean, problem.value(mean))
    w, _ = settings.take_gradient_steps(silo, problem, mean, mean)
    return Answer(parts=told(w, mean))
