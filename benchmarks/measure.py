"""Time to reach a relative error: the clock stands still while an answer is scored.

An iterative method is looked at after 0, 1, 2, 3, … iterations, and each 5 % more from 20 on, for each of its steps.
The step that got there first counts. What was found is then repeated without looks in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from benchmarks.solver import Answer, Iterative, OtherModel, Problem, Setting, WholeCall

SPACING = 0.05

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """How a suite measures: what counts as accurate, which clock, and which of several times of the same work."""

    targets: tuple[float, ...]  # relative errors
    score: Callable[[Problem, Answer, float], float]  # problem, answer, lower bound; the relative error
    clock: Callable[[], float]
    summary: Callable[[Sequence[float]], float]  # of the times of the same work
    repeats: tuple[int, int]  # as many as fit into the seconds below, between these
    repeating: float
    repeated_below: float = math.inf  # seconds: what takes longer is not repeated


@dataclass(slots=True)
class Measured:
    """What was found out about one solver on one instance."""

    seconds: dict[float, float] = field(default_factory=dict)  # per target that was reached
    solver_seconds: dict[float, float] = field(default_factory=dict)  # the solver's own share, where it tells
    effort: dict[float, Any] = field(default_factory=dict)  # step and iterations, or the setting of the call
    best_error: float = math.inf
    diverged: bool = False  # whether the last answer was not of numbers

    def as_record(self) -> dict[str, Any]:
        """What is saved."""
        return {
            "outcome": "diverged" if self.diverged and not self.seconds else "ran",
            "seconds": {f"{target:g}": seconds for target, seconds in self.seconds.items()},
            "solver_seconds": {f"{target:g}": seconds for target, seconds in self.solver_seconds.items()},
            "effort": {f"{target:g}": effort for target, effort in self.effort.items()},
            "best_error": self.best_error if math.isfinite(self.best_error) else None,
        }


@dataclass(frozen=True, slots=True)
class Measurement:
    """One solver's way through one instance."""

    ruler: Ruler
    problem: Problem
    lower_bound: float
    limit: float  # seconds on the clock
    found: Measured = field(default_factory=Measured)

    def note(self, answers: Iterable[Answer]) -> float:
        """Score the answers; the least error among them."""
        error, finite = math.inf, False
        for answer in answers:
            finite = finite or math.isfinite(float(answer.w.sum()))
            error = min(error, self.ruler.score(self.problem, answer, self.lower_bound))
        self.found.best_error = min(self.found.best_error, error)
        self.found.diverged = not finite
        return error

    def timed(self, function: Callable[[], T]) -> tuple[float, T]:
        """The seconds a call takes, and its result."""
        begun = self.ruler.clock()
        result = function()
        return self.ruler.clock() - begun, result

    def repeat(self, function: Callable[[], T], first: float) -> tuple[float, list[T]]:
        """The time of several calls and of one before, and the calls' results."""
        times, results = [first], []
        least, most = self.ruler.repeats
        while first < self.ruler.repeated_below:
            seconds, result = self.timed(function)
            times.append(seconds)
            results.append(result)
            spent = sum(times[1:])
            enough = len(results) >= most or (len(results) >= least and spent >= self.ruler.repeating)
            if enough or spent > 5 * self.ruler.repeating:
                break
        return self.ruler.summary(times), results

    def watch(self, solver: Iterative) -> None:
        """Find the times of an iterative method."""
        solver.begin(self.problem, solver.steps[0]).advance(2)
        for step in solver.steps:
            self._watch_step(solver, step)
        for target, (step, n_iter) in self.found.effort.items():
            again = partial(_replay, solver, self.problem, step, n_iter)
            self.found.seconds[target] = self.repeat(again, self.found.seconds[target])[0]

    def _watch_step(self, solver: Iterative, step: float | None) -> None:
        found, limit = self.found, self.limit / len(solver.steps)
        spent, run = self.timed(partial(solver.begin, self.problem, step))
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
            spent += self.timed(partial(run.advance, stride))[0]
            n_iter += stride

    def call(self, solver: WholeCall) -> None:
        """Find the times of a function."""
        if solver.warm_up is not None:
            solver.warm_up(self.problem)
        else:
            solver.call(self.problem, next(iter(solver.settings(self.ruler.targets[0]))), self.limit)
        known: dict[Setting, tuple[float, float]] = {}  # seconds and error, as targets may share their settings
        for target in self.ruler.targets:
            self._call_for(solver, target, known)

    def _call_for(self, solver: WholeCall, target: float, known: dict[Setting, tuple[float, float]]) -> None:
        for setting in solver.settings(target):
            again = partial(solver.call, self.problem, setting, self.limit)
            if setting not in known:
                if sum(seconds for seconds, _ in known.values()) > solver.until * self.limit:
                    return
                seconds, answer = self.timed(again)
                known[setting] = seconds, self.note([answer])
            seconds, error = known[setting]
            if error <= target:
                self.found.seconds[target], answers = self.repeat(again, seconds)
                self.found.effort[target] = setting
                own = [answer.solver_seconds for answer in answers if answer.solver_seconds is not None]
                if own:
                    self.found.solver_seconds[target] = self.ruler.summary(own)
                return


def measure(
    solver: Iterative | WholeCall, problem: Problem, lower_bound: float, limit: float, ruler: Ruler
) -> Measured:
    """Warm up, then find the times to all targets, giving up after `limit` seconds on the clock."""
    measurement = Measurement(ruler, problem, lower_bound, limit)
    if isinstance(solver, Iterative):
        measurement.watch(solver)
    else:
        measurement.call(solver)
    return measurement.found


def time_other(solver: OtherModel, problem: Problem, degree: float, ruler: Ruler) -> dict[str, float]:
    """The time of the penalty whose graphs are nearest to this degree, and of the very first call."""
    measurement = Measurement(ruler, problem, -math.inf, math.inf)
    first, _ = measurement.timed(partial(solver.call, problem, solver.penalties[0]))
    degrees = {penalty: solver.call(problem, penalty) for penalty in solver.penalties}
    penalty = min(degrees, key=lambda one: abs(degrees[one] - degree))
    again = partial(solver.call, problem, penalty)
    seconds, _ = measurement.repeat(again, measurement.timed(again)[0])
    return {"seconds": seconds, "first_seconds": first, "penalty": penalty, "degree": degrees[penalty]}


def _replay(solver: Iterative, problem: Problem, step: float | None, n_iter: int) -> None:
    run = solver.begin(problem, step)
    if n_iter:
        run.advance(n_iter)
