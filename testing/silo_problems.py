"""Several silos to test on, in every regime of the joint problem: apart, one nearly fused, most, all, nothing shared.

Vectors hold one number per pair, in the order of `numpy.triu_indices(d, 1)`. Nothing of silograph is used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np

COUPLINGS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.5)
SPARSITIES = (0.0, 0.1, 0.5, 0.9, 1.05)  # from 1 on the consensus is empty
KINDS = ("similar", "different", "outlier", "groups")
SHIFTS = {"similar": 0.02, "different": 0.15, "outlier": 0.03, "groups": 0.03}  # of a node's place, silo by silo

# (silos, nodes): on the first every coupling meets every sparsity, on each other one a few of them do
SIZES = (
    (5, 20),
    (2, 5), (3, 5), (10, 5), (50, 5),
    (2, 10), (8, 10), (20, 10),
    (2, 34), (5, 34), (20, 34), (50, 34),
    (3, 60), (10, 60),
    (2, 100), (5, 100), (20, 100),
    (2, 200), (5, 200),
)  # fmt: skip
EACH = 5
# Half of each silo's edges shuffled at random, as the paper does it, from below to beyond fusion: the hardest known
SHUFFLED_SIZES = ((2, 12), (5, 20), (20, 20), (3, 40), (6, 50), (5, 100))
SHUFFLED_COUPLINGS = (0.5, 0.8, 1.1, 1.4)

Instance = tuple[str, list[np.ndarray], dict[str, Any]]


def instances(largest: int = 200) -> Iterator[Instance]:
    """All instances of at most so many nodes: label, one cost vector per silo, keywords of the study's settings.

    They are the same whatever the largest size.
    """
    every = list(product(COUPLINGS, SPARSITIES))
    # 7 has no factor in common with 45: few steps lead through couplings and sparsities of all sizes
    some = cycle([every[7 * k % len(every)] for k in range(len(every))])
    for k, (n_silos, n_nodes) in enumerate(SIZES):
        chosen = every if k == 0 else [next(some) for _ in range(EACH)]
        for j, (coupling, sparsity) in enumerate(chosen):
            if n_nodes > largest:
                continue
            rng = np.random.default_rng([20240, k, j])
            kind = KINDS[(j + k) % len(KINDS)]
            label = f"{kind}, I={n_silos}, d={n_nodes}, coupling={coupling:g}, sparsity={sparsity:g}"
            yield label, silo_costs(rng, kind, n_silos, n_nodes), {"coupling": coupling, "sparsity": sparsity}
    for k, (n_silos, n_nodes) in enumerate(SHUFFLED_SIZES):
        for coupling in SHUFFLED_COUPLINGS if n_nodes <= largest else ():
            rng = np.random.default_rng([20241, k])
            label = f"shuffled, I={n_silos}, d={n_nodes}, coupling={coupling:g}, sparsity=0.1"
            yield label, silo_costs(rng, "shuffled", n_silos, n_nodes), {"coupling": coupling, "sparsity": 0.1}


def silo_costs(
    rng: np.random.Generator, kind: str, n_silos: int, n_nodes: int, n_samples: int | None = None
) -> list[np.ndarray]:
    """Costs z/N of all silos; without `n_samples` the silos have unequal numbers of them."""
    return [pair_costs(x) for x in silo_signals(rng, kind, n_silos, n_nodes, n_samples)]


def silo_signals(
    rng: np.random.Generator, kind: str, n_silos: int, n_nodes: int, n_samples: int | None = None
) -> list[np.ndarray]:
    """Signals, one row per sample, smooth over points of the unit square whose places differ from silo to silo.

    Silos of the kind "shuffled" share their points, but half of each one's edges are moved elsewhere.
    """
    if kind == "shuffled":
        return _shuffled_signals(rng, n_silos, n_nodes, n_samples)
    shared, other = rng.uniform(size=(2, n_nodes, 2))
    out = []
    for i in range(n_silos):
        place = shared
        if (kind == "outlier" and i == n_silos - 1) or (kind == "groups" and i % 2):
            place = other
        place = place + SHIFTS[kind] * rng.normal(size=(n_nodes, 2))
        square = ((place[:, None] - place) ** 2).sum(axis=2)
        root = np.linalg.cholesky(np.exp(-square / 0.1) + 1e-2 * np.eye(n_nodes))
        size = int(rng.integers(20, 500)) if n_samples is None else n_samples
        out.append(rng.normal(size=(size, n_nodes)) @ root.T)
    return out


def _shuffled_signals(rng: np.random.Generator, n_silos: int, n_nodes: int, n_samples: int | None) -> list[np.ndarray]:
    place = rng.uniform(size=(n_nodes, 2))
    rows, cols = np.triu_indices(n_nodes, 1)
    near = np.exp(-2 * ((place[rows] - place[cols]) ** 2).sum(axis=1))
    shared = np.where(near >= np.sort(near)[-min(3 * n_nodes, near.size)], near, 0.0)
    out = []
    for _ in range(n_silos):
        w = np.where(rng.uniform(size=shared.size) > 0.5, shared, 0.0)
        w[rng.choice(w.size, np.count_nonzero(shared) - np.count_nonzero(w), replace=False)] += 0.5
        laplacian = np.zeros((n_nodes, n_nodes))
        laplacian[rows, cols] = laplacian[cols, rows] = -w
        laplacian -= np.diag(laplacian.sum(axis=1))
        values, vectors = np.linalg.eigh(laplacian * n_nodes / np.trace(laplacian))
        root = vectors * np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
        size = int(rng.integers(20, 300)) if n_samples is None else n_samples
        out.append(rng.normal(size=(size, n_nodes)) @ root.T + 0.1 * rng.normal(size=(size, n_nodes)))
    return out


def pair_costs(signals: np.ndarray) -> np.ndarray:
    """The mean squared difference of each pair of columns."""
    moment = signals.T @ signals / len(signals)
    own = np.diag(moment)
    rows, cols = np.triu_indices(len(moment), 1)
    return np.maximum(own[rows] + own[cols] - 2 * moment[rows, cols], 0.0)
