import numpy as np
import pytest

from problems import costs, problem
from silograph.solvers import exact, gradient


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
