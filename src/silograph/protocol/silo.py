"""A silo's private side: its costs, and what a method keeps there between two rounds.

Only the silo's half of a method sees this. The signals themselves are left behind at the door: costs z/N are all that
learning needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from silograph._util.types import Vector
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem

# Names to arrays, numbers, or lists of arrays; arrays are replaced, never altered, so that a checkpoint can keep them
Memory = dict[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Silo:
    """One silo: private data, private memory."""

    name: str
    pairs: Pairs
    cost: Vector  # z/N, one number per pair
    n_samples: int | None = None  # None: precomputed distances
    local_steps: int | None = None  # this silo's own K_i; None: the run's
    memory: Memory = field(default_factory=dict)
    _problem: LocalProblem | None = field(default=None, init=False, repr=False)

    def problem(self, *, alpha: float, beta: float, zeta: float) -> LocalProblem:
        """The silo's own problem, not pulled anywhere; made once for all rounds that ask for it."""
        made = self._problem
        if made is None or (made.quadratic, made.alpha, made.zeta) != (4 * beta, alpha, zeta):
            made = LocalProblem(cost=self.cost, pairs=self.pairs, quadratic=4 * beta, alpha=alpha, zeta=zeta)
            self._problem = made
        return made
