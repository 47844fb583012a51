"""silograph's default solver, as users call it: one call per accuracy, stopped by its own certificate."""

from __future__ import annotations

from benchmarks.solver import Answer, WholeCall
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact


def call(problem: LocalProblem, tol: float, limit: float) -> Answer:
    """The weights of one call; it needs no time limit."""
    return Answer(w=exact.solve(problem, tol=tol).w)


SOLVERS = {
    "silograph": WholeCall(
        call=call,
        settings=lambda target: (target,),
        # The very problem, as which loops get compiled depends on its size
        warm_up=lambda problem: call(problem, 1e-8, 0.0),
    )
}
