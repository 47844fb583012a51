"""Graphs as symmetric matrices, in which NumPy is fastest: degrees are row sums and their adjoint is a broadcast."""

from __future__ import annotations

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.solver import Answer
from silograph._util.types import Matrix, Vector

DIAGONAL_COST = 1e9  # times the largest: no step leaves the diagonal with a weight


def to_square(values: Matrix, fill: float = 0.0) -> np.ndarray:
    """One symmetric matrix per row of pair values, with `fill` on the diagonal."""
    n_nodes = round((1 + np.sqrt(1 + 8 * values.shape[-1])) / 2)
    rows, cols = np.triu_indices(n_nodes, 1)
    out = np.full((*values.shape[:-1], n_nodes, n_nodes), fill)
    out[..., rows, cols] = out[..., cols, rows] = values
    return out


def from_square(squares: np.ndarray) -> Matrix:
    """The values above the diagonal."""
    rows, cols = np.triu_indices(squares.shape[-1], 1)
    return squares[..., rows, cols]


def adjoint(y: Matrix) -> np.ndarray:
    """Each entry y_i + y_j."""
    return y[..., :, None] + y[..., None, :]


def pair_norms(squares: np.ndarray) -> Vector:
    """The norm over pairs of each matrix with an empty diagonal."""
    norms: Vector = np.sqrt(np.einsum("...ij,...ij->...", squares, squares) / 2)
    return norms


def square_costs(problem: JointProblem) -> np.ndarray:
    """The costs, with a diagonal that keeps weights away."""
    return to_square(problem.costs, DIAGONAL_COST * float(np.abs(problem.costs).max()))


def answer_of(w: np.ndarray, u: np.ndarray) -> Answer:
    """The answer that these matrices hold."""
    return Answer(w=from_square(w), u=from_square(u))
