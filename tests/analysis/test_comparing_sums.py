"""Welch's test from counts, sums and sums of squares is that of the numbers themselves."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_ind

from silograph.analysis.comparing.sums import GroupSums, compare_sums, holm


def sums_of(values: np.ndarray) -> GroupSums:
    return GroupSums(count=len(values), total=values.sum(axis=0), squares=(values**2).sum(axis=0), step=2.0**-88)


@given(st.integers(3, 30), st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_the_statistic_freedom_and_p_are_those_of_the_numbers(n, m, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.gamma(2.0, size=(n, 7)), rng.gamma(3.0, 0.5, size=(m, 7))
    found, expected = compare_sums(sums_of(first), sums_of(second)), ttest_ind(first, second, equal_var=False)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)
    assert found.df == pytest.approx(expected.df, rel=1e-6)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.p_family == pytest.approx(holm(expected.pvalue), rel=1e-6)
    assert found.q == pytest.approx(false_discovery_control(expected.pvalue), rel=1e-6)


def test_pairs_that_do_not_vary_are_not_tested_however_they_are_rounded():
    first, second = np.full((6, 4), 1 / 3), np.full((9, 4), 1 / 3)
    first[:, 1], second[:, 2] = 0.1, np.arange(9)
    first[:, 3], second[:, 3] = 1e-14 * np.arange(6), 0.0  # its squares are below what sums resolve
    found = compare_sums(sums_of(first), sums_of(second))
    assert np.isfinite(found.p).tolist() == [False, False, True, False]
    assert found.n_tested == 1
    assert found.ranked[0] == 2
    assert found.df[2] == pytest.approx(8)


def test_holm_multiplies_the_least_by_all_and_never_falls():
    assert holm(np.array([0.04, 0.01, 0.5, 0.03])) == pytest.approx([0.09, 0.04, 0.5, 0.09])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closed_test_of_bonferroni(ps):
    """A pair is called different if every set of pairs it is in is, by the least p times their number."""
    numbers = range(len(ps))
    sets = [chosen for size in range(1, len(ps) + 1) for chosen in combinations(numbers, size)]
    closed = [max(min(1.0, len(some) * min(ps[k] for k in some)) for some in sets if one in some) for one in numbers]
    assert holm(np.array(ps)) == pytest.approx(closed)
