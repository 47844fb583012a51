"""Arrays as bytes, to the last bit, and short where most numbers are zero: graphs have few edges.

    dense     the numbers, little-endian float64
    sparse    the places of those that are not +0 (uint32, increasing), then these numbers

Which one is told by the count: none for dense.
"""

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ProtocolError

WORTH = 1000  # numbers; shorter arrays are not looked at
PLACE, NUMBER = 4, 8  # bytes

Piece = bytes | memoryview


def pack(array: np.ndarray) -> tuple[list[Piece], int | None]:
    """The array's bytes in pieces, and how many numbers are kept if it is sparse."""
    numbers = np.ascontiguousarray(array, dtype="<f8")
    if numbers.ndim == 1 and WORTH < numbers.size < 2**32:
        places = np.flatnonzero(numbers.view("<u8"))  # bits rather than values: −0 is kept
        if 2 * places.size * (PLACE + NUMBER) < numbers.size * NUMBER:
            return [_bytes_of(places.astype("<u4")), _bytes_of(numbers[places])], int(places.size)
    return [_bytes_of(numbers)], None


def packed_size(size: int, count: int | None) -> int:
    """How many bytes an array of this size takes."""
    return size * NUMBER if count is None else count * (PLACE + NUMBER)


def unpack(data: memoryview, size: int, count: int | None) -> Vector:
    """The array in these bytes, of which there are as many as `packed_size` says."""
    if count is None:
        return np.frombuffer(data, dtype="<f8").astype(np.float64)
    places = np.frombuffer(data[: count * PLACE], dtype="<u4")
    if count and (int(places[-1]) >= size or not (np.diff(places.astype(np.int64)) > 0).all()):
        raise ProtocolError("message: the places of its numbers are not possible. It was damaged.")
    array: Vector = np.zeros(size)
    array[places] = np.frombuffer(data[count * PLACE :], dtype="<f8")
    return array


def _bytes_of(array: np.ndarray) -> Piece:
    """Without a copy where there are many."""
    return array.data.cast("B") if array.ndim and array.size else array.tobytes()
