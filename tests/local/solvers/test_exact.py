import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact, gradient, interior, newton
from testing.problems import KINDS, costs, cvxpy_optimum, problem, stress_set

seeds = st.integers(0, 2**32 - 1)


def kkt_residual(local: LocalProblem, w: np.ndarray) -> float:
    """How far w is from w = max(w − ∇/q, 0), relative to its size."""
    step = np.maximum(w - local.gradient(w) / local.quadratic, 0) - w
    return float(np.abs(step).max() / np.abs(w).max())


def test_every_instance_of_the_stress_set_is_solved_and_certified():
    missed = [label for label, local in stress_set((2, 3, 5, 20, 60)) if not exact.solve(local).converged]
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("n_nodes", [200, 600, 2000])
def test_every_large_instance_of_the_stress_set_is_solved_and_certified(n_nodes):
    missed = [label for label, local in stress_set((n_nodes,)) if not exact.solve(local).converged]
    assert not missed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_nodes", [2, 7, 15])
def test_an_independent_solver_finds_the_same_optimum(kind, n_nodes, rng):
    scale = 1e-3 if kind in ("amplitudes", "twelve orders", "disconnected") else 1.0  # within what it can do
    local = problem(np.minimum(scale * costs(kind, rng, 30, n_nodes), 1e3), alpha=0.7, beta=0.3)
    assert exact.solve(local).primal == pytest.approx(cvxpy_optimum(local), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("zeta", [0.0, 0.5])
def test_an_independent_solver_agrees_on_listed_pairs(rng, zeta):
    pairs = Pairs.listed(8, [(k, (k + 1) % 8) for k in range(8)] + [(0, 4), (2, 6)])
    local = LocalProblem(cost=rng.uniform(size=pairs.size), pairs=pairs, quadratic=2.0, alpha=1.0, zeta=zeta)
    assert exact.solve(local).primal == pytest.approx(cvxpy_optimum(local), rel=1e-6)


@pytest.mark.parametrize("n_nodes", [2, 6, 12])
def test_an_independent_solver_agrees_where_each_pair_has_its_own_quadratic_term(rng, n_nodes):
    pairs = Pairs.all(n_nodes)
    quadratic = 10.0 ** rng.uniform(-1, 2, size=pairs.size)
    local = LocalProblem(cost=rng.normal(size=pairs.size) + 1, pairs=pairs, quadratic=quadratic, alpha=1.0)
    solution = exact.solve(local, tol=1e-12)
    assert solution.converged
    assert solution.primal == pytest.approx(cvxpy_optimum(local), rel=1e-6)
    path = interior.solve(local, start=newton.default_start(local), tol=1e-10)
    assert path.primal == pytest.approx(solution.primal, rel=1e-9)


@given(
    n=st.integers(2, 30),
    seed=seeds,
    log_alpha=st.floats(-2, 2),
    log_beta=st.floats(-2, 2),
    zeta=st.sampled_from([0, 1]),
)
def test_the_solution_satisfies_the_optimality_conditions(n, seed, log_alpha, log_beta, zeta):
    cost = np.random.default_rng(seed).uniform(size=n * (n - 1) // 2)
    local = problem(cost, 10**log_alpha, 10**log_beta, zeta)
    solution = exact.solve(local, tol=1e-20)
    assert solution.converged
    if solution.w.max() > 0:
        assert kkt_residual(local, solution.w) < 1e-5


@given(n=st.integers(2, 25), seed=seeds)
def test_newton_interior_point_and_gradient_methods_agree(n, seed):
    rng = np.random.default_rng(seed)
    local = problem(rng.uniform(0.1, 1, size=n * (n - 1) // 2), alpha=1.0, beta=1.0)
    one = newton.solve(local, tol=1e-10)
    two = interior.solve(local, start=newton.default_start(local), tol=1e-10)
    three = gradient.solve(local, tol=1e-10)
    assert one.converged
    assert two.converged
    assert three.converged
    assert two.primal == pytest.approx(one.primal, rel=1e-9)
    assert three.primal == pytest.approx(one.primal, rel=1e-9)
    np.testing.assert_allclose(two.w, one.w, atol=1e-4)
    np.testing.assert_allclose(three.w, one.w, atol=1e-4)


@given(n=st.integers(3, 30), seed=seeds)
def test_relabelling_the_nodes_commutes_with_learning(n, seed):
    from scipy.spatial.distance import squareform

    rng = np.random.default_rng(seed)
    cost = squareform(rng.uniform(size=n * (n - 1) // 2))
    order = rng.permutation(n)
    here = squareform(exact.solve(problem(squareform(cost)), tol=1e-13).w)
    there = squareform(exact.solve(problem(squareform(cost[np.ix_(order, order)])), tol=1e-13).w)
    np.testing.assert_allclose(there, here[np.ix_(order, order)], atol=1e-6)


def test_a_warm_start_at_the_solution_needs_no_step(rng):
    local = problem(costs("smooth", rng, 100, 80))
    solution = exact.solve(local)
    again = exact.solve(local, start=solution.y)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.w, solution.w)


def test_a_solver_alters_none_of_its_arguments(rng):
    local = problem(costs("smooth", rng, 100, 30))
    cost, start = local.cost.copy(), np.full(30, 0.5)
    for solve in (newton.solve, interior.solve, exact.solve):
        solve(local, start=start)
        np.testing.assert_array_equal(start, 0.5)
        np.testing.assert_array_equal(local.cost, cost)


@pytest.mark.parametrize("max_iter", [1, 2])
def test_stopped_early_it_still_returns_a_feasible_answer_with_a_true_gap(rng, max_iter):
    local = problem(costs("amplitudes", rng, 50, 40), alpha=1.0, beta=1e-4)
    solution = exact.solve(local, max_iter=max_iter)
    best = exact.solve(local)
    assert not solution.converged
    assert np.isfinite(solution.gap)
    assert np.isfinite(solution.primal)
    assert best.converged
    assert solution.primal - solution.gap <= best.primal <= solution.primal


@pytest.mark.parametrize("kind", ["smooth", "independent"])
@pytest.mark.parametrize("neighbours", [1, 10])
def test_candidate_pairs_give_the_answer_of_all_pairs(rng, monkeypatch, kind, neighbours):
    monkeypatch.setattr(exact, "CANDIDATES_FROM", 50)
    local = problem(costs(kind, rng, 60, 150), alpha=0.5, beta=0.2)
    some = exact.solve(local, tol=1e-12, neighbours=neighbours)
    every = exact.solve(local, tol=1e-12, neighbours=0)
    assert some.converged
    np.testing.assert_allclose(some.w, every.w, atol=1e-6)
    np.testing.assert_array_equal(some.w > 1e-6, every.w > 1e-6)


def test_a_dense_graph_outgrows_its_candidates_and_is_solved_all_the_same(rng, monkeypatch):
    monkeypatch.setattr(exact, "CANDIDATES_FROM", 50)
    local = problem(costs("independent", rng, 60, 80), alpha=100.0, beta=100.0)
    solution = exact.solve(local, neighbours=2)
    assert solution.converged
    assert (solution.w > 0).mean() > 0.9


def test_forbidden_pairs_cost_more_and_stay_zero(rng):
    cost = costs("smooth", rng, 100, 20)
    free = exact.solve(problem(cost))
    strongest = int(np.argmax(free.w))
    pairs = Pairs.all_but(20, np.column_stack(Pairs.all(20).at(np.array([strongest]))))
    bound = exact.solve(LocalProblem(cost=np.delete(cost, strongest), pairs=pairs, quadratic=2.0, alpha=1.0))
    assert bound.converged
    assert bound.primal > free.primal


def test_two_nodes_have_the_solution_of_a_quadratic_equation():
    local = problem(np.array([3.0]), alpha=2.0, beta=0.25)  # 3 + w − 2·2/w = 0
    assert exact.solve(local, tol=1e-14).w == pytest.approx([1.0], rel=1e-9)


def exact_gap(local: LocalProblem, w: np.ndarray, y: np.ndarray) -> float:
    """Primal minus dual over |primal|, in sixty digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        cost, weight, level = ([Decimal(float(x)) for x in part] for part in (local.cost, w, y))
        q, alpha, zeta = Decimal(local.quadratic), Decimal(local.alpha), Decimal(local.zeta)
        degree = [zeta] * local.n_nodes
        primal = squares = Decimal(0)
        for e, (i, j) in enumerate(zip(local.pairs.rows.tolist(), local.pairs.cols.tolist(), strict=True)):
            degree[i] += weight[e]
            degree[j] += weight[e]
            squares += max(level[i] + level[j] - cost[e], Decimal(0)) ** 2
            primal += cost[e] * weight[e] + q * weight[e] ** 2 / 2
        primal -= sum(alpha * x.ln() for x in degree)
        dual = sum(alpha * x.ln() - zeta * x for x in level) - squares / (2 * q)
        dual += alpha * local.n_nodes * (1 - alpha.ln())
        return float((primal - dual) / abs(primal))


@given(
    n=st.integers(2, 8), seed=seeds, orders=st.integers(0, 17), log_alpha=st.floats(-4, 4), log_beta=st.floats(-4, 4)
)
def test_the_certificate_is_honest_to_the_last_digit(n, seed, orders, log_alpha, log_beta):
    rng = np.random.default_rng(seed)
    local = problem(10.0 ** rng.uniform(0, orders, size=n * (n - 1) // 2), 10**log_alpha, 10**log_beta)
    solution = exact.solve(local)
    true = exact_gap(local, solution.w, solution.y)
    assert 0 <= true <= solution.relative_gap * (1 + 1e-6) + 1e-15
    assert solution.converged


def test_costs_that_hide_the_weights_in_their_rounding_are_certified_all_the_same():
    local = problem(np.array([9007199254740996.0, 9007199254740992.0, 4.0]), alpha=1.0, beta=1.0)
    solution = exact.solve(local)
    assert solution.converged
    assert exact_gap(local, solution.w, solution.y) <= 1e-8


@pytest.mark.parametrize("seed", [297, 1, 2, 3])
def test_ultrametric_distances_do_not_lead_the_interior_point_method_in_a_circle(seed):
    height = 10.0 ** np.random.default_rng(seed).uniform(-13, 0, 15)
    cost = np.maximum.outer(height, height)[np.triu_indices(15, 1)]
    assert exact.solve(problem(cost, alpha=1.0, beta=1e-12)).converged
