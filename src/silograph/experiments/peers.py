"""Other people's ways to a graph per silo and one of what they share: partial correlations, shrunk or sparse.

None sees the truth. Where a penalty must be chosen, the Gaussian likelihood of the last third of each silo's rows does
it: a third in one piece, because rows of a series that follow each other are alike. (GGLasso's own choice by eBIC takes
24 s a draw and leaves nearly empty graphs.) Penalties are parts of the one from which on all graphs are empty, so that
the grids have no unit.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from typing import Any

import numpy as np

from silograph._util.extras import required
from silograph._util.types import Matrix

Tables = Sequence[Matrix]
PENALTIES = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.007)  # parts of the largest that is of any use
TOGETHER = (0.3, 1.0, 3.0, 10.0)  # GGLasso's λ₂, which makes silos alike, as a part of its λ₁
PURPOSE = "to compare with other packages"
GGLASSO_TOL = 1e-4  # ranks do not change below; its default of 1e-7 takes several times as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A way to partial correlations."""

    name: str
    learn: Callable[[Tables], tuple[Tables, Matrix]]  # signals → each silo's partial correlations, and the shared ones
    package: str = "scikit-learn"


def installed(package: str) -> str | None:
    """Its version, None where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def partial_correlations(precision: Any) -> Matrix:
    """−P_ij / √(P_ii P_jj); the diagonal is of no interest."""
    scale = np.sqrt(np.diag(precision))
    out: Matrix = -precision / np.outer(scale, scale)
    return out


def pooled(tables: Tables) -> tuple[Tables, Matrix]:
    """One graph for all: rows of all silos, each silo centred, their covariance shrunk after Ledoit and Wolf."""
    shared = partial_correlations(np.linalg.inv(_pooled_covariance(tables)))
    return [shared] * len(tables), shared


def halfway(tables: Tables) -> tuple[Tables, Matrix]:
    """Each silo's covariance, halfway to the pooled one."""
    common = _pooled_covariance(tables)
    own = [partial_correlations(np.linalg.inv((one + common) / 2)) for one in covariances(tables)]
    return own, partial_correlations(np.linalg.inv(common))


def _pooled_covariance(tables: Tables) -> Matrix:
    from sklearn.covariance import ledoit_wolf

    rows = np.vstack([table - table.mean(axis=0) for table in tables])
    out: Matrix = ledoit_wolf(rows, assume_centered=True)[0]
    return out


def covariances(tables: Tables) -> Matrix:
    """(silos, nodes, nodes)"""
    return np.array([np.cov(table.T, bias=True) for table in tables])


def gglasso_held_out(tables: Tables) -> tuple[Tables, Matrix]:
    """Group graphical lasso, λ₁ and λ₂ by held-out rows."""
    solver = required("gglasso.solver.admm_solver", extra="accuracy", purpose=PURPOSE).ADMM_MGL

    def fit(some: Tables, point: tuple[float, float]) -> Matrix:
        moments = covariances(some)
        first = np.repeat(np.eye(moments.shape[1])[None], len(moments), axis=0)
        strength = point[0] * _largest(moments)
        with redirect_stdout(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = solver(moments, strength, strength * point[1], "GGL", first, tol=GGLASSO_TOL, rtol=GGLASSO_TOL)
        out: Matrix = found["Theta"]
        return out

    return _by_held_out(tables, fit, [(penalty, part) for penalty in PENALTIES for part in TOGETHER])


def group_sparse(tables: Tables) -> tuple[Tables, Matrix]:
    """Nilearn's GroupSparseCovariance at its default tolerance, α by held-out rows: its own choice takes minutes."""
    module = required("nilearn.connectome", extra="accuracy", purpose=PURPOSE)
    from nilearn.connectome.group_sparse_cov import compute_alpha_max, empirical_covariances

    def fit(some: Tables, penalty: float) -> Matrix:
        largest, _ = compute_alpha_max(*empirical_covariances(some))
        with warnings.catch_warnings():  # that its ten iterations do not reach its tolerance; users get the same
            warnings.simplefilter("ignore")
            found = module.GroupSparseCovariance(alpha=penalty * largest).fit(list(some))
        return np.moveaxis(found.precisions_, -1, 0)

    return _by_held_out(tables, fit, PENALTIES)


def _by_held_out(tables: Tables, fit: Callable[[Tables, Any], Matrix], points: Sequence[Any]) -> tuple[Tables, Matrix]:
    kept = [table[: len(table) - len(table) // 3] for table in tables]
    beyond = [table[len(table) - len(table) // 3 :] for table in tables]
    values = [held_out_likelihood(fit(kept, point), kept, beyond) for point in points]
    return _shown(fit(tables, points[int(np.argmax(values))]))


def held_out_likelihood(precisions: Matrix, kept: Tables, beyond: Tables) -> float:
    """Of all silos' further rows together, up to constants; each silo's mean is that of the rows it learned from."""
    total = 0.0
    for precision, known, new in zip(precisions, kept, beyond, strict=True):
        sign, log_det = np.linalg.slogdet(precision)
        apart = new - known.mean(axis=0)
        total += len(new) * (log_det if sign > 0 else -np.inf) - float(((apart @ precision) * apart).sum())
    return total


def _largest(moments: Matrix) -> float:
    """The penalty from which on no graph has an edge."""
    apart = moments - np.eye(moments.shape[1]) * moments
    return float(np.abs(apart).max())


def _shown(precisions: Matrix) -> tuple[Tables, Matrix]:
    """Partial correlations of each silo; of what they share, the mean."""
    own = [partial_correlations(precision) for precision in precisions]
    return own, np.mean(own, axis=0)


PEERS = (
    Peer(name="pooled partial correlation", learn=pooled),
    Peer(name="halfway to pooled", learn=halfway),
    Peer(name="GGLasso", learn=gglasso_held_out, package="gglasso"),
    Peer(name="GroupSparseCovariance", learn=group_sparse, package="nilearn"),
)
