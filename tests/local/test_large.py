"""Many nodes without stored costs: the graph, the gap and the degree of stored ones."""

from dataclasses import replace

import numpy as np
import pytest

from silograph.data.moments import Moments
from silograph.data.tiles import CostTiles, node_moments
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.large import learn_large
from silograph.local.learn import LearnResult, Settings, graph_of, learn
from silograph.local.solvers.dual import gap_at
from testing.problems import signals

NAMES = [str(node) for node in range(300)]


def tiles_of(X: np.ndarray, **options) -> CostTiles:
    moments = node_moments(X.shape[1])
    moments.update(X)
    return CostTiles.of(X, moments, **options)


def near_duplicates(rng: np.random.Generator) -> np.ndarray:
    X = signals("smooth", rng, 60, 300)
    X[:, 200:250] = X[:, :50] + 1e-9 * rng.normal(size=(60, 50))
    X[:, 250:] = X[:, :50]
    return X


MAKERS = {
    "smooth": lambda rng: signals("smooth", rng, 60, 300),
    "independent": lambda rng: signals("independent", rng, 60, 300),
    "amplitudes": lambda rng: signals("independent", rng, 60, 300) * 10.0 ** rng.uniform(-0.3, 0.3, size=300),
    "near-duplicates": near_duplicates,
    "single precision": lambda rng: signals("smooth", rng, 60, 300).astype(np.float32) + np.float32(300),
}


def weights(learned: LearnResult) -> np.ndarray:
    return graph_of(learned, NAMES).adjacency()


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("neighbours", [None, 2])
def test_weights_are_those_of_stored_costs(rng, kind, standardize, neighbours):
    X, pairs = MAKERS[kind](rng), Pairs.all(300)
    cost = Moments.of(X).costs(standardize=standardize)
    found = learn_large(tiles_of(X, standardize=standardize), Settings(degree=5, neighbours=neighbours))
    given = Settings(alpha=found.alpha, beta=found.beta)
    stored, again = learn(cost, pairs, given), learn_large(tiles_of(X, standardize=standardize), given)
    size = weights(stored).max()
    for learned in (found, again):
        np.testing.assert_allclose(weights(learned), weights(stored), rtol=0, atol=1e-10 * size)
        assert learned.solution.primal == pytest.approx(stored.solution.primal, rel=1e-12)
        assert learned.solution.converged
        for gap in (learned.solution.gap, stored.solution.gap, gap_at(stored.problem, learned.y)):
            assert gap <= 1e-18 * abs(stored.solution.primal)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("max_iter", [1, 2, 4])
def test_the_gap_is_that_of_all_pairs_also_where_it_is_not_small(rng, kind, max_iter):
    tiles, pairs = tiles_of(MAKERS[kind](rng)), Pairs.all(300)
    typical = tiles.average()
    learned = learn_large(tiles, Settings(alpha=0.1 * typical, beta=0.3 * typical, max_iter=max_iter, neighbours=3))
    cost = tiles.at(pairs.rows, pairs.cols)
    whole = replace(learned.problem, pairs=pairs, cost=cost)
    w = whole.weights(learned.y)
    assert learned.solution.gap == pytest.approx(whole.gap(w, learned.y), rel=1e-9, abs=1e-18 * typical)
    assert learned.solution.converged == (learned.solution.relative_gap <= 1e-8)


@pytest.mark.parametrize("degree", [3, 5.5, 40])
def test_the_degree_asked_for_is_delivered(rng, degree):
    learned = learn_large(tiles_of(MAKERS["smooth"](rng)), Settings(degree=degree))
    assert learned.degree == pytest.approx(degree, rel=0.01)
    assert learned.degree_reached
    assert learned.degree == 2 * graph_of(learned, NAMES).n_edges / 300


def test_a_dense_graph_outgrows_its_candidates_and_is_learned_all_the_same(rng):
    X = MAKERS["independent"](rng)
    given = Settings(alpha=100.0, beta=100.0, neighbours=1)
    stored = learn(Moments.of(X).costs(), Pairs.all(300), given)
    np.testing.assert_allclose(weights(learn_large(tiles_of(X), given)), weights(stored), atol=1e-10)
    assert stored.degree > 200


def test_isolated_nodes_may_stay_so(rng):
    X = MAKERS["smooth"](rng)
    given = Settings(alpha=1e-2, beta=1.0, zeta=0.5)
    stored = learn(Moments.of(X).costs(), Pairs.all(300), given)
    learned = learn_large(tiles_of(X), given)
    np.testing.assert_allclose(weights(learned), weights(stored), atol=1e-10)
    assert (weights(stored).sum(axis=1) == 0).any()


def test_an_impossible_degree_is_refused_before_anything_is_computed(rng):
    with pytest.raises(ParameterError, match="less than the number of nodes"):
        learn_large(tiles_of(MAKERS["smooth"](rng)), Settings(degree=300))
