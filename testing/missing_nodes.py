"""Silos that lack nodes, their graphs on all pairs of the study, and the joint model by an independent solver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from silograph.graph.pairs import Pairs
from silograph.protocol.silo import Silo

Nodes = np.ndarray | None


def some_nodes(rng: np.random.Generator, n_silos: int, n_nodes: int, *, silos: float = 0.2, nodes: float = 0.1):
    """By silo the nodes that it has: a part of the silos (one at least) lacks a part of the nodes (one at least)."""
    lacking = rng.choice(n_silos, max(1, round(silos * n_silos)), replace=False)
    fewer = n_nodes - max(1, round(nodes * n_nodes))
    had: list[Nodes] = [None] * n_silos
    for silo in lacking:
        had[silo] = np.sort(rng.choice(n_nodes, fewer, replace=False)).astype(np.int32)
    return had


def silos_with(costs: Sequence[np.ndarray], nodes: Sequence[Nodes], pairs: Pairs | None = None) -> list[Silo]:
    """Silos on some nodes each, from costs on all pairs."""
    pairs = Pairs.all(round((1 + np.sqrt(1 + 8 * costs[0].size)) / 2)) if pairs is None else pairs
    return [
        Silo.on(pairs, had, name=f"silo {i}", cost=cost if had is None else cost[pairs.within(had)[1]])
        for i, (cost, had) in enumerate(zip(costs, nodes, strict=True))
    ]


def incidence(pairs: Pairs) -> np.ndarray:
    matrix = np.zeros((pairs.n_nodes, pairs.size))
    matrix[pairs.rows, np.arange(pairs.size)] = matrix[pairs.cols, np.arange(pairs.size)] = 1
    return matrix


def joint_optimum(silos: Sequence[Silo], *, alpha: float, beta: float, rho: float, lam: float):
    """The least value of the model with missing nodes, u, and each silo's w on its own pairs."""
    import cvxpy as cp

    from testing.judge import minimum

    u = cp.Variable(silos[0].study_pairs.size, nonneg=True)
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    total, found = (lam * count / len(silos)) @ u, []
    for silo in silos:
        w = cp.Variable(silo.pairs.size, nonneg=True)
        total += silo.cost @ w + 2 * beta * cp.sum_squares(w) - alpha * cp.sum(cp.log(incidence(silo.pairs) @ w))
        total += rho * cp.norm(w - (u if silo.place is None else u[silo.place]))
        found.append(w)
    value = minimum(total, tight=True)
    return value, np.where(count > 0, np.maximum(u.value, 0.0), 0.0), [np.maximum(w.value, 0.0) for w in found]


def objective(study, silos: Sequence[Silo]) -> float:
    """The joint objective of a study's graphs, from its definition."""
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    total = float(study.lam * count / len(silos) @ study.consensus)
    for silo in silos:
        w, u = silo.take(study.graphs[silo.name]), silo.take(study.consensus)
        problem = silo.problem(alpha=study.alpha, beta=study.beta, zeta=0.0)
        total += problem.value(w) + study.rho * float(np.linalg.norm(w - u))
    return total
