"""What noise costs in accuracy stays within what is promised, and the page says it."""

import numpy as np
import pytest

from benchmarks.privacy import LOST_CONSENSUS, LOST_PERSONAL, acceptance_lines, lost, measure_acceptance
from benchmarks.privacy_people import agreement, people_needed, rounded
from benchmarks.privacy_runs import draw, privacy_at, run, score_alone, silos_of
from silograph.data.bounded import RowBounds


@pytest.fixture(scope="module")
def rows():
    return measure_acceptance(range(4), lambda what: None)


@pytest.mark.parametrize("common", [False, True], ids=["as drawn", "a common mode added"])
def test_ten_sites_of_a_thousand_rows_lose_hardly_anything_at_epsilon_one(rows, common):
    assert lost(rows, "personal", common=common)[0] <= LOST_PERSONAL
    assert lost(rows, "consensus", common=common)[0] <= LOST_CONSENSUS


def test_the_page_says_whether_it_is_met(rows):
    text = "\n".join(acceptance_lines(rows))
    assert text.count(": met") == 4
    worse = [{**row, "consensus": row["consensus"] - 0.1} if row["case"] == "ε = 1" else row for row in rows]
    assert "NOT MET" in "\n".join(acceptance_lines(worse))


def test_silos_that_send_nothing_are_the_measure_of_personal_graphs():
    drawn = draw(3, 1000, 0)
    assert 0.9 < score_alone(silos_of(drawn.signals, None), drawn) < run_without_noise(drawn) + 0.02


def run_without_noise(drawn) -> float:
    return run(silos_of(drawn.signals, RowBounds()), drawn, privacy_at(None)).personal


def test_people_are_told_to_two_digits():
    assert [rounded(people) for people in (172, 1784, 18_513)] == [170, 1800, 19_000]


def test_more_people_and_less_noise_agree_more():
    costs = np.random.default_rng(0).uniform(0.1, 0.3, size=(30, 45)) * np.linspace(0.2, 1.8, 45)
    found = [agreement(costs, n, 4.0, 0, resample=True)["average precision"] for n in (30, 3000, 300_000)]
    assert found[0] < found[-1]
    assert found[-1] > 0.95
    needed = people_needed(costs, 4.0, range(1), lambda what: None)
    assert 30 < needed < 300_000
