"""Claims about one sum follow from margins that the page states."""

import numpy as np
import pytest

from silograph.experiments.claims_sums import LOST_FS, LOST_FS_FEW, loses_little

SECOND = np.linspace(0.6, 0.7, 10)


def claim(few: float, many: float):
    pairs = {"N = 20: a − b": (SECOND - few, SECOND), "N = 50: a − b": (SECOND - many, SECOND)}
    return loses_little("says", pairs, "FS", LOST_FS, few=LOST_FS_FEW)


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [
        (0.02, 0.01, "held"),
        (0.02, 0.02, "held in part"),
        (0.04, 0.01, "held in part"),
        (0.04, 0.02, "did not hold"),
        (-0.2, -0.2, "held"),
    ],
)
def test_no_scenario_may_lose_more_than_its_margin(few, many, verdict):
    assert claim(few, many).verdict == verdict


def test_the_page_tells_margins_losses_and_what_is_clear():
    text = claim(0.02, 0.02).evidence
    assert text.startswith("No more than 0.015 (0.03 at N = 20) is lost in the mean of 1 of 2 comparisons;")
    assert "clearly higher in 0, clearly lower in 2." in text
    assert "| N = 50: a − b | −0.020 |" in text
