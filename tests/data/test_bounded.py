"""Bounded rows: what one row can change, that nothing else matters, and that sums are exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from silograph import ParameterError, SignalError
from silograph.data import bounded
from silograph.data.blocks import BlockReader, blocks_of, moments_of_blocks
from silograph.data.bounded import STEPS, BoundedMoments, RowBounds, read_public
from silograph.data.pairwise import merged, moments_of
from silograph.graph.pairs import Pairs

UNIT = RowBounds()
numbers = st.floats(-1e12, 1e12, allow_subnormal=False)
wild = st.floats(allow_nan=False, allow_infinity=False)
bounds_of = st.one_of(
    st.just(UNIT),
    st.builds(RowBounds, unit=st.just(False), longest=st.floats(1e-6, 1e6)),
    st.just(RowBounds(longest=3.0)),
)


def tables(elements=numbers, least_rows=2):
    shape = st.tuples(st.integers(least_rows, 12), st.integers(2, 7))
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=elements))


def isometric(moments: BoundedMoments) -> np.ndarray:
    """(diagonal, √2 · rest) of M, in units of the longest length's square."""
    return np.concatenate([moments.squares, np.sqrt(2) * moments.cross]) / STEPS**2


def moments(X, bounds=UNIT, pairs=None) -> BoundedMoments:
    found = moments_of(X, Pairs.all(X.shape[1]) if pairs is None else pairs, bounds)
    assert isinstance(found, BoundedMoments)
    return found


@given(X=tables(wild), bounds=bounds_of)
def test_no_row_is_longer_than_the_bound_whatever_it_was(X, bounds):
    steps = bounds.steps_of(X)
    assert (steps == np.trunc(steps)).all()
    assert ((steps**2).sum(axis=1) <= STEPS**2).all()


@given(X=tables(wild, least_rows=3), bounds=bounds_of)
def test_another_row_in_the_place_of_one_changes_moments_by_root_two_at_most(X, bounds):
    other = np.vstack([X[:-2], X[-1:]])
    change = isometric(moments(X[:-1], bounds)) - isometric(moments(other, bounds))
    assert np.linalg.norm(change) <= np.sqrt(2) * (1 + 1e-12)


def test_the_worst_rows_come_near_that():
    first, second = np.array([[1.0, -1, 0, 0], [0, 0, 1, -1]])[:, None, :]
    change = isometric(moments(first)) - isometric(moments(second))
    assert np.linalg.norm(change) == pytest.approx(np.sqrt(2), rel=1e-5)


@given(X=tables(wild), bounds=bounds_of)
def test_the_mean_moments_of_a_table_are_no_longer_than_one(X, bounds):
    assert np.linalg.norm(isometric(moments(X, bounds))) / len(X) <= 1 + 1e-12


@given(X=tables(), seed=st.integers(0, 2**32 - 1), bounds=bounds_of)
def test_neither_the_order_of_rows_nor_their_chunks_matter(X, seed, bounds):
    rng = np.random.default_rng(seed)
    whole, pieces = moments(X, bounds), BoundedMoments(Pairs.all(X.shape[1]), bounds)
    for part in np.array_split(rng.permutation(X), rng.integers(1, 5)):
        pieces.update(part)
    assert (whole.squares == pieces.squares).all()
    assert (whole.cross == pieces.cross).all()
    assert whole.n_samples == pieces.n_samples


@given(X=tables(), power=st.integers(-20, 20))
def test_a_row_s_size_does_not_matter_where_rows_are_unit_ones(X, power):
    assert (UNIT.steps_of(X) == UNIT.steps_of(2.0**power * X)).all()


@given(X=arrays(np.float64, (4, 6), elements=st.integers(-1000, 1000).map(float)), shift=st.integers(-1000, 1000))
def test_what_is_added_to_all_nodes_of_a_row_does_not_matter(X, shift):
    assert np.abs(UNIT.steps_of(X) - UNIT.steps_of(X + shift)).max() <= 1  # where rounding crosses a step


@pytest.mark.parametrize("n_nodes", [2, 3, 8, 9])
def test_a_row_without_differences_becomes_a_fixed_vector_of_mean_zero(n_nodes):
    rows = UNIT.steps_of(np.array([np.zeros(n_nodes), np.full(n_nodes, 0.1), np.full(n_nodes, -1e300)]))
    assert (rows == rows[0]).all()
    assert rows[0].sum() == 0
    assert np.linalg.norm(rows[0]) == pytest.approx(STEPS, rel=1e-5)


def test_a_short_row_stays_short_where_rows_are_cut():
    cut = RowBounds(unit=False, longest=2.0)
    assert cut.steps_of(np.array([[0.5, -0.5], [0.0, 0.0], [30.0, -30.0]])) == pytest.approx(
        STEPS * np.array([[0.25, -0.25], [0, 0], [np.sqrt(0.5), -np.sqrt(0.5)]]), abs=1
    )


def test_costs_are_those_of_the_bounded_rows(rng):
    X = rng.normal(size=(50, 5)) * [1, 2, 3, 4, 5] + 7
    bounds = RowBounds(centres=(7.0,) * 5, scales=(1.0, 2.0, 3.0, 4.0, 5.0))
    Y = (X - 7) / [1, 2, 3, 4, 5]
    Y = Y - Y.mean(axis=1, keepdims=True)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    pairs = Pairs.all(5)
    expected = ((Y[:, pairs.rows] - Y[:, pairs.cols]) ** 2).mean(axis=0)
    assert moments(X, bounds).costs() == pytest.approx(expected, abs=1e-5)
    listed = Pairs.listed(5, [(0, 3), (1, 4)])
    assert moments(X, bounds, listed).costs() == pytest.approx(moments(X, bounds).costs()[[2, 6]], abs=0)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_blocks_add_up_to_the_table_however_it_was_read(seed):
    rng = np.random.default_rng(seed)
    X, pairs = rng.standard_t(2, size=(int(rng.integers(40, 300)), 4)), Pairs.all(4)
    reader = BlockReader(pairs, UNIT)
    for part in np.array_split(X, 3):
        reader.update(part)
    for parts in (reader.finish(), moments_of_blocks(X, pairs, UNIT)):
        whole = merged(parts)
        blocks = blocks_of(parts, whole, standardize=False)
        assert blocks.cost(range(len(parts))) == pytest.approx(moments(X).costs(), rel=1e-14)
        assert (merged(parts).cross == moments(X).cross).all()


def test_sums_that_int64_has_no_room_for_are_refused(monkeypatch):
    monkeypatch.setattr(bounded, "MOST_ROWS", 5)
    with pytest.raises(SignalError, match="at most 5 rows"):
        moments(np.eye(6))
    assert 2 * STEPS**2 * (2**22 - 1) < 2**63


def test_gaps_are_no_numbers():
    with pytest.raises(SignalError, match="finite"):
        moments(np.array([[1.0, np.nan], [0.0, 1.0]]))


def test_public_numbers_are_read_by_name(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("node,centre,scale\nb,2,0.5\na,1,10\n")
    assert read_public(path, ("a", "b")) == ((1.0, 2.0), (10.0, 0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,1,1\n", "lacks 'b'"),
        ("a,1,1\nb,1,1\nc,1,1\n", "others"),
        ("a,1,1\nb,1,1\nb,1,1\n", "twice"),
        ("a,1,0\nb,1,1\n", "scale > 0"),
        ("a,1\nb,1,1\n", "a node, its centre"),
    ],
)
def test_public_numbers_that_are_not_one_per_node_are_refused(tmp_path, text, said):
    path = tmp_path / "public.csv"
    path.write_text(text)
    with pytest.raises(ParameterError, match=said):
        read_public(path, ("a", "b"))
