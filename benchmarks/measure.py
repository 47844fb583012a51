"""Time to reach a relative gap: the clock stands still while an answer is scored.

An iterative method is looked at after 1, 2, 3, … iterations, and each 5 % more from 20 on. Whatever reached a target in
less than a quarter of a second is repeated from its start without looks in between; the median is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import process_time
from typing import TypeVar

from benchmarks.objective import relative_gap
from benchmarks.solvers.base import Iterative, Solver, WholeCall
from silograph._util.types import Vector
from silograph.local.problem import LocalProblem

TARGETS = (1e-4, 1e-8)
SPACING = 0.05
SHORT = 0.25  # seconds
REPEATS = (5, 101)  # as many as fit into a quarter of a second, between these

T = TypeVar("T")


@dataclass(slots=True)
class Measured:
    """What was found out about one solver on one instance."""

    seconds: dict[float, float] = field(default_factory=dict)  # per target that was reached
    effort: dict[float, float] = field(default_factory=dict)  # iterations, or the setting of the call
    best_gap: float = math.inf
    diverged: bool = False

    def note(self, answers: Iterable[Vector], problem: LocalProblem, lower_bound: float) -> float:
        """Score the answers; return the best gap among them."""
        gap, finite = math.inf, False
        for w in answers:
            finite = finite or math.isfinite(float(w.sum()))
            gap = min(gap, relative_gap(problem, w, lower_bound))
        self.best_gap = min(self.best_gap, gap)
        self.diverged = not finite
        return gap


def measure(solver: Solver, problem: LocalProblem, lower_bound: float, limit: float) -> Measured:
    """Warm up, then find the times to all targets, giving up after `limit` seconds on the clock."""
    if isinstance(solver, Iterative):
        solver.start(problem).advance(2)
        found = _watched(solver, problem, lower_bound, limit)
        repeat = _replay(solver, problem)
    else:
        solver.warm_up(problem)
        found = _called(solver, problem, lower_bound, limit)
        repeat = _recall(solver, problem, limit)
    for target, seconds in found.seconds.items():
        if seconds < SHORT:
            again = partial(repeat, found.effort[target])
            n_repeats = min(max(REPEATS[0], int(SHORT / seconds)), REPEATS[1])
            found.seconds[target] = median(_timed(again)[0] for _ in range(n_repeats))
    return found


def _watched(solver: Iterative, problem: LocalProblem, lower_bound: float, limit: float) -> Measured:
    found = Measured()
    spent, run = _timed(partial(solver.start, problem))
    n_iter = 0
    while True:
        gap = found.note(run.answers(), problem, lower_bound)
        for target in TARGETS:
            if gap <= target and target not in found.seconds:
                found.seconds[target], found.effort[target] = spent, n_iter
        if len(found.seconds) == len(TARGETS) or found.diverged or spent >= limit:
            return found
        stride = max(1, int(SPACING * n_iter))
        spent += _timed(partial(run.advance, stride))[0]
        n_iter += stride


def _called(solver: WholeCall, problem: LocalProblem, lower_bound: float, limit: float) -> Measured:
    found = Measured()
    known: dict[float, tuple[float, float]] = {}  # setting: seconds and gap, as targets may share their settings
    for target in TARGETS:
        for setting in solver.settings(target):
            if setting not in known:
                tried = sum(seconds for seconds, _ in known.values())
                if found.diverged or tried > limit / 2:  # a further call is expected to take as long as all before
                    break
                seconds, w = _timed(partial(solver.call, problem, setting, limit))
                known[setting] = seconds, found.note([w], problem, lower_bound)
            seconds, gap = known[setting]
            if gap <= target:
                found.seconds[target], found.effort[target] = seconds, setting
                break
    return found


def _replay(solver: Iterative, problem: LocalProblem) -> Callable[[float], None]:
    def run(n_iter: float) -> None:
        fresh = solver.start(problem)
        if n_iter:
            fresh.advance(int(n_iter))

    return run


def _recall(solver: WholeCall, problem: LocalProblem, limit: float) -> Callable[[float], Vector]:
    return lambda setting: solver.call(problem, setting, limit)


def _timed(function: Callable[[], T]) -> tuple[float, T]:
    """Processor time: with one thread it is the wall time of an idle machine, also on a busy one."""
    begun = process_time()
    result = function()
    return process_time() - begun, result
