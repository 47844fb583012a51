"""What a method is: two halves that talk in tasks and sums.

    local(silo, state, task)      in each silo: private data, what it kept, and the task → an answer that is added up
    merge(cohort, state, total)   at the coordinator: what it kept, and the sum → the next task, or the outcome

Both are functions of their arguments alone. A method object holds the run's settings and nothing else, so the same
object can be made on every site from the same study. What a half keeps is a frozen dataclass of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.graph.pairs import Pairs
from silograph.protocol.messages import Parts, Step, Task, Total
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

S = TypeVar("S")
C = TypeVar("C")
RoundRecord = Mapping[str, Any]  # what is told of a round: numbers, and the step


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """What everyone knows: the pairs that may be edges, and who takes part."""

    pairs: Pairs
    silos: tuple[str, ...]  # by name; of a federation its sites, each of which may have several
    n_silos: int  # I, the number of silos
    nodes: tuple[str, ...] = ()  # their names, where they are known

    def name_of(self, node: int) -> str:
        """What a node is called."""
        return self.nodes[node] if self.nodes else str(node)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer(Generic[S]):
    """A silo's answer: parts to be added up, and what stays in the silo."""

    parts: Parts
    state: S | None = None  # what the method keeps in the silo
    graph: Vector | None = None  # the silo's graph, if it has a new one
    start: Vector | None = None  # multipliers from which a later method may start
    evidence: Mapping[str, float] | None = None  # for the silo's own people: it never leaves
    reported: Mapping[str, float] = field(default_factory=dict)  # told of this silo alone, if the settings allow it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Where a method ended."""

    consensus: Vector
    objective: float
    gap: float = np.nan  # relative; NaN: the method has no certificate
    converged: bool = False
    diverged: bool = False

    @property
    def certificate(self) -> Vector:
        """What sites are told of how good the answer is: objective, gap, whether it met the tolerance; or nothing."""
        told = np.array([self.objective, self.gap, float(self.converged)])
        return told if np.isfinite(told).all() else np.zeros(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision(Generic[C]):
    """What the coordinator keeps and asks next, or how the run ended."""

    state: C | None = None
    step: str | None = None  # None: nothing, the run is over
    parts: Parts = field(default_factory=dict)
    record: RoundRecord = field(default_factory=dict)
    outcome: Any = None  # at the end; an `Outcome`, or what set-up found


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The dataclasses by which a method keeps what it keeps."""

    silo: type = NoneType  # of `SiloState.own`
    coordinator: type = NoneType
    outcome: type = Outcome


class Method(Protocol):
    """The pair of functions, what their messages hold, and what they keep."""

    @property
    def name(self) -> str:
        """What the method is called."""

    @property
    def steps(self) -> Mapping[str, Step]:
        """Every kind of exchange."""

    @property
    def states(self) -> States:
        """What each half keeps."""

    def units(self, task: Task) -> Units:
        """What the answers to a task are counted in."""

    def local(self, silo: Silo, state: SiloState[Any], task: Task) -> Answer[Any]:
        """A silo's half."""

    def begin(self, cohort: Cohort) -> Decision[Any]:
        """The first task."""

    def merge(self, cohort: Cohort, state: Any, total: Total) -> Decision[Any]:
        """The coordinator's half."""


def report_on(silo: Silo, w: Vector, consensus: Vector, *, weight: float | None = None) -> dict[str, float]:
    """What a silo may tell of itself: samples, mean squared difference, edges, distance to the consensus, weight γ.

    γ = 1/‖w − u‖ (the paper's contribution weight) is infinite where the silo's graph is the consensus; `weight` is the
    γ of a method that has its own.
    """
    far = distance(w, consensus)
    gamma = (1 / far if far > 0 else np.inf) if weight is None else weight
    samples = np.nan if silo.n_samples is None else float(silo.n_samples)
    return {
        "samples": samples,
        "scale": float(silo.cost.mean()),  # by it, silos in other units are noticed
        "edges": float(np.count_nonzero(w)),
        "distance": far,
        "contribution": float(gamma),
    }
