from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import PairsError, ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from testing.problems import problem, random_problem

seeds = st.integers(0, 2**32 - 1)


def dual(local: LocalProblem, y: np.ndarray) -> float:
    slack = np.maximum(y[local.pairs.rows] + y[local.pairs.cols] - local.cost, 0)
    constant = local.alpha * local.n_nodes * (1 - np.log(local.alpha))
    return -(slack**2).sum() / (2 * local.quadratic) + local.alpha * np.log(y).sum() - local.zeta * y.sum() + constant


@given(n=st.integers(2, 12), seed=seeds, listed=st.booleans(), own=st.booleans())
def test_the_value_is_the_printed_sum(n, seed, listed, own):
    local, rng = random_problem(n, seed, listed)
    if own:  # a quadratic term for each pair
        local = replace(local, quadratic=rng.uniform(0.5, 2, size=local.pairs.size))
    w = rng.uniform(0.5, 1.5, size=local.pairs.size)
    logs = np.log(local.pairs.degrees(w) + local.zeta)
    terms = np.concatenate([local.cost * w, local.quadratic * w**2 / 2, -local.alpha * logs])
    assert local.value(w) == pytest.approx(terms.sum(), rel=1e-12, abs=1e-12 * np.abs(terms).sum())


@given(n=st.integers(2, 12), seed=seeds)
def test_the_gradient_agrees_with_finite_differences(n, seed):
    local, rng = random_problem(n, seed)
    w = rng.uniform(0.5, 1.5, size=local.pairs.size)
    for e in rng.integers(local.pairs.size, size=3):
        step = np.zeros_like(w)
        step[e] = 1e-6
        slope = (local.value(w + step) - local.value(w - step)) / 2e-6
        assert local.gradient(w)[e] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@given(n=st.integers(2, 12), seed=seeds, listed=st.booleans())
def test_the_gap_is_primal_minus_dual_and_never_negative(n, seed, listed):
    local, rng = random_problem(n, seed, listed)
    w, y = rng.uniform(0, 2, size=local.pairs.size), rng.uniform(0.1, 3, size=n)
    gap = local.gap(w, y)
    assert gap >= 0
    assert gap == pytest.approx(local.value(w) - dual(local, y), rel=1e-9, abs=1e-9 * abs(local.value(w)))


def test_a_tiny_gap_keeps_its_digits():
    local = problem(np.array([1.0]), alpha=1.0, beta=0.25)
    w = (np.sqrt(9) - 1) / 2  # the root of w + 1 = 2/w, both nodes having degree w
    y = np.full(2, 1 / w) * (1 + np.array([1e-10, -1e-10]))
    # y_1 + y_2 and with it w(y) are unchanged, so each node's r is 1 ± 1e-10 and its term (r − 1)²/2
    assert local.gap(np.array([w]), y) == pytest.approx(1e-20, rel=1e-5)


def test_without_a_degree_the_objective_is_infinite():
    local = problem(np.ones(3))
    assert local.value(np.array([1.0, 0.0, 0.0])) == np.inf
    assert local.gap(np.array([1.0, 0.0, 0.0]), np.ones(3)) == np.inf


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("alpha", np.nan), ("quadratic", -1.0), ("zeta", -0.1)])
def test_parameters_out_of_range_are_named(name, value):
    parameters = {"quadratic": 1.0, "alpha": 1.0, "zeta": 0.0} | {name: value}
    with pytest.raises(ParameterError, match=name):
        LocalProblem(cost=np.ones(1), pairs=Pairs.all(2), **parameters)


def test_a_node_without_a_pair_needs_zeta():
    with pytest.raises(PairsError, match="zeta"):
        LocalProblem(cost=np.ones(1), pairs=Pairs.listed(3, [(0, 1)]), quadratic=1.0, alpha=1.0)
