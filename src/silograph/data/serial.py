"""How much a sample resembles the one before it: the lag-1 autocorrelation of each node, chunk by chunk.

Samples that follow each other count for fewer. Of N samples of AR(1) series with lag-1 autocorrelation r, products of
two nodes are as uncertain as those of N(1 − r²)/(1 + r²) independent samples (Bartlett 1935).
"""

import numpy as np

from silograph._util.types import Matrix, Vector

CHUNK_VALUES = 2**20  # worked on at once
FEWEST_NEIGHBOURS = 4  # pairs of neighbouring samples; of fewer, nothing can be said


class SerialProducts:
    """Sums over samples and over neighbouring samples; gaps (NaN) are left out."""

    def __init__(self, n_nodes: int) -> None:
        self._shift: Vector | None = None  # near the mean, so that a large offset does not drown the products
        self._last: Matrix = np.full((1, n_nodes), np.nan)
        self._sums = np.zeros((7, n_nodes))

    def update(self, signals: Matrix) -> None:
        """Add the samples that follow, rows of (samples, nodes)."""
        rows = max(1, CHUNK_VALUES // signals.shape[1])
        for start in range(0, signals.shape[0], rows):
            self._update_chunk(signals[start : start + rows])

    def _update_chunk(self, signals: Matrix) -> None:
        if self._shift is None:
            self._shift = np.nan_to_num(np.array(signals[0], dtype=np.float64))
        with np.errstate(over="ignore", invalid="ignore"):  # numbers out of all bounds are refused elsewhere
            values = np.vstack([self._last, signals - self._shift])
            self._last = values[-1:].copy()
            here = np.isfinite(values)
            both = here[1:] & here[:-1]
            values[~here] = 0.0
            now, before = values[1:], values[:-1]
            self._sums += np.stack(
                [
                    here[1:].sum(axis=0),
                    now.sum(axis=0),
                    np.einsum("ij,ij->j", now, now),
                    both.sum(axis=0),
                    np.einsum("ij,ij->j", now, before),
                    (now * both).sum(axis=0),
                    (before * both).sum(axis=0),
                ]
            )

    def correlation(self) -> float | None:
        """The median over nodes of their lag-1 autocorrelation; None where no node varies, or samples are too few."""
        with np.errstate(all="ignore"):
            n, total, square, n_both, product, after, before = self._sums
            mean = total / n
            variance = square / n - mean**2
            together = product / n_both - mean * (after + before) / n_both + mean**2
            known = (n_both >= FEWEST_NEIGHBOURS) & (variance > 1e-12 * square / n)
            found = (together / variance)[known]
        return float(np.median(found)) if found.size else None


def serial_correlation(signals: Matrix) -> float | None:
    """The median over nodes of the lag-1 autocorrelation of one table."""
    products = SerialProducts(signals.shape[1])
    products.update(signals)
    return products.correlation()


def effective_samples(n_samples: int, correlation: float) -> float:
    """How many independent samples the samples are worth."""
    square = min(correlation**2, 1.0)
    return n_samples * (1 - square) / (1 + square)
