"""Exponents and spreads of made-up measurements are those they were made with."""

import numpy as np
import pytest

from benchmarks.fits import curve, power_law, spread

SIZES = (100, 200, 500, 1000, 2000)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 1.0, 2.5])
def test_a_power_law_is_found_with_its_exponent_and_factor(exponent: float) -> None:
    law = power_law(SIZES, [3e-7 * size**exponent for size in SIZES])
    assert law.exponent == pytest.approx(exponent, abs=1e-9)
    assert law.factor == pytest.approx(3e-7)
    assert law.low == pytest.approx(law.high, abs=1e-6)
    assert law.at(300) == pytest.approx(3e-7 * 300**exponent)


def test_the_interval_is_that_of_ordinary_least_squares() -> None:
    from scipy.stats import linregress, t

    rng = np.random.default_rng(0)
    values = [1e-6 * size**2 * np.exp(0.1 * rng.normal()) for size in SIZES]
    law, other = power_law(SIZES, values), linregress(np.log(SIZES), np.log(values))
    assert law.exponent == pytest.approx(other.slope)
    assert law.high - law.exponent == pytest.approx(t.ppf(0.975, len(SIZES) - 2) * other.stderr)


def test_the_interval_holds_the_exponent_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        law = power_law(SIZES, [size**1.5 * np.exp(0.2 * rng.normal()) for size in SIZES])
        hits += law.low <= 1.5 <= law.high
    assert 0.91 <= hits / 400 <= 0.98


def test_a_law_is_fitted_to_medians_from_a_size_on() -> None:
    points = [(size, [2 * size, 1 * size, 40 * size]) for size in SIZES]
    found = curve([(10, [1e6] * 3), *points], fitted_from=100)
    assert found.law is not None
    assert found.law.sizes == SIZES
    assert found.law.exponent == pytest.approx(1.0)
    assert found.law.factor == pytest.approx(2.0)
    assert found.sizes == (10, *SIZES)
    assert curve(points, fitted_from=1000).law is None


def test_two_sizes_make_no_law() -> None:
    with pytest.raises(ValueError, match="expected at least 3 sizes, got 2"):
        power_law([1, 2], [1.0, 2.0])


def test_a_spread_is_of_median_least_and_most() -> None:
    assert (spread([3.0, 1.0, 7.0]).median, spread([3.0, 1.0]).least, spread([3.0, 1.0]).most) == (3.0, 1.0, 3.0)
