import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import squareform

from silograph.graph.nearest import cheapest_cost, cheapest_pair, nearest_neighbours
from silograph.graph.pairs import Pairs


@given(
    n=st.integers(2, 25), k=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), ties=st.booleans(), listed=st.booleans()
)
def test_the_nearest_are_those_of_a_sorted_matrix(n, k, seed, ties, listed):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 4, n * (n - 1) // 2).astype(float) if ties else rng.normal(size=n * (n - 1) // 2)
    matrix = squareform(cost)
    np.fill_diagonal(matrix, np.inf)
    expected = np.full((n, k), np.inf)
    expected[:, : min(k, n)] = np.sort(matrix, axis=1)[:, :k]
    pairs = Pairs.from_sorted(n, *np.triu_indices(n, 1)) if listed else Pairs.all(n)
    value, neighbour = nearest_neighbours(pairs, cost, k)
    np.testing.assert_array_equal(value, expected)
    found = neighbour >= 0
    np.testing.assert_array_equal(found, np.isfinite(value))
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    np.testing.assert_array_equal(matrix[rows[found], neighbour[found]], value[found])
    np.testing.assert_array_equal(cheapest_cost(pairs, cost), expected[:, 0])
    cheapest, where = cheapest_pair(pairs, cost)
    np.testing.assert_array_equal(cheapest, expected[:, 0])
    np.testing.assert_array_equal(cost[where], cheapest)
