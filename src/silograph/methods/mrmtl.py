"""MRMTL (Liu et al. 2022): mean-regularised multi-task learning, each silo pulled to the mean of all.

    minimise   Σ_i g_i(w_i) + (μ/2) Σ_i ‖w_i − w̄‖² ,   w̄ the mean

It is convex: common/quadratic.py finds its optimum. Here are the gradient steps.
"""

from __future__ import annotations

from silograph.methods.common.averaging import (
    LocalSteps,
    OwnGraph,
    advance_own,
    build_averaging,
    close_at_own,
    is_closing,
    own_graph,
    round_parts,
)
from silograph.methods.common.quadratic import QuadraticCoupling
from silograph.methods.common.registry import GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.independent import build as build_independent
from silograph.protocol.messages import Task
from silograph.protocol.method import Answer, Method
from silograph.protocol.silo import Silo, SiloState


def local(settings: LocalSteps, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
    """A silo's half of the papers' iteration."""
    mean = task.vector("mean")
    own = own_graph(state, mean)
    if is_closing(task):
        return close_at_own(settings, silo, own, mean)
    own, w = advance_own(settings, silo, own, mean)
    return Answer(parts=round_parts(w, mean), state=own)


def build(settings: StudySettings, parameters: ModelParameters) -> Method:
    """The method for a study: without a pull, each silo is alone."""
    if settings.by_gradient:
        return build_averaging("mrmtl", local, settings, parameters)
    if settings.pull_used == 0:
        return build_independent(settings, parameters)
    return QuadraticCoupling(
        name="mrmtl",
        alpha=parameters.alpha,
        beta=parameters.beta,
        pull=settings.pull_used * 4 * parameters.beta,
        pooled=parameters.pooled,
        zeta=settings.zeta_used,
        tol=settings.tol,
        max_rounds=settings.rounds_used,
    )


METHOD = MethodSpec(
    summary="each silo pulled to the mean of all",
    build=build,
    newton=Solver(settings=frozenset({"pull", "rounds"})),
    gradient=Solver(settings=GRADIENT_SETTINGS | {"pull"}, certified=False),
)
