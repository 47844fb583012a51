"""The instances: signals smooth on graphs that differ from silo to silo, parameters as the library sets them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.joint.catalogue import SPARSITY, Case
from benchmarks.joint.objective import JointProblem, lower_bound
from benchmarks.joint.solvers import admm
from silograph._util.types import Vector
from silograph.engine.inprocess import InProcess
from silograph.engine.study import StudyResult, learn_on
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.silo_problems import pair_costs, silo_signals

SEED = 20241
REFERENCE_TOL = 1e-10
REFERENCE_ROUNDS = 500
NEVER_FUSED = 1e-2  # of ‖u‖: a distance for silos that have none, to give the squares a strength


def build(case: Case) -> tuple[JointProblem, float, StudyResult]:
    """The problem of this case, a lower bound on its optimum, and the study that gave it; the same on every call."""
    rng = np.random.default_rng([SEED, case.n_silos, case.n_nodes])
    signals = silo_signals(rng, "different", case.n_silos, case.n_nodes, case.n_samples)
    costs = np.array([pair_costs(x) for x in signals])
    silos = silos_of(costs)
    settings = StudySettings(coupling=case.coupling, sparsity=SPARSITY, tol=REFERENCE_TOL, rounds=REFERENCE_ROUNDS)
    engine = InProcess(silos)
    study = learn_on(engine, settings, run_id="reference")
    problem = JointProblem(
        costs=costs, alpha=study.alpha, beta=study.beta, rho=study.rho, lam=study.lam, signals=signals
    )
    forces = np.array([state["own"]["force"] for state in engine.silo_states().values()])
    return problem, max(lower_bound(problem, forces), study.history[-1]["bound"]), study


def with_squares(problem: JointProblem, study: StudyResult) -> tuple[JointProblem, float]:
    """The neighbours' model with a pull as strong as the norm's at its optimum, and a lower bound."""
    apart = np.mean([np.linalg.norm(w - study.consensus) for w in study.graphs.values()])
    least = NEVER_FUSED * float(np.linalg.norm(study.consensus))
    squared = replace(problem, rho=problem.rho / max(float(apart), least), squares=True)
    run = admm.Run(squared, 1.0)
    run.advance(20_000)
    (answer,) = run.answers()
    return squared, lower_bound(squared, squared.rho * (answer.w - answer.u))


def silos_of(costs: Sequence[Vector] | np.ndarray) -> list[Silo]:
    """Silos with these costs."""
    n_nodes = round((1 + np.sqrt(1 + 8 * len(costs[0]))) / 2)
    pairs = Pairs.all(n_nodes)
    return [Silo(name=f"silo{i}", pairs=pairs, cost=cost) for i, cost in enumerate(costs)]
