"""Each silo's covariance, shrunk towards what all silos share, and that towards the identity.

    shared   T = (1 − ρ) Σ N_i S_i / Σ N_i + ρ I
    silo i   A_i = (N_i S_i + ν_i T) / (N_i + ν_i)

S_i is a silo's covariance, and ν_i is what T is worth in rows. So few rows lean on the other silos more than many do,
and with fewer rows than nodes A_i can still be inverted. ρ, and then ν_i, are those under which rows that were held
out, block after block, are likeliest. A silo's own rows are a noisy guide to its ν_i, and those of all silos are blind
to one that differs: its own likelihood and the silos' mean count alike.

One eigendecomposition per silo and block serves every ν: with T = L Lᵀ and L⁻¹ S L⁻ᵀ = V Λ Vᵀ, L⁻¹ A L⁻ᵀ has the
eigenvectors V, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.analysis.partial.sums import Known, SiloSums, pooled

RIDGES = (1e-4, 3e-4, 0.001, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
STRENGTHS = (np.inf, *(2.0**power for power in range(6, -4, -1)))  # ν, in numbers of nodes; from the strongest on
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shrinkage:
    """What was chosen."""

    ridge: float  # ρ
    strengths: Vector  # (silos,): ν, in rows
    log_likelihood: Vector  # (silos,): of a row that was held out, in the mean, in units of each node's deviation

    def shared(self, silos: Sequence[Known]) -> Matrix:
        """T."""
        return _ridged(pooled(silos), self.ridge)

    def parts(self, silos: Sequence[Known]) -> Vector:
        """How much of each silo's covariance is T."""
        return np.array([_part(strength, silo) for strength, silo in zip(self.strengths, silos, strict=True)])

    def own(self, silos: Sequence[Known]) -> Iterator[Matrix]:
        """A_i, one after the other."""
        shared = self.shared(silos)
        for part, silo in zip(self.parts(silos), silos, strict=True):
            yield (1 - part) * silo.covariance + part * shared


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """All silos without a block of each, and that block of each; a silo with fewer blocks loses none."""

    silos: tuple[Known, ...]
    held_out: tuple[tuple[float, Matrix] | None, ...]  # by silo: rows, and Σ (x − mean)(x − mean)ᵀ


def folds_of(silos: Sequence[SiloSums]) -> Iterator[Fold]:
    """Block after block."""
    for block in range(max(silo.n_blocks for silo in silos)):
        known = tuple(silo.without(block) if block < silo.n_blocks else silo.whole() for silo in silos)
        held_out = tuple(
            (float(silo.counts[block]), silo.beyond(block, left.mean)) if block < silo.n_blocks else None
            for silo, left in zip(silos, known, strict=True)
        )
        yield Fold(silos=known, held_out=held_out)


def choose(silos: Sequence[SiloSums]) -> Shrinkage:
    """ρ by the likelihood under what is shared alone, then each silo's ν."""
    ridge = RIDGES[int(np.argmax(sum(_along_ridges(fold) for fold in folds_of(silos))))]
    rows = np.array([silo.n_samples for silo in silos])
    found: Matrix = np.sum([_along_strengths(fold, ridge) for fold in folds_of(silos)], axis=0)
    best = np.argmax(found + found.mean(axis=0), axis=1)
    if len(silos) == 1:
        best[:] = 0  # it is what is shared
    return Shrinkage(
        ridge=ridge,
        strengths=np.array(STRENGTHS)[best] * silos[0].sums.shape[1],
        log_likelihood=found[np.arange(len(silos)), best] / rows,
    )


def _along_ridges(fold: Fold) -> Vector:
    """The likelihood of all silos' held-out rows, one number per ρ."""
    values, vectors = np.linalg.eigh(pooled(fold.silos))
    held_out = [one for one in fold.held_out if one is not None]
    total = np.sum([products for _, products in held_out], axis=0)
    spread = _seen_from(vectors, total)
    return np.array([_likelihood(sum(n for n, _ in held_out), (1 - r) * values + r, spread) for r in RIDGES])


def _along_strengths(fold: Fold, ridge: float) -> Matrix:
    """(silos, strengths)"""
    values, vectors = np.linalg.eigh(_ridged(pooled(fold.silos), ridge))
    whiten, log_det = (vectors / np.sqrt(values)).T, float(np.log(values).sum())  # L = V √Λ
    out = np.zeros((len(fold.silos), len(STRENGTHS)))
    for row, silo, held_out in zip(out, fold.silos, fold.held_out, strict=True):
        if held_out is None:
            continue
        n_rows, products = held_out
        values, vectors = np.linalg.eigh(_whitened(whiten, silo.covariance))
        values, spread = np.maximum(values, 0.0), _seen_from(vectors, _whitened(whiten, products))
        base = 0.5 * n_rows * log_det
        for place, strength in enumerate(STRENGTHS):
            part = _part(strength * len(values), silo)
            row[place] = _likelihood(n_rows, (1 - part) * values + part, spread) - base
    return out


def _likelihood(n_rows: float, variances: Vector, spread: Vector) -> float:
    """Of rows whose squares along the eigenvectors add up to `spread`."""
    return -0.5 * float(n_rows * (np.log(variances).sum() + LOG_2PI * variances.size) + (spread / variances).sum())


def _seen_from(vectors: Matrix, products: Matrix) -> Vector:
    return np.asarray(((vectors.T @ products) * vectors.T).sum(axis=1))


def _whitened(whiten: Matrix, matrix: Matrix) -> Matrix:
    """L⁻¹ M L⁻ᵀ."""
    out: Matrix = whiten @ matrix @ whiten.T
    return (out + out.T) / 2


def _ridged(matrix: Matrix, ridge: float) -> Matrix:
    return (1 - ridge) * matrix + ridge * np.eye(len(matrix))


def _part(strength: float, silo: Known) -> float:
    return 1.0 if np.isinf(strength) else strength / (strength + silo.n_samples)
