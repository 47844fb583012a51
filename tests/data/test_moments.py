import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from silograph.data.moments import Moments
from silograph.errors import SignalError
from silograph.graph.pairs import Pairs

seeds = st.integers(0, 2**32 - 1)


@given(
    n=st.integers(2, 60),
    d=st.integers(2, 20),
    offset=st.sampled_from([0.0, 300.0, 1e6]),
    seed=seeds,
    parts=st.integers(1, 6),
)
def test_costs_from_any_chunks_are_mean_squared_differences(n, d, offset, seed, parts):
    X = np.random.default_rng(seed).normal(size=(n, d)) + offset
    moments = Moments(Pairs.all(d))
    for chunk in np.array_split(X, parts):
        moments.update(chunk)
    assert moments.n_samples == n
    np.testing.assert_allclose(moments.costs(), pdist(X.T, "sqeuclidean") / n, rtol=1e-6, atol=1e-9)


@given(n=st.integers(3, 60), d=st.integers(2, 12), seed=seeds)
def test_standardised_costs_are_two_minus_twice_the_correlation(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(n, d)) * 10.0 ** np.arange(d) + 7
    expected = 2 * (1 - np.corrcoef(X.T))[np.triu_indices(d, 1)]
    np.testing.assert_allclose(Moments.of(X).costs(standardize=True), expected, atol=1e-10)


@given(seed=seeds, cut=st.integers(0, 40))
def test_moments_of_two_parts_add_up_to_those_of_the_whole(seed, cut):
    X = np.random.default_rng(seed).normal(size=(40, 7)) + 5
    both = Moments.of(X[:cut]) + Moments.of(X[cut:])
    np.testing.assert_allclose(both.costs(), Moments.of(X).costs(), rtol=1e-10)
    assert both.n_samples == 40


def test_listed_pairs_have_the_costs_of_all_pairs(rng):
    X = rng.normal(size=(30, 300))  # more nodes than one block of the all-pairs product
    every, some = Pairs.all(300), Pairs.listed(300, [(0, 299), (5, 270), (255, 256), (256, 257)])
    full = dict(zip(zip(every.rows.tolist(), every.cols.tolist(), strict=True), Moments.of(X).costs(), strict=True))
    expected = [full[pair] for pair in zip(some.rows.tolist(), some.cols.tolist(), strict=True)]
    np.testing.assert_allclose(Moments.of(X, some).costs(), expected, rtol=1e-12)


def test_single_precision_is_summed_in_double(rng):
    X = rng.normal(size=(5000, 5)).astype(np.float32)
    np.testing.assert_allclose(Moments.of(X).costs(), pdist(X.T.astype(float), "sqeuclidean") / 5000, rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_duplicated_nodes_are_exactly_at_distance_zero(rng, standardize):
    X = rng.normal(size=(1000, 40)) + 280
    X[:, 20:] = X[:, :20]
    cost = Moments.of(X).costs(standardize=standardize)
    twins = [e for e, (i, j) in enumerate(zip(*np.triu_indices(40, 1), strict=True)) if j == i + 20]
    np.testing.assert_array_equal(cost[twins], 0)
    assert (np.delete(cost, twins) > 0).all()


def test_a_constant_node_cannot_be_standardised_and_is_named(rng):
    X = rng.normal(size=(50, 3))
    X[:, 1] = 0.1
    with pytest.raises(SignalError, match="1 of the nodes are: 'b'"):
        Moments.of(X).costs(standardize=True, names=["a", "b", "c"])


def test_the_callers_array_is_not_altered(rng):
    X = rng.normal(size=(50, 3))
    before = X.copy()
    Moments.of(X)
    np.testing.assert_array_equal(X, before)


def test_one_sample_is_too_few():
    with pytest.raises(SignalError, match="at least 2 samples, got 1"):
        Moments.of(np.ones((1, 3))).costs()
