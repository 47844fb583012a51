"""Places, order and communities: always the same, and those that a graph suggests."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from silograph.analysis.communities import communities, graph_distances, modularity
from silograph.analysis.graphs import own_part
from silograph.analysis.overlap import overlaps
from silograph.graph.graph import Graph
from silograph.report.layout import layout_of, stress_places, unit_square
from silograph.report.measures import first_threshold
from silograph.runs.reader import read_run
from testing.made_runs import study_run


def blocks(sizes, rng, within=1.0, between=0.02):
    label = np.repeat(np.arange(len(sizes)), sizes)
    rows, cols = np.triu_indices(label.size, 1)
    kept = (label[rows] == label[cols]) | (rng.random(rows.size) < 0.05)
    weights = np.where(label[rows] == label[cols], within, between) * rng.uniform(0.5, 1, rows.size)
    names = [f"n{node}" for node in range(label.size)]
    return Graph.from_edges(names, rows[kept], cols[kept], weights[kept]), label


def test_the_same_run_is_always_drawn_the_same_way(tmp_path):
    run = read_run(study_run(tmp_path / "run", n_nodes=40))
    first, again = layout_of(run), layout_of(run)
    assert np.array_equal(first.places, again.places)
    assert np.array_equal(first.order, again.order)


def test_a_path_is_drawn_as_one(rng):
    path = Graph.from_edges([str(k) for k in range(12)], np.arange(11), np.arange(1, 12), np.ones(11))
    places = stress_places(graph_distances(path))
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps == pytest.approx(steps.mean(), rel=0.05)
    assert np.linalg.norm(places[0] - places[-1]) == pytest.approx(11 * steps.mean(), rel=0.05)


def test_stress_is_no_higher_than_that_of_networkx(rng):
    graph, _ = blocks([12, 12, 12], rng)
    distance = graph_distances(graph)
    rivals = [
        np.array(list(nx.spring_layout(graph.to_networkx(), seed=0).values())),
        np.array(list(nx.kamada_kawai_layout(graph.to_networkx(), weight=None).values())),
    ]

    def stress(places):
        drawn, wanted = pdist(places), squareform(distance)
        scale = (drawn / wanted).sum() / (drawn**2 / wanted**2).sum()
        return ((scale * drawn / wanted - 1) ** 2).sum()

    assert stress(stress_places(distance)) <= min(map(stress, rivals))


def test_communities_that_are_there_are_found(rng):
    graph, label = blocks([9, 14, 7], rng)
    order, community = communities(graph, graph_distances(graph))
    assert len(set(zip(label.tolist(), community.tolist(), strict=True))) == 3
    assert sorted(order.tolist()) == list(range(30))
    assert (np.diff(community[order]) >= 0).all()  # each stands together in the matrix


def test_modularity_is_that_of_networkx(rng):
    graph, label = blocks([9, 14, 7], rng)
    groups = [{graph.names[node] for node in np.flatnonzero(label == k)} for k in range(3)]
    expected = nx.community.modularity(graph.to_networkx(), groups)
    assert modularity(graph, label) == pytest.approx(expected, abs=1e-12)


@given(n_nodes=st.integers(1, 30), n_edges=st.integers(0, 60), seed=st.integers(0, 2**16))
def test_any_graph_has_places_an_order_and_communities(n_nodes, n_edges, seed):
    rng = np.random.default_rng(seed)
    matrix = np.zeros((n_nodes, n_nodes))
    ends = rng.integers(0, n_nodes, (n_edges, 2))
    matrix[ends[:, 0], ends[:, 1]] = matrix[ends[:, 1], ends[:, 0]] = rng.uniform(1e-6, 1, n_edges)
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    graph = Graph.from_adjacency(matrix)
    distance = graph_distances(graph)
    places = unit_square(stress_places(distance))
    order, community = communities(graph, distance)
    assert np.isfinite(places).all()
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9
    assert sorted(order.tolist()) == list(range(n_nodes))
    assert community.shape == (n_nodes,)


def test_overlap_is_one_of_the_same_and_nothing_of_strangers():
    names = ["a", "b", "c", "d"]
    one = Graph.from_edges(names, [0, 1], [1, 2], [2.0, 1.0])
    half = Graph.from_edges(names, [0], [1], [2.0])
    strange = Graph.from_edges(names, [0], [3], [1.0])
    assert overlaps([one, half, strange]) == pytest.approx(np.array([[1, 2 / 3, 0], [2 / 3, 1, 0], [0, 0, 1]]))
    assert own_part(one, half) == pytest.approx(1 / 3)


def test_the_first_threshold_shows_the_degree_that_was_asked_for(tmp_path):
    run = read_run(study_run(tmp_path / "run", n_nodes=60, more=6))
    threshold = first_threshold(run)
    shown = [2 * (graph.weights >= threshold).sum() / 60 for graph in run.graphs.values()]
    assert threshold > 0
    assert 4 <= np.mean(shown) < 5
