"""Families of silos whose graphs are known, on which nothing of silograph was tuned: what the accuracy page is made of.

base       a random graph: points in a square (RBF), Erdős–Rényi, Barabási–Albert or Watts–Strogatz
consensus  seven tenths of its edges, in one random order
silo i     the consensus and as many random edges as were left out, with weights of the same law
scale      weights such that the Laplacian's trace is the number of nodes

Signals of a silo with Laplacian L, row by row:

laplacian  N(0, L† + 0.1² I), the model's own law
gaussian   N(0, (L + 0.2 I)⁻¹): every edge is a positive partial correlation, every other pair has none
signed     N(0, P⁻¹), P like L + 0.2 I but half of the off-diagonal signs turned: negative partial correlations
series     a vector-autoregressive series x_t = 0.6 x_{t−1} + e_t with e_t from N(0, (1 − 0.6²)(L + 0.2 I)⁻¹), begun
           in its stationary law: each row is as of "gaussian", but rows that follow each other are alike
null       N(0, I): no two nodes are connected
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.random import Generator, SeedSequence

from silograph._util.types import Matrix, Vector
from silograph.datasets.synthetic import make_silos
from silograph.graph.pairs import endpoints

Base = Literal["rbf", "er", "ba", "ws", "none"]
Law = Literal["laplacian", "gaussian", "signed", "series", "null"]
SHARED, NOISE, RIDGE, MEMORY = 0.7, 0.1, 0.2, 0.6
PINV_CUT = 1e-10  # of the largest eigenvalue: zero is rounded to up to 1e-15 of it, the default cut
LIGHTEST, HEAVIEST = 0.5, 1.5  # weights before scaling
NEIGHBOURS = 5  # of an Erdős–Rényi graph, in the mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One law of graphs and signals."""

    name: str
    says: str
    base: Base = "er"
    law: Law = "laplacian"
    n_nodes: int = 20
    n_samples: tuple[int, ...] = (20, 40, 60, 80, 100)
    outliers: int = 0  # of the last silos, how many share nothing
    as_demo: bool = False  # the draws of examples/silos.py

    @property
    def label(self) -> str:
        """Name and size."""
        return f"{self.name}, d = {self.n_nodes}"

    @property
    def has_negative(self) -> bool:
        """Whether there are negative partial correlations, which no graph of weights ≥ 0 can show."""
        return self.law == "signed"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Signals, and what is true: matrices of weights ≥ 0, of "signed" their sizes."""

    signals: tuple[Matrix, ...]
    graphs: tuple[Matrix, ...]
    consensus: Matrix


def families(n_nodes: int) -> tuple[Family, ...]:
    """All families, at this number of nodes; samples grow with it."""
    d = n_nodes
    even, wide = tuple(d * k for k in (1, 2, 3, 4, 5)), tuple(d * k // 2 for k in (2, 3, 6, 11, 20))
    er = "Erdős–Rényi, 5 neighbours"
    kinds: tuple[tuple[str, str, Base, Law], ...] = (
        ("RBF", "points in the unit square, as in the paper", "rbf", "laplacian"),
        ("Erdős–Rényi", er, "er", "laplacian"),
        ("Barabási–Albert", "2 edges per new node", "ba", "laplacian"),
        ("Watts–Strogatz", "a ring of 4 neighbours, a fifth rewired", "ws", "laplacian"),
        ("Gaussian", er, "er", "gaussian"),
        ("Gaussian, signed", f"{er}; half of the partial correlations negative", "er", "signed"),
        ("Series", er, "er", "series"),
    )
    out = [Family(name=n, says=s, base=b, law=law, n_nodes=d, n_samples=even) for n, s, b, law in kinds]
    out.append(Family(name="Unequal N", says=f"{er}; N tenfold apart", n_nodes=d, n_samples=wide))
    out.append(Family(name="Outlier", says=f"{er}; one silo unrelated", n_nodes=d, n_samples=(3 * d,) * 5, outliers=1))
    return tuple(out)


DEMO = Family(name="Demo", says="the draws of `make demo`", base="rbf", as_demo=True)


def null(n_nodes: int) -> Family:
    """Independent nodes: every edge is false."""
    sizes = tuple(n_nodes * k for k in (1, 2, 3, 4, 5))
    return Family(name="Null", says="independent nodes", base="none", law="null", n_nodes=n_nodes, n_samples=sizes)


def draw(family: Family, seed: int) -> Drawn:
    """Graphs and signals; other seeds, sizes and families have nothing in common."""
    d, entropy = family.n_nodes, [seed, family.n_nodes, crc32(family.name.encode())]
    if family.base == "rbf":
        drawn = make_silos(
            n_samples=family.n_samples,
            n_silos=len(family.n_samples),
            shared=SHARED,
            n_nodes=d,
            noise=NOISE,
            seed=seed if family.as_demo else entropy,
        )
        graphs = tuple(graph.adjacency() for graph in drawn.graphs.values())
        return Drawn(signals=tuple(drawn.signals.values()), graphs=graphs, consensus=drawn.consensus.adjacency())
    first, *streams = (np.random.default_rng(child) for child in SeedSequence(entropy).spawn(1 + len(family.n_samples)))
    edges = first.permutation(_base_edges(family.base, d, first))
    kept, weights = edges[: round(SHARED * edges.size)], np.zeros(d * (d - 1) // 2)
    weights[edges] = first.uniform(LIGHTEST, HEAVIEST, size=edges.size)
    signs = first.choice([-1.0, 1.0], size=weights.size) if family.has_negative else np.ones(weights.size)
    truths, signals = [], []
    for number, (n_samples, rng) in enumerate(zip(family.n_samples, streams, strict=True)):
        is_outlier = number >= len(streams) - family.outliers
        w = _with_added(kept[:0] if is_outlier else kept, weights, edges.size, rng)
        truths.append(square(w, d))
        signals.append(_signals(covariance(family.law, square(w * signs, d)), family.law, n_samples, rng))
    shared = np.zeros_like(weights)
    shared[kept] = weights[kept]
    return Drawn(signals=tuple(signals), graphs=tuple(truths), consensus=square(shared, d))


def _base_edges(base: Base, d: int, rng: Generator) -> np.ndarray:
    """The base graph's pairs; networkx draws it."""
    import networkx as nx

    if base == "none":
        return np.empty(0, dtype=np.intp)
    seed = int(rng.integers(2**31))
    if base == "er":
        graph = nx.gnp_random_graph(d, NEIGHBOURS / (d - 1), seed=seed)
    else:
        graph = nx.barabasi_albert_graph(d, 2, seed=seed) if base == "ba" else nx.watts_strogatz_graph(d, 4, 0.2, seed)
    return np.flatnonzero(nx.to_numpy_array(graph)[endpoints(d)] > 0)


def _with_added(kept: np.ndarray, weights: Vector, n_edges: int, rng: Generator) -> Vector:
    """The kept edges and as many others anywhere as make up the number."""
    w = np.zeros_like(weights)
    w[kept] = weights[kept]
    added = rng.choice(np.flatnonzero(w == 0), size=n_edges - kept.size, replace=False)
    w[added] = rng.uniform(LIGHTEST, HEAVIEST, size=added.size)
    return w


def square(w: Vector, d: int) -> Matrix:
    """A symmetric matrix of the pairs' numbers, scaled to a trace d of the Laplacian of their sizes."""
    out: Matrix = np.zeros((d, d))
    total = np.abs(w).sum()
    out[endpoints(d)] = w * (d / (2 * total)) if total else w
    return out + out.T


def covariance(law: Law, adjacency: Matrix) -> Matrix:
    """Of one row; the adjacency of "signed" has signs."""
    eye = np.eye(len(adjacency))
    laplacian = np.diag(np.abs(adjacency).sum(axis=0)) - adjacency
    if law == "null":
        return eye
    return np.asarray(
        np.linalg.pinv(laplacian, rcond=PINV_CUT, hermitian=True) + NOISE**2 * eye
        if law == "laplacian"
        else np.linalg.inv(laplacian + RIDGE * eye)
    )


def _signals(of_row: Matrix, law: Law, n_samples: int, rng: Generator) -> Matrix:
    values, vectors = np.linalg.eigh(of_row)
    root = (vectors * np.sqrt(values)) @ vectors.T  # symmetric: whatever the eigenvectors' signs
    rows: Matrix = rng.normal(size=(n_samples, len(of_row))) @ root
    return _remembering(rows) if law == "series" else rows


def _remembering(rows: Sequence[Vector] | Matrix) -> Matrix:
    """The autoregressive series whose innovations are these rows, scaled to leave their law as it is."""
    out = np.array(rows)
    for now in range(1, len(out)):
        out[now] = MEMORY * out[now - 1] + np.sqrt(1 - MEMORY**2) * out[now]
    return out
