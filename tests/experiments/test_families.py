"""Families with known truth: the precision's zeros are the graph's, and signs are as the family says."""

import numpy as np
import pytest

from silograph.experiments.families import DEMO, covariance, draw, families, null

SMALL = {family.name: family for family in families(12)}


@pytest.mark.parametrize("name", [name for name, family in SMALL.items() if family.base != "rbf"])
def test_silos_share_seven_tenths_of_their_edges(name):
    family = SMALL[name]
    drawn = draw(family, 3)
    shared = drawn.consensus > 0
    for number, graph in enumerate(drawn.graphs):
        is_outlier = number >= len(drawn.graphs) - family.outliers
        assert np.array_equal(graph, graph.T)
        assert is_outlier or (graph[shared] > 0).all()
        assert graph.sum() == pytest.approx(family.n_nodes)
    assert [len(X) for X in drawn.signals] == list(family.n_samples)
    n_edges = {int((graph > 0).sum()) // 2 for graph in drawn.graphs}
    assert len(n_edges) == 1
    assert shared.sum() // 2 == round(0.7 * n_edges.pop())


@pytest.mark.parametrize("law", ["gaussian", "signed", "series"])
def test_partial_correlations_are_the_graph_s_edges(law):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(12, 12))
    graph = draw(SMALL["Gaussian"], 1).graphs[0] * (np.triu(signs, 1) + np.triu(signs, 1).T if law == "signed" else 1.0)
    precision = np.linalg.inv(covariance(law, graph))
    np.testing.assert_allclose(-precision[~np.eye(12, dtype=bool)], graph[~np.eye(12, dtype=bool)], atol=1e-9)
    assert (law == "signed") == bool((graph < 0).any())


def test_other_seeds_and_families_are_other_draws():
    one, other, again = (draw(SMALL["Series"], seed) for seed in (0, 1, 0))
    assert not np.array_equal(one.signals[0][:5], other.signals[0][:5])
    np.testing.assert_array_equal(one.signals[0], again.signals[0])
    assert not np.array_equal(one.consensus, draw(SMALL["Gaussian"], 0).consensus)


def test_null_data_have_no_edge_and_the_demo_s_are_those_of_the_example():
    assert not draw(null(6), 0).consensus.any()
    assert draw(DEMO, 7).signals[0].shape == (20, 20)
