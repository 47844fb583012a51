"""Communities where anyone can see them, and draws of objects."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.distance import squareform

from silograph.experiments.images import (
    MEASURES,
    ImageTrial,
    agreement,
    communities,
    draw_objects,
    network,
    run_image_trial,
    silos_of,
    views_of,
)
from testing.small_experiments import RECIPE, assert_same

OBJECTS = (0, 5, 11, 19)


def blocks(rng, sizes, between=0.0):
    """Weights of a graph whose nodes are linked within blocks."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rows, cols = np.triu_indices(truth.size, 1)
    w = np.where(truth[rows] == truth[cols], 1.0, between) * rng.uniform(0.5, 1, rows.size)
    return w, truth


def test_obvious_communities_are_found(rng):
    w, truth = blocks(rng, (6, 9, 7))
    assert agreement(communities(w, 0.01), truth) == pytest.approx((1, 1, 1))


def test_weak_links_between_communities_do_not_hide_them(rng):
    w, truth = blocks(rng, (12, 12, 12, 12), between=0.02)
    assert agreement(communities(w, 0.0), truth) == pytest.approx((1, 1, 1))


def test_links_below_the_threshold_are_none(rng):
    w, truth = blocks(rng, (8, 8), between=0.9)
    weak = np.where(w < 0.6, 0.0099, w)
    network_of = network(weak, 0.01)
    assert network_of.number_of_edges() == (weak > 0.01).sum()
    assert set(network_of) == set(range(truth.size))


def test_a_node_without_links_is_a_community_of_its_own(rng):
    w, _ = blocks(rng, (4, 4))
    adjacency = squareform(w)
    adjacency[0] = adjacency[:, 0] = 0
    found = communities(squareform(adjacency), 0.01)
    assert (found == found[0]).sum() == 1
    assert len(set(communities(np.zeros(28), 0.01))) == 8


def test_the_network_is_networkx_s_own_of_the_adjacency(rng):
    w = np.where(rng.random(45) < 0.5, rng.random(45), 0.0)
    expected = nx.from_numpy_array(squareform(w))
    assert nx.utils.graphs_equal(network(w, 0.0), expected)


def test_agreement_does_not_depend_on_what_communities_are_called(rng):
    truth = rng.integers(0, 4, 48)
    assert agreement(rng.permutation(4)[truth], truth) == pytest.approx((1, 1, 1))
    found = rng.integers(0, 4, 48)
    assert agreement(found, truth) == pytest.approx(agreement(rng.permutation(4)[found], truth))


def test_agreement_is_the_one_counted_pair_by_pair(rng):
    truth, found = rng.integers(0, 3, 20), rng.integers(0, 4, 20)
    rows, cols = np.triu_indices(20, 1)
    together, found_together = truth[rows] == truth[cols], found[rows] == found[cols]
    both = (together & found_together).sum()
    _, rand, fowlkes_mallows = agreement(found, truth)
    assert rand == pytest.approx((together == found_together).mean())
    assert fowlkes_mallows == pytest.approx(both / np.sqrt(together.sum() * found_together.sum()))


def test_draws_are_of_four_different_objects_the_same_for_a_seed():
    draws = [draw_objects(seed) for seed in range(200)]
    assert all(len(set(draw)) == 4 and list(draw) == sorted(draw) for draw in draws)
    assert draws == [draw_objects(seed) for seed in range(200)]
    assert {number for draw in draws for number in draw} == set(range(20))
    assert len(set(draws)) > 190


def test_views_are_scaled_by_one_number_each(coil):
    views = views_of(OBJECTS, coil)
    raw, scaled = silos_of(views, raw=True), silos_of(views)
    assert [silo.name for silo in scaled] == ["view1", "view2", "view3"]
    for one, other in zip(raw, scaled, strict=True):
        assert other.cost.mean() == pytest.approx(1)
        np.testing.assert_allclose(one.cost / one.cost.mean(), other.cost)


def test_a_trial_has_a_score_of_every_view_and_of_the_consensus(coil):
    trial = ImageTrial(objects=OBJECTS, recipe=RECIPE, methods=("igl", "fedavg", "ppgl"), path=coil, data="")
    found = run_image_trial(trial)
    shapes = {"igl": (1, 3), "fedavg": (2, 3), "ppgl": (4, 4)}
    for method, (n_points, n_graphs) in shapes.items():
        assert found[f"{method}/scores"].shape == (n_points, n_graphs, len(MEASURES))
    assert_same(found, run_image_trial(trial))
    assert found["igl/scores"].max() == pytest.approx(1)  # these objects are easy to tell apart
