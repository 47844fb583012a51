"""Anderson's acceleration of a fixed-point iteration, in the form that needs only inner products of residuals.

The next point is Σ_k a_k (x_k + f_k), where f_k is the residual at x_k and the a_k, which sum to one, make ‖Σ a_k f_k‖
small. The Gram matrix of residuals is a sum over silos; the points stay there.
"""

import numpy as np

from silograph._util.types import Matrix, Vector

RIDGE = 1e-8  # of the trace


def coefficients(gram: Matrix) -> Vector:
    """The a_k; the last belongs to the newest point."""
    n = gram.shape[0]
    if not (np.isfinite(gram).all() and np.trace(gram) > 0):  # nothing moves any more
        newest: Vector = np.eye(n)[-1]
        return newest
    a: Vector = np.linalg.solve(gram + RIDGE * np.trace(gram) * np.eye(n), np.ones(n))
    total = a.sum()
    if not np.isfinite(total) or total == 0:
        a, total = np.eye(n)[-1], 1.0
    mixed: Vector = a / total
    return mixed


def extend_gram(gram: Matrix | None, products: Vector) -> Matrix:
    """The Gram matrix with one row and column more."""
    out = np.empty((products.size, products.size))
    if gram is not None:
        out[:-1, :-1] = gram
    out[-1, :] = out[:, -1] = products
    return out
