"""What noise costs, held against two libraries of others."""

from math import inf, sqrt

import dp_accounting
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import pld, rdp
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ParameterError
from silograph.privacy.accounting import ORDERS, epsilon_of, multiplier_for, rho_for, rho_of

dp.enable_features("contrib")
BELOW_OTHERS = 1e-9  # they round, too


def histories(n: int, seed: int) -> list[tuple[list[float], float]]:
    """Random lists of noise multipliers, and a δ each."""
    rng = np.random.default_rng(seed)
    return [
        (np.exp(rng.uniform(np.log(0.5), np.log(60), rng.integers(1, 12))).tolist(), 10.0 ** -rng.uniform(3, 9))
        for _ in range(n)
    ]


@pytest.mark.parametrize(("multipliers", "delta"), histories(50, seed=15))
def test_a_history_never_counts_less_than_elsewhere(multipliers, delta):
    ours = epsilon_of(sum(map(rho_of, multipliers)), delta)
    for accountant in (rdp.RdpAccountant(), pld.PLDAccountant(value_discretization_interval=1e-3)):
        for multiplier in multipliers:
            accountant.compose(dp_accounting.GaussianDpEvent(multiplier))
        assert ours >= accountant.get_epsilon(delta) * (1 - BELOW_OTHERS)
    assert ours >= opendp_epsilon(multipliers, delta) * (1 - BELOW_OTHERS)


def opendp_epsilon(multipliers: list[float], delta: float) -> float:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    each = [dp.m.make_gaussian(*space, scale=1000 * multiplier) for multiplier in multipliers]
    together = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(each))
    return float(together.map(1000.0).epsilon(delta))


def test_orders_are_those_of_dp_accounting():
    assert pytest.approx(ORDERS) == rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS


@given(st.floats(0.05, 20), st.floats(1e-10, 0.01))
def test_one_study_uses_up_just_its_own_epsilon(epsilon, delta):
    spent = epsilon_of(rho_of(multiplier_for(epsilon, delta)), delta)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon


@given(st.floats(0.05, 20), st.floats(1e-10, 0.01))
def test_the_largest_cost_is_within_the_budget_and_a_little_more_is_not(epsilon, delta):
    most = rho_for(epsilon, delta)
    assert epsilon_of(most, delta) <= epsilon < epsilon_of(most * (1 + 1e-6), delta)


def test_an_epsilon_below_what_the_conversion_can_state_is_refused():
    with pytest.raises(ParameterError, match=r"more than 0\.0"):
        rho_for(0.001, 1e-10)


@pytest.mark.parametrize("epsilon", [1.1e6, 1e308, inf])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon):
    assert rho_for(1e6, 1e-5) > 1e5
    with pytest.raises(ParameterError, match="promises nothing"):
        rho_for(epsilon, 1e-5)


def test_the_multiplier_at_one_is_the_published_one():
    assert multiplier_for(1, 1e-5) == pytest.approx(4.045, abs=0.002)


def test_no_noise_is_no_guarantee_and_nothing_costs_nothing():
    assert epsilon_of(inf, 1e-5) == inf
    assert epsilon_of(0.0, 1e-5) == 0.0


@given(st.floats(1e-6, 10), st.floats(1e-10, 0.01))
def test_more_cost_is_never_less_epsilon(rho, delta):
    assert epsilon_of(rho, delta) <= epsilon_of(rho * 1.01, delta)


def test_gaussian_advantage_is_below_what_epsilon_would_allow():
    """The attack that CI runs must match the Gaussian's own advantage, which is far below the bound of (ε, δ)."""
    from scipy.stats import norm

    multiplier = multiplier_for(1, 1e-5)
    assert 2 * norm.cdf(1 / (2 * multiplier)) - 1 == pytest.approx(0.098, abs=0.001)
    assert sqrt(2 * rho_of(multiplier)) == pytest.approx(1 / multiplier)
