"""Two groups compared by sums alone: of each pair's weights w, how many, Σw and Σw². No graph is needed for that.

    t = (mean_1 − mean_2) / √(s_1²/n_1 + s_2²/n_2)    s² = (Σw² − (Σw)²/n)/(n − 1)

is Welch's, with the freedom of Welch & Satterthwaite. Its p-values are those of Student's t, not of relabellings, which
sums do not allow. Holm's correction holds however pairs depend on each other.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from silograph._util.types import Vector
from silograph.analysis.comparing.columns import LEVEL, false_discovery

FLAT, ROUNDED = 1e-12, 1e3  # of Σw², and of the steps of its terms: a spread below is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSums:
    """What is known of a group."""

    count: int
    total: Vector  # Σw, by pair
    squares: Vector  # Σw²
    step: float  # to which each square was rounded

    @property
    def mean(self) -> Vector:
        """By pair."""
        return self.total / self.count

    @property
    def error_square(self) -> Vector:
        """The square of the mean's standard error, s²/n."""
        spread = self.squares - self.total**2 / self.count
        spread[spread <= FLAT * self.squares + ROUNDED * self.count * self.step] = 0.0
        return np.asarray(spread / (self.count - 1) / self.count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WelchDifferences:
    """Of each pair. NaN where nothing was tested, as no graph of either group varies there."""

    mean_first: Vector
    mean_second: Vector
    difference: Vector  # of means, the first group's minus the second's
    statistic: Vector
    df: Vector
    p: Vector  # of this pair alone
    p_family: Vector  # Holm: the chance of any false one
    q: Vector  # Benjamini & Hochberg

    @property
    def n_tested(self) -> int:
        """How many pairs were tested."""
        return int(np.isfinite(self.p).sum())

    @property
    def ranked(self) -> list[int]:
        """All pairs, the surest difference first, those that were not tested last."""
        order: list[int] = np.argsort(np.nan_to_num(self.p, nan=2.0), kind="stable").tolist()
        return order

    @property
    def differing(self) -> list[int]:
        """The pairs that differ, however many are tested, from the surest on."""
        return [pair for pair in self.ranked if self.p_family[pair] <= LEVEL]


def compare_sums(first: GroupSums, second: GroupSums) -> WelchDifferences:
    """Welch's test of each pair."""
    errors = [first.error_square, second.error_square]
    variance = errors[0] + errors[1]
    varies = variance > 0
    difference = first.mean - second.mean
    t, df, p, p_family, q = (np.full(variance.size, np.nan) for _ in range(5))
    parts = [error[varies] / variance[varies] for error in errors]  # of ratios: squares of small numbers vanish
    t[varies] = difference[varies] / np.sqrt(variance[varies])
    df[varies] = 1 / (parts[0] ** 2 / (first.count - 1) + parts[1] ** 2 / (second.count - 1))
    p[varies] = 2 * stdtr(df[varies], -np.abs(t[varies]))
    if varies.any():
        p_family[varies], q[varies] = holm(p[varies]), false_discovery(p[varies])
    return WelchDifferences(
        mean_first=first.mean,
        mean_second=second.mean,
        difference=difference,
        statistic=t,
        df=df,
        p=p,
        p_family=p_family,
        q=q,
    )


def holm(p: Vector) -> Vector:
    """Holm: p-values for the chance of any false one, however they depend on each other."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted
