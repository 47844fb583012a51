"""Shrunk covariances: what is held out, the limits, and what decides."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from silograph.analysis.partial import shrinkage
from silograph.analysis.partial.learn import learn_partial
from silograph.analysis.partial.shrinkage import Shrinkage, choose, folds_of
from silograph.analysis.partial.sums import SiloSums, pooled, sums_of
from silograph.data.blocks import moments_of_blocks
from silograph.errors import SignalError
from silograph.experiments.families import draw, families
from silograph.graph.pairs import Pairs
from silograph.metrics import average_precision

SIGNED = next(family for family in families(20) if family.has_negative)


def sums(tables, *, standardize: bool = True) -> tuple[SiloSums, ...]:
    pairs = Pairs.all(tables[0].shape[1])
    blocks = {str(number): moments_of_blocks(table, pairs) for number, table in enumerate(tables)}
    return sums_of(blocks, [f"node {k}" for k in range(pairs.n_nodes)], standardize=standardize)


def tables_of(rng, sizes=(40, 64, 90), n_nodes=6):
    mixing = rng.normal(size=(n_nodes, n_nodes))
    return [rng.normal(size=(n, n_nodes)) @ mixing + rng.normal(size=n_nodes) * 100 for n in sizes]


def test_blocks_tell_what_the_rows_themselves_tell(rng):
    tables = tables_of(rng)
    for table, silo in zip(tables, sums(tables), strict=True):
        unit = table.std(axis=0)
        np.testing.assert_allclose(silo.whole().covariance, np.corrcoef(table.T), atol=1e-10)
        parts = np.array_split(np.arange(len(table)), 16)
        left = np.delete(table, parts[3], axis=0)
        known = silo.without(3)
        np.testing.assert_allclose(known.covariance, np.cov(left.T, bias=True) / np.outer(unit, unit), atol=1e-10)
        apart = (table[parts[3]] - left.mean(axis=0)) / unit
        np.testing.assert_allclose(silo.beyond(3, known.mean), apart.T @ apart, atol=1e-9)


def test_without_standardising_units_are_those_of_all_silos(rng):
    tables = tables_of(rng)
    centred = [table - table.mean(axis=0) for table in tables]
    unit = np.vstack(centred).std(axis=0)
    for table, silo in zip(centred, sums(tables, standardize=False), strict=True):
        np.testing.assert_allclose(
            silo.whole().covariance, np.cov(table.T, bias=True) / np.outer(unit, unit), atol=1e-9
        )


@pytest.mark.parametrize("ridge", [0.001, 0.3])
def test_the_likelihoods_are_those_of_scipy(rng, ridge):
    tables = tables_of(rng)
    silos, units = sums(tables), [table.std(axis=0) for table in tables]
    for number, fold in zip(range(3), folds_of(silos), strict=False):
        along = shrinkage._along_strengths(fold, ridge)
        parts = [np.array_split(table / unit, 16)[number] for table, unit in zip(tables, units, strict=True)]
        together = 0.0
        for place, strength in enumerate(shrinkage.STRENGTHS):
            law = Shrinkage(ridge=ridge, strengths=np.full(3, strength * 6), log_likelihood=np.zeros(3))
            for k, covariance in enumerate(law.own(fold.silos)):
                mean = fold.silos[k].mean + tables[k].mean(axis=0) / units[k]
                expected = multivariate_normal(mean, covariance).logpdf(parts[k]).sum()
                assert along[k, place] == pytest.approx(expected, rel=1e-8)
                together += expected if np.isinf(strength) else 0.0
        assert shrinkage._along_ridges(fold)[shrinkage.RIDGES.index(ridge)] == pytest.approx(together, rel=1e-8)


def test_the_limits_of_shrinkage_are_the_silo_and_what_all_share(rng):
    known = [silo.whole() for silo in sums(tables_of(rng))]
    law = Shrinkage(ridge=0.0, strengths=np.array([0.0, np.inf, 64.0]), log_likelihood=np.zeros(3))
    own, shared = list(law.own(known)), law.shared(known)
    np.testing.assert_allclose(own[0], known[0].covariance, atol=1e-14)
    np.testing.assert_allclose(own[1], shared, atol=1e-14)
    np.testing.assert_allclose(own[2], (90 * known[2].covariance + 64 * shared) / 154, atol=1e-14)
    np.testing.assert_allclose(shared, pooled(known))


def test_alike_silos_are_drawn_together_and_a_different_one_is_not():
    rng = np.random.default_rng(1)
    common, other = rng.normal(size=(2, 8, 8))
    alike = [rng.normal(size=(40, 8)) @ (common + 3 * np.eye(8)) for _ in range(12)]
    law = choose(sums([*alike, rng.normal(size=(80, 8)) @ (other + 3 * np.eye(8))]))
    assert (law.strengths[:-1] >= 4 * law.strengths[-1]).all()


def test_one_silo_is_what_is_shared(rng):
    found = learn_partial(sums(tables_of(rng, sizes=(50,))))
    np.testing.assert_allclose(found.own[0], found.consensus, atol=1e-12)


def test_identical_silos_have_the_graph_of_one(rng):
    (table,) = tables_of(rng, sizes=(80,))
    one, three = learn_partial(sums([table])), learn_partial(sums([table] * 3))
    assert one.shrinkage.ridge == three.shrinkage.ridge
    np.testing.assert_allclose(three.consensus, one.consensus, atol=1e-12)
    np.testing.assert_array_equal(three.own[1], three.own[0])


def test_relabelling_nodes_and_changing_units_commutes_with_learning(rng):
    tables, order = tables_of(rng), rng.permutation(6)
    found, other = learn_partial(sums(tables)), learn_partial(sums([(table * 7 - 3)[:, order] for table in tables]))
    np.testing.assert_allclose(other.own, found.own[:, order][:, :, order], atol=1e-9)
    np.testing.assert_allclose(other.consensus, found.consensus[order][:, order], atol=1e-9)


def test_a_node_whose_sign_is_turned_turns_the_signs_of_its_pairs(rng):
    tables, turn = tables_of(rng), np.array([1, -1, 1, 1, -1, 1])
    found, other = learn_partial(sums(tables)), learn_partial(sums([table * turn for table in tables]))
    np.testing.assert_allclose(other.own, found.own * np.outer(turn, turn), atol=1e-10)


@pytest.mark.parametrize("sizes", [(2,), (2, 3), (4, 7, 12)])
def test_fewer_samples_than_nodes_are_no_trouble(rng, sizes):
    found = learn_partial(sums([rng.normal(size=(n, 15)) for n in sizes]))
    assert np.isfinite(found.own).all()
    off = ~np.eye(15, dtype=bool)
    assert (np.abs(found.own[:, off]) < 1).all()


def test_signs_and_edges_of_a_known_truth_are_found():
    personal, shared, right = [], [], []
    for seed in range(300, 304):
        drawn = draw(SIGNED, seed)
        found = learn_partial(sums(drawn.signals))
        personal += [average_precision(t, np.abs(own)) for t, own in zip(drawn.graphs, found.own, strict=True)]
        shared.append(average_precision(drawn.consensus, np.abs(found.consensus)))
        precise = learn_partial(sums([np.vstack(drawn.signals)])).consensus
        right.append(np.mean(np.sign(precise)[drawn.consensus > 0] == np.sign(found.consensus)[drawn.consensus > 0]))
    assert np.mean(personal) > 0.65
    assert np.mean(shared) > 0.72
    assert np.mean(right) > 0.9


def test_what_never_changes_is_named(rng):
    tables = tables_of(rng)
    tables[1][:, 2] = 5.0
    with pytest.raises(SignalError, match="node 2"):
        sums(tables)
    assert np.isfinite(learn_partial(sums(tables, standardize=False)).own).all()
    for table in tables:
        table[:, 2] = 5.0
    with pytest.raises(SignalError, match="node 2"):
        sums(tables, standardize=False)
