"""A mean degree instead of α and β.

With z' = c/2 sorted per node and B_k the sum of its first k, a node alone has exactly k neighbours iff (Kalofolias and
Perraudin 2019)

    1/√(k z'²_{k+1} − B_k z'_{k+1})  <  θ  ≤  1/√(k z'²_k − B_k z'_k)

and α = 1/θ, β = 1/(2θ) is the problem with that θ and weights of order one. Nodes are not alone, so the rule is only
the first guess: θ is then corrected by a few warm-started solves until the graph has the degree asked for. As θ scales
with 1/c, the graph does not depend on the units of the data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.checks import check_positive
from silograph._util.types import Vector
from silograph.errors import ParameterError
from silograph.graph.nearest import nearest_neighbours
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.solution import Solution

# Measured on tests/problems.py: 90 searches on ordinary data, and 84 on data of seven kinds, most of them hostile
DEGREE_TOL = 0.01  # relative; ordinary searches take 3.3 solves, 4.7 at 0.003, 2.4 at 0.03
DEGREE_PROMISE = 0.02  # relative; enough where ties forbid better: 18 of the 84 miss it, 19 would at 0.01
LOG_THETA_REACH = 20.0  # how far from the rule's log θ to look; at 7 one more of the 84 misses, at 60 none less
MAX_DEGREE_SOLVES = 60  # at most 48 were taken, at a tie; 20 would find the same degrees

Solver = Callable[[LocalProblem, Vector | None], Solution]  # problem, warm start


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DegreeResult:
    """The problem whose graph has the degree asked for, or the nearest degree to be had, and its solution."""

    problem: LocalProblem
    solution: Solution
    degree: float
    reached: bool
    n_solves: int


def default_degree(pairs: Pairs) -> float:
    """The degree taken when none is asked for: 5, or 3 up to 15 nodes, and never over half of what is possible."""
    return min(3.0 if pairs.n_nodes <= 15 else 5.0, max(1.0, pairs.size / pairs.n_nodes))


def check_degree(degree: float, pairs: Pairs) -> None:
    """Raise when no graph on these pairs can have this mean degree."""
    check_positive("degree", degree)
    if degree >= pairs.n_nodes:
        raise ParameterError(
            f"degree: expected less than the number of nodes ({pairs.n_nodes}), got {degree:g}. "
            f"A node has at most {pairs.n_nodes - 1} neighbours."
        )
    if degree < 1:
        raise ParameterError(f"degree: expected at least 1, got {degree:g}. Every node has an edge in this model.")
    most = 2 * pairs.size / pairs.n_nodes
    if degree > most:
        raise ParameterError(
            f"degree: expected at most {most:g}, the mean degree if every allowed pair were an edge, got {degree:g}. "
            "Ask for less, or allow more pairs."
        )


def mean_degree(problem: LocalProblem, w: Vector) -> float:
    """The mean number of neighbours."""
    return 2 * int(np.count_nonzero(w)) / problem.n_nodes


def problem_at(theta: float, cost: Vector, pairs: Pairs, zeta: float) -> LocalProblem:
    """The problem with α = 1/θ and β = 1/(2θ)."""
    return LocalProblem(cost=cost, pairs=pairs, quadratic=2 / theta, alpha=1 / theta, zeta=zeta)


def first_theta(cost: Vector, pairs: Pairs, degree: float) -> float:
    """The rule's θ for a mean degree; between two whole degrees, their geometric interpolation."""
    low = int(np.floor(degree))
    share = degree - low
    theta = _theta_of_whole_degree(cost, pairs, low)
    if share > 0:
        theta = theta ** (1 - share) * _theta_of_whole_degree(cost, pairs, low + 1) ** share
    return theta


def _theta_of_whole_degree(cost: Vector, pairs: Pairs, k: int) -> float:
    unit = float(np.mean(np.abs(cost))) / 2
    if unit == 0:  # all nodes alike: the graph is the same for every θ
        return 1.0
    nearest, _ = nearest_neighbours(pairs, cost, k + 1)
    nearest = nearest[np.isfinite(nearest[:, k])] / (2 * unit)  # the nodes that can have more than k neighbours
    total = nearest[:, :k].sum(axis=1)
    lower, upper = (_typical_bound(k * z**2 - total * z) for z in (nearest[:, k], nearest[:, k - 1]))
    if np.isfinite(lower):
        theta = np.sqrt(lower * upper) if np.isfinite(upper) else 1.1 * lower
        return float(theta) / unit
    return 1 / unit  # neighbours that cost alike, or every pair wanted: the unit is all the rule can tell


def _typical_bound(square: Vector) -> float:
    """The median of 1/√square; a mean would belong to the few nodes with a near-duplicate."""
    square = square[square > 0]
    return float(np.median(1 / np.sqrt(square))) if square.size else np.inf


def find_theta(
    cost: Vector,
    pairs: Pairs,
    degree: float,
    *,
    zeta: float,
    solver: Solver,
    start: Vector | None,
    theta: float | None = None,
) -> DegreeResult:
    """Find θ such that the learned graph has the mean degree asked for, within 1 %; begin at `theta`, or by the rule.

    Where ties between costs make the degree jump over the target, the nearest degree met is returned, not `reached`.
    """
    search = DegreeSearch(float(np.log(first_theta(cost, pairs, degree) if theta is None else theta)))
    best: DegreeResult | None = None
    for n_solves in range(1, MAX_DEGREE_SOLVES + 1):
        problem = problem_at(float(np.exp(search.log_theta)), cost, pairs, zeta)
        solution = solver(problem, start)
        got = mean_degree(problem, solution.w)
        if best is None or abs(got - degree) < abs(best.degree - degree):
            best = DegreeResult(problem=problem, solution=solution, degree=got, reached=False, n_solves=n_solves)
        # Edges are whole: half an edge off is as near as any graph can be
        if abs(got - degree) <= max(DEGREE_TOL * degree, (1 + 1e-9) / pairs.n_nodes):
            return replace(best, reached=True)
        start = solution.y
        # With ζ > 0 there may be no edge at all; any degree below the smallest one stands for that
        if not search.advance(float(np.log(max(got, 1 / pairs.n_nodes) / degree))):
            break
    assert best is not None
    return replace(best, n_solves=n_solves, reached=abs(best.degree - degree) <= DEGREE_PROMISE * degree)


@dataclass(slots=True)
class DegreeSearch:
    """Where to look next for log θ, at which the excess of log degree over its target changes sign."""

    log_theta: float
    first: float | None = None  # where the search began
    low: Sequence[float] | None = None  # log θ and excess where there were too many neighbours
    high: Sequence[float] | None = None  # and where there were too few
    stride: float = 1.0
    last: float = 0.0  # the length of the last stride
    bisect: bool = False

    def advance(self, excess: float) -> bool:
        """Take note of the excess at the present log θ and move on; False when there is nowhere left to look."""
        self.first = self.log_theta if self.first is None else self.first
        # A wide stride changed nothing: no θ will
        stuck = self.last > 3.0 and excess in (self.low or self.high or ())
        if excess > 0:
            self.low = (self.log_theta, excess)
        else:
            self.high = (self.log_theta, excess)
        if self.low is None or self.high is None:
            self.last = max(min(abs(excess), 1.0), 0.05) * self.stride
            self.log_theta += float(np.sign(excess)) * self.last
            self.stride *= 2
            return not stuck and abs(self.log_theta - self.first) < LOG_THETA_REACH
        low, high = self.low, self.high
        width = high[0] - low[0]
        # Secant between the two ends, kept off them; every other time the middle, as the degree is a step function
        share = 0.5 if self.bisect else min(max(low[1] / (low[1] - high[1]), 0.1), 0.9)
        self.bisect = not self.bisect
        self.log_theta = low[0] + share * width
        return abs(width) > 1e-12
