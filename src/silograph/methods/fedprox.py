"""FedProx (Li et al. 2020): FedAvg whose local steps are pulled towards the mean, by (μ/2)‖w − mean‖²."""

from functools import partial

from silograph.methods.common.averaging import Averaging, OwnGraph, close_at, is_closing, round_parts
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.steps import LocalSteps
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer
from silograph.protocol.silo import Silo, SiloState


def local(steps: LocalSteps, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
    """A silo's half."""
    mean = task.vector("mean")
    if is_closing(task):
        return close_at(silo, mean, mean, steps.model.problem(silo).value(mean))
    w, _ = steps.advance(silo, mean, mean, anchor=mean)
    return Answer(parts=round_parts(steps, w, mean))


METHOD = MethodSpec(
    about="FedProx learns one graph for all silos, so that there is nothing in which they could differ.",
    build=partial(Averaging, "fedprox", local),
    gradient=Solver(settings=GRADIENT_SETTINGS | {"pull"}, certified=False),
)
