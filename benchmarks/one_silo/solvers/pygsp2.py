"""pygsp2's learner through its public function, a forward-backward-forward method with a constant step.

It divides the distances by their largest, M, and then minimises 2 zᵀw + b‖w‖² − a Σ log(Sw) with z = c/M. So a = 2α/M
and b = q/M give this benchmark's minimiser. Once with its default step (0.04), and once with the longest step that
theory allows, 0.99/(2b + √(2(d−1))). It has no trace, so it is called with twice as many iterations each time; its
own stopping rule, which looks at relative changes, is turned off because it stops early.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.spatial.distance import squareform

from benchmarks.solver import Answer, WholeCall
from silograph.local.problem import LocalProblem

DEFAULT_STEP = 0.04


def call(problem: LocalProblem, n_iter: float, limit: float, *, safe: bool) -> Answer:
    """The weights after `n_iter` iterations, without the negative parts that the method leaves."""
    from pygsp2.graph_learning import graph_log_degree

    largest = problem.cost.max()
    a, b = 2 * problem.alpha / largest, problem.quadratic / largest
    step = 0.99 / (2 * b + np.sqrt(2 * (problem.n_nodes - 1))) if safe else DEFAULT_STEP
    with np.errstate(all="ignore"):  # a diverging run overflows; its answer says so
        found = graph_log_degree(
            squareform(problem.cost), a, b, gamma=step, maxiter=int(n_iter), tol=0.0, verbose=False
        )
    return Answer(w=np.maximum(squareform(found, checks=False), 0.0))


def settings(target: float) -> Iterator[float]:
    """Numbers of iterations."""
    n_iter = 50
    while True:
        yield n_iter
        n_iter *= 2


SOLVERS = {
    name: WholeCall(
        call=partial(call, safe=safe), settings=settings, warm_up=partial(call, n_iter=2, limit=0.0, safe=safe)
    )
    for name, safe in (("pygsp2", False), ("pygsp2-safe", True))
}
