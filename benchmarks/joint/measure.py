"""Time to reach a relative error: the clock stands still while an answer is scored.

An iterative method is looked at after 1, 2, 3, … iterations, and each 5 % more from 20 on, for each of its steps; the
step that got there first counts. What was found is then repeated from its start, without looks in between. The least of
all times counts: others' work on the machine only ever adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from benchmarks.joint.objective import Answer, JointProblem, relative_error
from benchmarks.joint.solvers.base import Iterative, OtherModel, Setting, WholeCall

TARGETS = (1e-4, 1e-6)
SPACING = 0.05
REPEATS = (3, 15)  # as many as fit into the seconds below, between these
REPEATING = 2.0

T = TypeVar("T")


@dataclass(slots=True)
class Measured:
    """What was found out about one solver on one instance."""

    seconds: dict[float, float] = field(default_factory=dict)  # per target that was reached
    solver_seconds: dict[float, float] = field(default_factory=dict)  # the solver's own share, where it tells
    effort: dict[float, Any] = field(default_factory=dict)  # step and iterations, or the setting of the call
    best_error: float = math.inf

    def note(self, problem: JointProblem, answer: Answer, lower_bound: float) -> float:
        """Score the answer."""
        error = relative_error(problem, answer, lower_bound)
        self.best_error = min(self.best_error, error)
        return error


def measure(solver: Iterative | WholeCall, problem: JointProblem, lower_bound: float, limit: float) -> Measured:
    """Warm up, then find the times to all targets, giving up after `limit` seconds on the clock."""
    if isinstance(solver, Iterative):
        solver.start(problem, solver.steps[0]).advance(2)
        found = Measured()
        for step in solver.steps:
            _watch(solver, step, problem, lower_bound, limit / len(solver.steps), found)
        for target, (step, n_iter) in found.effort.items():
            again = partial(_replay, solver, problem, step, n_iter)
            found.seconds[target] = _least(again, found.seconds[target])[0]
        return found
    solver.call(problem, next(iter(solver.settings(TARGETS[0]))), limit)
    return _call(solver, problem, lower_bound, limit)


def time_other(solver: OtherModel, problem: JointProblem, degree: float) -> dict[str, float]:
    """The time of the penalty whose graphs are nearest to this degree, and of the very first call."""
    first, _ = timed(partial(solver.call, problem, solver.penalties[0]))
    degrees = {penalty: solver.call(problem, penalty) for penalty in solver.penalties}
    penalty = min(degrees, key=lambda one: abs(degrees[one] - degree))
    seconds, _ = _least(partial(solver.call, problem, penalty), math.inf)
    return {"seconds": seconds, "first_seconds": first, "penalty": penalty, "degree": degrees[penalty]}


def _watch(
    solver: Iterative, step: float, problem: JointProblem, lower_bound: float, limit: float, found: Measured
) -> None:
    spent, run = timed(partial(solver.start, problem, step))
    n_iter = 0
    missed = set(TARGETS)
    while missed:
        stride = max(1, int(SPACING * n_iter))
        spent += timed(partial(run.advance, stride))[0]
        n_iter += stride
        error = found.note(problem, run.answer(), lower_bound)
        for target in [target for target in missed if error <= target]:
            missed.remove(target)
            if spent < found.seconds.get(target, math.inf):
                found.seconds[target], found.effort[target] = spent, (step, n_iter)
        hopeless = all(spent >= found.seconds.get(target, limit) for target in missed)
        if hopeless or spent >= limit or (n_iter > 20 and not math.isfinite(float(run.answer().w.sum()))):
            return


def _replay(solver: Iterative, problem: JointProblem, step: float, n_iter: int) -> Answer:
    run = solver.start(problem, step)
    run.advance(n_iter)
    return run.answer()


def _call(solver: WholeCall, problem: JointProblem, lower_bound: float, limit: float) -> Measured:
    found = Measured()
    known: dict[Setting, tuple[float, float]] = {}  # seconds and error, as targets may share their settings
    for target in TARGETS:
        for setting in solver.settings(target):
            if setting not in known:
                if not solver.each and sum(seconds for seconds, _ in known.values()) > limit:
                    break
                seconds, answer = timed(partial(solver.call, problem, setting, limit))
                known[setting] = seconds, found.note(problem, answer, lower_bound)
            seconds, error = known[setting]
            if error <= target:
                again = partial(solver.call, problem, setting, limit)
                found.seconds[target], answers = _least(again, seconds)
                found.effort[target] = setting
                own = [answer.solver_seconds for answer in answers if answer.solver_seconds is not None]
                if own:
                    found.solver_seconds[target] = min(own)
                break
    return found


def _least(function: Callable[[], T], before: float) -> tuple[float, list[T]]:
    """The least time of several calls and of one before."""
    least, spent, results = before, 0.0, []
    while len(results) < REPEATS[0] or (len(results) < REPEATS[1] and spent < REPEATING):
        seconds, result = timed(function)
        least, spent = min(least, seconds), spent + seconds
        results.append(result)
        if spent > 5 * REPEATING:
            break
    return least, results


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Wall-clock time, as a user sees it."""
    begun = perf_counter()
    result = function()
    return perf_counter() - begun, result
