"""GGLasso's group graphical lasso: another model (sparse precision matrices of all silos), its default tolerances."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.solver import OtherModel


def call(problem: JointProblem, penalty: float) -> float:
    """Learn with λ₁ = penalty, λ₂ = half of it; the mean degree."""
    from gglasso.solver.admm_solver import ADMM_MGL

    correlations = np.array([np.corrcoef(x.T) for x in problem.signals])
    first = np.repeat(np.eye(correlations.shape[1])[None], len(correlations), axis=0)
    with redirect_stdout(StringIO()):  # it says how it ended
        found, _ = ADMM_MGL(correlations, penalty, penalty / 2, "GGL", first)
    return mean_degree(found["Theta"])


def mean_degree(precisions: np.ndarray) -> float:
    """Neighbours per node, in the mean over nodes and silos."""
    return float((np.abs(precisions) > 1e-8).sum(axis=-1).mean() - 1)


SOLVERS = {"gglasso": OtherModel(call=call, penalties=(0.3, 0.2, 0.14, 0.1, 0.07, 0.05))}
