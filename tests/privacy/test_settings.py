"""What a study may say of privacy, and what it may not."""

import pytest

from silograph.errors import ParameterError
from silograph.methods.common.settings import StudySettings
from silograph.privacy.settings import Privacy


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 1.0}, "delta"),
        ({"delta": 1e-5}, "epsilon"),
        ({"epsilon": 0.0, "delta": 1e-5}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 0.5}, "delta"),
        ({"min_samples": 50}, "min_samples"),
        ({"sums": "masked", "min_samples": 50}, "min_samples"),
        ({"sums": "secret"}, "sums"),
        ({"unit": "person"}, "unit"),
        ({"rows": "long"}, "rows"),
        ({"rows": -1.0}, "rows"),
        ({"rows": 1e-200}, "rows"),
        ({"rows": 1e200}, "rows"),
        ({"collusion": 0}, "collusion"),
        ({"min_samples": 1}, "min_samples"),
        ({"centres": (0.0,)}, "scales"),
        ({"centres": (0.0,), "scales": (0.0,)}, "scales"),
        ({"centres": (float("nan"),), "scales": (1.0,)}, "centres"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given, named):
    with pytest.raises(ParameterError, match=named):
        Privacy(**given)


@pytest.mark.parametrize(
    ("settings", "privacy", "named"),
    [
        ({"method": "exact"}, {"sums": "masked"}, "method"),
        ({"method": "algorithm1"}, {"sums": "masked"}, "method"),
        ({"method": "oneshot", "sums": 2}, {"sums": "masked"}, "sums"),
        ({"method": "oneshot", "sums": 2}, {"epsilon": 1.0, "delta": 1e-5}, "sums"),
        ({"method": "oneshot", "missing_nodes": "allow"}, {"epsilon": 1.0, "delta": 1e-5}, "missing_nodes"),
        ({"method": "oneshot", "cost_unit": 2.0**80}, {"epsilon": 1.0, "delta": 1e-5}, "cost_unit"),
        ({"method": "oneshot", "cost_unit": 1.0}, {"epsilon": 1.0, "delta": 1e-5, "rows": 8.0}, "cost_unit"),
    ],
)
def test_combinations_that_protect_less_than_they_say_are_refused(settings, privacy, named):
    with pytest.raises(ParameterError, match=named):
        StudySettings(**settings, privacy=Privacy(**privacy))


def test_masks_need_three_sites_and_shares_more_than_collude():
    with pytest.raises(ParameterError, match="3 sites"):
        Privacy(sums="masked").check_sites(2)
    with pytest.raises(ParameterError, match="collusion"):
        Privacy(sums="masked", epsilon=1.0, delta=1e-5, collusion=4).check_sites(4)
