from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.local.solvers import exact, gradient
from testing.problems import costs, problem, random_problem


def test_with_a_step_it_follows_the_printed_equations(rng):
    local = problem(costs("smooth", rng, 50, 12), alpha=1.0, beta=0.7, zeta=0.5)
    step, momentum = 0.005, 0.9
    incidence = np.zeros((12, local.pairs.size))
    incidence[local.pairs.rows, np.arange(local.pairs.size)] = 1
    incidence[local.pairs.cols, np.arange(local.pairs.size)] = 1
    w = before = np.full(local.pairs.size, 0.1)
    for _ in range(50):
        extrapolated = w + momentum * (w - before)
        slope = local.cost - 1.0 * incidence.T @ (1 / (incidence @ extrapolated + 0.5)) + 4 * 0.7 * extrapolated
        before, w = w, np.maximum(extrapolated - step * slope, 0)
    ours = gradient.solve(
        local, start=np.full(local.pairs.size, 0.1), step=step, momentum=momentum, max_iter=50, tol=1e-30
    )
    np.testing.assert_allclose(ours.w, w, atol=1e-13)


@given(n=st.integers(2, 12), seed=st.integers(0, 2**32 - 1), listed=st.booleans(), own=st.booleans())
def test_several_steps_are_the_printed_equations_one_after_another(n, seed, listed, own):
    local, rng = random_problem(n, seed, listed)
    if own:  # a quadratic term for each pair
        local = replace(local, quadratic=rng.uniform(0.5, 2, size=local.pairs.size) * local.quadratic)
    start, before, anchor = rng.uniform(size=(3, local.pairs.size))
    given_points = start.copy(), before.copy(), anchor.copy()
    step = 0.1 / (np.max(local.quadratic) + 2 * local.alpha * n / local.zeta**2 + 3)
    got = gradient.take_gradient_steps(local, start, before, n_steps=4, step=step, momentum=0.5, anchor=anchor, pull=3)
    w = start
    for _ in range(4):
        ahead = w + 0.5 * (w - before)
        w, before = np.maximum(ahead - step * (local.gradient(ahead) + 3 * (ahead - anchor)), 0), w
    np.testing.assert_allclose(got, (w, before), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal((start, given_points[1], anchor), given_points)


def test_no_anchor_is_no_pull(rng):
    local = problem(costs("smooth", rng, 50, 12), zeta=0.5)
    w, before, anchor = rng.uniform(size=(3, local.pairs.size))
    free = gradient.take_gradient_steps(local, w, before, n_steps=3, step=0.01, momentum=0.9)
    idle = gradient.take_gradient_steps(local, w, before, n_steps=3, step=0.01, momentum=0.9, anchor=anchor, pull=0.0)
    np.testing.assert_array_equal(free, idle)


def test_what_is_no_number_stays_none(rng):
    local = problem(costs("smooth", rng, 50, 5), zeta=0.5)
    w = np.full(local.pairs.size, np.nan)
    assert np.isnan(gradient.iterate(local, w, w, step=0.01, momentum=0.9)).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_backtracking_reaches_the_optimum_on_any_scale(rng, scale):
    local = problem(scale * costs("smooth", rng, 50, 30), alpha=scale, beta=scale)
    solution = gradient.solve(local, tol=1e-8)
    assert solution.converged
    assert solution.primal == pytest.approx(exact.solve(local).primal, rel=1e-7)


def test_a_step_that_diverges_is_reported_not_hidden(rng):
    local = problem(costs("smooth", rng, 50, 60), alpha=1.0, beta=100.0)
    solution = gradient.solve(local, step=1.0, max_iter=2000)
    assert not solution.converged
    assert np.isfinite(solution.w).all()
    assert solution.n_iter < 2000


def test_the_start_does_not_cancel_where_costs_are_huge(rng):
    local = problem(1e10 * costs("independent", rng, 30, 7))
    assert gradient.uniform_start(local)[0] > 0
    assert gradient.solve(local, max_iter=500).converged
