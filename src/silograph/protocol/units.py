"""The sizes that numbers of a run have: by them sums are exact, and what is far beyond them is refused.

    weight √(α/q)    slope √(αq)    curvature q    energy α    cost: the study's own unit, a power of two

All sides know them: α, q = 4β and ρ come from the study or from its set-up. They are taken as powers of two, so that
to count in them changes no digit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from typing import Literal

import numpy as np

from silograph._util.types import Vector
from silograph.errors import SignalError

UnitName = Literal["one", "cost", "weight", "weight²", "slope", "slope²", "curvature", "energy", "1/weight"]
POWERS: dict[UnitName, tuple[float, float]] = {  # of α and of q
    "one": (0, 0),
    "weight": (0.5, -0.5),
    "weight²": (1, -1),
    "slope": (0.5, 0.5),
    "slope²": (1, 1),
    "curvature": (0, 1),
    "energy": (1, 0),
    "1/weight": (-0.5, 0.5),
}
SMALLEST_COST, LARGEST_COST = 2.0**-36, 2.0**60  # in units: of typical costs, which then keep their digits; of any
STANDARDISED = 4.0  # the largest cost of standardised nodes: 2(1 − correlation)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """What a run's numbers are counted in, and bounds that follow from the model."""

    cost: float = 1.0  # a power of two
    alpha: float = 1.0
    quadratic: float = 1.0  # q = 4β
    rho: float = np.inf  # the largest force
    largest_cost: float = np.inf  # where it is known
    exponents: Mapping[UnitName, int] = field(init=False, repr=False)  # k by unit, which is 2ᵏ

    def __post_init__(self) -> None:
        alpha, quadratic = log2(self.alpha), log2(self.quadratic)
        found: dict[UnitName, int] = {name: round(a * alpha + q * quadratic) for name, (a, q) in POWERS.items()}
        object.__setattr__(self, "exponents", found | {"cost": round(log2(self.cost))})


units_of = lru_cache(maxsize=16)(Units)  # a run asks for the same in every round of every silo


def fits(cost: Vector, unit: float) -> bool:
    """Whether costs are neither too large nor too small for a unit."""
    if float(cost.max(initial=0.0)) > unit * LARGEST_COST:
        return False
    least = unit * SMALLEST_COST
    return float(cost.min(initial=least)) >= least or not 0 < _typical(cost) < least  # the first is much quicker


def unit_for(costs: list[Vector]) -> float:
    """A unit for these silos' costs: 1 where it fits all, else the power of two amid those that may do."""
    if all(fits(cost, 1.0) for cost in costs):
        return 1.0
    sizes = [(_typical(cost), float(cost.max())) for cost in costs if cost.any()]
    least = log2(max(largest for _, largest in sizes) / LARGEST_COST)
    most = log2(min(typical for typical, _ in sizes) / SMALLEST_COST)
    return float(2.0 ** round((least + most) / 2))


def check_costs(cost: Vector, unit: float, source: str) -> None:
    """Raise, and name the table, when its costs are too large or too small for the study's unit."""
    if fits(cost, unit):
        return
    raise SignalError(
        f"{source}: expected mean squared differences z/N of {unit * SMALLEST_COST:.1e} or more typically, and at most "
        f"{unit * LARGEST_COST:.1e}, as the study counts them in units of {unit:g} (cost_unit); got "
        f"{_typical(cost):.1e} typically and {float(cost.max()):.1e} at most. Are its signals in other units than the "
        "others'? Express them alike, standardize, or give another cost_unit."
    )


def _typical(cost: Vector) -> float:
    """The median of those that are not zero."""
    positive = cost[cost > 0]
    return float(np.median(positive)) if positive.size else 0.0
