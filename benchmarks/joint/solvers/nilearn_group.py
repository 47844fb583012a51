"""nilearn's GroupSparseCovariance: another model (precision matrices of one support), its default tolerance."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.solver import OtherModel


def call(problem: JointProblem, penalty: float) -> float:
    """Learn with α = penalty; the mean degree."""
    from nilearn.connectome import GroupSparseCovariance

    signals = [(x - x.mean(axis=0)) / x.std(axis=0) for x in problem.signals]
    with warnings.catch_warnings():  # it says so when its ten iterations do not reach its tolerance; users get the same
        warnings.simplefilter("ignore")
        found = GroupSparseCovariance(alpha=penalty).fit(signals)
    return float((np.abs(found.precisions_) > 1e-8).sum(axis=(0, 2)).mean() - 1)


SOLVERS = {"nilearn": OtherModel(call=call, penalties=(0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1))}
