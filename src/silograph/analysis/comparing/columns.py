"""Whether two groups of silos differ in any of many numbers: p-values by relabelling, sizes of effects, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.analysis.comparing.design import FEWEST, Bases, Design, bases_of
from silograph.analysis.comparing.relabelling import Orders, Relabellings, restricted
from silograph.analysis.comparing.statistic import ROUNDING, LeastSquares, Statistic, Welch

ENOUGH = 0.8  # of either group's silos: where fewer have both nodes of a pair, it is not tested
LEVEL = 0.05
Z = NormalDist().inv_cdf(1 - LEVEL / 2)
SAME = 1 - 1e-9  # sums in another order round differently
FLAT = 1e-9  # of a column's size: what is left of one that does not vary
BATCH = 4_000_000  # numbers at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """Of each column. NaN where nothing was tested: the same in all silos, or known of too few."""

    mean_first: Vector
    mean_second: Vector
    difference: Vector  # of means, the first group's minus the second's; with covariates or sites, adjusted for them
    effect: Vector  # the difference in units of the spread within groups (Hedges' g)
    low: Vector  # its normal 95 % interval
    high: Vector
    statistic: Vector
    p: Vector  # of this column alone
    p_family: Vector  # of the largest statistic of all columns: the chance of any false one (Westfall & Young)
    q: Vector  # the part of false ones among those with a q as small (Benjamini & Hochberg)

    @property
    def n_tested(self) -> int:
        """How many columns were tested."""
        return int(np.isfinite(self.p).sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """The columns that the same silos have."""

    columns: IntVector
    kept: BoolVector
    site: IntVector
    statistic: Statistic
    seen: Vector

    def __call__(self, orders: Orders) -> Matrix:
        sizes: Matrix = np.abs(self.statistic(restricted(orders, self.site, self.kept)))
        return sizes


def compare_columns(values: Matrix, relabellings: Relabellings) -> Differences:
    """Compare the groups in each column of `values` (silos, columns); NaN where a silo does not know it."""
    design, n_columns = relabellings.design, values.shape[1]
    out = {name: np.full(n_columns, np.nan) for name in Differences.__slots__}
    known = np.isfinite(values)
    for name, members in (("mean_first", design.is_first), ("mean_second", ~design.is_first)):
        counts = known[members].sum(axis=0)
        sums = np.where(known[members], values[members], 0.0).sum(axis=0)
        out[name] = np.divide(sums, counts, out=out[name], where=counts > 0)
    parts = _parts(values, design, out)
    if parts:
        _fill_p(parts, relabellings, out)
    return Differences(**out)


def _parts(values: Matrix, design: Design, out: dict[str, Vector]) -> list[_Part]:
    """The columns by the silos that have them; what needs no relabelling is filled in."""
    patterns, which = np.unique(np.isfinite(values), axis=1, return_inverse=True)
    parts = []
    for number, kept in enumerate(patterns.T):
        some = design.of(kept)
        enough = [max(FEWEST, ENOUGH * count) for count in design.counts]
        bases = bases_of(some) if all(have >= need for have, need in zip(some.counts, enough, strict=True)) else None
        if bases is None:
            continue
        columns = np.flatnonzero(which.ravel() == number)
        y = values[np.ix_(kept, columns)]
        rest = bases.residuals(y)
        varies = np.linalg.norm(rest, axis=0) > FLAT * np.linalg.norm(y, axis=0)
        if varies.any():
            columns, y, rest = columns[varies], y[:, varies], rest[:, varies]
            _fill_effects(columns, rest, bases, out)
            statistic = _statistic(some, bases, y, rest)
            out["statistic"][columns] = statistic(np.arange(len(y), dtype=np.int32)[None])[0]
            seen = out["statistic"][columns]
            parts.append(_Part(columns=columns, kept=kept, site=design.site, statistic=statistic, seen=seen))
    return parts


def _statistic(design: Design, bases: Bases, y: Matrix, rest: Matrix) -> Statistic:
    if design.is_plain:
        return Welch(design, (y - y.mean(axis=0)) / y.std(axis=0))
    return LeastSquares(bases, rest / np.linalg.norm(rest, axis=0))


def _fill_effects(columns: IntVector, rest: Matrix, bases: Bases, out: dict[str, Vector]) -> None:
    weight, freedom = float(bases.group @ bases.group), bases.freedom
    difference = bases.group @ rest / weight
    whole = (rest**2).sum(axis=0)
    left = np.maximum(whole - difference**2 * weight, 0)
    spread = np.sqrt(left / freedom)
    # With one degree of freedom a spread is no measure: Hedges' correction would make every effect 0
    told = (left > ROUNDING * whole) & (freedom > 1)
    size = np.divide(difference, spread, out=np.full_like(difference, np.nan), where=told)
    unbiased = 1 - 3 / (4 * freedom - 1)
    half = Z * np.sqrt(1 / weight + size**2 / (2 * freedom))
    out["difference"][columns], out["effect"][columns] = difference, unbiased * size
    out["low"][columns], out["high"][columns] = unbiased * (size - half), unbiased * (size + half)


def _fill_p(parts: Sequence[_Part], relabellings: Relabellings, out: dict[str, Vector]) -> None:
    columns = np.concatenate([part.columns for part in parts])
    as_large, largest = np.zeros(columns.size), []
    bars = [np.abs(part.seen) * SAME for part in parts]
    for orders in relabellings.batches(max(1, BATCH // max(columns.size, relabellings.design.site.size))):
        sizes = [part(orders) for part in parts]
        as_large += np.concatenate([(size >= bar).sum(axis=0) for size, bar in zip(sizes, bars, strict=True)])
        largest.append(np.max([size.max(axis=1) for size in sizes], axis=0))
    ranked, bar = np.sort(np.concatenate(largest)), np.concatenate(bars)
    true = 0 if relabellings.exhaustive else 1  # random ones do not count the true labelling by themselves
    out["p"][columns] = (true + as_large) / relabellings.count
    family = ranked.size - np.searchsorted(ranked, bar, side="left")
    out["p_family"][columns] = (true + family) / relabellings.count
    out["q"][columns] = false_discovery(out["p"][columns])


def false_discovery(p: Vector) -> Vector:
    """Benjamini & Hochberg: for each p-value, the part of false ones among all that are as small."""
    order = np.argsort(p, kind="stable")[::-1]
    least = np.minimum.accumulate(p[order] * p.size / np.arange(p.size, 0, -1))
    q = np.empty_like(p)
    q[order] = np.minimum(least, 1.0)
    return q
