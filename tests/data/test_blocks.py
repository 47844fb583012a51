import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from silograph.data.blocks import N_BLOCKS, BlockReader, blocks_of, fit_in_memory, moments_of_blocks
from silograph.data.moments import Moments
from silograph.data.pairwise import merged
from silograph.graph.pairs import Pairs

seeds = st.integers(0, 2**32 - 1)


def read(X: np.ndarray, lengths: list[int]) -> list[Moments]:
    reader, start = BlockReader(Pairs.all(X.shape[1])), 0
    for length in lengths:
        reader.update(X[start : start + length])
        start += length
    if start < len(X):
        reader.update(X[start:])
    return reader.finish()


@given(n=st.integers(2, 2000), lengths=st.lists(st.integers(1, 90), max_size=30), seed=seeds)
def test_blocks_are_contiguous_and_about_even_whatever_chunks_a_table_comes_in(n, lengths, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3)) + 7
    parts = read(X, lengths)
    counts = [part.n_samples for part in parts]
    assert sum(counts) == n
    assert len(parts) <= N_BLOCKS
    assert len(parts) == min(n, N_BLOCKS) or len(lengths) > 0
    start = 0
    for part in parts:
        np.testing.assert_allclose(part.mean, X[start : start + part.n_samples].mean(axis=0), rtol=1e-9)
        start += part.n_samples


@given(n=st.integers(N_BLOCKS, 500), chunk=st.integers(16, 60), seed=seeds)
def test_of_a_long_table_no_block_is_over_four_times_another(n, chunk, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    counts = [part.n_samples for part in read(X, [chunk] * (n // chunk))]
    assert len(counts) >= N_BLOCKS // 2
    assert max(counts) <= 4 * max(1, sorted(counts)[1])  # the last one may be a rest


@pytest.mark.parametrize("standardize", [False, True])
@given(n=st.integers(4, 80), offset=st.sampled_from([0.0, 300.0]), seed=seeds)
def test_the_costs_of_blocks_add_up_to_the_tables(standardize, n, offset, seed):
    X = np.random.default_rng(seed).normal(size=(n, 6)) * [1, 2, 3, 4, 5, 6] + offset
    parts = moments_of_blocks(X, Pairs.all(6))
    whole = merged(parts)
    cost = whole.costs(standardize=standardize)
    blocks = blocks_of(parts, whole, standardize=standardize)
    np.testing.assert_allclose(blocks.sums.sum(axis=0) / n, cost, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(blocks.cost(range(len(parts))), cost, rtol=1e-9, atol=1e-12)


def test_a_fold_has_the_costs_of_its_rows_in_the_whole_tables_scale(rng):
    X = rng.normal(size=(64, 5)) + 3
    parts = moments_of_blocks(X, Pairs.all(5))
    whole = merged(parts)
    blocks = blocks_of(parts, whole, standardize=True)
    first = blocks.folds(4)[0]
    scaled = ((X - X.mean(axis=0)) / X.std(axis=0))[:16]
    np.testing.assert_allclose(blocks.cost(first), pdist(scaled.T, "sqeuclidean") / 16, rtol=1e-9)


def test_a_node_that_is_constant_within_a_block_is_no_trouble(rng):
    X = rng.normal(size=(32, 3))
    X[:8, 1] = 5.0
    parts = moments_of_blocks(X, Pairs.all(3))
    blocks = blocks_of(parts, merged(parts), standardize=True)
    assert np.isfinite(blocks.sums).all()


def test_few_rows_make_few_blocks(rng):
    parts = moments_of_blocks(rng.normal(size=(3, 4)), Pairs.all(4))
    assert [part.n_samples for part in parts] == [1, 1, 1]
    blocks = blocks_of(parts, merged(parts), standardize=False)
    assert blocks.folds(4) == [[0], [1], [2]]


def test_blocks_are_kept_up_to_a_size_that_any_machine_holds():
    assert fit_in_memory(Pairs.all(1448))
    assert not fit_in_memory(Pairs.all(1449))
