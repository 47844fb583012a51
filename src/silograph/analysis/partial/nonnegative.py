"""The likeliest Gaussian law none of whose partial correlations is negative.

    max over K ≻ 0 with K_ij ≤ 0 for i ≠ j of log det K − tr(K A)

Its inverse W has W_ii = A_ii and W_ij ≥ A_ij (Slawski and Hein 2015). W begins at A and is improved column by column:
with β ≥ 0 at the least of ½ βᵀ W β − aᵀ β over the other nodes, the column is W β. The duality gap says when to stop.
"""

from dataclasses import dataclass

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Matrix
from silograph._util.vectors import scratch

TOL = 1e-6  # of the gap, per node
SWEEPS = 80  # twice what laws of enough rows take; those of few rows may take thousands
STEPS, STILL = 100, 1e-6  # of a column: at most so many rounds over its numbers, until none moves by more


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NonnegativeLaw:
    """The law and the evidence for it."""

    precision: Matrix
    gap: float  # of duality; as columns are solved to within STILL, it may be as much below zero
    converged: bool


def nonnegative_law(covariance: Matrix) -> NonnegativeLaw:
    """The law for a positive definite covariance; computed on the scale of correlations."""
    deviation = np.sqrt(np.diag(covariance))
    unit = np.outer(deviation, deviation)
    target: Matrix = covariance / unit
    precision = np.asarray(np.linalg.inv(target), dtype=np.float64)
    if (precision - np.diag(np.diag(precision))).max() <= 0:  # nothing is negative anyway
        return NonnegativeLaw(precision=_without_positive(precision) / unit, gap=0.0, converged=True)
    inverse, betas, gap = target.copy(), np.zeros_like(target), np.inf
    for _ in range(SWEEPS):
        sweep(target, inverse, betas)
        precision = _without_positive(np.asarray(np.linalg.inv(inverse), dtype=np.float64))
        gap = _gap(precision, inverse, target)
        if abs(gap) <= TOL * len(target):
            break
    return NonnegativeLaw(precision=precision / unit, gap=gap, converged=abs(gap) <= TOL * len(target))


def _without_positive(matrix: Matrix) -> Matrix:
    out: Matrix = np.minimum(matrix, 0.0)
    np.fill_diagonal(out, np.diag(matrix))
    return (out + out.T) / 2


def _gap(precision: Matrix, inverse: Matrix, target: Matrix) -> float:
    sign, log_det = np.linalg.slogdet(precision)
    if sign <= 0:
        return float("inf")
    return float((precision * target).sum() - log_det - np.linalg.slogdet(inverse)[1] - len(target))


@kernel
def sweep(target: Matrix, inverse: Matrix, betas: Matrix) -> None:
    """Improve each column of the inverse once; each begins at its last β."""
    n = len(target)
    column = scratch(n)
    for j in range(n):
        beta = betas[j]
        for i in range(n):
            column[i] = 0.0
        for k in range(n):
            if beta[k] != 0.0:
                for i in range(n):
                    column[i] += inverse[k, i] * beta[k]
        for _ in range(STEPS):
            moved = 0.0
            for i in range(n):
                if i == j:
                    continue
                step = max(beta[i] + (target[i, j] - column[i]) / inverse[i, i], 0.0) - beta[i]
                if step != 0.0:
                    beta[i] += step
                    moved = max(moved, abs(step))
                    for k in range(n):
                        column[k] += inverse[i, k] * step
            if moved <= STILL:
                break
        for i in range(n):
            if i != j:
                inverse[i, j] = column[i]
                inverse[j, i] = column[i]
