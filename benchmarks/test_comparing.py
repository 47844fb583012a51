"""The measurements can fail: a confounder that nobody adjusts for is seen; and rates are counted right."""

import numpy as np
import pytest
from scipy.stats import kstest

from benchmarks.comparing import CASES, CONTROLS, DIFFERENT, Case, draw, named, null_table, smallest_ps


@pytest.mark.parametrize("case", [*CASES, *DIFFERENT, *CONTROLS], ids=lambda case: case.says)
def test_every_study_gives_p_values(case):
    pairs, numbers, whole, by_sums = smallest_ps(0, case)
    for p in (pairs, numbers, whole):
        assert 0 < p <= 1
    adjusts = case.adjusted and (case.places or case.age or case.rows[0] != case.rows[1])
    assert np.isnan(by_sums) == (adjusts or case.lacking)


def test_the_same_seed_draws_the_same_study_and_only_the_edge_asked_for_is_changed():
    one, same, changed = (
        draw(np.random.default_rng(4), case) for case in (Case(says="a"), Case(says="b"), Case(says="c", strength=3.0))
    )
    for silo, table in one[0].items():
        assert np.array_equal(table, same[0][silo])
        in_first = one[1][silo]["dx"] == "a"
        assert np.array_equal(table, changed[0][silo]) != in_first
    assert one[2] == changed[2]


def test_a_confounder_that_nobody_adjusts_for_is_seen():
    ps = [smallest_ps(seed, CONTROLS[0])[2] for seed in range(20)]
    assert kstest(ps, "uniform", alternative="greater").pvalue < 1e-4


def test_a_large_change_in_many_silos_is_named():
    found = [named(seed, Case(says="much", counts=(20, 20), strength=6.0)) for seed in range(4)]
    assert np.mean([by_family for by_family, _, _ in found]) >= 0.75


def test_rates_are_of_p_values_up_to_the_level_and_what_has_none_has_no_row():
    ps = np.column_stack([np.arange(1, 21) / 20, np.full(20, np.nan)])
    head, _, row, end = null_table(0, [(Case(says="even"), ps)])
    assert "KS" in head
    assert row.startswith("| even | 5.0% (0.1% to 24.9%) | 10.0% (1.2% to 31.7%) | ")
    assert end == ""
    assert len(list(null_table(1, [(Case(says="even"), ps)]))) == 3
