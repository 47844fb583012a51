import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.data.moments import Moments
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.degree import default_degree, first_theta
from silograph.local.learn import Settings, learn
from testing.problems import costs


@pytest.mark.parametrize("kind", ["smooth", "independent"])
@pytest.mark.parametrize(("n_nodes", "degree"), [(20, 3), (20, 5), (60, 5), (60, 10.5), (300, 7), (300, 30)])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e12])
def test_the_degree_asked_for_is_the_degree_got(rng, kind, n_nodes, degree, scale):
    cost = scale * costs(kind, rng, 80, n_nodes)
    learned = learn(cost, Pairs.all(n_nodes), Settings(degree=degree))
    assert learned.degree_reached
    assert learned.degree == pytest.approx(degree, rel=0.02)
    assert learned.solution.converged


@pytest.mark.slow
@pytest.mark.parametrize("n_nodes", [1000, 2000])
@pytest.mark.parametrize("degree", [3, 20])
def test_the_degree_asked_for_is_got_on_many_nodes(rng, n_nodes, degree):
    learned = learn(costs("smooth", rng, 80, n_nodes), Pairs.all(n_nodes), Settings(degree=degree))
    assert learned.degree == pytest.approx(degree, rel=0.02)


@given(n=st.integers(4, 40), seed=st.integers(0, 2**32 - 1), log_scale=st.floats(-30, 30))
def test_the_graph_does_not_depend_on_the_units(n, seed, log_scale):
    cost = np.random.default_rng(seed).uniform(0.2, 1, size=n * (n - 1) // 2)
    here = learn(cost, Pairs.all(n), Settings(degree=2.5, tol=1e-13))
    there = learn(10**log_scale * cost, Pairs.all(n), Settings(degree=2.5, tol=1e-13))
    np.testing.assert_allclose(there.solution.w, here.solution.w, atol=1e-7)
    assert there.alpha == pytest.approx(10**log_scale * here.alpha, rel=1e-7)


def test_a_lone_node_has_as_many_neighbours_as_the_rule_says():
    cost = np.array([1.0, 2.0, 3.0, 4.0])
    for k in (1, 2, 3):
        theta = 1 / np.sqrt((k * cost[k] ** 2 - cost[:k].sum() * cost[k]) / 4)  # the lower bound, z' = c/2
        for factor, expected in ((1.01, k), (0.99, k + 1)):
            level = lone_node_level(factor * theta * cost / 2)
            assert (factor * theta * cost / 2 < level).sum() == expected


def lone_node_level(z: np.ndarray) -> float:
    """The multiplier y of min Σ z w + ‖w‖²/2 − log Σ w: w = (y − z)₊ and y Σ w = 1."""
    low, high = z.min(), z.max() + 10
    for _ in range(200):
        y = (low + high) / 2
        low, high = (low, y) if y * np.maximum(y - z, 0).sum() > 1 else (y, high)
    return y


def test_ties_that_forbid_a_degree_are_reported_with_the_nearest_one():
    learned = learn(np.ones(45), Pairs.all(10), Settings(degree=3))
    assert not learned.degree_reached
    assert learned.degree == 9
    assert learned.solution.converged


def test_zero_distances_everywhere_still_give_a_graph():
    learned = learn(np.zeros(45), Pairs.all(10), Settings(degree=3))
    assert learned.solution.converged
    assert not learned.degree_reached


@pytest.mark.parametrize(("n_nodes", "expected"), [(2, 1), (5, 2), (12, 3), (20, 5), (1000, 5)])
def test_the_default_degree_suits_the_number_of_nodes(n_nodes, expected):
    assert default_degree(Pairs.all(n_nodes)) == expected


def test_more_neighbours_need_a_smaller_theta(rng):
    cost = costs("smooth", rng, 80, 50)
    theta = [first_theta(cost, Pairs.all(50), degree) for degree in (1, 2, 3.5, 5, 10, 20, 40)]
    assert (np.diff(theta) < 0).all()


@pytest.mark.parametrize(
    ("degree", "message"),
    [(10, "less than the number of nodes"), (0.5, "at least 1"), (-1, "> 0"), (np.nan, "finite"), (9.5, "at most 9")],
)
def test_an_impossible_degree_is_refused(degree, message):
    with pytest.raises(ParameterError, match=message):
        learn(np.ones(45), Pairs.all(10), Settings(degree=degree))


@pytest.mark.parametrize("seed", range(8))
def test_one_node_far_from_all_others_does_not_mislead_the_search(seed):
    X = np.random.default_rng(seed).normal(size=(60, 60))
    X[:, 0] += 1e4
    learned = learn(Moments.of(X).costs(), Pairs.all(60), Settings(degree=2))
    assert learned.degree == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("seed", range(4, 12))
def test_a_plateau_of_the_degree_does_not_end_the_search(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))[:, rng.integers(0, 6, 60)] + 0.1 * rng.normal(size=(60, 60))
    learned = learn(Moments.of(X).costs(), Pairs.all(60), Settings(degree=10))
    assert learned.degree == pytest.approx(10, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_the_degree_reported_is_that_of_the_graph_returned(seed):
    X = np.linspace(0, 1, 73) + 1e-6 * np.random.default_rng(seed).normal(size=(20, 73))
    learned = learn(Moments.of(X).costs(), Pairs.all(73), Settings(degree=3))
    assert learned.degree == 2 * np.count_nonzero(learned.solution.w) / 73
    assert learned.degree_reached == (abs(learned.degree - 3) <= max(0.02 * 3, 1.001 / 73))
