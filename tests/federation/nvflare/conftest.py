"""A federation that really runs, for the tests of one file."""

from collections.abc import Iterator

import pytest

from testing.real_federation import RealFederation


@pytest.fixture(scope="module")
def fed(tmp_path_factory) -> Iterator[RealFederation]:
    """A server and three sites, started by `silograph federation start` and `silograph site start`."""
    with RealFederation(tmp_path_factory.mktemp("fed")) as made:
        yield made
    assert not made.processes()
