"""Arrays as bytes: to the last bit, and short where few numbers are not zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from silograph.errors import ProtocolError
from silograph.protocol.packing import PLACE, pack, packed_size, unpack

SPECIAL = [0.0, -0.0, 5e-324, -1e308, np.inf, -np.inf, np.nan]


def through(array: np.ndarray) -> np.ndarray:
    pieces, count = pack(array)
    data = b"".join(pieces)
    assert len(data) == packed_size(array.size, count)
    return unpack(memoryview(data), array.size, count)


@given(
    size=st.integers(0, 5000),
    kept=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(SPECIAL) | st.floats()), max_size=60),
)
def test_every_bit_survives_however_few_numbers_there_are(size, kept):
    array = np.zeros(size)
    for place, value in kept:
        if size:
            array[place % size] = value
    assert through(array).tobytes() == array.tobytes()


@given(array=arrays(np.float64, st.integers(1000, 1300), elements=st.floats(width=64)))
def test_every_bit_survives_in_dense_arrays(array):
    assert through(array).tobytes() == array.tobytes()


def test_a_graph_of_few_edges_takes_few_bytes():
    array = np.zeros(500_000)
    array[::100] = 1.5
    pieces, count = pack(array)
    assert count == 5000
    assert sum(len(piece) for piece in pieces) == 5000 * 12


def test_a_view_that_is_not_contiguous_is_packed_as_it_reads():
    array = np.arange(6000.0)[::-3]
    assert through(array).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "places", [[5, 4], [4, 4], [0, 2000], [2000, 1]], ids=["decreasing", "repeated", "too far", "both"]
)
def test_places_that_are_not_possible_are_refused(places):
    data = np.array(places, "<u4").tobytes() + np.ones(2).tobytes()
    assert len(data) == 2 * (PLACE + 8)
    with pytest.raises(ProtocolError, match="not possible"):
        unpack(memoryview(data), 2000, 2)
