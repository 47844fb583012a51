import numpy as np
import pytest

from silograph.methods.common.steps import TOO_LARGE, is_sound


@pytest.mark.parametrize("weight", [0.0, 1.0, 0.99 * TOO_LARGE])
def test_a_graph_of_finite_weights_is_sound(weight):
    assert is_sound(np.array([0.0, weight, 2.0]))
    assert is_sound(np.zeros(0))


@pytest.mark.parametrize("weight", [TOO_LARGE, np.inf, -np.inf, np.nan])
def test_one_weight_beyond_all_bounds_is_not(weight):
    assert not is_sound(np.array([0.0, weight, 2.0]))
