"""A silo's own graph beside a consensus that it does not change: Ditto's second problem (Li et al. 2021), exactly.

    w_i = argmin over w ≥ 0 of g_i(w) + (μ/2)‖w − u‖²

The silo may choose μ by itself, by the loss of rows that it holds out. These must leave the consensus as well, or the
choice would favour it: so the silo takes its term out of the sum, puts in what its other rows would have sent, and
solves for the consensus anew: on all nodes, also on those that it lacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.data.blocks import Blocks
from silograph.local.problem import LocalProblem
from silograph.local.prox import add_pull
from silograph.local.solvers import exact
from silograph.local.solvers.polish import solve_to_rounding
from silograph.local.solvers.solution import Solution
from silograph.methods.common.pooling import CostSum

PULLS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # μ in units of 4β, among which a silo chooses
FOLDS = 4
LOSS_TOL = 1e-8  # relative gap of the solves whose losses are compared


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Others:
    """The consensus' problem without this silo: the others' part of the sum, and this silo's weight in it."""

    sums: CostSum  # Σ γ c over the others, Σ γ over all
    weight: float  # γ of this silo
    shift: float  # λ/I
    place: IntVector | None  # of the silo's pairs among those of the sums; None: they are the same

    @classmethod
    def of(cls, sums: CostSum, own: Vector, place: IntVector | None, *, weight: float, shift: float) -> "Others":
        """From the sums over all, and the silo's own costs on pairs that stand at `place` among the study's."""
        if place is not None and sums.place is not None:
            place = np.searchsorted(sums.place, place).astype(np.int32)  # a pair that the silo has, some silo has
        rest = replace(sums, cost=sums.cost - _at(place, weight * own, sums.cost.size))
        return cls(sums=rest, weight=weight, shift=shift, place=place)

    def problem(self, own: LocalProblem) -> LocalProblem:
        """The consensus' problem if the silo had sent the costs of this one."""
        term = _at(self.place, self.weight * own.cost, self.sums.cost.size)
        # With noise in the sum, what is left of it without the silo may be below zero; sums of squares never are
        sums = replace(self.sums, cost=np.maximum(self.sums.cost + term, 0.0))
        return replace(own, pairs=sums.pairs, cost=sums.mean + self.shift)

    def take(self, u: Vector) -> Vector:
        """The part of a consensus on the silo's own pairs."""
        return u if self.place is None else u[self.place]


def _at(place: IntVector | None, own: Vector, size: int) -> Vector:
    if place is None:
        return own
    full = np.zeros(size)
    full[place] = own
    return full


def personal_graph(problem: LocalProblem, u: Vector, strength: float, start: Vector | None) -> Solution:
    """The silo's graph under a pull of this strength to u."""
    return solve_to_rounding(add_pull(problem, u, strength), start)


def held_out_losses(
    problem: LocalProblem, blocks: Blocks, others: Others, pulls: Sequence[float] = PULLS
) -> dict[float, float]:
    """By pull, the mean loss of rows that neither the silo's graph nor the consensus has seen."""
    losses, y_u, y_w = np.zeros(len(pulls)), None, None
    for held in blocks.folds(FOLDS):
        seen = [block for block in range(len(blocks.counts)) if block not in held]
        own = replace(problem, cost=blocks.cost(seen))
        unseen = replace(problem, cost=blocks.cost(held))
        consensus = exact.solve(others.problem(own), start=y_u, tol=LOSS_TOL)
        y_u, u = consensus.y, others.take(consensus.w)
        for k, pull in enumerate(pulls):
            strength = pull * float(problem.quadratic)
            graph = exact.solve(add_pull(own, u, strength), start=y_w, tol=LOSS_TOL)
            y_w = graph.y
            losses[k] += float(blocks.counts[held].sum()) * unseen.value(graph.w)
    return dict(zip(pulls, (losses / blocks.counts.sum()).tolist(), strict=True))
