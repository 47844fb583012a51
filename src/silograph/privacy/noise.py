"""Noise on a sum of costs: the discrete Gaussian, drawn by OpenDP, on the second moments that costs come from.

A row y with Σ y = 0 and ‖y‖ ≤ B changes its table's mean moments M = Σ yyᵀ/N, as a vector (diagonal, √2 · rest), by at
most √2 B²/N when it is replaced; a table whose rows are so changes M by at most √2 B². That is the sensitivity. Noise
has the standard deviation σ = σ₁ · sensitivity on the diagonal and σ/√2 elsewhere, and z_ij = M_ii + M_jj − 2 M_ij
depends on nothing that noise on M would not protect. Diagonal and rest are drawn by themselves, each for numbers of its
own, so that their costs are parts of one: Σ Δ_ii²/(2σ²) + Σ Δ_ij²/(2σ²/2) = ‖ΔM‖²/(2σ²), which is 1/(2σ₁²) at most.

Numbers are multiples of a step, a power of two near σ/2³⁰. To round costs to it moves M, as an integer matrix with the
same costs, by less than 8 steps in each of its d² entries: so much is added to the sensitivity. (Take M_ii as the
nearest even number, at most 1 off; M_ij = (M_ii + M_jj − z_ij)/2 is then whole, and at most 1.5 off; two tables differ
by twice that, and floating point by a step more. Pairs that are not listed have no M_ij, and need none.)

Where the largest costs that there can be would have more steps than float64 has whole numbers, steps are longer. That
floating point has fewer digits than noise, or noise fewer than it should, is thereby no way in, and neither is an error
that tells of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, sqrt
from typing import Any

import numpy as np

from silograph._util.extras import required
from silograph._util.types import IntVector, Vector
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.privacy.accounting import multiplier_for, rho_of
from silograph.privacy.settings import Privacy

STEPS_LOG2 = 30  # σ is 2³⁰ to 2³¹ steps
MOST_STEPS = 2**52  # that a number may have: floats hold them exactly
LEAST_SCALE = 2.0**10  # of a share, in steps: from there on, shares add up as Gaussians do
ROUNDING = 8  # steps by which rounding may move an entry of M


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How much noise one site adds to what it sends, and what it costs those whose data are in it."""

    sigma: float  # of the sum's whole noise, on the diagonal of M
    share: float  # of that, the part of its standard deviation that this site adds
    multiplier: float  # σ₁
    step: float  # a power of two

    @property
    def rho(self) -> float:
        """The cost."""
        return rho_of(self.multiplier)

    @property
    def cost_sigma(self) -> float:
        """The standard deviation of what this site adds to each cost."""
        return 2 * self.share * self.sigma

    def draw(self, pairs: Pairs) -> Vector:
        """Fresh noise for costs, in steps; whole numbers."""
        scale = self.share * self.sigma / self.step
        diagonal = draw_discrete_gaussian(scale, pairs.n_nodes)
        rest = draw_discrete_gaussian(scale / sqrt(2), pairs.size)
        return pairs.sums(diagonal.astype(np.float64)) - 2.0 * rest.astype(np.float64)

    def add(self, cost: Vector, pairs: Pairs) -> Vector:
        """Costs, rounded to even steps, with fresh noise."""
        steps = 2 * np.round(cost / (2 * self.step))
        if steps.max(initial=0.0) > MOST_STEPS:
            raise ValueError("Expected costs of rows that are no longer than the longest, got larger ones.")
        return np.asarray((steps + self.draw(pairs)) * self.step)


def plan_noise(
    privacy: Privacy, *, n_nodes: int, n_sites: int, min_samples: int | None, shared: bool, n_tables: int = 1
) -> Noise:
    """The noise of one site; `shared`: it adds its share, and masks hide which part of the noise is whose.

    `n_tables` is a public bound on the tables in what the noise is added to: all of the study.
    """
    assert privacy.epsilon is not None
    assert privacy.delta is not None
    if privacy.unit == "row" and min_samples is None:
        raise ParameterError(
            "min_samples: expected the number of rows that every table has at least, which everybody may know. "
            'Noise for unit = "row" depends on it.'
        )
    n_rows = 1 if privacy.unit == "table" else min_samples
    assert n_rows is not None
    multiplier = multiplier_for(privacy.epsilon, privacy.delta)
    sensitivity = sqrt(2) * privacy.longest_row**2 / n_rows
    share = 1 / sqrt(n_sites - privacy.collusion) if shared else 1.0
    step = 2.0 ** floor(log2(share * multiplier * sensitivity) - STEPS_LOG2)
    largest = 2 * n_tables * privacy.longest_row**2  # cost that there can be
    step = max(step, 2.0 ** ceil(log2(largest / MOST_STEPS) + 1))
    sigma = multiplier * (sensitivity + ROUNDING * n_nodes * step)
    if share * sigma < LEAST_SCALE * step:
        raise ParameterError("epsilon: so little noise cannot be counted out beside costs of this size. Lower it.")
    return Noise(sigma=sigma, share=share, multiplier=multiplier, step=step)


def draw_discrete_gaussian(scale: float, size: int) -> IntVector:
    """Whole numbers from a cryptographic source, by OpenDP; the scale is rounded up to a whole number."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    mechanism: Any = dp.m.make_gaussian(*space, scale=float(ceil(scale)))
    drawn: Sequence[int] = mechanism([0] * size)
    return np.asarray(drawn, dtype=np.int64)


def _opendp() -> Any:
    dp = required("opendp.prelude", extra="privacy", purpose="to draw noise")
    dp.enable_features("contrib")
    return dp
