"""One number for all pairs, or one number per pair: compiled loops take either, each at its own full speed.

The compiler makes one version of a loop for a number and one for an array, so that problems with one quadratic term for
all pairs, which are nearly all of them, pay nothing for those whose term differs from pair to pair.
"""

# The arguments of an overload are numba's types, and what it returns is typed by what it is compiled from
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
from numba import types
from numba.extending import overload

from silograph._util.types import Vector


def value_at(quantity: float | Vector, pair: int) -> float:
    """The quantity of one pair."""
    raise NotImplementedError("only compiled loops call this")


@overload(value_at)
def _value_at(quantity, pair):
    if isinstance(quantity, types.Array):
        return lambda quantity, pair: quantity[pair]
    return lambda quantity, pair: quantity
