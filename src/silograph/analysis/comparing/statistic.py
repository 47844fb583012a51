"""Statistics of a difference between two groups, for many relabellings and many columns at once, as matrix products.

    Welch           (mean_1 − mean_2) / √(s_1²/n_1 + s_2²/n_2): groups may differ in spread
    LeastSquares    the t of the group beside sites and covariates. Relabelled is what these leave of the weights
                    (Freedman & Lane 1983); without covariates that is the same as relabelling the silos of a site
    Separation      the pseudo-F of two groups of silos by their mutual similarity (McArdle & Anderson 2001)

A column without spread within the groups has an infinite statistic where the groups differ, and else zero.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.analysis.comparing.design import Bases, Design
from silograph.analysis.comparing.relabelling import Orders

ROUNDING = 1e-10  # of a column's variance: below, it is none


class Statistic(Protocol):
    """One number per relabelling and column."""

    def __call__(self, orders: Orders, /) -> Matrix:
        """The statistics (relabellings, columns)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Welch:
    """Of groups alone."""

    design: Design
    y: Matrix  # (silos, columns), of mean 0 and variance 1

    def __call__(self, orders: Orders) -> Matrix:
        """The statistics (relabellings, columns)."""
        labels = self.design.is_first.astype(np.float64)[orders]
        sums, squares = labels @ self.y, labels @ self.y**2
        n, (first, second) = len(self.y), self.design.counts
        spread = [
            np.maximum(squares - sums**2 / first, 0) / (first - 1) / first,
            np.maximum(n - squares - sums**2 / second, 0) / (second - 1) / second,
        ]
        return _over(sums / first + sums / second, spread[0] + spread[1])


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """Of groups beside sites and covariates."""

    bases: Bases
    y: Matrix  # (silos, columns), what sites and covariates leave, of length 1

    def __call__(self, orders: Orders) -> Matrix:
        """The statistics (relabellings, columns)."""
        group = self.bases.group / np.linalg.norm(self.bases.group)
        along = group[orders] @ self.y
        rest = 1 - along**2
        # What a covariate explains anew after the relabelling; sites explain nothing, as silos stay in theirs
        for column in self.bases.of_covariates.T:
            rest -= (column[orders] @ self.y) ** 2
        return _over(along, np.maximum(rest, 0) / self.bases.freedom)


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """Of the silos' similarity: how much more alike those of one group are."""

    bases: Bases
    products: Matrix  # (silos, silos), inner products of what sites and covariates leave

    @classmethod
    def of(cls, bases: Bases, similarity: Matrix) -> "Separation":
        """From similarities, 1 for the same graph; a squared distance is what is missing to 1."""
        products = -(1 - similarity) / 2
        return cls(bases, bases.residuals(bases.residuals(products).T).T)

    def parts(self, orders: Orders) -> tuple[Vector, Vector]:
        """What the group tells, and what is left."""
        told = self._along(self.bases.group / np.linalg.norm(self.bases.group), orders)
        rest = np.trace(self.products) - told
        for column in self.bases.of_covariates.T:
            rest = rest - self._along(column, orders)
        return told, rest

    def __call__(self, orders: Orders) -> Matrix:
        """The statistics (relabellings, 1)."""
        told, rest = self.parts(orders)
        # Nothing is left where the silos of a group have the same graph
        values: Matrix = (told / np.maximum(rest, ROUNDING) * self.bases.freedom)[:, None]
        return values

    def _along(self, column: Vector, orders: Orders) -> Vector:
        moved = column[orders]
        return np.asarray(np.einsum("ri,ri->r", moved @ self.products, moved), dtype=np.float64)


def _over(difference: Matrix, variance: Matrix) -> Matrix:
    flat = variance <= ROUNDING
    values = difference / np.sqrt(np.where(flat, 1.0, variance))
    values[flat] = np.where(np.abs(difference[flat]) > np.sqrt(ROUNDING), np.sign(difference[flat]) * np.inf, 0.0)
    return values
