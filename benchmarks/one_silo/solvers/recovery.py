"""From the multipliers of a dual method to weights, without a temporary per pair."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.solver import Answer
from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.graph.nearest import cheapest_pair
from silograph.local.problem import LocalProblem


def recovered(problem: LocalProblem, y: Vector) -> Iterator[Answer]:
    """w(y); and, where it leaves nodes bare and would score infinity, the same with their cheapest edges added."""
    w = np.empty(problem.cost.size)
    degrees = np.zeros(y.size)
    _recover(problem.cost, problem.quadratic, y, w, degrees)
    bare = np.flatnonzero(degrees == 0)
    if bare.size:
        cost, where = cheapest_pair(problem.pairs, problem.cost)
        # The minimiser of c w + (q/2) w² − α log w, the bare node's own part of the objective
        c, q = cost[bare], problem.quadratic
        w[where[bare]] = (np.sqrt(c**2 + 4 * problem.alpha * q) - c) / (2 * q)
    yield Answer(w=w)


@kernel
def _recover(cost: Vector, quadratic: float, y: Vector, w: Vector, degrees: Vector) -> None:
    n = y.size
    e = 0
    for i in range(n):
        for j in range(i + 1, n):
            w[e] = max(y[i] + y[j] - cost[e], 0.0) / quadratic
            degrees[i] += w[e]
            degrees[j] += w[e]
            e += 1
