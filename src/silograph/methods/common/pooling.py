"""The pooled problem: one graph from the mean costs of all silos, which takes sums alone.

    minimise   Σ_e (c̄_e + λ/I) u_e + (q/2)‖u‖² − α Σ_v log((Su)_v + ζ)        c̄_e = Σ γ_i c_ie / Σ γ_i

Both sums at a pair are over the silos that have it. Where all have all nodes and γ = 1, this is the optimum of
Σ g_i(u) + λ1ᵀu. Where some lack nodes it is a definition, and not that optimum: a silo's logarithms would have each of
its nodes joined to another of its own, which pooled data, looked at together, do not ask for. A pair that no silo has
is no edge.
"""

from dataclasses import dataclass

import numpy as np

from silograph._util.checks import list_names
from silograph._util.types import IntVector, Vector
from silograph.errors import ProtocolError, SilosError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.protocol.messages import Total
from silograph.protocol.method import Cohort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostSum:
    """Sums over silos, on the pairs that some silo has."""

    pairs: Pairs
    cost: Vector  # Σ γ_i c_i
    weight: float | Vector  # Σ γ_i; one number where every silo has every pair
    place: IntVector | None = None  # where the pairs stand among the study's; None: they are the same
    n_pairs: int  # of the study

    @classmethod
    def of(cls, pairs: Pairs, cost: Vector, weight: float | Vector) -> "CostSum":
        """From sums on the study's pairs."""
        if not isinstance(weight, np.ndarray) or weight.all():
            return cls(pairs=pairs, cost=cost, weight=weight, n_pairs=pairs.size)
        place = np.flatnonzero(weight).astype(np.int32)
        had = Pairs.from_sorted(pairs.n_nodes, *pairs.at(place))
        return cls(pairs=had, cost=cost[place], weight=weight[place], place=place, n_pairs=pairs.size)

    @property
    def mean(self) -> Vector:
        """c̄, the mean costs."""
        mean: Vector = self.cost / self.weight
        return mean

    def problem(self, *, alpha: float, beta: float, zeta: float, shift: float) -> LocalProblem:
        """The pooled problem; `shift` is λ/I."""
        return LocalProblem(cost=self.mean + shift, pairs=self.pairs, quadratic=4 * beta, alpha=alpha, zeta=zeta)

    def spread(self, w: Vector) -> Vector:
        """The same on the study's pairs, zero on those that no silo has."""
        if self.place is None:
            return w
        full = np.zeros(self.n_pairs)
        full[self.place] = w
        return full

    def solve(self, *, alpha: float, beta: float, zeta: float, shift: float) -> "PooledOptimum":
        """The pooled graph, as exact as rounding allows."""
        problem = self.problem(alpha=alpha, beta=beta, zeta=zeta, shift=shift)
        solution = solve_to_rounding(problem, None)
        gap = solution.gap / problem.scale(solution.primal)
        return PooledOptimum(u=self.spread(solution.w), value=solution.primal, gap=gap)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledOptimum:
    """The pooled graph and its certificate."""

    u: Vector  # on the study's pairs
    value: float
    gap: float  # relative


def mean_over(total: Vector, count: Vector) -> Vector:
    """The mean over the silos that have a pair; zero where none has it."""
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def count_of(cohort: Cohort, total: Total) -> Vector | None:
    """How many silos have each pair, where silos may lack some; raises if a node is in no silo."""
    if "count" not in total.parts:
        return None
    count = total.vector("count")
    if (count != np.round(count)).any():
        raise ProtocolError("count: expected 1 or 0 of each silo, for each pair, got something between.")
    had = cohort.pairs.degrees(count) > 0
    had[cohort.pairs.isolated()] = True
    if had.all():
        return count
    names = [cohort.name_of(int(node)) for node in np.flatnonzero(~had)]
    raise SilosError(
        f"Expected each node of the study in one silo at least, but none has {list_names(names)}: absent, constant or "
        "empty everywhere. Leave such nodes out of the study, or add a silo that has them."
    )
