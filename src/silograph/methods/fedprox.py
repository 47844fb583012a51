"""FedProx (Li et al. 2020): FedAvg whose local steps are pulled towards the mean, by (μ/2)‖w − mean‖²."""

from __future__ import annotations

from silograph.methods.common.averaging import Averaging, Rounds, closed, is_closing, told
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer
from silograph.protocol.silo import Silo


def fedprox(settings: Rounds) -> Averaging:
    """The method."""
    return Averaging(name="fedprox", settings=settings, half=_local)


def _local(settings: Rounds, silo: Silo, task: Task) -> Answer:
    mean, problem = task.vector("mean"), settings.problem(silo)
    if is_closing(task):
        return closed(silo, mean, mean, problem.value(mean))
    w, _ = settings.take_gradient_steps(silo, problem, mean, mean, anchor=mean)
    return Answer(parts=told(w, mean))
