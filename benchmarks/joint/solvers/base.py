"""The three shapes of a competitor: iterations that can be watched, a function that is called, and another model.

The clock runs during `start`, `advance` and `call`, and stands still while answers are taken out and scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.joint.objective import Answer, JointProblem

Setting = Any  # a tolerance, or whatever a call is made more accurate by


class Run(Protocol):
    """A method under way."""

    def advance(self, n_iter: int, /) -> None:
        """Do `n_iter` more iterations."""

    def answer(self) -> Answer:
        """What the method could return now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterative:
    """A method whose accuracy is looked at after more and more iterations; only the best of its steps counts."""

    start: Callable[[JointProblem, float], Run]  # problem, step
    steps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCall:
    """A function called with one setting after another until its answer is accurate enough; only that call counts."""

    call: Callable[[JointProblem, Setting, float], Answer]  # problem, setting, time limit in seconds
    settings: Callable[[float], Iterable[Setting]]  # what to try for a target error, cheapest first
    each: bool = False  # whether the time limit is for each call, or for all tries together, which are many


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """A function that learns something else from the same signals, at its own default tolerance."""

    call: Callable[[JointProblem, float], float]  # problem, penalty; the mean degree of what was learned
    penalties: tuple[float, ...]  # the one whose graphs are as dense as silograph's counts


Solver = Iterative | WholeCall | OtherModel
