"""What crosses between a silo and the coordinator: a Task down, an Update up, and updates add.

An `Update` does not offer its numbers. Only a `Total`, the sum over silos, does (sums.py). So a method cannot read one
silo's vector, and adding under a mask is another transport, not another method. The fields of a method's step say what
its messages hold (checks.py); codec.py turns messages into bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from silograph._util.types import Vector
from silograph.protocol.fixed import Rounding
from silograph.protocol.units import UnitName

Parts = Mapping[str, Vector | float]
Reported = Mapping[str, Mapping[str, float]]  # silo → name → number


Bound = Literal["degree", "pairs", "force", "cost"]  # what a number cannot exceed, by its name: checks.py


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, so that limits are found fast
class Field:
    """What one named part of a message must be, and how it is added up."""

    kind: Literal["pairs", "number", "list", "flag"]  # one number per pair, one number, a few, or 0 or 1
    unit: UnitName = "one"  # the size that it has: sums keep 88 bits below it
    nonnegative: bool = False
    most: Bound | float | None = None  # of its magnitude
    rounding: Rounding = Rounding.NEAREST  # of terms and sum
    one_longer_than: str | None = None  # of an answer's list: a list of the task, than which it has one number more
    whole: bool = False  # of a task: on all pairs, for silos that lack some, too
    noisy: bool = False  # of an answer: whether a site adds noise to its sum before it leaves


FLAG, COUNT = Field("flag"), Field("number", nonnegative=True, most="pairs")
WEIGHTS = Field("pairs", "weight", nonnegative=True)
HAS = Field("pairs", nonnegative=True, most=1.0)  # 1 on the pairs that a silo has
FORCE = Field("pairs", "slope", most="force")
COSTS = Field("pairs", "cost", nonnegative=True, most="cost")
NOISY_COSTS = Field("pairs", "cost", most="cost", noisy=True)
OBJECTIVE = Field("number", "energy", rounding=Rounding.UP)  # of a primal point: never less than it is
BOUND = Field("number", "energy", rounding=Rounding.DOWN)  # on the optimum: never more
GAP = Field("number", "energy", nonnegative=True, rounding=Rounding.UP)
# Of tasks, which are not added up
PAIRS, NUMBER, LIST = Field("pairs"), Field("number"), Field("list")
PAIRS_NONNEGATIVE, NUMBER_NONNEGATIVE = Field("pairs", nonnegative=True), Field("number", nonnegative=True)


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of exchange in a method: what its task and its update hold."""

    down: Mapping[str, Field]
    up: Mapping[str, Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Where a message belongs."""

    run: str
    method: str
    step: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """What the coordinator asks of every silo."""

    header: Header
    parts: Parts

    def vector(self, name: str) -> Vector:
        """A part that is a vector."""
        return np.asarray(self.parts[name], dtype=np.float64)

    def number(self, name: str) -> float:
        """A part that is one number."""
        return float(self.parts[name])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """What a silo answers. Its numbers are for adding: read the sum, `Total`."""

    header: Header
    silo: str
    reported: Mapping[str, float] = field(default_factory=dict)  # of this silo alone, if settings allow it
    _parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Total:
    """The sum of all silos' updates: all that the coordinator's half of a method sees."""

    header: Header
    n_silos: int
    parts: Parts
    reported: Reported = field(default_factory=dict)

    def vector(self, name: str) -> Vector:
        """The sum of a part that is a vector."""
        return np.asarray(self.parts[name], dtype=np.float64)

    def number(self, name: str) -> float:
        """The sum of a part that is one number."""
        return float(self.parts[name])


def graph_fields(missing_nodes: bool) -> Mapping[str, Field]:
    """What a silo that gives its graph away sends; where nodes may be missing, also which pairs it has."""
    return {"graph": PAIRS_NONNEGATIVE} | ({"has": HAS} if missing_nodes else {})


def update_of(header: Header, silo: str, parts: Parts, *, reported: Mapping[str, float] | None = None) -> Update:
    """A silo's answer."""
    return Update(header=header, silo=silo, reported=dict(reported or {}), _parts=dict(parts))


def parts_of(update: Update) -> Parts:
    """An update's numbers: for sums, for the silo that writes it down, and for a graph that a silo gives away."""
    return update._parts
