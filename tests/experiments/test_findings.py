"""The page of findings, the paper's numbers, and what is odd about them."""

import re
from typing import get_args

import numpy as np
import pytest

from silograph.experiments import claims_algorithm, claims_methods, claims_silos, claims_sums, findings
from silograph.experiments.claims import Verdict
from silograph.experiments.findings import oddities
from silograph.experiments.printed import TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, WEIGHTS
from silograph.experiments.scenarios import NESTED, SHARES, SIZES, UNEQUAL
from silograph.experiments.session import Session
from testing.small_experiments import SCALE

SEVEN = ["IGL", "FedAvg", "FedProx", "MRMTL", "Ditto", "PPGL-L", "PPGL-C"]


def test_printed_tables_have_all_rows_of_all_blocks():
    assert list(TABLE_1) == [scenario.label for scenario in SIZES]
    assert list(TABLE_2) == [scenario.label for scenario in SHARES]
    assert list(TABLE_3) == list(WEIGHTS) == [UNEQUAL.label, NESTED.label]
    for block in (*TABLE_1.values(), *TABLE_2.values()):
        assert list(block) == SEVEN
    for block in TABLE_3.values():
        assert list(block) == ["PPGL-L", "PPGL-C", "PPGL-L, equal weights", "PPGL-C, equal weights"]
    assert list(TABLE_4) == SEVEN
    assert list(TABLE_5) == ["Autism", "Control"]


def test_printed_numbers_are_numbers_between_nothing_and_all():
    for table in (TABLE_1, TABLE_2, TABLE_3):
        values = np.array([row for block in table.values() for row in block.values()])
        assert values.shape[1] == 4
        assert (values > 0).all()
        assert (values < 1).all()
    values = np.array(list(TABLE_4.values()))
    assert values.shape == (7, 3)
    assert (values > 0).all()
    assert (values <= 1).all()


def test_the_printed_tables_have_three_oddities():
    blocks = {
        f"{name}, {block}": rows
        for name, table in (("Table I", TABLE_1), ("Table II", TABLE_2), ("Table III", TABLE_3))
        for block, rows in table.items()
    }
    lines = oddities(blocks)
    assert len(lines) == 3
    mrmtl, consensus, case_1 = sorted(lines)
    assert mrmtl.startswith("Table I, N = 20, MRMTL: precision 0.522 and recall 0.551 imply FS 0.536")
    assert consensus == "Table II, q = 0.3, PPGL-C: recall 0.516 and RE 0.874 are those of Table I, N = 20, PPGL-C."
    assert case_1.startswith("Table III, Case 1, PPGL-L: precision 0.691 and recall 0.773 imply FS 0.730")


def test_numbers_that_fit_each_other_are_not_odd():
    assert oddities({"A": {"x": (0.5, 0.5, 0.5, 0.9), "y": (0.4, 0.6, 0.48, 0.9)}}) == []
    assert len(oddities({"A": {"x": (0.5, 0.5, 0.6, 0.9)}})) == 1
    assert len(oddities({"A": {"x": (0.5, 0.5, 0.5, 0.9)}, "B": {"y": (0.5, 0.5, 0.5, 0.9)}})) == 1


@pytest.fixture(scope="module")
def page(outcomes):
    (found,) = outcomes["findings"].pages
    return found.text


def test_every_claim_has_a_verdict_and_its_evidence(page):
    claims = [line for line in page.splitlines() if line.startswith("| ") and line.endswith("** |")]
    assert len(claims) == len([line for line in page.splitlines() if line.startswith("### ")]) >= 15
    for line in claims:
        says, verdict = line.strip("| ").rsplit(" | ", 1)
        assert verdict.strip("*") in get_args(Verdict)
        assert f". {says}\n\n**{verdict.strip('*').capitalize()}.** " in page


def test_two_seeds_settle_no_comparison_and_the_page_says_that_it_is_a_quick_look(page):
    assert "not for conclusions" in page
    assert page.count("**too few draws**") >= 5


def test_one_sum_is_judged_in_all_scenarios_with_a_wider_margin_for_twenty_samples_alone(page):
    lost = "is lost in the mean of"
    assert re.search(rf"No more than 0\.015 \(0\.03 at N = 20\) {lost} \d of 8 comparisons", page)  # F-score
    assert re.search(rf"No more than 0\.01 {lost} \d of 8 comparisons", page)  # average precision
    assert re.search(rf"No more than 0\.015 {lost} \d of 4 comparisons", page)  # unrelated silos
    assert "N = 100, 2 of 5 unrelated: Three sums, C − PPGL-C, exact" in page


def test_what_is_odd_in_print_and_how_near_our_numbers_are_stands_at_the_end(page):
    assert page.index("## The claims") < page.index("## How near our numbers are") < page.index("## Oddities in print")
    assert page.count("\n* Table I") == 3
    assert "nan" not in page


def test_without_data_the_claims_about_them_are_not_tested_and_one_line_says_why(session, monkeypatch):
    monkeypatch.delenv("SILOGRAPH_DATA", raising=False)
    for module in (claims_methods, claims_silos, claims_algorithm, claims_sums):  # these need no data, and some time
        monkeypatch.setattr(module, "MAKERS", ())
    (page,) = findings.run(Session(lab=session.lab, scale=SCALE)).pages
    assert page.text.count("| **not tested** |") == 2
    told = [line for line in page.text.splitlines() if "data were not found" in line]
    assert len(told) == 2
    for line, name in zip(told, ("COIL-20", "ABIDE"), strict=True):
        assert name in line
        assert "SILOGRAPH_DATA is not set" in line
        assert line.endswith(".")
    assert "Get it from" not in page.text
