"""The permutation test against all relabellings there are, and brains learned as anyone would learn them."""

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from silograph import ConsensusGraph
from silograph.datasets import load_abide
from silograph.experiments.brains import edges_and_weights, edges_that_differ, learn_brains, permutation_p, subjects_of
from silograph.experiments.table5 import study_of


def exhaustive_p(values, is_first):
    """The share of all labellings with a difference as large as the one seen."""
    n, n_first = values.size, int(is_first.sum())

    def apart(members):
        chosen = np.isin(np.arange(n), members)
        return abs(values[chosen].mean() - values[~chosen].mean())

    seen = apart(np.flatnonzero(is_first))
    return sum(apart(members) >= seen - 1e-12 for members in combinations(range(n), n_first)) / comb(n, n_first)


@pytest.mark.parametrize(("n_first", "n_second", "lead"), [(3, 4, 0.0), (4, 4, 1.5), (5, 3, -1.0), (2, 7, 2.0)])
def test_random_relabellings_agree_with_all_of_them(n_first, n_second, lead, rng):
    is_first = rng.permutation(np.arange(n_first + n_second) < n_first)
    values = rng.normal(size=is_first.size) + lead * is_first
    expected = exhaustive_p(values, is_first)
    found = permutation_p(values, is_first, 20_000)
    assert found == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-4)


def test_it_agrees_with_scipy_where_labellings_are_too_many_to_list(rng):
    is_first = np.arange(40) < 17
    values = rng.normal(size=40) + 0.5 * is_first
    scipy_s = stats.permutation_test(
        (values[is_first], values[~is_first]),
        lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        vectorized=True, alternative="greater", n_resamples=20_000,
    ).pvalue  # fmt: skip
    assert permutation_p(values, is_first, 20_000) == pytest.approx(scipy_s, abs=0.015)


def test_numbers_of_edges_which_are_often_equal_are_counted_right(rng):
    is_first = np.arange(9) < 4
    values = rng.integers(30, 33, size=9) / 3
    assert permutation_p(values, is_first, 20_000) == pytest.approx(exhaustive_p(values, is_first), abs=0.02)


def test_under_the_null_p_is_uniform_and_never_zero(rng):
    is_first = np.arange(24) < 10
    ps = np.array([permutation_p(rng.normal(size=24), is_first, 199, seed) for seed in range(400)])
    assert ps.min() >= 1 / 200
    assert ps.max() <= 1
    assert stats.kstest(ps, "uniform").pvalue > 0.001
    assert (ps <= 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def test_shift_scale_and_the_names_of_the_groups_do_not_matter(rng):
    is_first = rng.permutation(np.arange(20) < 10)
    values = rng.normal(size=20)
    p = permutation_p(values, is_first, 2000)
    assert permutation_p(-7 * values + 100, is_first, 2000) == p
    assert permutation_p(values, ~is_first, 2000) == p  # equally many in both


def test_where_all_are_alike_p_is_one():
    assert permutation_p(np.full(10, 0.1), np.arange(10) < 3, 500) == 1


def test_batches_do_not_lose_relabellings(rng):
    """Clear as day: only relabellings into the same groups are as extreme, one in 12 870."""
    is_first = np.arange(16) < 8
    p = permutation_p(100.0 * is_first + rng.normal(size=16), is_first, 12_000)
    assert 1 / 12_001 <= p < 12 / 12_001


def test_edges_are_counted_above_the_threshold_and_their_weights_averaged():
    weights = np.array([[0.5, 0.01, 0.3, 0.0], [0.0, 0.0, 0.005, 0.0], [0.2, 0.4, 0.6, 0.8]])
    counts, means = edges_and_weights(weights, 0.01)
    np.testing.assert_array_equal(counts, [2, 0, 4])
    np.testing.assert_allclose(means, [0.4, 0.0, 0.5])


def test_edges_that_differ_are_found_among_many_that_do_not(rng):
    is_first = np.arange(30) < 14
    weights = rng.random((30, 200))
    weights[:, :3] += 5 * is_first[:, None]
    weights[:, 7] = 0  # which nobody has
    count, p = edges_that_differ(weights, is_first, 500)
    assert count == 3
    assert p == 1 / 501


def test_where_no_edge_differs_one_is_found_in_a_study_of_twenty_at_most(rng):
    is_first = np.arange(20) < 9
    found = [edges_that_differ(rng.random((20, 40)), is_first, 199, seed) for seed in range(200)]
    ps = np.array([p for _, p in found])
    assert stats.kstest(ps, "uniform").pvalue > 0.001
    assert np.mean([count > 0 for count, _ in found]) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(("method", "name"), [("exact", "exact"), ("ppgl", "algorithm1")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_brains_are_those_of_the_estimator(method, name, session):
    data = load_abide(session.abide)
    found = learn_brains(replace(study_of(session), method=method, nu=10.0, lam=0.1))
    model = ConsensusGraph(alpha=1.0, beta=0.7, nu=10.0, lam=0.1, zeta=0.5, method=name, standardize=True, n_jobs=1)
    model.fit(data.series)
    upper = np.triu_indices(len(data.regions), 1)
    np.testing.assert_allclose(found["weights"], model.adjacencies_[:, *upper], atol=1e-9)
    np.testing.assert_allclose(found["consensus"], model.consensus_[upper], atol=1e-9)
    np.testing.assert_allclose(found["gamma"], model.contributions_, rtol=1e-6)
    assert found["is_autistic"].tolist() == [data.groups[subject] == "autism" for subject in data.series]


def test_all_subjects_or_as_many_of_each_group_at_random(session):
    everyone, study = load_abide(session.abide), study_of(session)
    assert list(subjects_of(study).series) == list(everyone.series)
    draws = [subjects_of(replace(study, subjects=4, seed=seed)) for seed in (0, 0, 1)]
    for drawn in draws:
        assert sorted(drawn.groups.values()) == ["autism"] * 4 + ["control"] * 4
        assert list(drawn.series) == [subject for subject in everyone.series if subject in drawn.groups]
    assert list(draws[0].series) == list(draws[1].series)
    assert list(draws[0].series) != list(draws[2].series)
