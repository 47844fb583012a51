"""Claims about one sum follow from margins that the page states."""

import numpy as np
import pytest

from silograph.experiments.claims_sums import LOST_FS, LOST_FS_FEW, _loses_little

SECOND = np.linspace(0.6, 0.7, 10)
MARGINS = {"N = 20": LOST_FS_FEW, "N = 50": LOST_FS}


def claim(**lost: float):
    pairs = {label: (SECOND - loss, SECOND) for label, loss in zip(MARGINS, lost.values(), strict=True)}
    return _loses_little("says", pairs, MARGINS, "FS")


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
    assert claim(few=few, many=many).verdict == verdict


def test_the_page_tells_margins_losses_and_what_is_clear():
    text = claim(few=0.02, many=0.02).evidence
    assert (
        "No more than 0.015; 0.03 at N = 20 is lost in 1 of 2 scenarios; clearly higher in 0, clearly lower in 2."
        in text
    )
    assert "| N = 50 | −0.020 |" in text
