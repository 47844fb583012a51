"""The two shapes of a competitor: one whose iterations can be watched, and one that is called and returns.

The clock runs during `start`, `advance` and `call`, and stands still while answers are taken out and scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from silograph._util.types import Vector
from silograph.local.problem import LocalProblem


class Run(Protocol):
    """A method under way."""

    def advance(self, n_iter: int, /) -> None:
        """Do `n_iter` more iterations."""

    def answers(self) -> Iterable[Vector]:
        """Weights that the method could return now; the best of them is scored."""


@dataclass(frozen=True, slots=True)
class Iterative:
    """A method whose accuracy is looked at after more and more iterations of one run."""

    start: Callable[[LocalProblem], Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCall:
    """A function called with one setting after another until its answer is accurate enough; only that call counts."""

    call: Callable[[LocalProblem, float, float], Vector]  # problem, setting, time limit in seconds
    settings: Callable[[float], Iterable[float]]  # what to try for a target gap, cheapest first
    warm_up: Callable[[LocalProblem], object]


Solver = Iterative | WholeCall
