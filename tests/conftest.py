"""Shared data and manners of the tests."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The first example of a property may compile a kernel, which no deadline should count
settings.register_profile("silograph", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.load_profile("silograph")

# What takes longest comes first, so that no worker is left alone with it in the end
LONGEST_FIRST = ("tests/federation/nvflare/", "tests/experiments/", "tests/runs/", "tests/cli/", "tests/federation/")
# Whose tests share what was made once for all of them, so that one worker has them all
TOGETHER = ("tests/experiments/",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = [*LONGEST_FIRST, ""]
    items.sort(key=lambda item: next(k for k, place in enumerate(places) if item.nodeid.startswith(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give a worker all tests of a file, which share their fixtures; files in the order above."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
