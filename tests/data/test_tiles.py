"""Costs by tiles are the costs that others store, and no pair that is called for escapes a tile."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.data import tiles
from silograph.data.moments import Moments
from silograph.data.tiles import CostTiles, node_moments
from silograph.errors import SignalError
from silograph.graph.nearest import nearest_neighbours
from silograph.graph.pairs import Pairs
from testing.problems import signals

KINDS = ("independent", "smooth", "duplicated", "amplitudes", "disconnected")


def tiles_of(X: np.ndarray, **options) -> CostTiles:
    moments = node_moments(X.shape[1])
    moments.update(X)
    return CostTiles.of(X, moments, **options)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE_ROWS", 32)
    monkeypatch.setattr(tiles, "TILE_COLUMNS", 24)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_costs_are_the_stored_ones(rng, kind, standardize, dtype):
    X = (100 * signals(kind, rng, 40, 90)).astype(dtype)
    X = X + np.arange(40)[:, None].astype(dtype)  # no node is constant, even of whole numbers
    pairs = Pairs.all(90)
    stored, by_tiles = Moments.of(X).costs(standardize=standardize), tiles_of(X, standardize=standardize)
    squares = pairs.sums(by_tiles.sizes)
    assert (np.abs(by_tiles.at(pairs.rows, pairs.cols) - stored) <= 1e-13 * squares).all()
    assert by_tiles.average() == pytest.approx(stored.mean(), rel=1e-10)


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32 - 1), share=st.floats(0.0, 1.5), single=st.booleans())
def test_the_active_pairs_are_exactly_those_whose_multipliers_exceed_their_cost(kind, seed, share, single):
    rng = np.random.default_rng(seed)
    X = signals(kind, rng, 12, 70)
    by_tiles, pairs = tiles_of(X.astype(np.float32) if single else X), Pairs.all(70)
    cost = by_tiles.at(pairs.rows, pairs.cols)
    y = share * np.sqrt(np.quantile(cost, 0.3) * by_tiles.sizes) * rng.uniform(0.5, 1, size=70)
    left, right = by_tiles.active(y)
    active = pairs.sums(y) > cost
    expected = pairs.rows[active].astype(int) * 70 + pairs.cols[active]
    np.testing.assert_array_equal(np.sort(left.astype(int) * 70 + right), expected)


@pytest.mark.parametrize("factor", [1e-60, 1e60])
def test_a_pair_at_the_very_edge_is_told_by_double_precision(rng, factor):
    X = factor * rng.normal(size=(30, 80))
    by_tiles, pairs = tiles_of(X), Pairs.all(80)
    cost = by_tiles.at(pairs.rows, pairs.cols)
    e = int(np.argmin(cost))
    for more, found in ((1 - 1e-14, 0), (1 + 1e-14, 1)):  # far below what single precision can tell
        y = np.full(80, cost[e] / 2 * more)
        left, right = by_tiles.active(y)
        assert left.size == found
        assert set(zip(left.tolist(), right.tolist(), strict=True)) <= {(int(pairs.rows[e]), int(pairs.cols[e]))}


@pytest.mark.parametrize("single_up_to", [0, 50_000])
def test_nearest_neighbours_are_those_of_stored_costs(rng, monkeypatch, single_up_to):
    monkeypatch.setattr(tiles, "SINGLE_UP_TO", single_up_to)
    X = rng.normal(size=(30, 150)) + 7
    _, expected = nearest_neighbours(Pairs.all(150), Moments.of(X).costs(), 6)
    np.testing.assert_array_equal(tiles_of(X).nearest(6), expected)


def test_near_duplicates_are_told_apart(rng):
    X = rng.normal(size=(50, 40))
    X[:, 1] = X[:, 0] + 1e-11 * X[:, 2]
    X[:, 3] = X[:, 0]
    cost = tiles_of(X).at(np.array([0, 0], np.int32), np.array([1, 3], np.int32))
    assert cost[0] == pytest.approx(np.mean((X[:, 0] - X[:, 1]) ** 2), rel=1e-3)
    assert cost[1] == 0


def test_single_precision_stays_until_it_is_summed(rng):
    X = rng.normal(size=(20, 30)).astype(np.float32)
    assert tiles_of(X).columns.dtype == np.float32
    assert tiles_of(X.astype(np.float64)).columns.dtype == np.float64


def test_what_costs_refuse_tiles_refuse(rng):
    X = rng.normal(size=(20, 30))
    X[:, 4] = 3.0
    with pytest.raises(SignalError, match="constant"):
        tiles_of(X, standardize=True)
    with pytest.raises(SignalError, match="magnitudes"):
        tiles_of(X * 1e80)
    with pytest.raises(SignalError, match="at least 2 samples"):
        tiles_of(X[:1])
