"""Products and distances of vectors, the same to the last bit wherever they lie in memory."""

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Vector

GUARD = 64  # numbers, on both sides: more than a loop ever takes at once


def distance(a: Vector, b: Vector) -> float:
    """‖a − b‖."""
    return float(np.sqrt(squared_distance(a, b)))


@kernel
def dot(a: Vector, b: Vector) -> float:
    """aᵀb; unlike BLAS, the same to the last bit wherever the vectors lie in memory."""
    total = 0.0
    for e in range(a.size):
        total += a[e] * b[e]
    return total


@kernel
def squared_distance(a: Vector, b: Vector) -> float:
    """‖a − b‖²."""
    total = 0.0
    for e in range(a.size):
        total += (a[e] - b[e]) ** 2
    return total


@kernel
def scratch(size: int) -> Vector:
    """A vector for a loop to write, with nothing else near it in memory.

    Before a loop that writes one vector and reads another, compiled code looks whether they overlap, and takes those
    that lie within a few vector registers for overlapping. Then it goes number by number, and a sum rounds otherwise.
    """
    out: Vector = np.empty(size + 2 * GUARD)[GUARD : GUARD + size]
    return out


def long_scratch(size: int) -> Vector:
    """The same, for a vector as long as the pairs: NumPy asks for large pages, which compiled code does not."""
    out: Vector = np.empty(size + 2 * GUARD)[GUARD : GUARD + size]
    return out
