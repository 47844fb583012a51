"""Verdicts follow from paired tests; these follow from SciPy, and Holm's correction from a pencil."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from silograph.experiments.claims import (
    MARGIN,
    Claim,
    PairedTest,
    as_good_as,
    better_than,
    can_tell,
    compare,
    format_p,
    format_signed,
    holm,
    markdown,
    trends,
    verdict_of,
)


def comparison(p, mean=0.1):
    return PairedTest(label="", n=10, mean=mean, low=mean, high=mean, p=p, direction=1)


@pytest.mark.parametrize("n", [6, 30, 80])
def test_a_paired_comparison_is_scipy_s(n, rng):
    first, second = rng.normal(0.3, 1, n), rng.normal(size=n)
    found = compare("a − b", first, second)
    assert found.n == n
    assert found.mean == pytest.approx((first - second).mean())
    assert found.p == pytest.approx(stats.wilcoxon(first, second).pvalue, rel=1e-9)
    interval = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_the_order_of_a_comparison_turns_its_sign_and_nothing_else(rng):
    first, second = rng.random(12), rng.random(12)
    one, other = compare("", first, second), compare("", second, first)
    assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))
    assert one.p == other.p
    assert one.direction == -other.direction


def test_where_nothing_differs_no_difference_is_clear(rng):
    values = rng.random(20)
    assert compare("", values, values).p == 1
    assert compare("", values[:1], values[:1] + 1).p == 1  # nor from a single draw
    rounded = compare("", values, np.nextafter(values, 1))  # what two ways of rounding may differ by
    assert not rounded.wins
    assert not rounded.loses


def test_holm_s_correction_is_the_one_done_by_hand():
    # Sorted: 0.005·4 = 0.02, 0.01·3 = 0.03, 0.03·2 = 0.06, then 0.04·1 < 0.06, which stays
    corrected = holm([comparison(p) for p in (0.01, 0.04, 0.03, 0.005)])
    assert [one.p for one in corrected] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [one.wins for one in corrected] == [True, False, False, True]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_raises_every_p_and_stays_a_probability(ps):
    corrected = [one.p for one in holm([comparison(p) for p in ps])]
    order = np.argsort(ps, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()
    for raw, found in zip(ps, corrected, strict=True):
        assert raw <= found <= 1
    assert min(corrected) == pytest.approx(min(1.0, min(ps) * len(ps)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holm_does_not_depend_on_the_order_of_comparisons(ps, random):
    places = list(range(len(ps)))
    random.shuffle(places)
    straight = [one.p for one in holm([comparison(p) for p in ps])]
    shuffled = [one.p for one in holm([comparison(ps[place]) for place in places])]
    assert shuffled == [straight[place] for place in places]


def scores(rng, n=20, lead=0.0):
    base = rng.random(n)
    return base + lead + 0.01 * rng.random(n), base


@pytest.mark.parametrize(
    ("leads", "verdict"), [((0.1, 0.2), "held"), ((0.1, -0.2), "held in part"), ((-0.1, -0.2), "did not hold")]
)
def test_a_claim_holds_where_every_difference_is_clear(leads, verdict, rng):
    claim = better_than("ours is better", {f"case {lead}": scores(rng, lead=lead) for lead in leads})
    assert claim.verdict == verdict
    wins = sum(lead > 0 for lead in leads)
    assert re.search(rf"higher in {wins} of 2 comparisons, clearly lower in {2 - wins}", claim.evidence)
    assert all(f"| case {lead} |" in claim.evidence for lead in leads)


def test_a_difference_that_may_be_chance_does_not_make_a_claim_hold(rng):
    noise = rng.normal(size=20)
    noise -= noise.mean()
    assert better_than("", {"a": (noise + 0.01, np.zeros(20))}).verdict == "held in the mean only"
    assert better_than("", {"a": (noise - 0.01, np.zeros(20))}).verdict == "did not hold"
    mixed = {"a": (noise + 0.01, np.zeros(20)), "b": (noise - 0.01, np.zeros(20))}
    assert better_than("", mixed).verdict == "did not hold"


def test_few_draws_cannot_tell():
    """The least p that a signed-rank test of n draws can give is 2/2ⁿ, and Holm multiplies it."""
    for n in range(2, 12):
        least = stats.wilcoxon(np.arange(1.0, n + 1)).pvalue
        assert least == pytest.approx(2 / 2**n)
        for n_tests in (1, 3, 12):
            assert can_tell(n, n_tests) == (n_tests * least < 0.05)


def test_a_claim_of_too_few_draws_says_so(rng):
    assert better_than("", {"clear as day": scores(rng, n=5, lead=1.0)}).verdict == "too few draws"
    assert better_than("", {"clear as day": scores(rng, n=6, lead=1.0)}).verdict == "held"
    assert verdict_of([True], n_draws=5) == "too few draws"


def test_verdicts_of_parts():
    assert verdict_of([True, True]) == "held"
    assert verdict_of([True, False]) == "held in part"
    assert verdict_of([False, False]) == "did not hold"


def test_a_clear_difference_has_mean_and_ranks_on_its_side():
    """One huge loss turns the mean, not the ranks: that is neither a win nor a loss."""
    apart = np.append(np.linspace(0.1, 0.2, 29), -100.0)
    found = compare("", apart, np.zeros(30))
    assert found.p < 0.05
    assert found.direction == 1
    assert found.mean < 0
    assert not found.wins
    assert not found.loses
    assert compare("", -apart[:29], np.zeros(29)).loses


def test_two_are_alike_where_all_that_the_mean_may_be_is_too_small_to_matter(rng):
    near, far = 0.001 * rng.normal(size=30), 0.5 * rng.normal(size=30)
    zeros = np.zeros(30)
    assert as_good_as("", {"a": (near, zeros), "b": (zeros, zeros)}).verdict == "held"
    assert as_good_as("", {"a": (near, zeros), "b": (far, zeros)}).verdict == "held in part"
    assert as_good_as("", {"a": (near + 2 * MARGIN, zeros)}).verdict == "did not hold"


def test_trends_are_the_mean_rank_correlations_of_draws(rng):
    x = [20, 40, 60, 80, 100]
    rising, noise = np.array(x) + rng.normal(size=(10, 5)), rng.normal(size=(10, 5))
    (up, none), text = trends({"γ": (x, rising), "noise": (x, noise)})
    assert up.mean == pytest.approx(1)
    assert up.wins
    by_hand = [stats.spearmanr(x, row).statistic for row in noise]
    assert none.mean == pytest.approx(np.mean(by_hand))
    assert none.p == pytest.approx(stats.wilcoxon(by_hand).pvalue)  # the largest of two: Holm leaves it
    assert "γ: +1.00 (p 0.0039)" in text  # 2 · 2/2¹⁰
    (single,), _ = trends({"γ": (x, rising[:1])})
    assert single.p == 1  # a single draw tells nothing


def test_a_draw_in_which_nothing_varies_has_no_trend():
    """As where all silos fused with the consensus, and their weights are the same."""
    (found,), _ = trends({"": ([1, 2, 3], np.array([[5.0, 5.0, 5.0], [1.0, 2.0, 3.0]]))})
    assert found.mean == pytest.approx(0.5)
    assert 0 <= found.p <= 1


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "< 0.0001"), (9.9e-5, "< 0.0001"), (1e-4, "0.0001"), (0.00123, "0.0012"), (0.0312, "0.03"), (1.0, "1.00")],
)
def test_p_values_are_written_as_people_write_them(p, text):
    assert format_p(p) == text


def test_differences_have_a_sign_and_a_true_minus():
    assert format_signed(0.12345) == "+0.123"
    assert format_signed(-0.5, 2) == "\N{MINUS SIGN}0.50"
    assert format_signed(0.0) == "+0.000"


def test_claims_are_listed_and_then_told_one_by_one():
    text = markdown([Claim(says="A is so", verdict="held in part", evidence="Look.")])
    assert "| A is so | **held in part** |" in text
    assert "### 1. A is so\n\n**Held in part.** Look." in text
