"""A silo's rows as partial correlations need them: sums and products of each block, about the means of all its rows.

Blocks come as moments, so a table is read once. Numbers are in units of each node's deviation: in the silo, if it is to
be standardised, else over all silos. So matrices are near one in size, and nothing here has a unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.checks import list_names
from silograph._util.types import Matrix, Vector
from silograph.data.moments import Moments, check_magnitudes, check_not_constant
from silograph.errors import SignalError
from silograph.graph.pairs import endpoints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiloSums:
    """Blocks of one silo's rows, about its mean."""

    counts: Vector  # (blocks,)
    sums: Matrix  # (blocks, nodes)
    products: Matrix  # (blocks, nodes, nodes): Σ x xᵀ

    @property
    def n_samples(self) -> float:
        """All rows."""
        return float(self.counts.sum())

    @property
    def n_blocks(self) -> int:
        """Sixteen, or as many as there are rows."""
        return len(self.counts)

    def whole(self) -> "Known":
        """All rows."""
        return _known(self.n_samples, self.sums.sum(axis=0), self.products.sum(axis=0))

    def without(self, block: int) -> "Known":
        """All rows but those of a block."""
        left = np.arange(self.n_blocks) != block
        return _known(float(self.counts[left].sum()), self.sums[left].sum(axis=0), self.products[left].sum(axis=0))

    def beyond(self, block: int, mean: Vector) -> Matrix:
        """Σ (x − mean)(x − mean)ᵀ over the rows of a block."""
        cross = np.outer(self.sums[block], mean)
        out: Matrix = self.products[block] - cross - cross.T + self.counts[block] * np.outer(mean, mean)
        return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """Some of a silo's rows, as the law learned from them sees them."""

    n_samples: float
    mean: Vector
    covariance: Matrix


def _known(count: float, total: Vector, products: Matrix) -> Known:
    mean = total / count
    return Known(n_samples=count, mean=mean, covariance=products / count - np.outer(mean, mean))


def pooled(silos: Sequence[Known]) -> Matrix:
    """The covariance of all silos' rows, each silo about its own mean."""
    total = np.sum([silo.n_samples * silo.covariance for silo in silos], axis=0)
    out: Matrix = total / sum(silo.n_samples for silo in silos)
    return out


def sums_of(
    tables: Mapping[str, Sequence[Moments]], names: Sequence[str], *, standardize: bool
) -> tuple[SiloSums, ...]:
    """The silos, from the moments of their blocks on all pairs of nodes; `names` are the nodes', for errors."""
    wholes = {silo: _merged(parts) for silo, parts in tables.items()}
    for silo, whole in wholes.items():
        check_magnitudes(whole.peak, names, silo, each=True)
        if standardize:
            check_not_constant(whole.constant(), names, silo)
    together = _deviations(list(wholes.values()), names)
    return tuple(
        _sums(parts, wholes[silo], _deviation(wholes[silo]) if standardize else together)
        for silo, parts in tables.items()
    )


def _merged(parts: Sequence[Moments]) -> Moments:
    out = parts[0].like()
    for part in parts:
        out.absorb(part)
    return out


def _deviation(whole: Moments) -> Vector:
    return np.asarray(np.sqrt(whole.squares / whole.n_samples))


def _deviations(wholes: Sequence[Moments], names: Sequence[str]) -> Vector:
    """Of each node, over all silos."""
    still = np.flatnonzero(np.all([whole.constant() for whole in wholes], axis=0))
    if still.size:
        listed = list_names([names[node] for node in still.tolist()])
        raise SignalError(f"expected nodes that vary, but what is constant in every silo is: {listed}. Drop it.")
    total = np.sum([whole.squares for whole in wholes], axis=0)
    return np.asarray(np.sqrt(total / sum(whole.n_samples for whole in wholes)))


def _sums(parts: Sequence[Moments], whole: Moments, unit: Vector) -> SiloSums:
    means = np.array([(part.mean - whole.mean) / unit for part in parts])
    counts = np.array([float(part.n_samples) for part in parts])
    spread = np.array([_matrix(part) / np.outer(unit, unit) for part in parts])
    return SiloSums(
        counts=counts,
        sums=counts[:, None] * means,
        products=spread + counts[:, None, None] * means[:, :, None] * means[:, None, :],
    )


def _matrix(part: Moments) -> Matrix:
    """The centred products as a matrix."""
    out = np.zeros((part.pairs.n_nodes,) * 2)
    out[endpoints(part.pairs.n_nodes)] = part.cross
    out += out.T
    np.fill_diagonal(out, part.squares)
    return out
