"""MRMTL (Liu et al. 2022): mean-regularised multi-task learning, each silo pulled to the mean of all.

    minimise   Σ_i g_i(w_i) + (μ/2) Σ_i ‖w_i − w̄‖² ,   w̄ the mean

It is convex: attracted.py finds its optimum. Here are the gradient steps.
"""

from __future__ import annotations

from silograph.methods.common.averaging import Averaging, Rounds, closed_own, first_own, go_on, is_closing, told
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer
from silograph.protocol.silo import Silo


def mrmtl(settings: Rounds) -> Averaging:
    """The papers' iteration."""
    return Averaging(name="mrmtl", settings=settings, half=_local)


def _local(settings: Rounds, silo: Silo, task: Task) -> Answer:
    mean, problem = task.vector("mean"), settings.problem(silo)
    first_own(silo.memory, mean)
    if is_closing(task):
        return closed_own(settings, silo, mean)
    return Answer(parts=told(go_on(settings, silo, problem, mean), mean))
