"""Time to reach a relative error: the clock stands still while an answer is scored.

First a search: what a solver needs for each target. An iterative method is looked at after 0, 1, 2, 3, … iterations,
and each 5 % more from 20 on, for each of its steps; the step that got there first counts. A function is called with one
setting after another. What was found is then timed without looks in between, in laps, so that solvers can take turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from benchmarks.solver import Answer, Iterative, OtherModel, Problem, Setting, WholeCall

SPACING = 0.05
CALLS = 3, 1001  # of the same work in one lap: as many between these as fit into the seconds below
LAP = 0.1
LONG = 0.25  # seconds: what takes as long is done once in a lap

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """How a suite measures: what counts as accurate, which clock, and which of several times of the same work."""

    targets: tuple[float, ...]  # relative errors
    score: Callable[[Problem, Answer, float], float]  # problem, answer, lower bound; the relative error
    clock: Callable[[], float]
    summary: Callable[[Sequence[float]], float]  # of the times of the same work in one lap


def timed(function: Callable[[], T], ruler: Ruler) -> tuple[float, T]:
    """The seconds a call takes, and its result."""
    begun = ruler.clock()
    result = function()
    return ruler.clock() - begun, result


def repeat(function: Callable[[], T], ruler: Ruler) -> tuple[float, list[T]]:
    """The time of a call, out of several if it is short, and what the calls gave."""
    times: list[float] = []
    results = []
    least, most = CALLS
    while len(times) < least or (sum(times) < LAP and len(times) < most):
        seconds, result = timed(function, ruler)
        times.append(seconds)
        results.append(result)
        if seconds >= LONG:
            break
    return ruler.summary(times), results


@dataclass(slots=True)
class Found:
    """What the search found out about one solver on one instance."""

    seconds: dict[float, float] = field(default_factory=dict)  # per target that was reached, of the search alone
    effort: dict[float, Any] = field(default_factory=dict)  # step and iterations, or the setting of the call
    best_error: float = math.inf
    diverged: bool = False  # whether the last answer was not of numbers

    def as_record(self) -> dict[str, Any]:
        """What is saved."""
        return {
            "outcome": "diverged" if self.diverged and not self.effort else "ran",
            "effort": by_name(self.effort),
            "best_error": self.best_error if math.isfinite(self.best_error) else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """The seconds to each target, this time."""

    seconds: dict[float, float]
    solver_seconds: dict[float, float]  # the solver's own share, where it tells


@dataclass(frozen=True, slots=True)
class Measurement:
    """One solver's way through one instance."""

    ruler: Ruler
    problem: Problem
    lower_bound: float
    limit: float  # seconds on the clock
    found: Found = field(default_factory=Found)

    def note(self, answers: Iterable[Answer]) -> float:
        """Score the answers; the least error among them."""
        error, finite = math.inf, False
        for answer in answers:
            finite = finite or math.isfinite(float(answer.w.sum()))
            error = min(error, self.ruler.score(self.problem, answer, self.lower_bound))
        self.found.best_error = min(self.found.best_error, error)
        self.found.diverged = not finite
        return error

    def watch(self, solver: Iterative) -> None:
        """Find what an iterative method needs."""
        solver.begin(self.problem, solver.steps[0]).advance(2)
        for step in solver.steps:
            self._watch_step(solver, step)

    def _watch_step(self, solver: Iterative, step: float | None) -> None:
        found, limit = self.found, self.limit / len(solver.steps)
        spent, run = timed(partial(solver.begin, self.problem, step), self.ruler)
        n_iter, missed = 0, set(self.ruler.targets)
        while True:
            error = self.note(run.answers())
            for target in [target for target in missed if error <= target]:
                missed.remove(target)
                if spent < found.seconds.get(target, math.inf):
                    found.seconds[target], found.effort[target] = spent, (step, n_iter)
            hopeless = all(spent >= found.seconds.get(target, limit) for target in missed)
            if not missed or hopeless or spent >= limit or (n_iter > 20 and found.diverged):
                return
            stride = max(1, int(SPACING * n_iter))
            spent += timed(partial(run.advance, stride), self.ruler)[0]
            n_iter += stride

    def call(self, solver: WholeCall) -> None:
        """Find what a function needs."""
        if solver.warm_up is not None:
            solver.warm_up(self.problem)
        else:
            solver.call(self.problem, next(iter(solver.settings(self.ruler.targets[0]))), self.limit)
        known: dict[Setting, tuple[float, float]] = {}  # seconds and error, as targets may share their settings
        for target in self.ruler.targets:
            self._call_for(solver, target, known)

    def _call_for(self, solver: WholeCall, target: float, known: dict[Setting, tuple[float, float]]) -> None:
        for setting in solver.settings(target):
            if setting not in known:
                if sum(seconds for seconds, _ in known.values()) > solver.until * self.limit:
                    return
                seconds, answer = timed(partial(solver.call, self.problem, setting, self.limit), self.ruler)
                known[setting] = seconds, self.note([answer])
            seconds, error = known[setting]
            if error <= target:
                self.found.seconds[target], self.found.effort[target] = seconds, setting
                return

    def lap(self, solver: Iterative | WholeCall) -> Lap:
        """Do what was found for each target once more."""
        seconds, own = {}, {}
        for target, effort in self.found.effort.items():
            if isinstance(solver, Iterative):
                seconds[target], _ = repeat(partial(_replay, solver, self.problem, *effort), self.ruler)
                continue
            seconds[target], answers = repeat(partial(solver.call, self.problem, effort, self.limit), self.ruler)
            told = [answer.solver_seconds for answer in answers if answer.solver_seconds is not None]
            if told:
                own[target] = self.ruler.summary(told)
        return Lap(seconds=seconds, solver_seconds=own)


def search(
    solver: Iterative | WholeCall, problem: Problem, lower_bound: float, limit: float, ruler: Ruler
) -> Measurement:
    """Warm up, then find what all targets need, giving up after `limit` seconds on the clock."""
    measurement = Measurement(ruler, problem, lower_bound, limit)
    if isinstance(solver, Iterative):
        measurement.watch(solver)
    else:
        measurement.call(solver)
    return measurement


def by_name(values: dict[float, T]) -> dict[str, T]:
    """The same by the names that targets have in files."""
    return {f"{target:g}": value for target, value in values.items()}


def time_other(solver: OtherModel, problem: Problem, degree: float, laps: int, ruler: Ruler) -> dict[str, Any]:
    """The times of the penalty whose graphs are nearest to this degree, and of the very first call."""
    first, _ = timed(partial(solver.call, problem, solver.penalties[0]), ruler)
    degrees = {penalty: solver.call(problem, penalty) for penalty in solver.penalties}
    penalty = min(degrees, key=lambda one: abs(degrees[one] - degree))
    seconds = [repeat(partial(solver.call, problem, penalty), ruler)[0] for _ in range(laps)]
    return {"seconds": seconds, "first_seconds": first, "penalty": penalty, "degree": degrees[penalty]}


def _replay(solver: Iterative, problem: Problem, step: float | None, n_iter: int) -> None:
    run = solver.begin(problem, step)
    if n_iter:
        run.advance(n_iter)
