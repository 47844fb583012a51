"""The local step: its force is just ρ or it is fused, both searches agree, and no other graph is better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.local.prox import _search_slowly, prox_step
from silograph.local.solvers.newton import default_start
from silograph.methods.common.bounds import dual_parts, shrink_into
from silograph.methods.common.mixing import coefficients
from testing.problems import random_problem

seeds = st.integers(0, 2**32 - 1)


def step(n, seed, listed, log_rho, stiff):
    problem, rng = random_problem(n, seed, listed)
    anchor = np.maximum(rng.normal(size=problem.pairs.size), 0) if stiff else rng.normal(size=problem.pairs.size)
    metric = None if stiff else 10.0 ** rng.uniform(-1, 2, size=problem.pairs.size)
    return problem, anchor, metric, 10.0**log_rho, rng


def value(problem, anchor, metric, rho, w, u):
    far = 0.0 if metric is None else 0.5 * float(metric @ (u - anchor) ** 2)
    return problem.value(w) + rho * np.linalg.norm(w - u) + far


@given(n=st.integers(2, 12), seed=seeds, listed=st.booleans(), log_rho=st.floats(-3, 3), stiff=st.booleans())
def test_no_graph_nearby_is_better_and_the_force_is_what_it_must_be(n, seed, listed, log_rho, stiff):
    problem, anchor, metric, rho, rng = step(n, seed, listed, log_rho, stiff)
    result = prox_step(problem, anchor, metric=metric, rho=rho, strength=1.0, start=None)
    size = np.linalg.norm(result.force)
    assert size <= rho
    assert np.isinf(result.strength) or size == pytest.approx(rho, rel=1e-9)
    u = anchor if metric is None else anchor + result.force / metric
    best = value(problem, anchor, metric, rho, result.w, u)
    for _ in range(20):
        scale = 10.0 ** rng.uniform(-4, 0)
        w = np.maximum(result.w + scale * rng.normal(size=u.size), 0)
        other = u if metric is None else u + scale * rng.normal(size=u.size)
        assert value(problem, anchor, metric, rho, w, other) >= best - 1e-9 * max(1, abs(best))


@given(n=st.integers(2, 10), seed=seeds, listed=st.booleans(), log_rho=st.floats(-2, 2))
def test_the_search_for_hard_problems_finds_the_same_graph(n, seed, listed, log_rho):
    problem, anchor, metric, rho, _ = step(n, seed, listed, log_rho, False)
    quick = prox_step(problem, anchor, metric=metric, rho=rho, strength=1.0, start=None)
    slow = _search_slowly(problem, anchor, metric, rho, 1.0, 0.5, default_start(problem), fused=False)
    np.testing.assert_allclose(slow.w, quick.w, rtol=1e-5, atol=1e-6 * max(1.0, quick.w.max()))
    assert np.isinf(slow.strength) == np.isinf(quick.strength)


@given(seed=seeds, n=st.integers(1, 30), log_rho=st.floats(-3, 3))
def test_a_force_is_lessened_only_where_that_keeps_sums_below(seed, n, log_rho):
    force, rho = np.random.default_rng(seed).normal(size=n), 10.0**log_rho
    inside = shrink_into(force, rho)
    if inside is None:
        assert np.linalg.norm(np.minimum(force, 0)) > rho
    else:
        assert np.linalg.norm(inside) <= rho * (1 + 1e-12)
        assert (inside <= force).all()


@given(n=st.integers(2, 12), seed=seeds)
def test_every_silos_part_of_the_bound_is_below_every_graph(n, seed):
    problem, rng = random_problem(n, seed)
    force = rng.normal(size=problem.pairs.size)
    parts, _ = dual_parts(problem, force, rho=10.0 * n, start=default_start(problem))
    for _ in range(10):
        w = rng.exponential(size=force.size) * 10.0 ** rng.uniform(-3, 1)
        assert problem.value(w) + force @ w >= parts["bound"] - 1e-9 * abs(parts["bound"])


def test_mixing_takes_the_newest_point_when_nothing_moves():
    np.testing.assert_array_equal(coefficients(np.zeros((3, 3))), [0, 0, 1])
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(4, 9))
    mixed = coefficients(residuals @ residuals.T)
    assert mixed.sum() == pytest.approx(1)
    least = np.linalg.norm(mixed @ residuals)
    for other in rng.dirichlet(np.ones(4), size=50):
        assert np.linalg.norm(other @ residuals) >= least * (1 - 1e-6)
