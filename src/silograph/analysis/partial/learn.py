"""Partial correlations of each silo, and of what silos share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from silograph._util.types import Matrix
from silograph.analysis.partial.shrinkage import Shrinkage, choose
from silograph.analysis.partial.sums import SiloSums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialCorrelations:
    """Signed, every pair's; one on the diagonal."""

    own: Matrix  # (silos, nodes, nodes)
    consensus: Matrix  # (nodes, nodes)
    shrinkage: Shrinkage


def learn_partial(silos: Sequence[SiloSums]) -> PartialCorrelations:
    """Choose the shrinkage by rows that are held out, then learn from all rows."""
    with threadpool_limits(1):  # of small matrices; on a busy machine, threads of BLAS would wait for each other
        shrinkage, known = choose(silos), [silo.whole() for silo in silos]
        return PartialCorrelations(
            own=np.array([partial_correlations(covariance) for covariance in shrinkage.own(known)]),
            consensus=partial_correlations(shrinkage.shared(known)),
            shrinkage=shrinkage,
        )


def partial_correlations(covariance: Matrix) -> Matrix:
    """−P_ij / √(P_ii P_jj) of the inverse P."""
    precision = inverse(covariance)
    deviation = np.sqrt(np.diag(precision))
    out: Matrix = -precision / np.outer(deviation, deviation)
    np.fill_diagonal(out, 1.0)
    return out


def inverse(covariance: Matrix) -> Matrix:
    """Of a positive definite matrix; symmetric to the last bit."""
    out: Matrix = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    return (out + out.T) / 2
