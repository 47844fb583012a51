"""Moments of tables with gaps, against sums over the rows of each pair and against pandas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import SignalError
from silograph.data.blocks import BlockReader, blocks_of, moments_of_blocks
from silograph.data.moments import Moments
from silograph.data.pairwise import PairMoments, add_rows, merged, moments_of
from silograph.graph.pairs import Pairs

seeds = st.integers(0, 2**32 - 1)
tables = st.tuples(st.integers(20, 60), st.integers(2, 7), st.sampled_from([0.0, 300.0, -1e6]), seeds)


def with_gaps(n: int, d: int, offset: float, seed: int, part: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1) + offset
    X[rng.uniform(size=X.shape) < part] = np.nan
    X[:4] = rng.normal(size=(4, d)) + offset  # so that every pair has rows in common
    X[n // 2, 0] = np.nan
    return X


def naive_costs(X: np.ndarray, pairs: Pairs, *, standardize: bool) -> np.ndarray:
    out = []
    for i, j in zip(pairs.rows, pairs.cols, strict=True):
        both = ~np.isnan(X[:, i]) & ~np.isnan(X[:, j])
        x, y = X[both, i], X[both, j]
        if standardize:
            x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
        out.append(np.mean((x - y) ** 2))
    return np.array(out)


@pytest.mark.parametrize("standardize", [False, True])
@given(table=tables, listed=st.booleans())
def test_costs_are_means_over_the_rows_that_have_both(standardize, table, listed):
    X = with_gaps(*table)
    d = X.shape[1]
    pairs = Pairs.listed(d, [(k, (k + 1) % d) for k in range(d)]) if listed and d > 2 else Pairs.all(d)
    cost = moments_of(X, pairs).costs(standardize=standardize)
    # An offset of 1e6 leaves ten digits of the numbers, so the naive sums have fewer than ours
    np.testing.assert_allclose(cost, naive_costs(X, pairs, standardize=standardize), rtol=1e-7, atol=1e-9)


@given(table=tables)
def test_standardised_costs_are_those_of_the_correlations_of_pandas(table):
    X = with_gaps(*table)
    cost = moments_of(X, Pairs.all(X.shape[1])).costs(standardize=True)
    r = pd.DataFrame(X - np.nanmean(X, axis=0)).corr().to_numpy()[np.triu_indices(X.shape[1], 1)]
    np.testing.assert_allclose(cost, 2 * (1 - r), rtol=1e-7, atol=1e-9)
    assert (cost >= 0).all()
    assert (cost <= 4).all()


@pytest.mark.parametrize("standardize", [False, True])
@given(table=tables, lengths=st.lists(st.integers(1, 9), max_size=8))
def test_chunks_of_any_size_give_the_same_costs(standardize, table, lengths):
    X = with_gaps(*table)
    pairs, start = Pairs.all(X.shape[1]), 0
    moments: Moments | PairMoments = Moments(pairs)
    for length in [*lengths, len(X)]:
        moments = add_rows(moments, X[start : start + length])
        start += length
    whole = moments_of(X, pairs)
    assert moments.n_samples == len(X)
    np.testing.assert_allclose(
        moments.costs(standardize=standardize), whole.costs(standardize=standardize), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_array_equal(moments.constant(), whole.constant())


def test_of_signals_that_drift_together_their_differences_remain():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4000, 3))
    X = noise + np.linspace(0, 1e4, 4000)[:, None].round()
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    pairs, moments = Pairs.all(3), PairMoments(Pairs.all(3))
    for start in range(0, 4000, 100):
        moments.update(X[start : start + 100])
    np.testing.assert_allclose(moments.costs(), naive_costs(X, pairs, standardize=False), rtol=1e-6)


@given(table=tables)
def test_without_a_gap_moments_stay_plain_and_pairwise_ones_agree_with_them(table):
    X = np.nan_to_num(with_gaps(*table), nan=table[2])
    plain, pairs = moments_of(X, Pairs.all(X.shape[1])), Pairs.all(X.shape[1])
    assert isinstance(plain, Moments)
    for pairwise in (PairMoments.of_plain(plain), PairMoments(pairs)):
        if not pairwise.n_samples:
            pairwise.update(X)
        for standardize in (False, True):
            np.testing.assert_allclose(
                pairwise.costs(standardize=standardize), plain.costs(standardize=standardize), rtol=1e-7, atol=1e-9
            )


@pytest.mark.parametrize("standardize", [False, True])
@given(table=tables, chunk=st.integers(3, 30))
def test_the_costs_of_blocks_add_up_to_the_tables(standardize, table, chunk):
    X = with_gaps(*table)
    pairs = Pairs.all(X.shape[1])
    reader = BlockReader(pairs)
    for start in range(0, len(X), chunk):
        reader.update(X[start : start + chunk])
    for parts in (moments_of_blocks(X, pairs), reader.finish()):
        whole = merged(parts)
        blocks = blocks_of(parts, whole, standardize=standardize)
        cost = whole.costs(standardize=standardize)
        np.testing.assert_allclose(blocks.cost(range(len(parts))), cost, rtol=1e-6, atol=1e-9)
        assert blocks.counts.sum() == len(X)
        assert blocks.pair_counts is not None
        np.testing.assert_array_equal(blocks.pair_counts.sum(axis=0), [
            (~np.isnan(X[:, i]) & ~np.isnan(X[:, j])).sum() for i, j in zip(pairs.rows, pairs.cols, strict=True)
        ])  # fmt: skip


def test_a_fold_has_the_costs_of_its_own_rows_and_where_it_has_none_the_tables():
    X = with_gaps(64, 4, 3.0, 1)
    X[:16, 0] = np.nan
    X[:16, 1] = np.where(np.isnan(X[:16, 1]), 0.0, X[:16, 1])
    X[16:20] = 1.0 + np.arange(16).reshape(4, 4) ** 2
    pairs = Pairs.all(4)
    parts = moments_of_blocks(X, pairs)
    blocks = blocks_of(parts, merged(parts), standardize=False)
    fold, whole = blocks.cost(blocks.folds(4)[0]), naive_costs(X, pairs, standardize=False)
    np.testing.assert_allclose(fold[:3], whole[:3])
    np.testing.assert_allclose(fold[3:], naive_costs(X[:16, 1:], Pairs.all(3), standardize=False))


@given(table=tables)
def test_the_moments_of_some_nodes_are_those_of_their_columns(table):
    X = with_gaps(*table)
    nodes = np.arange(0, X.shape[1], 2, dtype=np.int32)
    if nodes.size < 2:
        return
    for values in (X, np.nan_to_num(X)):
        some = moments_of(values, Pairs.all(X.shape[1])).within(nodes)
        alone = moments_of(values[:, nodes], Pairs.all(nodes.size))
        np.testing.assert_allclose(some.costs(), alone.costs(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "standardize", "message"),
    [
        ([[1, np.nan], [np.nan, 2], [3, 4]], False, r"2 rows that have both 'a' and 'b', got 1\. Drop one of them"),
        ([[1, np.nan], [2, np.nan], [3, np.nan]], False, "column 'b': expected numbers, got gaps only"),
        ([[1, 5], [2, np.nan], [3, 5], [4, 5]], True, r"1 of the nodes are: 'b'\. .*missing_nodes='allow'"),
        ([[1, 5], [2, 5], [np.nan, 6], [4, np.nan]], True, "'b' is in the 2 rows that have 'a' too"),
        ([[1, 1e80], [2, np.nan], [3, 4]], False, "column 'b': expected magnitudes"),
    ],
)
def test_what_gaps_leave_undefined_is_an_error_that_names_it(X, standardize, message):
    with pytest.raises(SignalError, match=message):
        moments_of(np.array(X, dtype=float), Pairs.all(2)).costs(standardize=standardize, names=("a", "b"))


@pytest.mark.parametrize("rows", [50, 400])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_what_is_constant_beside_another_node_is_noticed_however_small_it_is(rows, seed, value):
    """As counts are that are zero wherever the other was asked: rounding comes from the node's other rows."""
    X = 1e5 * np.random.default_rng(seed).normal(size=(400, 2))
    X[:200, 0] = X[230:, 1] = np.nan
    X[200:230, 0] = value
    moments = Moments(Pairs.all(2))
    for start in range(0, 400, rows):
        moments = add_rows(moments, X[start : start + rows])
    with pytest.raises(SignalError, match="'a' is in the 30 rows that have 'b' too"):
        moments.costs(standardize=True, names=("a", "b"))
