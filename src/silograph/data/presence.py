"""Which nodes a table has: a column that is empty throughout, or does not vary beyond rounding, tells nothing."""

import numpy as np

from silograph._util.types import Matrix, Vector

CONSTANT = 1e-13  # of the mean's magnitude, per sample


def is_constant(n_samples: Vector | int, mean: Vector, squares: Vector) -> np.ndarray:
    """Whether nodes vary by no more than rounding; `squares` are Σ (x − mean)²."""
    constant: np.ndarray = np.sqrt(squares) <= CONSTANT * np.sqrt(n_samples) * np.abs(mean)
    return constant


def present_columns(values: Matrix) -> np.ndarray:
    """Whether each column of a table (samples, nodes) is there; a gap (NaN) tells nothing."""
    filled = ~np.isnan(values)
    count = filled.sum(axis=0)
    known = np.where(filled, values, 0.0).astype(np.float64)
    mean = known.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(filled, known - mean, 0.0) ** 2).sum(axis=0)
    present: np.ndarray = (count > 0) & ~is_constant(count, mean, squares)
    return present
