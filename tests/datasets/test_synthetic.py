"""The paper's recipe, checked as mathematics: counts, weights, traces, covariances, and what depends on what."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.datasets import make_silos
from silograph.datasets.synthetic import laplacian
from silograph.errors import ParameterError

# Ten points in the unit square have two within 0.4213, and 0.5 · √(−2 log 0.7) is 0.4223: there is always an edge
recipes = given(
    seed=st.integers(0, 2**32 - 1),
    n_nodes=st.integers(10, 25),
    shared=st.floats(0, 1),
    kernel_width=st.floats(0.5, 2),
    n_silos=st.integers(1, 4),
)


def edges_of(graph):
    return set(zip(graph.rows.tolist(), graph.cols.tolist(), strict=True))


def original(**recipe):
    """G0: the graph of a silo that keeps every edge."""
    return make_silos(**{**recipe, "shared": 1.0, "n_silos": 1}).graphs["C1"]


@recipes
def test_a_silo_keeps_the_consensus_and_adds_as_many_edges_as_were_removed(**recipe):
    silos, whole = make_silos(n_samples=1, **recipe), original(**recipe)
    assert silos.consensus.n_edges == round(recipe["shared"] * whole.n_edges)
    assert edges_of(silos.consensus) <= edges_of(whole)
    for graph in silos.graphs.values():
        assert graph.n_edges == whole.n_edges
        assert edges_of(silos.consensus) <= edges_of(graph)


@recipes
def test_every_laplacian_has_the_trace_d(**recipe):
    silos = make_silos(n_samples=1, **recipe)
    for graph in [*silos.graphs.values(), silos.consensus]:
        if graph.n_edges:
            assert np.trace(laplacian(graph)) == pytest.approx(recipe["n_nodes"])


@recipes
def test_permuted_weights_are_those_of_the_edges_removed_and_kept_ones_stay(**recipe):
    silos, whole = make_silos(n_samples=1, scale="none", **recipe), original(scale="none", **recipe)
    for graph in silos.graphs.values():
        assert np.sort(graph.weights) == pytest.approx(np.sort(whole.weights), rel=1e-15)
        for row, col in edges_of(silos.consensus):
            assert graph.adjacency()[row, col] == whole.adjacency()[row, col]


@recipes
def test_the_original_is_the_kernel_of_distances_where_it_is_not_cut(**recipe):
    places = make_silos(n_samples=1, **recipe).places
    assert places.shape == (recipe["n_nodes"], 2)
    assert (places >= 0).all()
    assert (places < 1).all()
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    kernel = np.exp(-(distances**2) / (2 * recipe["kernel_width"] ** 2)) * (1 - np.eye(recipe["n_nodes"]))
    expected = np.where(kernel >= 0.7, kernel, 0)
    assert original(scale="none", **recipe).adjacency() == pytest.approx(expected, rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1), parts=st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_with_one_part_per_silo_the_kept_edges_are_nested(seed, parts):
    silos = make_silos(n_samples=1, n_silos=len(parts), shared=parts, scale="none", seed=seed)
    best = int(np.argmax(parts))
    assert silos.consensus == silos.graphs[f"C{best + 1}"]
    # What a part keeps is the consensus of silos that all keep this part
    kept = [make_silos(n_samples=1, shared=part, scale="none", seed=seed).consensus for part in sorted(parts)]
    for smaller, larger in pairwise(kept):
        assert edges_of(smaller) <= edges_of(larger)
    for part, graph in zip(parts, silos.graphs.values(), strict=True):
        assert edges_of(kept[sorted(parts).index(part)]) <= edges_of(graph)
        assert graph.n_edges == original(seed=seed).n_edges


def test_a_part_of_one_gives_the_original_as_in_case_2_of_table_iii():
    silos = make_silos(n_samples=100, shared=[1, 0.8, 0.6, 0.4, 0.2], seed=3)
    assert silos.consensus == silos.graphs["C1"] == original(seed=3)
    overlap = [len(edges_of(graph) & edges_of(silos.consensus)) for graph in silos.graphs.values()]
    assert overlap == sorted(overlap, reverse=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_graphs_do_not_depend_on_the_number_of_samples_and_fewer_samples_are_the_first_of_more(seed):
    few, many = make_silos(n_samples=3, seed=seed), make_silos(n_samples=[3, 4, 5, 60, 7], seed=seed)
    assert few.graphs == many.graphs
    assert few.consensus == many.consensus
    assert [len(values) for values in many.signals.values()] == [3, 4, 5, 60, 7]
    for name, values in few.signals.items():
        assert values == pytest.approx(many.signals[name][:3], rel=1e-9, abs=1e-9)


def test_a_silo_does_not_depend_on_the_others():
    some, more = make_silos(n_silos=2, seed=0), make_silos(n_silos=4, n_samples=[50, 50, 9, 2], seed=0)
    assert list(more.signals) == ["C1", "C2", "C3", "C4"]
    for name in some.signals:
        assert some.graphs[name] == more.graphs[name]
        assert np.array_equal(some.signals[name], more.signals[name])


def test_the_same_seed_gives_the_same_and_another_seed_another():
    for seed in (5, [5, 6], np.int64(7)):
        first, second = make_silos(seed=seed), make_silos(seed=seed)
        assert first.graphs == second.graphs
        assert np.array_equal(first.places, second.places)
        assert all(np.array_equal(first.signals[name], second.signals[name]) for name in first.signals)
    assert make_silos(seed=5).graphs != make_silos(seed=6).graphs
    assert make_silos(seed=[5, 6]).graphs != make_silos(seed=[6, 5]).graphs


def test_a_generator_is_repeatable_and_moves_on():
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    first = make_silos(seed=rng)
    assert first.graphs == make_silos(seed=again).graphs
    assert first.graphs != make_silos(seed=rng).graphs


def test_silos_differ_in_graphs_and_in_noise():
    silos = make_silos(n_silos=2, seed=0)
    assert silos.graphs["C1"] != silos.graphs["C2"]
    same = make_silos(n_silos=2, shared=1.0, seed=0)
    assert same.graphs["C1"] == same.graphs["C2"] == same.consensus
    assert abs(np.corrcoef(same.signals["C1"].ravel(), same.signals["C2"].ravel())[0, 1]) < 0.2


@pytest.mark.parametrize("cut", [0.7, 0.97])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
def test_signals_have_the_covariance_of_the_model_also_on_graphs_that_fall_apart(cut, noise):
    n_samples = 200_000
    silos = make_silos(n_samples=n_samples, n_silos=1, n_nodes=8, cut=cut, noise=noise, seed=11)
    model = np.linalg.pinv(laplacian(silos.graphs["C1"]), hermitian=True) + noise**2 * np.eye(8)
    values = silos.signals["C1"]
    if cut == 0.97:
        assert np.linalg.matrix_rank(laplacian(silos.graphs["C1"])) < 7
    # The standard error of a covariance of Gaussians, five times
    error = np.sqrt((np.outer(np.diag(model), np.diag(model)) + model**2) / n_samples)
    assert (np.abs(values.T @ values / n_samples - model) <= 5 * error + 1e-12).all()
    assert (np.abs(values.mean(axis=0)) <= 5 * np.sqrt(np.diag(model) / n_samples) + 1e-12).all()


def test_other_weights_of_added_edges_are_what_their_names_say():
    by_distance = make_silos(added_weights="kernel", scale="none", seed=2)
    squared = ((by_distance.places[:, None] - by_distance.places[None]) ** 2).sum(axis=2)
    for graph in by_distance.graphs.values():
        assert graph.weights == pytest.approx(np.exp(-squared / 0.5)[graph.rows, graph.cols])
    uniform = make_silos(added_weights="uniform", scale="none", seed=2)
    assert all(((graph.weights >= 0.7) & (graph.weights <= 1)).all() for graph in uniform.graphs.values())
    assert len({tuple(np.sort(graph.weights)) for graph in uniform.graphs.values()}) == 5
    assert by_distance.consensus == uniform.consensus


def test_a_kernel_too_narrow_for_numbers_still_gives_edges():
    silos = make_silos(n_nodes=60, kernel_width=0.01, cut=0.01, added_weights="kernel", shared=0.5, seed=0)
    assert len({graph.n_edges for graph in silos.graphs.values()}) == 1
    assert all(np.isfinite(values).all() for values in silos.signals.values())


def test_three_of_eight_pairs_are_edges_of_the_original_on_average():
    density = np.mean([original(n_samples=1, seed=seed).n_edges / 190 for seed in range(200)])
    assert density == pytest.approx(3 / 8, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected a whole number ≥ 1, got 0"),
        ({"n_samples": "50"}, "n_samples: expected a whole number ≥ 1, got '50'"),
        ({"n_samples": [10, 20]}, "n_samples: expected one number, or one for each of the 5 silos, got 2"),
        ({"n_silos": 0}, "n_silos: expected a whole number ≥ 1"),
        ({"shared": 1.2}, r"shared: expected a part from 0 to 1, got 1\.2"),
        ({"shared": [0.5, 0.5, 0.5, 0.5, -1]}, "shared: expected a part from 0 to 1, got -1"),
        ({"shared": np.nan}, "shared: expected a part from 0 to 1, got nan"),
        ({"n_nodes": 1}, "n_nodes: expected a whole number ≥ 2"),
        ({"kernel_width": 0}, "kernel_width: expected a finite number > 0"),
        ({"cut": 1}, "cut: expected a weight between 0 and 1, got 1"),
        ({"n_nodes": 3, "kernel_width": 0.001}, r"cut: expected some pair of the 3 nodes .* Lower cut"),
        ({"noise": -0.1}, "noise: expected a finite number ≥ 0"),
        ({"added_weights": "equal"}, "added_weights: expected 'permuted' or 'kernel' or 'uniform', got 'equal'"),
        ({"scale": True}, "scale: expected 'trace' or 'none', got True"),
        ({"seed": -1}, "seed: expected whole numbers ≥ 0 or a numpy.random.Generator, got -1"),
        ({"seed": None}, "seed: .* got None"),
        ({"seed": "0x"}, "seed: .* got '0x'"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(arguments, message):
    with pytest.raises(ParameterError, match=message):
        make_silos(**{"seed": 0, **arguments})
