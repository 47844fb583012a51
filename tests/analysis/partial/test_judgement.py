"""When the smooth model is the wrong one."""

import numpy as np
import pytest

from silograph.analysis.partial import judgement as judging
from silograph.analysis.partial.judgement import Judgement, judge
from silograph.analysis.partial.learn import learn_partial
from silograph.analysis.partial.sums import sums_of
from silograph.data.blocks import moments_of_blocks
from silograph.experiments.families import draw, families, null
from silograph.graph.pairs import Pairs


def judgement(tables) -> Judgement:
    pairs = Pairs.all(tables[0].shape[1])
    blocks = {str(number): moments_of_blocks(table, pairs) for number, table in enumerate(tables)}
    silos = sums_of(blocks, [str(k) for k in range(pairs.n_nodes)], standardize=True)
    return judge(silos, learn_partial(silos).shrinkage)


def test_it_is_wrong_where_partial_correlations_are_negative():
    family = next(family for family in families(20) if family.has_negative)
    found = judgement(draw(family, 300).signals)
    assert found.is_wrong
    assert "higher" in found.says
    assert f"{found.gain:.3f}" in found.says


@pytest.mark.parametrize("family", [*[f for f in families(20) if not f.has_negative], null(20)], ids=str)
def test_it_is_not_wrong_where_none_is_negative(family):
    found = judgement(draw(family, 300).signals)
    assert not found.is_wrong
    assert "no sign" in found.says


def test_signals_that_add_up_to_nothing_are_no_sign_against_it(rng):
    """Centring each row makes partial correlations negative and leaves all differences as they were."""
    drawn = draw(next(f for f in families(20) if f.name == "Gaussian"), 301).signals
    assert not judgement([x - x.mean(axis=1, keepdims=True) + 0.01 * rng.normal(size=x.shape) for x in drawn]).is_wrong


@pytest.mark.parametrize("n_parts", [2, 3])
def test_signals_of_parts_each_of_which_adds_up_to_nothing_are_no_sign_against_it(n_parts):
    """The model's own law on a graph that falls apart."""
    parts = [draw(next(f for f in families(10) if f.name == "Watts–Strogatz"), seed).signals for seed in range(n_parts)]
    tables = [np.hstack(silo) for silo in zip(*parts, strict=True)]
    found = judgement(tables)
    assert found.is_right
    assert "lower" in found.says
    turned = [table * np.where(np.arange(table.shape[1]) % 2, 1, -1) for table in tables]
    assert judgement(turned).is_wrong


def test_many_nodes_are_judged_by_what_silos_share_with_the_same_verdict(monkeypatch):
    drawn = draw(next(family for family in families(20) if family.has_negative), 303).signals
    each = judgement(drawn)
    monkeypatch.setattr(judging, "MOST_WORK", 0)
    shared = judgement(drawn)
    assert shared.gain != each.gain
    assert shared.gain == pytest.approx(each.gain, rel=0.3)
    assert shared.is_wrong == each.is_wrong


def test_a_few_blocks_are_no_evidence():
    assert not Judgement(gain=1.0, error=0.0, n_blocks=3).is_wrong
    assert Judgement(gain=1.0, error=0.1, n_blocks=16).is_wrong


def test_the_order_of_silos_does_not_matter(rng):
    drawn = draw(families(20)[5], 302).signals
    one, other = judgement(drawn), judgement(drawn[::-1])
    np.testing.assert_allclose([one.gain, one.error], [other.gain, other.error], rtol=1e-6)


def test_where_a_law_is_not_found_in_time_nothing_is_judged(monkeypatch):
    """With far fewer rows than nodes, thousands of sweeps may be needed."""
    monkeypatch.setattr("silograph.analysis.partial.nonnegative.SWEEPS", 1)
    found = judgement(draw(next(family for family in families(20) if family.has_negative), 300).signals)
    assert (found.n_blocks, found.is_wrong) == (0, False)
    assert "not judged" in found.says
