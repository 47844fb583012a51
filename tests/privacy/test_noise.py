"""Noise has the size that its guarantee needs, on moments and not on costs alone."""

import numpy as np
import pytest
from scipy.stats import chi2

from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.privacy.accounting import multiplier_for
from silograph.privacy.noise import draw_discrete_gaussian, plan_noise
from silograph.privacy.settings import Privacy

PRIVACY = Privacy(epsilon=1.0, delta=1e-5)
PLAN = {"n_nodes": 20, "n_sites": 10, "min_samples": 1000}


def test_the_noise_of_one_site_alone_is_all_of_it():
    noise = plan_noise(PRIVACY, **PLAN, shared=False)
    assert noise.sigma * noise.share == pytest.approx(np.sqrt(2) * multiplier_for(1, 1e-5) / 1000, rel=1e-5)


@pytest.mark.parametrize("collusion", [1, 4])
def test_shares_without_those_of_colluding_sites_are_all_of_it(collusion):
    privacy = Privacy(epsilon=1.0, delta=1e-5, collusion=collusion)
    noise = plan_noise(privacy, **PLAN, shared=True)
    assert (PLAN["n_sites"] - collusion) * noise.share**2 >= 1 - 1e-12


def test_noise_grows_with_the_square_of_the_longest_row():
    longer = plan_noise(Privacy(epsilon=1.0, delta=1e-5, rows=3.0), **PLAN, shared=False)
    assert longer.sigma == pytest.approx(9 * plan_noise(PRIVACY, **PLAN, shared=False).sigma)


def test_for_whole_tables_the_number_of_rows_does_not_matter():
    noise = plan_noise(
        Privacy(epsilon=1.0, delta=1e-5, unit="table"), n_nodes=5, n_sites=3, min_samples=None, shared=False
    )
    assert noise.sigma == pytest.approx(np.sqrt(2) * multiplier_for(1, 1e-5), rel=1e-5)


def test_for_rows_their_least_number_must_be_known():
    with pytest.raises(ParameterError, match="min_samples"):
        plan_noise(PRIVACY, n_nodes=5, n_sites=3, min_samples=None, shared=False)


def test_costs_carry_the_variance_and_the_covariance_that_noise_on_moments_has():
    pairs, noise = Pairs.all(4), plan_noise(PRIVACY, **PLAN, shared=True)
    drawn = np.array([noise.add(np.zeros(pairs.size), pairs) for _ in range(4000)]) / noise.cost_sigma
    low, high = chi2.ppf([1e-6, 1 - 1e-6], len(drawn)) / len(drawn)
    assert (low <= (drawn**2).mean(axis=0)).all()
    assert ((drawn**2).mean(axis=0) <= high).all()
    # z_01 and z_02 share M_00: σ² of 4σ²; z_01 and z_23 share nothing
    assert (drawn[:, 0] * drawn[:, 1]).mean() == pytest.approx(0.25, abs=0.06)
    assert (drawn[:, 0] * drawn[:, 5]).mean() == pytest.approx(0.0, abs=0.06)


def test_costs_with_noise_are_whole_numbers_of_steps():
    pairs, noise = Pairs.all(6), plan_noise(PRIVACY, **PLAN, shared=True)
    got = noise.add(np.random.default_rng(0).uniform(0, 4, pairs.size), pairs) / noise.step
    np.testing.assert_array_equal(got, np.round(got))


def test_so_little_noise_that_costs_have_no_room_beside_it_is_refused():
    privacy = Privacy(epsilon=1e6, delta=1e-5)
    with pytest.raises(ParameterError, match="epsilon"):
        plan_noise(privacy, n_nodes=3, n_sites=3, min_samples=10**12, shared=True)


@pytest.mark.parametrize(("min_samples", "n_tables"), [(2, 1), (2**22 - 1, 1), (1000, 10_000), (2**22 - 1, 10_000)])
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_the_largest_costs_that_there_can_be_have_room_beside_any_noise(min_samples, n_tables, epsilon):
    privacy = Privacy(epsilon=epsilon, delta=1e-5, rows=3.0)
    plan = {"n_nodes": 20, "n_sites": 10, "min_samples": min_samples, "n_tables": n_tables}
    noise, multiplier = plan_noise(privacy, **plan, shared=True), multiplier_for(epsilon, 1e-5)
    noise.add(np.full(3, 2 * 9.0 * n_tables), Pairs.all(3))
    rounding = 8 * 20 * noise.step
    assert noise.sigma >= multiplier * (np.sqrt(2) * 9 / min_samples + rounding) * (1 - 1e-12)


def test_drawn_numbers_do_not_saturate():
    drawn = draw_discrete_gaussian(2.0**31, 5000)
    assert np.abs(drawn).max() < 2**36
    assert drawn.std() == pytest.approx(2.0**31, rel=0.06)
