"""What a method is: two halves that talk in tasks and sums.

    local(silo, task)             in each silo: private data and memory, and the task → an answer that will be added up
    merge(federation, state, sum) at the coordinator: what it kept, and the sum → the next task, or the end

Both are functions of their arguments alone. A method object holds the run's settings and nothing else, so the same
object can be made on every site from the same study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.graph.pairs import Pairs
from silograph.protocol.messages import Step, Task, Total
from silograph.protocol.silo import Memory, Silo

Parts = Mapping[str, Vector | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """What everyone knows: the pairs that may be edges, and who takes part."""

    pairs: Pairs
    silos: tuple[str, ...]

    @property
    def n_silos(self) -> int:
        """I, the number of silos."""
        return len(self.silos)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A silo's answer: parts to be added up, and numbers that may be told singly if the run's settings allow it."""

    parts: Parts
    reported: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the coordinator keeps, what it asks next (no step: nothing, the run is over), and what to tell about it."""

    state: Memory
    step: str | None
    parts: Parts = field(default_factory=dict)
    record: Mapping[str, float] = field(default_factory=dict)


class Method(Protocol):
    """The pair of functions, and what their messages hold."""

    @property
    def name(self) -> str:
        """What the method is called."""

    @property
    def steps(self) -> Mapping[str, Step]:
        """Every kind of exchange."""

    def begin(self, cohort: Cohort) -> Decision:
        """The first task."""

    def local(self, silo: Silo, task: Task) -> Answer:
        """A silo's half."""

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        """The coordinator's half."""


def of_graph(silo: Silo, w: Vector, consensus: Vector, *, weight: float | None = None) -> dict[str, float]:
    """Keep the silo's graph, and say what may be told singly: samples, edges, distance to the consensus, weight γ.

    γ = 1/‖w − u‖ (the paper's contribution weight) is infinite where the silo's graph is the consensus; `weight` is the
    γ of a method that has its own.
    """
    far = distance(w, consensus)
    gamma = (1 / far if far > 0 else np.inf) if weight is None else weight
    silo.memory["graph"] = w
    samples = np.nan if silo.n_samples is None else float(silo.n_samples)
    return {"samples": samples, "edges": float(np.count_nonzero(w)), "distance": far, "contribution": float(gamma)}
