import numpy as np
import pytest

from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.learn import Settings, graph_of, learn
from testing.problems import costs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degree": 5, "alpha": 1.0, "beta": 1.0}, "degree and alpha and beta contradict"),
        ({"alpha": 1.0}, "alpha was given alone"),
        ({"beta": 1.0}, "beta was given alone"),
        ({"alpha": -1.0, "beta": 1.0}, "alpha: expected a finite number > 0, got -1.0"),
        ({"alpha": 1.0, "beta": np.nan}, "beta: expected a finite number > 0, got nan"),
        ({"tol": 0.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"zeta": -1.0}, "zeta"),
        ({"degree": True}, "degree"),
        ({"degree": "5"}, "degree"),
        ({"solver": "simplex"}, "'newton' or 'gradient', got 'simplex'"),
        ({"momentum": 1.0}, "momentum"),
        ({"step": 0.005}, "step: it belongs to the gradient method"),
        ({"max_iter": 0}, "max_iter"),
        ({"neighbours": -1}, "neighbours"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(settings, message):
    with pytest.raises(ParameterError, match=message):
        Settings(**settings)


def test_both_solvers_learn_the_same_graph_for_a_degree(rng):
    cost = costs("smooth", rng, 100, 25)
    newton = learn(cost, Pairs.all(25), Settings(degree=4))
    gradient = learn(cost, Pairs.all(25), Settings(degree=4, solver="gradient", tol=1e-7))
    assert gradient.alpha == newton.alpha
    np.testing.assert_allclose(gradient.solution.w, newton.solution.w, atol=1e-3)


def test_alpha_and_beta_of_a_degree_give_the_same_graph_when_given(rng):
    cost = costs("smooth", rng, 100, 25)
    by_degree = learn(cost, Pairs.all(25), Settings(degree=4, tol=1e-12))
    again = learn(cost, Pairs.all(25), Settings(alpha=by_degree.alpha, beta=by_degree.beta, tol=1e-12))
    np.testing.assert_allclose(again.solution.w, by_degree.solution.w, atol=1e-7)
    assert graph_of(again, [str(node) for node in range(25)]).mean_degree == by_degree.degree
