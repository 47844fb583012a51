"""A rank for every pair: the weight of an edge, and for a pair without one how far it is from being worth an edge.

With multipliers y and a pull of strength s towards a consensus that has scores t of its own,

    score = w                                        where there is an edge
            (y_i + y_j − c + s t) / (q + s) < 0      where there is none

which is w before it is cut off at zero. An infinite s leaves t: a silo that is the consensus ranks pairs as that does.
"""

import numpy as np

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem

HIGHEST_ABSENT = -float(np.finfo(np.float64).tiny)  # a pair without an edge stands below every edge


def pair_scores(
    problem: LocalProblem, w: Vector, y: Vector, *, pull: float = 0.0, towards: Vector | float = 0.0
) -> Vector:
    """The scores of a problem's solution w with multipliers y, without its pull; `towards` are the consensus' own."""
    if np.isinf(pull):
        absent = np.asarray(towards)
    else:
        absent = (pull * towards - problem.reduced_cost(y)) / (problem.quadratic + pull)
    return np.where(w > 0, w, np.minimum(absent, HIGHEST_ABSENT))
