"""Tests that hardly ever cry wolf: each is two-sided at `ALARM`, and an audit makes fewer than sixty of them.

So an audit of sound code is wrong in less than one of a million, by the union bound.
"""

from math import sqrt

import numpy as np
from scipy.stats import binom, chi2, norm

from silograph._util.types import Vector

ALARM = 1e-8


def advantage_of(multiplier: float) -> float:
    """The best test's advantage where worlds are one apart and noise has this standard deviation: 2Φ(1/(2σ)) − 1."""
    return float(2 * norm.cdf(0.5 / multiplier) - 1)


def variance_bounds(n_squares: int) -> tuple[float, float]:
    """Where the mean of so many squares of standard normal numbers lies."""
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], n_squares) / n_squares
    return float(low), float(high)


def mean_bound(n: int) -> float:
    """What the mean of so many standard normal numbers does not exceed in magnitude."""
    return float(norm.isf(ALARM / 2) / sqrt(n))


def guess_bounds(n: int) -> tuple[float, float]:
    """Where the advantage of guessing lies in so many tries: twice the share of hits, less one."""
    low, high = binom.ppf([ALARM / 2, 1 - ALARM / 2], n, 0.5)
    return float(2 * low / n - 1), float(2 * high / n - 1)


def distinguish(first: np.ndarray, second: np.ndarray) -> tuple[float, int]:
    """The advantage in telling two worlds apart by what was seen of each, and in how many tries.

    Rows are what was seen. Half of them teach both worlds' means, the other half are told by which mean is nearer.
    """
    half = len(first) // 2
    centres = [seen[:half].mean(axis=0) for seen in (first, second)]
    direction, middle = centres[1] - centres[0], (centres[0] + centres[1]) / 2
    scores = [(seen[half:] - middle) @ direction for seen in (first, second)]
    hits = int((scores[0] < 0).sum() + (scores[1] > 0).sum())
    tries = sum(map(len, scores))
    return 2 * hits / tries - 1, tries


def bits_of(limbs: np.ndarray) -> Vector:
    """The bits of numbers in the ring, as zeros and ones."""
    bits: Vector = np.unpackbits(np.ascontiguousarray(limbs).view(np.uint8).ravel()).astype(np.float64)
    return bits


def relative_error(found: Vector, truth: Vector) -> float:
    """How far off, as a part of the truth's size."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
