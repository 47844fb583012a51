"""Whether the smooth model is the wrong one: whether held-out rows are likelier with negative partial correlations.

Both laws come from the same shrunk covariance of each silo: one is its inverse, the other the likeliest law without
negative partial correlations (`nonnegative.py`). The smooth model knows differences of nodes only, so nothing may
depend on a level that all nodes share: rows get a common one, of a node's own variance, under both laws and in what was
held out. Without it, signals whose nodes sum up to nothing, as the model's own do, would have negative partial
correlations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Matrix
from silograph.analysis.partial.learn import inverse
from silograph.analysis.partial.nonnegative import nonnegative_law
from silograph.analysis.partial.shrinkage import Shrinkage, folds_of
from silograph.analysis.partial.sums import SiloSums

LEVEL = 1.0  # the variance of the common level, in units of a node's
WORTH = 0.01  # nats per row that matter
ERRORS = 1.64  # standard errors above zero: by chance once in twenty
FEWEST = 4  # held-out blocks of which a standard error says something


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What held-out rows gain, in log likelihood per row, where partial correlations may be negative."""

    gain: float
    error: float  # its standard error, paired over silos and blocks
    n_blocks: int  # of all silos

    @property
    def is_wrong(self) -> bool:
        """Whether the smooth model is."""
        return self.n_blocks >= FEWEST and self.gain > max(WORTH, ERRORS * self.error)

    @property
    def says(self) -> str:
        """The same in words."""
        seen = (
            f"With negative partial correlations, rows that were held out have a log likelihood {abs(self.gain):.3f} "
            f"per row {'higher' if self.gain > 0 else 'lower'} (± {self.error:.3f} standard error, over "
            f"{self.n_blocks} blocks of rows)"
        )
        if self.is_wrong:
            return f"{seen}: weights ≥ 0 miss a part of these data. Look at the signs of partial correlations, too."
        return f"{seen}: no sign that weights ≥ 0 are wrong for these data."


def judge(silos: Sequence[SiloSums], shrinkage: Shrinkage) -> Judgement:
    """The two laws, compared on each silo's blocks."""
    rows, gains = [], []
    for fold in folds_of(silos):
        for covariance, held_out in zip(shrinkage.own(fold.silos), fold.held_out, strict=True):
            if held_out is not None:
                rows.append(held_out[0])
                gains.append(_gain(_levelled(covariance), held_out[0], _levelled(held_out[1], held_out[0])))
    count, total = np.array(rows), np.array(gains)
    mean = float(total.sum() / count.sum())
    apart = total - mean * count
    spread = np.sqrt((apart**2).sum() * len(rows) / max(len(rows) - 1, 1))
    return Judgement(gain=mean, error=float(spread / count.sum()), n_blocks=len(rows))


def _levelled(matrix: Matrix, n_rows: float = 1.0) -> Matrix:
    return matrix + LEVEL * n_rows


def _gain(covariance: Matrix, n_rows: float, products: Matrix) -> float:
    free, bound = inverse(covariance), nonnegative_law(covariance).precision
    return 0.5 * (n_rows * (_log_det(free) - _log_det(bound)) - float(((free - bound) * products).sum()))


def _log_det(matrix: Matrix) -> float:
    return float(np.linalg.slogdet(matrix)[1])
