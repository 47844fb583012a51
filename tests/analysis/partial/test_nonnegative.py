"""The likeliest law without negative partial correlations."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.analysis.partial.learn import inverse, partial_correlations
from silograph.analysis.partial.nonnegative import TOL, nonnegative_law


def drawn_covariance(seed: int, n_nodes: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n_nodes, 2 * n_nodes))
    return half @ half.T / (2 * n_nodes) * np.outer(*[rng.uniform(0.1, 10, size=n_nodes)] * 2)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_law_that_a_conic_solver_finds(seed):
    covariance = drawn_covariance(seed, 6)
    unit = np.sqrt(np.diag(covariance))
    target = covariance / np.outer(unit, unit)
    K = cp.Variable((6, 6), symmetric=True)
    apart = [K[i, j] <= 0 for i in range(6) for j in range(i)]
    cp.Problem(cp.Maximize(cp.log_det(K) - cp.trace(K @ target)), apart).solve(solver=cp.SCS, eps=1e-9)
    found = nonnegative_law(covariance)
    np.testing.assert_allclose(found.precision * np.outer(unit, unit), K.value, atol=1e-4)


@given(seed=st.integers(0, 2**32 - 1), n_nodes=st.integers(2, 12))
def test_it_meets_its_conditions_with_a_gap_that_says_so(seed, n_nodes):
    covariance = drawn_covariance(seed, n_nodes)
    found = nonnegative_law(covariance)
    assert found.converged
    assert abs(found.gap) <= TOL * n_nodes
    off = ~np.eye(n_nodes, dtype=bool)
    assert (found.precision[off] <= 0).all()
    np.testing.assert_array_equal(found.precision, found.precision.T)
    unit = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    slack = (np.linalg.inv(found.precision) - covariance) / unit
    assert slack.min() >= -5e-3
    np.testing.assert_allclose(np.diag(slack), 0, atol=5e-3)


def test_a_law_that_has_none_already_stays_as_it_is():
    rng = np.random.default_rng(0)
    weights = np.triu(rng.uniform(0, 1, size=(8, 8)), 1)
    weights += weights.T
    precision = np.diag(weights.sum(axis=0) + 0.3) - weights
    found = nonnegative_law(np.linalg.inv(precision))
    np.testing.assert_allclose(found.precision, precision, atol=1e-4)


def test_partial_correlations_are_correlations_of_what_the_other_nodes_leave(rng):
    """By the precision, and by regressions on all others."""
    rows = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    rows -= rows.mean(axis=0)
    found = partial_correlations(rows.T @ rows / 300)
    for i, j in [(0, 1), (2, 4)]:
        others = rows[:, [k for k in range(5) if k not in (i, j)]]
        left = [rows[:, k] - others @ np.linalg.lstsq(others, rows[:, k], rcond=None)[0] for k in (i, j)]
        assert found[i, j] == pytest.approx(np.corrcoef(*left)[0, 1], rel=1e-9)


def test_an_inverse_is_symmetric_to_the_last_bit():
    covariance = drawn_covariance(5, 9)
    found = inverse(covariance)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found @ covariance, np.eye(9), atol=1e-8)


def test_a_law_that_has_no_negative_partial_correlations_is_its_own():
    covariance = np.eye(6) + 1.0
    law = nonnegative_law(covariance)
    assert law.converged
    np.testing.assert_allclose(law.precision, np.linalg.inv(covariance), rtol=1e-12)
