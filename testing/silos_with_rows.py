"""Silos that have their rows in blocks, as they are read for what holds rows out or halves them."""

import numpy as np

from silograph.data.blocks import moments_of_blocks
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.graph.pairs import Pairs, default_names
from silograph.protocol.silo import Silo


def silo_with_rows(name: str, X: np.ndarray) -> Silo:
    """A silo of a table (samples, nodes)."""
    pairs = Pairs.all(X.shape[1])
    whole, parts = moments_of(X, pairs), moments_of_blocks(X, pairs)
    read = table_costs(whole, parts, standardize=False, names=default_names(X.shape[1]), source=name)
    return Silo(name=name, pairs=pairs, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks)


def related_silos(
    seed: int = 0, *, n: int = 3, n_nodes: int = 8, n_samples: int = 60, differ: float = 0.4
) -> list[Silo]:
    """Silos whose signals are mixed alike, but for a part of their own."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(n_nodes, n_nodes))
    tables = [
        rng.normal(size=(n_samples, n_nodes)) @ (mix + differ * rng.normal(size=(n_nodes, n_nodes))) for _ in range(n)
    ]
    return [silo_with_rows(f"silo {i}", X) for i, X in enumerate(tables)]
