"""One number for all pairs, or one number per pair: compiled loops take either, each at its own full speed.

The compiler makes one version of a loop for a number and one for an array, so that problems with one quadratic term for
all pairs, which are nearly all of them, pay nothing for those whose term differs from pair to pair.
"""

# The arguments of an overload are numba's types, and what it returns is typed by what it is compiled from
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
import numpy as np
from numba import types
from numba.extending import overload

from silograph._util.types import Vector


def value_at(quantity: float | Vector, pair: int) -> float:
    """The quantity of one pair."""
    raise NotImplementedError("only compiled loops call this")


def factor_inside(factor: float | Vector, pair: int) -> float:
    """What to multiply a term of a sum by: the pair's own factor, or nothing where all have the same."""
    raise NotImplementedError("only compiled loops call this")


def factor_outside(factor: float | Vector) -> float:
    """What to multiply the whole sum by: the factor that all pairs have, or nothing where each has its own."""
    raise NotImplementedError("only compiled loops call this")


def slice_of(quantity: float | Vector, start: int, stop: int) -> float | Vector:
    """The quantity of the pairs from `start` to `stop`."""
    raise NotImplementedError("only compiled loops call this")


def allocate(quantity: float | Vector, size: int) -> float | Vector:
    """A place for the quantity of some pairs, to be filled by `store`; where it is one number, that number."""
    raise NotImplementedError("only compiled loops call this")


def store(place: float | Vector, position: int, value: float) -> None:
    """Fill a position of what `allocate` made."""
    raise NotImplementedError("only compiled loops call this")


@overload(value_at)
def _value_at(quantity, pair):
    if isinstance(quantity, types.Array):
        return lambda quantity, pair: quantity[pair]
    return lambda quantity, pair: quantity


@overload(factor_inside)
def _factor_inside(factor, pair):
    if isinstance(factor, types.Array):
        return lambda factor, pair: factor[pair]
    return lambda factor, pair: 1.0


@overload(factor_outside)
def _factor_outside(factor):
    if isinstance(factor, types.Array):
        return lambda factor: 1.0
    return lambda factor: factor


@overload(slice_of)
def _slice_of(quantity, start, stop):
    if isinstance(quantity, types.Array):
        return lambda quantity, start, stop: quantity[start:stop]
    return lambda quantity, start, stop: quantity


@overload(allocate)
def _allocate(quantity, size):
    if isinstance(quantity, types.Array):
        return lambda quantity, size: np.empty(size)
    return lambda quantity, size: quantity


@overload(store)
def _store(place, position, value):
    if isinstance(place, types.Array):

        def fill(place, position, value):
            place[position] = value

        return fill
    return lambda place, position, value: None
