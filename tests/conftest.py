"""Shared data and manners of the tests."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The first example of a property may compile a kernel, which no deadline should count
settings.register_profile("silograph", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.load_profile("silograph")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
