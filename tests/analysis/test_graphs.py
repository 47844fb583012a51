"""Graphs that tell nothing, or stand apart from the consensus, are noticed by what is known of them."""

import numpy as np
import pytest

from silograph.analysis.graphs import GraphFacts, doubts_about_graphs, own_edges, own_part
from silograph.graph.graph import Graph


def fact(name, **known):
    return GraphFacts(**{"name": name, "n_nodes": 8, "n_pairs": 28, **known})


def test_complete_and_empty_graphs_are_told_apart_from_fused_ones():
    graphs = [fact("full", edges=28, distance=0.2), fact("none", edges=0), fact("fused", edges=28, distance=0.0)]
    (doubt,) = doubts_about_graphs([*graphs, fact("usual", edges=12), fact("silent")])
    assert (doubt.kind, doubt.silos) == ("complete", ("full", "none"))
    assert "every pair in 'full' and no pair in 'none'" in doubt.text


def test_of_a_silo_with_few_of_the_nodes_a_complete_graph_is_no_wonder():
    """With the five neighbours that nodes have elsewhere, six nodes have all there are."""
    others = [fact(name, n_nodes=30, n_pairs=435, edges=75) for name in ("oslo", "kyoto", "quito")]
    assert doubts_about_graphs([*others, fact("lima", n_nodes=6, n_pairs=15, edges=15)]) == ()
    (doubt,) = doubts_about_graphs([*others, fact("lima", n_nodes=20, n_pairs=190, edges=190)])
    assert (doubt.kind, doubt.silos) == ("complete", ("lima",))


def test_where_most_pairs_are_edges_in_all_silos_a_complete_graph_is_no_wonder():
    others = [fact(name, edges=20) for name in ("oslo", "kyoto", "quito")]
    assert doubts_about_graphs([*others, fact("lima", edges=28)]) == ()
    assert doubts_about_graphs([fact("oslo", edges=8), fact("kyoto", edges=9), fact("lima", edges=28)])


@pytest.mark.parametrize("others", [0.0, 0.05])
def test_a_silo_far_from_a_consensus_at_which_the_others_are_is_named(others):
    near = [fact(name, distance=others, edges=10) for name in ("oslo", "kyoto", "quito")]
    (doubt,) = doubts_about_graphs([*near, fact("lima", distance=0.92, edges=10)])
    assert (doubt.kind, doubt.silos) == ("apart", ("lima",))
    assert "'lima' (0.92 of the consensus' norm away from it, most others" in doubt.text


@pytest.mark.parametrize(
    ("distances", "n_nodes"),
    [((0.5, 0.6, 0.9), 8), ((0.0, 0.0, 0.5), 8), ((0.0, 1.0), 8), ((0.0, 0.0, 1.0), 4), ((0.0, None, 1.0), 8)],
)
def test_silos_that_differ_as_silos_do_are_not(distances, n_nodes):
    graphs = [fact(f"s{k}", distance=far, edges=3, n_nodes=n_nodes) for k, far in enumerate(distances)]
    assert doubts_about_graphs(graphs) == ()


def test_a_silo_without_weight_on_the_consensus_is_named():
    near = [fact(name, shared=0.9) for name in ("oslo", "kyoto", "quito")]
    (doubt,) = doubts_about_graphs([*near, fact("lima", shared=0.01)])
    assert (doubt.kind, doubt.silos) == ("apart", ("lima",))
    assert "1% of its weight on edges of the consensus, 90% in most others" in doubt.text


def test_edges_are_compared_by_name_where_a_silo_lacks_nodes():
    consensus = Graph.from_edges("abcd", [0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    silo = Graph.from_edges("dba", [0, 1, 0], [1, 2, 2], [2.0, 1.0, 1.0])  # d–b, b–a, d–a
    np.testing.assert_array_equal(
        own_edges(silo, consensus), [name != ("b", "a") for name in [e[:2] for e in silo.edges()]]
    )
    assert own_part(silo, consensus) == pytest.approx(0.75)
