"""The shapes of a competitor: iterations that can be watched, a function that is called, and another model.

The clock runs during `start`, `advance` and `call`, and stands still while answers are taken out and scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from silograph._util.types import Vector

Problem = Any  # what a suite's solvers solve
Setting = Any  # a tolerance, or whatever a call is made more accurate by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What a solver found."""

    w: np.ndarray  # the weights; one row per silo where there are several
    u: Vector | None = None  # the consensus, where there is one
    solver_seconds: float | None = None  # as the solver itself reports, where that is less than the whole call


class Run(Protocol):
    """A method under way."""

    def advance(self, n_iter: int, /) -> None:
        """Do `n_iter` more iterations."""

    def answers(self) -> Iterable[Answer]:
        """What the method could return now; the best of them is scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterative:
    """A method whose accuracy is looked at after more and more iterations; only the best of its steps counts."""

    start: Callable[..., Run]  # of the problem; and of the step, if there is more than one
    steps: tuple[float | None, ...] = (None,)

    def begin(self, problem: Problem, step: float | None) -> Run:
        """A run with one of the steps."""
        return self.start(problem) if step is None else self.start(problem, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCall:
    """A function called with one setting after another until its answer is accurate enough; only that call counts."""

    call: Callable[[Problem, Setting, float], Answer]  # problem, setting, time limit in seconds
    settings: Callable[[float], Iterable[Setting]]  # what to try for a target, cheapest first
    warm_up: Callable[[Problem], object] | None = None  # by default, a call with the first setting
    until: float = 0.5  # share of the limit: once all calls together took that, no further one is begun


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """A function that learns something else from the same signals, at its own default tolerance."""

    call: Callable[[Problem, float], float]  # problem, penalty; the mean degree of what was learned
    penalties: tuple[float, ...]  # the one whose graphs are as dense as silograph's counts


Solver = Iterative | WholeCall | OtherModel
