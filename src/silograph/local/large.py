"""A graph of many nodes: learned on candidate pairs, certified over all pairs, whose costs nobody stores.

Degree search and solves see candidates only, at first each node's nearest neighbours. Then all pairs are tested, those
that are called for, or nearly, join the candidates, and it goes on from there until none is missing.
"""

from dataclasses import replace
from math import ceil

from silograph._util.types import Vector
from silograph.graph.pairs import Pairs
from silograph.local.degree import check_degree
from silograph.local.learn import LearnResult, Settings, learn
from silograph.local.solvers.candidates import AllCosts, cheapest_pairs, complete
from silograph.local.solvers.exact import NEIGHBOURS
from silograph.local.solvers.solution import certify

LARGE = 10_000  # nodes, from which on costs are not stored: 400 MB of them, and as much for each copy on the way


def stores_no_costs(pairs: Pairs, settings: Settings) -> bool:
    """Whether a problem is solved so: it is large, all pairs are allowed, and candidates are not ruled out."""
    return pairs.is_all and pairs.n_nodes >= LARGE and settings.solver == "newton" and settings.neighbours != 0


def learn_large(costs: AllCosts, settings: Settings) -> LearnResult:
    """Learn the graph of one silo; the result's pairs are the candidates, all others having no edge."""
    every = Pairs.all(costs.n_nodes)
    neighbours = settings.neighbours or NEIGHBOURS
    if settings.degree is not None:
        check_degree(settings.degree, every)
        neighbours = max(neighbours, ceil(settings.degree) + 1)  # which the degree rule looks at

    def attempt(pairs: Pairs, cost: Vector, before: LearnResult | None) -> LearnResult:
        if before is None:
            return learn(cost, pairs, settings)
        after = learn(cost, pairs, settings, start=before.y, theta=1 / before.alpha)
        return replace(after, n_solves=before.n_solves + after.n_solves)

    done = complete(costs, cheapest_pairs(costs, neighbours), attempt)
    assert done is not None  # without a limit on candidates
    learned, _ = done
    problem, solution = learned.problem, learned.solution
    certified = certify(
        problem,
        solution.w,
        solution.y,
        primal=solution.primal,
        gap=solution.gap + problem.rounding(solution.y, n_pairs=every.size),
        n_iter=solution.n_iter,
        tol=settings.tol,
    )
    return replace(learned, solution=certified, whole=False)
