"""silograph's exact method, as users call it: its set-up exchange, its own stopping test and certificate included."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.solver import Answer, WholeCall
from silograph.engine.study import learn_silos
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo


def call(problem: JointProblem, tol: float, limit: float, *, workers: int | None) -> Answer:
    """The graphs of one call; it needs no time limit."""
    pairs = problem.pairs
    silos = [Silo(name=f"silo{i}", pairs=pairs, cost=cost) for i, cost in enumerate(problem.costs)]
    settings = StudySettings(
        alpha=problem.alpha, beta=problem.beta, nu=problem.rho / problem.lam, lam=problem.lam, tol=tol
    )
    study = learn_silos(silos, settings, workers=workers)
    return Answer(w=np.array(list(study.graphs.values())), u=study.consensus)


SOLVERS = {
    "silograph": WholeCall(call=partial(call, workers=None), settings=lambda target: (target,), until=1.0),
    "silograph, 1 worker": WholeCall(call=partial(call, workers=1), settings=lambda target: (target,), until=1.0),
}
