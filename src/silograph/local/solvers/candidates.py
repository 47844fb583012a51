"""Many nodes, exactly: solve on candidate pairs, test all the others, add what was missed, repeat.

A pair left out is rightly left out when y_i + y_j ≤ c_ij. The loop ends when this holds for every pair left out: then
the answer, with zeros there, is one to all pairs, and its duality gap is the whole problem's. So the candidates decide
how fast the answer comes and never which.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.graph.nearest import cheapest_pair, nearest_neighbours
from silograph.graph.pairs import Pairs, condensed_index
from silograph.local.problem import LocalProblem
from silograph.local.solvers.dual import active_pairs
from silograph.local.solvers.solution import Solution, certify

TOO_MANY = 0.25  # share of all pairs beyond which candidates gain nothing; 0.08 is the same on all benchmarks
MARGIN = 1.05  # enlarges a similar problem's multipliers, to foresee edges; without, one more step; 1.15 is the same

Solver = Callable[[LocalProblem, Vector | None], Solution]


class AllCosts(Protocol):
    """The costs of all pairs, stored or not."""

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        ...

    def at(self, rows: IntVector, cols: IntVector, /) -> Vector:
        """The costs of some pairs."""
        ...

    def nearest(self, k: int, /) -> np.ndarray:
        """The k cheapest neighbours of each node, (nodes, k)."""
        ...

    def active(self, y: Vector, /) -> tuple[IntVector, IntVector]:
        """The pairs (rows, cols) with y_i + y_j > c_ij."""
        ...


class Attempt(Protocol):
    """An answer on some of the pairs."""

    @property
    def y(self) -> Vector:
        """One multiplier per node."""
        ...


A = TypeVar("A", bound=Attempt)


def complete(
    costs: AllCosts, candidates: Pairs, attempt: Callable[[Pairs, Vector, A | None], A], *, most: float = np.inf
) -> tuple[A, Pairs] | None:
    """The answer on so many candidates that no other pair is called for, and these; None if they exceed `most`.

    `attempt` is given candidates, their costs and the attempt before.
    """
    found: A | None = None
    while candidates.size <= most:
        found = attempt(candidates, costs.at(candidates.rows, candidates.cols), found)
        likely = candidates.lacking(*costs.active(MARGIN * found.y))
        if not (likely.sums(found.y) > costs.at(likely.rows, likely.cols)).any():
            return found, candidates
        candidates = candidates.union(likely.rows, likely.cols)
    return None


def cheapest_pairs(costs: AllCosts, neighbours: int) -> Pairs:
    """Each node's cheapest pairs."""
    neighbour = costs.nearest(min(neighbours, costs.n_nodes - 1))
    node = np.repeat(np.arange(costs.n_nodes), neighbour.shape[1])
    return Pairs.listed(costs.n_nodes, np.column_stack([node, neighbour.ravel()]))


@dataclass(frozen=True, slots=True)
class StoredCosts:
    """The costs of an all-pairs problem."""

    problem: LocalProblem

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.problem.n_nodes

    def at(self, rows: IntVector, cols: IntVector) -> Vector:
        """The costs of some pairs."""
        cost: Vector = self.problem.cost[condensed_index(self.n_nodes, rows, cols)]
        return cost

    def nearest(self, k: int) -> np.ndarray:
        """The k cheapest neighbours of each node."""
        return nearest_neighbours(self.problem.pairs, self.problem.cost, k)[1]

    def active(self, y: Vector) -> tuple[IntVector, IntVector]:
        """The pairs with y_i + y_j > c_ij."""
        return active_pairs(self.problem, y)


def solve(
    problem: LocalProblem, solver: Solver, *, start: Vector | None, neighbours: int, tol: float
) -> Solution | None:
    """Solve an all-pairs problem by way of candidate pairs; None when its graph is too dense for that to pay.

    The first candidates are each node's `neighbours` cheapest pairs; after a similar problem, whose multipliers are
    `start`, the pairs that these nearly call for.
    """

    def attempt(pairs: Pairs, cost: Vector, before: Solution | None) -> Solution:
        partial = solver(problem.restricted(pairs, cost), start if before is None else before.y)
        return partial if before is None else replace(partial, n_iter=before.n_iter + partial.n_iter)

    costs = StoredCosts(problem)
    candidates = cheapest_pairs(costs, neighbours) if start is None else _likely_pairs(problem, start)
    done = complete(costs, candidates, attempt, most=TOO_MANY * problem.pairs.size)
    if done is None or not done[0].converged:  # too dense, or hard even on few pairs
        return None
    found, pairs = done
    w = np.zeros(problem.pairs.size)
    w[condensed_index(problem.n_nodes, pairs.rows, pairs.cols)] = found.w
    gap = found.gap + problem.rounding(found.y)
    return certify(problem, w, found.y, primal=found.primal, gap=gap, n_iter=found.n_iter, tol=tol)


def _likely_pairs(problem: LocalProblem, y: Vector) -> Pairs:
    pairs = Pairs.from_sorted(problem.n_nodes, *active_pairs(problem, MARGIN * y))
    bare = pairs.isolated()
    if bare.size == 0:
        return pairs
    _, where = cheapest_pair(problem.pairs, problem.cost)
    return pairs.union(*problem.pairs.at(where[bare]))
