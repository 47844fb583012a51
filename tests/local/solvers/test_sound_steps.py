import numpy as np
import pytest

from silograph.local.solvers.gradient import LARGEST_WEIGHT, is_sound

ALPHA, QUADRATIC = 4.0, 1.0  # √(α/q) = 2
LARGEST = 2 * LARGEST_WEIGHT


@pytest.mark.parametrize("weight", [0.0, 1.0, 0.99 * LARGEST])
def test_a_graph_of_finite_weights_is_sound(weight):
    assert is_sound(np.array([0.0, weight, 2.0]), ALPHA, QUADRATIC)
    assert is_sound(np.zeros(0), ALPHA, QUADRATIC)


@pytest.mark.parametrize("weight", [LARGEST, np.inf, -np.inf, np.nan])
def test_one_weight_beyond_all_bounds_is_not(weight):
    assert not is_sound(np.array([0.0, weight, 2.0]), ALPHA, QUADRATIC)
