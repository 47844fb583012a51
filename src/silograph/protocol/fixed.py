"""Numbers as whole numbers: fixed point in a ring of 192 bits, in which sums are exact.

A number x in a unit 2ᵏ is the whole number round(x · 2⁸⁸⁻ᵏ), modulo 2¹⁹². Whole numbers may be added in any order and
any grouping, and under a mask: the sum has the same bits. A term of less than 2⁸⁸ units fits, and so does the sum of
32 768 of them; whoever takes numbers from others checks that first (`LARGEST_TERM`), so that nothing ever wraps.

A term is a float64, and stays one when it is rounded to a multiple of 2⁻⁸⁸ units. So rounding happens where terms are
added, and a term travels as the float64 that it is.

A single number is a Python integer here; a vector is an array (n, 3) of uint64, the lowest limb first.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import ceil, floor, ldexp
from typing import cast

import numpy as np
from numpy.typing import NDArray

from silograph._util.kernel import kernel, strict_kernel
from silograph._util.types import Vector

Limbs = NDArray[np.uint64]

FRACTION_BITS, TERM_BITS, COUNT_BITS = 88, 88, 15
LARGEST_TERM = 2.0**TERM_BITS  # in units; terms must be smaller
MOST_TERMS = 2**COUNT_BITS
RING = 2**192
BLOCK = 8192  # sums that are added up at a time, so that they stay in the processor's cache
ORDINARY_UNITS = range(-900, 900)  # in which no sum is near the ends of float64


class Rounding(IntEnum):
    """Where what does not fit the last bit goes: to the nearest, or outward for a bound."""

    NEAREST = 0
    UP = 1
    DOWN = 2


ROUNDED: dict[Rounding, Callable[[float], int]] = {
    Rounding.NEAREST: round,
    Rounding.UP: ceil,
    Rounding.DOWN: floor,
}  # of a float64 to a whole number, exactly


def number_to_fixed(x: float, unit: int, rounding: Rounding) -> int:
    """The whole number for x in units of 2^unit."""
    return ROUNDED[rounding](ldexp(x, FRACTION_BITS - unit))  # the product with a power of two is exact


def fixed_to_number(whole: int, unit: int, rounding: Rounding) -> float:
    """The float64 for a whole number in units of 2^unit."""
    excess = max(abs(whole).bit_length() - 53, 0)
    return ldexp(_shift_right(whole, excess, rounding), excess - FRACTION_BITS + unit)


def _shift_right(whole: int, bits: int, rounding: Rounding) -> int:
    if rounding is Rounding.UP:
        return -(-whole >> bits)
    if rounding is Rounding.DOWN or bits == 0:
        return whole >> bits
    down, rest, half = whole >> bits, whole & ((1 << bits) - 1), 1 << (bits - 1)
    return down + (rest > half or (rest == half and down & 1))


def zeros(size: int) -> Limbs:
    """The sum of nothing."""
    return np.zeros((size, 3), dtype=np.uint64)


def add_vector(limbs: Limbs, values: Vector, unit: int, rounding: Rounding) -> None:
    """Add a term to the sum; it must be finite and below `LARGEST_TERM` units."""
    bits = np.ascontiguousarray(values).view(np.int64)
    _add_terms(limbs, bits, FRACTION_BITS - unit - 1075, int(rounding))


def add_limbs(limbs: Limbs, other: Limbs) -> None:
    """Add another sum to the sum."""
    _add_limbs(limbs, other)


def subtract_limbs(limbs: Limbs, other: Limbs) -> None:
    """Take another sum out of the sum."""
    _subtract_limbs(limbs, other)


def vector_of(limbs: Limbs, unit: int, rounding: Rounding) -> Vector:
    """The sum as float64, rounded once."""
    out: Vector = np.empty(limbs.shape[0])
    _read(limbs, unit - FRACTION_BITS, int(rounding), out)
    return out


def sum_vectors(terms: Sequence[Vector], unit: int, rounding: Rounding) -> Vector:
    """The sum of some terms as float64, with the bits of `add_vector` and `vector_of`.

    Nearly always a float64 and the error of its sum hold the exact sum, and adding the two rounds it once.
    """
    if rounding is not Rounding.NEAREST or unit not in ORDINARY_UNITS:
        return _sum_by_limbs(terms, unit, rounding)
    out: Vector = np.empty(terms[0].size)
    least = ldexp(1.0, unit - FRACTION_BITS + 52)  # from here on, the last bit of a term is one of the sum's
    for start in range(0, out.size, BLOCK):
        some = [term[start : start + BLOCK] for term in terms]
        total, error, doubtful = np.zeros(some[0].size), np.zeros(some[0].size), np.zeros(some[0].size, dtype=np.bool_)
        for term in some:
            _add_with_error(total, error, doubtful, term, least)
        total += error
        if (where := np.flatnonzero(doubtful)).size:
            total[where] = _sum_by_limbs([term[where] for term in some], unit, rounding)
        out[start : start + BLOCK] = total
    return out


def _sum_by_limbs(terms: Sequence[Vector], unit: int, rounding: Rounding) -> Vector:
    limbs = zeros(terms[0].size)
    for term in terms:
        add_vector(limbs, term, unit, rounding)
    return vector_of(limbs, unit, rounding)


@strict_kernel
def _add_with_error(total: Vector, error: Vector, doubtful: NDArray[np.bool_], term: Vector, least: float) -> None:
    """Add a term; sum and error together stay exact, but where it is doubtful. Both additions are Knuth's TwoSum."""
    for k in range(term.size):
        x, before, lost = term[k], total[k], error[k]
        after = before + x
        part = after - before
        left = (before - (after - part)) + (x - part)
        together = lost + left
        piece = together - lost
        rest = (lost - (together - piece)) + (left - piece)
        total[k], error[k] = after, together
        doubtful[k] |= (rest != 0.0) | ((x != 0.0) & (abs(x) < least))


# Whole numbers of both signs in one expression would become floats: every constant below is a uint64.


@kernel
def _add_terms(limbs: Limbs, bits: NDArray[np.int64], offset: int, rounding: int) -> None:
    """Add m · 2^(e + offset) for each float64 (±)m · 2^e, given by its bits."""
    none, one = np.uint64(0), np.uint64(1)
    for k in range(bits.size):
        pattern = bits[k]
        field = (pattern >> 52) & 0x7FF
        mantissa = np.uint64(pattern & 0xFFFFFFFFFFFFF)
        negative = pattern < 0
        if field > 0:
            mantissa |= np.uint64(0x10000000000000)
        else:
            field = 1
        if mantissa == none:
            continue
        shift = field + offset
        low, middle, high = mantissa, none, none
        if shift < 0:
            away = np.uint64(min(-shift, 63))
            low = mantissa >> away
            rest = mantissa & ((one << away) - one)
            half = one << (away - one)
            if rounding == 0:
                if rest > half or (rest == half and (low & one) == one):
                    low += one
            elif rest > none and (rounding == 1) != negative:
                low += one
        elif shift > 0:
            left = np.uint64(shift & 63)
            low = mantissa << left
            middle = (mantissa >> one) >> (np.uint64(63) - left)
            if shift >= 128:
                low, middle, high = none, none, low
            elif shift >= 64:
                low, middle, high = none, low, middle
        if negative:
            low, middle, high = _negated(low, middle, high)
        _add(limbs, k, low, middle, high)


@kernel
def _negated(low: np.uint64, middle: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """All bits turned, plus one."""
    none, one = np.uint64(0), np.uint64(1)
    low = ~low + one
    middle = ~middle + (one if low == none else none)
    high = ~high + (one if low == none and middle == none else none)
    return low, middle, high


@kernel
def _add(limbs: Limbs, k: int, low: np.uint64, middle: np.uint64, high: np.uint64) -> None:
    none, one = np.uint64(0), np.uint64(1)
    low += limbs[k, 0]
    carry = one if low < limbs[k, 0] else none
    limbs[k, 0] = low
    before = limbs[k, 1]
    middle += before
    carried = one if middle < before else none
    middle += carry
    limbs[k, 1] = middle
    high += limbs[k, 2] + carried + (one if middle < carry else none)
    limbs[k, 2] = high


@kernel
def _add_limbs(limbs: Limbs, other: Limbs) -> None:
    for k in range(limbs.shape[0]):
        _add(limbs, k, other[k, 0], other[k, 1], other[k, 2])


@kernel
def _subtract_limbs(limbs: Limbs, other: Limbs) -> None:
    for k in range(limbs.shape[0]):
        low, middle, high = _negated(other[k, 0], other[k, 1], other[k, 2])
        _add(limbs, k, low, middle, high)


@kernel
def _read(limbs: Limbs, exponent: int, rounding: int, out: Vector) -> None:
    """Each sum · 2^exponent as a float64."""
    none, one, full = np.uint64(0), np.uint64(1), np.uint64(64)
    for k in range(limbs.shape[0]):
        first, second, third = limbs[k, 0], limbs[k, 1], limbs[k, 2]
        negative = (third >> np.uint64(63)) == one
        if negative:
            first, second, third = _negated(first, second, third)
        place = 0
        if third > none:
            top, middle, rest, place = third, second, first, 128
        elif second > none:
            top, middle, rest, place = second, first, none, 64
        else:
            top, middle, rest = first, none, none
        if top == none:
            out[k] = 0.0
            continue
        lead, width = top, np.uint64(0)  # how far the leading bit is from the left
        for step in (32, 16, 8, 4, 2, 1):
            if lead >> (full - np.uint64(step)) == none:
                lead <<= np.uint64(step)
                width += np.uint64(step)
        if width > none:
            lead |= middle >> (full - width)
            middle <<= width
        mantissa = lead >> np.uint64(11)
        left = lead & np.uint64(0x7FF)
        sticky = middle > none or rest > none
        if rounding == 0:
            half = np.uint64(0x400)
            if left > half or (left == half and (sticky or (mantissa & one) == one)):
                mantissa += one
        elif (left > none or sticky) and (rounding == 1) != negative:
            mantissa += one
        value = np.ldexp(np.float64(mantissa), exponent + place + 11 - np.int64(width))
        out[k] = -value if negative else value


def width_of(limbs: Limbs) -> int:
    """How many of the three limbs tell all: the higher ones only go on with the sign."""
    for width in (1, 2):
        sign = (limbs[:, width - 1] >> np.uint64(63)) * np.uint64(2**64 - 1)
        if (limbs[:, width:] == sign[:, None]).all():
            return width
    return 3


def widen(lowest: Limbs) -> Limbs:
    """All three limbs of sums whose lowest ones these are."""
    limbs = zeros(lowest.shape[0])
    width = lowest.shape[1]
    limbs[:, :width] = lowest
    limbs[:, width:] = ((lowest[:, -1] >> np.uint64(63)) * np.uint64(2**64 - 1))[:, None]
    return limbs


def limbs_of(whole: int) -> Limbs:
    """One whole number as a vector of one sum."""
    ring = whole % RING
    return np.array([[ring >> shift & (2**64 - 1) for shift in (0, 64, 128)]], dtype=np.uint64)


def in_ring(whole: int) -> int:
    """The whole number, signed, that stands for this one in the ring."""
    return (whole + RING // 2) % RING - RING // 2


def whole_numbers(limbs: Limbs) -> list[int]:
    """The sums as Python integers, signed: for tests and for messages."""
    found = []
    for first, second, third in cast("list[list[int]]", limbs.tolist()):
        found.append(in_ring(first | second << 64 | third << 128))
    return found
