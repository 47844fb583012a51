from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.local.solvers.dual import active_pairs, gap_at, weight_sums, weights_at
from testing.problems import random_problem


@given(n=st.integers(2, 90), seed=st.integers(0, 2**32 - 1), listed=st.booleans(), each=st.booleans())
def test_the_compiled_loops_say_what_the_problem_says(n, seed, listed, each):
    local, rng = random_problem(n, seed, listed)
    if each:  # a quadratic term of its own for each pair
        local = replace(local, quadratic=10.0 ** rng.uniform(-2, 2, size=local.pairs.size))
    y = rng.uniform(0.1, 2, size=n)
    w = local.weights(y)
    np.testing.assert_allclose(weights_at(local, y), w, rtol=1e-12, atol=1e-15)
    degrees = np.full(n, np.nan)
    squares, count = weight_sums(*local.pairs.index, local.cost, local.inverse, y, degrees)
    np.testing.assert_allclose(degrees, local.pairs.degrees(w), rtol=1e-12, atol=1e-12)
    assert squares == pytest.approx(local.quadratic * w @ w, rel=1e-12)
    assert count == np.count_nonzero(w)
    assert gap_at(local, y) == pytest.approx(local.gap(w, y), rel=1e-9, abs=1e-12)
    rows, cols = active_pairs(local, y)
    edges = np.flatnonzero(w)
    np.testing.assert_array_equal(rows, local.pairs.rows[edges])
    np.testing.assert_array_equal(cols, local.pairs.cols[edges])
