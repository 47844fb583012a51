"""The baselines: their exact optima judged by CVXPY, their iterations by plain NumPy, their limits by each other."""

import cvxpy as cp
import numpy as np
import pytest

from silograph.engine.study import learn_silos
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.judge import minimum
from testing.silo_problems import silo_costs
from testing.transcription import degree_matrix

MODEL = {"alpha": 1.0, "beta": 0.7}


def scaled_costs(rng, n_silos=3, n_nodes=7):
    costs = silo_costs(rng, "different", n_silos, n_nodes, 40)
    return [4 * cost / np.mean(costs) for cost in costs]


def studied(costs, method, **settings):
    pairs = Pairs.all(round((1 + np.sqrt(1 + 8 * costs[0].size)) / 2))
    silos = [Silo(name=str(i), pairs=pairs, cost=cost) for i, cost in enumerate(costs)]
    return learn_silos(silos, StudySettings(method=method, **MODEL, **settings))


def take_gradient_steps(cost, w, before, anchor, pull, *, n_steps=5, step=0.005, momentum=0.9, zeta=0.5):
    """K steps of (2-0) to (2-2), in plain NumPy."""
    incidence = degree_matrix(cost.size)
    for _ in range(n_steps):
        ex = w + momentum * (w - before)
        slope = cost + 4 * MODEL["beta"] * ex - MODEL["alpha"] * incidence.T @ (1 / (incidence @ ex + zeta))
        w, before = np.maximum(ex - step * (slope + pull * (ex - anchor)), 0), w
    return w, before


def test_independent_learning_is_each_silo_s_own_optimum(rng):
    costs = scaled_costs(rng)
    study = studied(costs, "independent")
    for cost, w in zip(costs, study.graphs.values(), strict=True):
        problem = LocalProblem(cost=cost, pairs=Pairs.all(7), quadratic=2.8, alpha=1.0)
        np.testing.assert_allclose(w, solve_to_rounding(problem, None).w, atol=1e-12)
    assert study.gap <= 1e-12
    np.testing.assert_allclose(study.consensus, np.mean(list(study.graphs.values()), axis=0))


def test_its_gradient_steps_are_the_paper_s(rng):
    costs = scaled_costs(rng)
    study = studied(costs, "independent", solver="gradient", step=0.005)
    for cost, w in zip(costs, study.graphs.values(), strict=True):
        first = np.full(cost.size, 0.1)
        expected, _ = take_gradient_steps(cost, first, first, first, 0.0, n_steps=250)
        np.testing.assert_allclose(w, expected, atol=1e-12)


def test_the_pooled_graph_is_the_optimum_of_the_mean_cost(rng):
    costs = scaled_costs(rng)
    study = studied(costs, "pooled")
    problem = LocalProblem(cost=np.mean(costs, axis=0), pairs=Pairs.all(7), quadratic=2.8, alpha=1.0)
    solution = solve_to_rounding(problem, None)
    np.testing.assert_allclose(study.consensus, solution.w, atol=1e-12)
    assert study.objective == pytest.approx(3 * solution.primal, rel=1e-12)
    assert study.gap <= 1e-9


@pytest.mark.parametrize("method", ["fedavg", "fedprox"])
def test_averaging_rounds_are_those_of_the_papers(rng, method):
    costs = scaled_costs(rng)
    pulled = method == "fedprox"
    study = studied(costs, method, step=0.005, rounds=30, pull=0.5 if pulled else None)
    strength = 0.5 * 4 * MODEL["beta"] if pulled else 0.0
    mean = np.full(costs[0].size, 0.1)
    for _ in range(30):
        mean = np.mean([take_gradient_steps(cost, mean, mean, mean, strength)[0] for cost in costs], axis=0)
    np.testing.assert_allclose(study.consensus, mean, atol=1e-12)
    for w in study.graphs.values():
        np.testing.assert_array_equal(w, study.consensus)


@pytest.mark.parametrize("method", ["mrmtl", "ditto"])
def test_personal_rounds_are_those_of_the_papers(rng, method):
    costs = scaled_costs(rng)
    study = studied(costs, method, solver="gradient", step=0.005, rounds=30, pull=0.5)
    strength = 0.5 * 4 * MODEL["beta"]
    mean = np.full(costs[0].size, 0.1)
    own = [(mean, mean) for _ in costs]
    for _ in range(30):
        own = [take_gradient_steps(cost, *state, mean, strength) for cost, state in zip(costs, own, strict=True)]
        told = own if method == "mrmtl" else [take_gradient_steps(cost, mean, mean, mean, 0.0) for cost in costs]
        mean = np.mean([w for w, _ in told], axis=0)
    np.testing.assert_allclose(study.consensus, mean, atol=1e-12)
    for w, (expected, _) in zip(study.graphs.values(), own, strict=True):
        np.testing.assert_allclose(w, expected, atol=1e-12)


@pytest.mark.parametrize("pull", [0.01, 0.3, 3.0, 100.0])
def test_exact_mrmtl_is_the_optimum_that_an_independent_solver_finds(rng, pull):
    costs = scaled_costs(rng)
    study = studied(costs, "mrmtl", pull=pull, tol=1e-9)
    assert study.converged
    incidence, strength = degree_matrix(costs[0].size), pull * 4 * MODEL["beta"]
    w = [cp.Variable(cost.size, nonneg=True) for cost in costs]
    mean = sum(w) / len(w)
    value = sum(
        cost @ x + 1.4 * cp.sum_squares(x) - cp.sum(cp.log(incidence @ x)) + strength / 2 * cp.sum_squares(x - mean)
        for cost, x in zip(costs, w, strict=True)
    )
    optimum = minimum(value)
    assert study.objective == pytest.approx(optimum, rel=1e-6)
    assert study.history[-1]["bound"] <= optimum + 1e-6 * abs(optimum)


@pytest.mark.parametrize(("nu", "lam"), [(3.0, 0.3), (30.0, 0.1), (100.0, 1.0), (200.0, 2.0)])
def test_the_exact_model_with_equal_weights_is_the_optimum_that_an_independent_solver_finds(rng, nu, lam):
    costs = scaled_costs(rng)
    study = studied(costs, "exact", weights="equal", nu=nu, lam=lam, tol=1e-9)
    assert study.converged
    assert set(study.contributions.values()) == {1 / 3}
    incidence = degree_matrix(costs[0].size)
    w, shared = [cp.Variable(cost.size, nonneg=True) for cost in costs], cp.Variable(costs[0].size, nonneg=True)
    value = lam * cp.sum(shared) + sum(
        cost @ x + 1.4 * cp.sum_squares(x) - cp.sum(cp.log(incidence @ x)) + nu * lam / 6 * cp.sum_squares(x - shared)
        for cost, x in zip(costs, w, strict=True)
    )
    optimum = minimum(value)
    assert study.objective == pytest.approx(optimum, rel=1e-6)
    assert study.history[-1]["bound"] <= optimum + 1e-6 * abs(optimum)
    np.testing.assert_allclose(study.consensus, shared.value, atol=1e-3)


def test_algorithm_1_with_equal_weights_goes_to_that_optimum(rng):
    costs, model = scaled_costs(rng), {"weights": "equal", "nu": 30.0, "lam": 0.1, "zeta": 0.5}
    exact = studied(costs, "exact", tol=1e-10, **model)
    iterated = studied(costs, "algorithm1", rounds=3000, **model)
    assert exact.consensus.max() > 0.01
    np.testing.assert_allclose(iterated.consensus, exact.consensus, atol=1e-5)


def test_exact_ditto_pulls_each_silo_to_the_pooled_graph(rng):
    costs = scaled_costs(rng)
    pooled = studied(costs, "pooled").consensus
    study = studied(costs, "ditto", pull=0.5)
    np.testing.assert_allclose(study.consensus, pooled, atol=1e-12)
    for cost, w in zip(costs, study.graphs.values(), strict=True):
        problem = LocalProblem(cost=cost - 1.4 * pooled, pairs=Pairs.all(7), quadratic=2.8 + 1.4, alpha=1.0)
        np.testing.assert_allclose(w, solve_to_rounding(problem, None).w, atol=1e-10)
    assert study.gap <= 1e-12


@pytest.mark.parametrize("method", ["mrmtl", "ditto"])
def test_no_pull_is_independent_and_a_large_one_is_pooled(rng, method):
    costs = scaled_costs(rng)
    alone, pooled = studied(costs, "independent"), studied(costs, "pooled")
    free, tied = studied(costs, method, pull=0.0), studied(costs, method, pull=1e6, tol=1e-10)
    for name in alone.graphs:
        np.testing.assert_allclose(free.graphs[name], alone.graphs[name], atol=1e-9)
        np.testing.assert_allclose(tied.graphs[name], pooled.consensus, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "best"}, "method: expected one of"),
        ({"method": "fedavg", "solver": "newton"}, "iteration of gradient steps"),
        ({"method": "exact", "solver": "gradient"}, "is exact"),
        ({"method": "fedavg", "coupling": 0.5}, "has no such parameter"),
        ({"degree": 3.0, "alpha": 1.0}, "contradict"),
        ({"alpha": 1.0}, "alone"),
        ({"coupling": 0.5, "nu": 1.0}, "contradict"),
        ({"nu": 1.0}, "alone"),
        ({"nu": 1.0, "lam": 0.0}, "sparsity=0"),
        ({"coupling": -1.0}, "≥ 0"),
        ({"coupling": np.nan}, "finite"),
        ({"sparsity": "much"}, "finite number"),
        ({"rounds": 0}, "whole number"),
        ({"tol": 0.0}, "> 0"),
        ({"momentum": 1.0}, "momentum"),
        ({"weights": "none"}, "weights"),
        ({"step": "lipschitz"}, "Algorithm 1"),
        ({"momentum": 0.5}, "'exact', solved exactly, has no such parameter"),
        ({"method": "mrmtl", "local_steps": 7}, "solved exactly, has no such parameter"),
        ({"method": "pooled", "rounds": 7}, "no such parameter"),
        ({"method": "fedavg", "fresh": True}, "by gradient steps, has no such parameter"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_word(settings, words):
    with pytest.raises(ParameterError, match=words):
        StudySettings(**settings)
