"""Whether the smooth model is the wrong one: whether held-out rows are likelier with negative partial correlations.

Both laws come from the same shrunk covariance of each silo: one is its inverse, the other the likeliest law without
negative partial correlations (`nonnegative.py`). The smooth model knows differences of nodes only, so nothing may
depend on a level that all nodes share: rows get a common one, of a node's own variance, under both laws and in what was
held out. Without it, signals whose nodes sum up to nothing, as the model's own do, would have negative partial
correlations. So would those of a graph that falls into parts, each of which sums up to nothing: where negative ones
seem to help, parts that hardly correlate get a level each, and if the smooth model is then the better one, it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from threadpoolctl import threadpool_limits

from silograph._util.types import IntVector, Matrix
from silograph.analysis.partial.learn import inverse
from silograph.analysis.partial.nonnegative import nonnegative_law
from silograph.analysis.partial.shrinkage import Fold, Shrinkage, folds_of
from silograph.analysis.partial.sums import SiloSums, pooled

LEVEL = 1.0  # the variance of the common level, in units of a node's
WORTH = 0.01  # nats per row that matter
ERRORS = 1.64  # standard errors above zero: by chance once in twenty
MOST_WORK = 2_000_000  # silos · nodes³, up to which each silo has laws of its own: some seconds
FEWEST = 4  # held-out blocks of which a standard error says something
APART, MOST_PARTS = 0.2, 8  # parts of the nodes correlate by less, in the mean; no more than so many are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What held-out rows gain, in log likelihood per row, where partial correlations may be negative."""

    gain: float
    error: float  # its standard error, paired over silos and blocks
    n_blocks: int  # of all silos; 0: not judged

    @property
    def is_wrong(self) -> bool:
        """Whether the smooth model is."""
        return self.n_blocks >= FEWEST and self.gain > self._beyond_chance

    @property
    def is_right(self) -> bool:
        """Whether the smooth model is the better one."""
        return self.n_blocks >= FEWEST and self.gain < -self._beyond_chance

    @property
    def _beyond_chance(self) -> float:
        return max(WORTH, ERRORS * self.error)

    @property
    def says(self) -> str:
        """The same in words."""
        if self.n_blocks == 0:
            return (
                "Whether weights ≥ 0 are wrong for these data was not judged: the likeliest law without negative "
                "partial correlations was not found in reasonable time, as happens with few rows or nodes that repeat "
                "each other."
            )
        seen = (
            f"With negative partial correlations, rows that were held out have a log likelihood {abs(self.gain):.3f} "
            f"per row {'higher' if self.gain > 0 else 'lower'} (± {self.error:.3f} standard error, over "
            f"{self.n_blocks} blocks of rows)"
        )
        if self.is_wrong:
            return f"{seen}: weights ≥ 0 miss a part of these data. Look at the signs of partial correlations, too."
        return f"{seen}: no sign that weights ≥ 0 are wrong for these data."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Laws:
    """The two laws of a covariance, beside a common level of the nodes of each part."""

    level: Matrix  # its covariance
    free: Matrix
    bound: Matrix
    log_ratio: float  # log det free − log det bound
    found: bool

    @classmethod
    def of(cls, covariance: Matrix, level: Matrix) -> "_Laws":
        levelled = covariance + level
        free, law = inverse(levelled), nonnegative_law(levelled)
        log_ratio = _log_det(free) - _log_det(law.precision)
        return cls(level=level, free=free, bound=law.precision, log_ratio=log_ratio, found=law.converged)

    def gain(self, n_rows: float, products: Matrix) -> float:
        """What held-out rows gain from being free."""
        return 0.5 * (
            n_rows * self.log_ratio - float(((self.free - self.bound) * (products + n_rows * self.level)).sum())
        )


def judge(silos: Sequence[SiloSums], shrinkage: Shrinkage) -> Judgement:
    """The two laws, compared on each silo's blocks."""
    together = np.ones(silos[0].sums.shape[1], dtype=np.int32)
    with threadpool_limits(1):
        judged = _judge(silos, shrinkage, together)
        apart = _partitions(silos) if judged.is_wrong else ()
        return next((one for parts in apart if (one := _judge(silos, shrinkage, parts)).is_right), judged)


def _partitions(silos: Sequence[SiloSums]) -> Iterator[IntVector]:
    """The nodes in two parts, in three and so on, as long as these hardly correlate; each node's part."""
    covariance = pooled([silo.whole() for silo in silos])
    deviation = np.sqrt(np.diag(covariance))
    far = np.maximum(1 - np.abs(covariance / np.outer(deviation, deviation)), 0.0)
    np.fill_diagonal(far, 0.0)
    tree = linkage(squareform((far + far.T) / 2, checks=False), "average")
    n_apart = 1 + int(np.count_nonzero(tree[:, 2] > 1 - APART))
    return (fcluster(tree, n_parts, "maxclust") for n_parts in range(2, min(n_apart, MOST_PARTS) + 1))


def _judge(silos: Sequence[SiloSums], shrinkage: Shrinkage, parts: IntVector) -> Judgement:
    rows, gains = _gains(silos, shrinkage, LEVEL * np.equal.outer(parts, parts))
    if not rows:
        return Judgement(gain=np.nan, error=np.nan, n_blocks=0)
    count, total = np.array(rows), np.array(gains)
    mean = float(total.sum() / count.sum())
    apart = total - mean * count
    spread = np.sqrt((apart**2).sum() * len(rows) / max(len(rows) - 1, 1))
    return Judgement(gain=mean, error=float(spread / count.sum()), n_blocks=len(rows))


def _gains(silos: Sequence[SiloSums], shrinkage: Shrinkage, level: Matrix) -> tuple[list[float], list[float]]:
    """Of each block of each silo, its rows and what they gain; nothing at all if a law was not found."""
    rows: list[float] = []
    gains: list[float] = []
    for fold in folds_of(silos):
        for laws, held_out in zip(_laws(fold, shrinkage, level), fold.held_out, strict=True):
            if not laws.found:
                return [], []
            if held_out is not None:
                rows.append(held_out[0])
                gains.append(laws.gain(*held_out))
    return rows, gains


def _laws(fold: Fold, shrinkage: Shrinkage, level: Matrix) -> Iterator[_Laws]:
    """Each silo's own, or where that takes too long, for all of them those of what they share."""
    known = fold.silos
    if len(known) * len(known[0].mean) ** 3 <= MOST_WORK:
        return (_Laws.of(covariance, level) for covariance in shrinkage.own(known))
    return repeat(_Laws.of(shrinkage.shared(known), level), len(known))


def _log_det(matrix: Matrix) -> float:
    return float(np.linalg.slogdet(matrix)[1])
