"""What a solver returns: an answer and the evidence for it."""

from dataclasses import dataclass

import numpy as np

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Weights, multipliers, and a certified bound on what is left to gain."""

    w: Vector  # one weight per pair, ≥ 0, feasible
    y: Vector  # one multiplier per node, > 0; the start of a next, similar problem
    primal: float
    gap: float  # primal minus dual: no weights can be better than this by more
    relative_gap: float
    n_iter: int
    converged: bool


def certify(
    problem: LocalProblem, w: Vector, y: Vector, *, primal: float, gap: float, n_iter: int, tol: float
) -> Solution:
    """The solution (w, y) with its value and gap, judged against `tol`."""
    relative = gap / problem.scale(primal) if gap < np.inf else np.inf
    return Solution(
        w=w,
        y=y,
        primal=float(primal),
        gap=float(gap),
        relative_gap=float(relative),
        n_iter=n_iter,
        converged=bool(relative <= tol),
    )
