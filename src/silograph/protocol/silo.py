"""A silo's private side: its data, and what it keeps between two rounds.

Only the silo's half of a method sees this. The signals themselves stay outside: costs z/N are all that learning needs.
A silo may lack some of the study's nodes. Then all that it keeps is on its own nodes and the pairs among them, and
`take` and `spread` translate from and to the study's pairs (exchange.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from silograph._util.plain import restore
from silograph._util.types import IntVector, Vector
from silograph.data.blocks import Blocks
from silograph.errors import ProtocolError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem

S = TypeVar("S")


@dataclass(slots=True, kw_only=True, eq=False)
class Silo:
    """One silo's private data. They do not change while it learns."""

    name: str
    pairs: Pairs  # among its own nodes
    cost: Vector  # z/N, one number per pair
    n_samples: int | None = None  # None: precomputed distances
    blocks: Blocks | None = None  # of its rows, to hold some out; None where there are none
    local_steps: int | None = None  # this silo's own K_i; None: the run's
    nodes: IntVector | None = None  # numbers of the study's nodes that it has, rising; None: all
    place: IntVector | None = None  # where its pairs stand among the study's; None: they are the same
    whole: Pairs | None = None  # the study's pairs; None: its own
    _problem: LocalProblem | None = field(default=None, init=False, repr=False)

    @classmethod
    def on(cls, pairs: Pairs, nodes: IntVector | None, **data: Any) -> "Silo":
        """A silo with some nodes of a study on `pairs`, or with all (None); its `data` are on the pairs among them."""
        if nodes is None or len(nodes) == pairs.n_nodes:
            return cls(pairs=pairs, **data)
        own, place = pairs.within(nodes)
        return cls(pairs=own, nodes=nodes, place=place, whole=pairs, **data)

    @property
    def study_pairs(self) -> Pairs:
        """The pairs of the study, some of which the silo may lack."""
        return self.pairs if self.whole is None else self.whole

    def take(self, full: Vector) -> Vector:
        """What belongs to the silo's own pairs."""
        return full if self.place is None else full[self.place]

    def spread(self, own: Vector) -> Vector:
        """The same on the study's pairs, zero on those that the silo lacks."""
        if self.place is None:
            return own
        full = np.zeros(self.study_pairs.size)
        full[self.place] = own
        return full

    def problem(self, *, alpha: float, beta: float, zeta: float) -> LocalProblem:
        """The silo's own problem, not pulled anywhere; made once for all rounds that ask for it."""
        made = self._problem
        if made is None or (made.quadratic, made.alpha, made.zeta) != (4 * beta, alpha, zeta):
            made = LocalProblem(cost=self.cost, pairs=self.pairs, quadratic=4 * beta, alpha=alpha, zeta=zeta)
            self._problem = made
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiloState(Generic[S]):
    """What a silo keeps between two rounds. Arrays are replaced, never altered: a checkpoint may hold them."""

    run: str = ""  # run, method and round of the last task that it answered
    method: str = ""
    round: int = 0
    own: S | None = None  # what the method keeps here; None before its first round
    start: Vector | None = None  # multipliers of an earlier solve, from which set-up and then the method may start
    graph: Vector | None = None  # the silo's graph, once the method has one
    evidence: Mapping[str, float] = field(default_factory=dict)  # of that graph, for the silo's own people

    @property
    def kept(self) -> S:
        """What the method keeps here, from its second round on."""
        if self.own is None:
            raise ProtocolError("expected the first step of a method first, got a later one.")
        return self.own


def restore_silo_state(tree: dict[str, Any], kind: type) -> SiloState[Any]:
    """The state that was made plain data of; the method keeps a `kind` of its own there."""
    state: SiloState[Any] = restore(SiloState, tree | {"own": restore(kind, tree.get("own"))})
    return state
