"""How much samples resemble the ones before them, from any chunks, with gaps and offsets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.data.serial import SerialProducts, effective_samples, serial_correlation


def series(rng, n_samples, n_nodes, r):
    """AR(1) series of unit variance."""
    out = rng.normal(size=(n_samples, n_nodes))
    for t in range(1, n_samples):
        out[t] = r * out[t - 1] + np.sqrt(1 - r**2) * out[t]
    return out


@given(
    n=st.integers(8, 60),
    offset=st.sampled_from([0.0, -3.0, 1e6]),
    cuts=st.lists(st.integers(1, 59), max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_chunks_give_the_correlation_of_the_whole(n, offset, cuts, seed):
    x = np.random.default_rng(seed).normal(size=(n, 3)) + offset
    parts = SerialProducts(3)
    for chunk in np.split(x, sorted(cut for cut in set(cuts) if cut < n)):
        parts.update(chunk)
    y = x - x.mean(axis=0)
    each = (y[1:] * y[:-1]).mean(axis=0) / y.var(axis=0)
    assert parts.correlation() == pytest.approx(np.median(each), abs=1e-6)


def test_gaps_are_left_out():
    x = series(np.random.default_rng(0), 5000, 4, 0.8)
    holes = x.copy()
    holes[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    assert serial_correlation(holes) == pytest.approx(serial_correlation(x), abs=0.03)


@pytest.mark.parametrize("x", [np.ones((50, 3)), np.full((50, 3), np.nan), np.eye(3)])
def test_of_what_does_not_vary_or_is_too_short_nothing_is_said(x):
    assert serial_correlation(x) is None


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_so_many_independent_samples_tell_as_much_of_a_product(r):
    """The variance of a mean product of two AR(1) series is that of N(1 − r²)/(1 + r²) independent ones (Bartlett)."""
    rng, n = np.random.default_rng(0), 400
    means = (series(rng, n, 4000, r) * series(rng, n, 4000, r)).mean(axis=0)
    assert 1 / means.var() == pytest.approx(effective_samples(n, r), rel=0.1)
