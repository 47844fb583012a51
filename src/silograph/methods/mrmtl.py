"""MRMTL (Liu et al. 2022): mean-regularised multi-task learning, each silo pulled to the mean of all.

    minimise   Σ_i g_i(w_i) + (μ/2) Σ_i ‖w_i − w̄‖² ,   w̄ the mean

It is convex: common/quadratic.py finds its optimum. Here are the gradient steps.
"""

from silograph.methods.common.averaging import (
    Averaging,
    OwnGraph,
    advance_own,
    close_at_own,
    is_closing,
    own_graph,
    round_parts,
)
from silograph.methods.common.quadratic import QuadraticCoupling
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import LocalSteps
from silograph.methods.independent import Independent
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer, Method
from silograph.protocol.silo import Silo, SiloState


def local(steps: LocalSteps, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
    """A silo's half of the papers' iteration."""
    mean = task.vector("mean")
    own = own_graph(state, mean)
    if is_closing(task):
        return close_at_own(steps, silo, own, mean)
    own, w = advance_own(steps, silo, own, mean)
    return Answer(parts=round_parts(steps, w, mean), state=own)


def build(settings: StudySettings, model: ModelParameters) -> Method:
    """The method for a study: without a pull, each silo is alone."""
    if settings.by_gradient:
        return Averaging("mrmtl", local, settings, model)
    if settings.pull_used == 0:
        return Independent(settings, model)
    return QuadraticCoupling("mrmtl", settings, model, LocalSteps(settings, model).pull, model.pooled)


METHOD = MethodSpec(
    build=build,
    newton=Solver(settings=frozenset({"pull", "rounds"})),
    gradient=Solver(settings=GRADIENT_SETTINGS | {"pull"}, certified=False),
)
