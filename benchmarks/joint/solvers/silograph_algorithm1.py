"""Algorithm 1 as silograph offers it: method='algorithm1', called with twice the rounds until it is accurate enough.

ζ = 0, as the problem has none; the paper's momentum and number of local steps; the best of the constant steps.
"""

from __future__ import annotations

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.joint.solvers.algorithm1_numpy import STEPS
from benchmarks.solver import Answer, Setting, WholeCall
from silograph.engine.study import learn_silos
from silograph.errors import ProtocolError
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo

ROUNDS = tuple(25 * 2**k for k in range(10))


def call(problem: JointProblem, setting: Setting, limit: float) -> Answer:
    """The graphs after so many rounds with this step."""
    step, rounds = setting
    pairs = problem.pairs
    silos = [Silo(name=f"silo{i}", pairs=pairs, cost=cost) for i, cost in enumerate(problem.costs)]
    settings = StudySettings(
        method="algorithm1",
        alpha=problem.alpha,
        beta=problem.beta,
        nu=problem.rho / problem.lam,
        lam=problem.lam,
        zeta=0.0,
        step=step / problem.alpha,
        rounds=int(rounds),
    )
    try:
        study = learn_silos(silos, settings)
    except ProtocolError:  # a step too long left a node without an edge, where the objective is infinite
        return Answer(w=np.zeros_like(problem.costs), u=np.zeros(pairs.size))
    return Answer(w=np.array(list(study.graphs.values())), u=study.consensus)


SOLVERS = {
    "algorithm1": WholeCall(
        call=call, settings=lambda target: [(step, float(rounds)) for rounds in ROUNDS for step in STEPS], until=1.0
    )
}
