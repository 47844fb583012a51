import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import squareform

from silograph.errors import PairsError
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs, condensed_index


def some_pairs(n_nodes: int, seed: int, listed: bool) -> tuple[Pairs, np.random.Generator]:
    rng = np.random.default_rng(seed)
    if not listed:
        return Pairs.all(n_nodes), rng
    every = np.column_stack(np.triu_indices(n_nodes, 1))
    return Pairs.listed(n_nodes, rng.permutation(every)[: rng.integers(1, len(every) + 1)]), rng


@given(n=st.integers(2, 40), seed=st.integers(0, 2**32 - 1), listed=st.booleans())
def test_the_degree_operator_and_its_adjoint_are_transposes(n, seed, listed):
    pairs, rng = some_pairs(n, seed, listed)
    w, y = rng.normal(size=pairs.size), rng.normal(size=n)
    assert pairs.degrees(w) @ y == pytest.approx(w @ pairs.sums(y), rel=1e-9, abs=1e-9)


@given(n=st.integers(2, 40), seed=st.integers(0, 2**32 - 1))
def test_degrees_are_the_row_sums_of_the_adjacency_matrix(n, seed):
    w = np.random.default_rng(seed).uniform(size=n * (n - 1) // 2)
    np.testing.assert_allclose(Pairs.all(n).degrees(w), squareform(w).sum(axis=1), rtol=1e-12)


@given(n=st.integers(2, 40), seed=st.integers(0, 2**32 - 1), listed=st.booleans())
def test_sums_differences_and_products_are_taken_over_the_two_ends(n, seed, listed):
    pairs, rng = some_pairs(n, seed, listed)
    x = rng.normal(size=n)
    left, right = x[pairs.rows], x[pairs.cols]
    np.testing.assert_array_equal(pairs.sums(x), left + right)
    np.testing.assert_array_equal(pairs.differences(x), left - right)
    np.testing.assert_array_equal(pairs.products(x), left * right)


@given(n=st.integers(2, 60))
def test_positions_and_ends_of_all_pairs_agree(n):
    pairs, index = Pairs.all(n), np.arange(n * (n - 1) // 2)
    rows, cols = pairs.at(index)
    np.testing.assert_array_equal(rows, pairs.rows)
    np.testing.assert_array_equal(cols, pairs.cols)
    np.testing.assert_array_equal(condensed_index(n, rows, cols), index)


def test_a_list_of_pairs_is_sorted_and_counts_doubles_and_directions_once():
    pairs = Pairs.listed(4, [(3, 1), (0, 1), (1, 3), (1, 0)])
    assert list(zip(pairs.rows.tolist(), pairs.cols.tolist(), strict=True)) == [(0, 1), (1, 3)]


def test_forbidding_is_the_complement_of_allowing():
    allowed = Pairs.listed(4, [(0, 1), (2, 3), (1, 2), (0, 3)])
    assert choose_pairs(["a", "b", "c", "d"], forbidden=[("a", "c"), ("d", "b")]).same(allowed)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "x")], "pair 1: expected the name of a node, got 'x'"),
        ([("a", "b"), ("c", "c")], "pair 2: a node cannot be paired with itself"),
        ([(0, 3)], r"expected node numbers from 0 to 2, got \(0, 3\)"),
        ([(0, 1, 2)], "expected an .n, 2. array"),
        ([(0.5, 1.0)], "node numbers"),
        ([("a", "b")], "no allowed pair touches 'c'"),
    ],
)
def test_wrong_pairs_are_named(pairs, message):
    with pytest.raises(PairsError, match=message):
        choose_pairs(["a", "b", "c"], allowed=pairs)


def test_allowing_and_forbidding_at_once_is_an_error():
    with pytest.raises(PairsError, match="contradict"):
        choose_pairs(["a", "b"], allowed=[(0, 1)], forbidden=[(0, 1)])


@given(n=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_the_pairs_lacking_are_the_ones_that_a_union_adds(n, seed):
    mine, _ = some_pairs(n, seed, listed=True)
    theirs, _ = some_pairs(n, seed + 1, listed=True)
    lacking, both = mine.lacking(theirs.rows, theirs.cols), mine.union(theirs.rows, theirs.cols)
    as_set = [set(zip(p.rows.tolist(), p.cols.tolist(), strict=True)) for p in (mine, theirs, lacking, both)]
    assert as_set[2] == as_set[1] - as_set[0]
    assert as_set[3] == as_set[0] | as_set[1]
    assert lacking.size + mine.size == both.size
