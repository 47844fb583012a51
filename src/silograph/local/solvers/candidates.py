"""Many nodes, exactly: solve on candidate pairs, test all the others, add what was missed, repeat.

A pair left out is rightly left out when y_i + y_j ≤ c_ij. The loop ends by the duality gap of the *whole* problem,
whose weights w(y) are taken over all pairs, so the candidates decide how fast the answer comes and never which.
"""

from collections.abc import Callable

import numpy as np

from silograph._util.types import Vector
from silograph.graph.nearest import cheapest_pair, nearest_neighbours
from silograph.graph.pairs import Pairs, condensed_index
from silograph.local.problem import LocalProblem
from silograph.local.solvers.dual import active_pairs, gap_at, weights_at
from silograph.local.solvers.solution import Solution, certify

TOO_MANY = 0.25  # share of all pairs beyond which candidates gain nothing; 0.08 is the same on all benchmarks
MARGIN = 1.05  # enlarges a similar problem's multipliers, to foresee edges; without, one more step; 1.15 is the same

Solver = Callable[[LocalProblem, Vector | None], Solution]


def solve(
    problem: LocalProblem, solver: Solver, *, start: Vector | None, neighbours: int, tol: float
) -> Solution | None:
    """Solve an all-pairs problem by way of candidate pairs; None when its graph is too dense for that to pay.

    The first candidates are each node's `neighbours` cheapest pairs; after a similar problem, whose multipliers are
    `start`, the pairs that these nearly call for.
    """
    candidates = _cheapest_pairs(problem, neighbours) if start is None else _likely_pairs(problem, start)
    n_iter = 0
    while candidates.size <= TOO_MANY * problem.pairs.size:
        cost = problem.cost[condensed_index(problem.n_nodes, candidates.rows, candidates.cols)]
        partial = solver(problem.restricted(candidates, cost), start)
        n_iter += partial.n_iter
        start = partial.y
        gap = gap_at(problem, start)
        if gap <= tol * problem.scale(partial.primal):
            w = weights_at(problem, start)
            return certify(problem, w, start, primal=problem.value(w), gap=gap, n_iter=n_iter, tol=tol)
        missed = candidates.union(*active_pairs(problem, start))
        if missed.size == candidates.size:  # nothing was left out: it is the partial problem that is not solved
            return None
        candidates = missed
    return None


def _cheapest_pairs(problem: LocalProblem, neighbours: int) -> Pairs:
    _, neighbour = nearest_neighbours(problem.pairs, problem.cost, min(neighbours, problem.n_nodes - 1))
    node = np.repeat(np.arange(problem.n_nodes), neighbour.shape[1])
    return Pairs.listed(problem.n_nodes, np.column_stack([node, neighbour.ravel()]))


def _likely_pairs(problem: LocalProblem, y: Vector) -> Pairs:
    pairs = Pairs.from_sorted(problem.n_nodes, *active_pairs(problem, MARGIN * y))
    bare = pairs.isolated()
    if bare.size == 0:
        return pairs
    _, where = cheapest_pair(problem.pairs, problem.cost)
    return pairs.union(*problem.pairs.at(where[bare]))
