"""The coupling follows the data, the degree is the one asked for, and a run that was stopped chooses the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph import ConsensusGraph
from silograph.analysis.choosing import COUPLINGS, USUAL, WEAKEST, Telling, learn_study, take_coupling
from silograph.datasets import make_silos
from silograph.engine.study import TriedCoupling, learn_silos
from silograph.errors import ParameterError
from silograph.methods.common.settings import StudySettings
from testing.silos_with_rows import related_silos


def test_silos_with_few_rows_of_the_same_law_are_drawn_together_and_unrelated_ones_are_not():
    alike = ConsensusGraph().fit(make_silos(seed=1, n_samples=25, shared=1.0).signals)
    apart = ConsensusGraph().fit(make_silos(seed=1, n_samples=400, shared=0.0).signals)
    assert alike.coupling_ > 0.4
    assert apart.coupling_ < 0.25


def test_the_coupling_lies_half_way_between_the_least_loss_and_a_usual_one():
    model = ConsensusGraph(coupling="auto").fit(make_silos(seed=2).signals)
    assert [one.coupling for one in model.coupling_curve_] == sorted(COUPLINGS)
    least = min(model.coupling_curve_, key=lambda one: one.loss).coupling
    assert model.coupling_ == pytest.approx(np.sqrt(least * USUAL))


def test_where_silos_alone_have_the_least_loss_the_coupling_is_weak_and_not_zero():
    losses = {0.0: 1.0, 0.1: 1.1, 0.5: 1.5}
    taken = take_coupling([TriedCoupling(coupling=coupling, loss=loss) for coupling, loss in losses.items()])
    assert taken == pytest.approx(np.sqrt(WEAKEST * USUAL))
    assert 0 < taken < 0.1


def test_giving_the_coupling_that_was_chosen_gives_the_same_bits():
    signals = make_silos(seed=3).signals
    chosen = ConsensusGraph().fit(signals)
    given_it = ConsensusGraph(coupling=chosen.coupling_).fit(signals)
    np.testing.assert_array_equal(given_it.adjacencies_, chosen.adjacencies_)
    np.testing.assert_array_equal(given_it.consensus_scores_, chosen.consensus_scores_)
    assert given_it.coupling_curve_ == []


def test_the_loss_is_the_same_whatever_the_number_of_threads():
    signals = make_silos(seed=3, n_silos=3, n_nodes=12).signals
    curves = [ConsensusGraph(n_jobs=n).fit(signals).coupling_curve_ for n in (1, 2, 4)]
    assert curves[0] == curves[1] == curves[2]


@settings(max_examples=25, deadline=None)
@given(
    n_nodes=st.integers(6, 25),
    n=st.integers(2, 6),
    coupling=st.sampled_from([0.0, 0.2, 0.6, 1.0, 2.0]),
    degree=st.floats(1.5, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_degree_asked_for_is_the_degree_delivered(n_nodes, n, coupling, degree, seed):
    silos = related_silos(seed, n=n, n_nodes=n_nodes)
    degree = min(degree, n_nodes - 1.5)
    study = learn_study(silos, StudySettings(degree=degree, coupling=coupling))
    assert abs(study.degree - degree) <= max(0.05 * degree, 1 / n_nodes + 1e-9)
    assert study.degree_reached
    assert study.gap <= 1e-6


def test_a_graph_is_the_strongest_edges_of_the_certified_optimum():
    silos, asked = related_silos(n_nodes=15), StudySettings(degree=3, coupling=0.5)
    study = learn_study(silos, asked)
    whole = learn_silos(silos, StudySettings(alpha=study.alpha, beta=study.beta, coupling=0.5))
    assert study.optimum is not None
    np.testing.assert_allclose(study.optimum.consensus, whole.consensus, atol=1e-4)
    for name, w in study.graphs.items():
        np.testing.assert_array_equal(w[w > 0], study.optimum.graphs[name][w > 0])
    assert study.degree_alone is not None
    assert study.optimum.degree > study.degree


def test_alpha_and_beta_leave_the_optimum_whole():
    study = learn_study(related_silos(), StudySettings(alpha=0.5, beta=0.25, coupling=0.5))
    assert study.optimum is None
    assert study.degree_asked is None


@pytest.mark.parametrize("method", ["independent", "oneshot", "pooled"])
def test_silos_alone_and_one_graph_for_all_have_an_optimum_of_that_degree(method):
    study = learn_study(related_silos(n_nodes=15), StudySettings(degree=4, method=method))
    assert study.optimum is None
    assert study.degree_alone == pytest.approx(4, rel=0.05)


def test_a_run_that_was_stopped_does_not_choose_again(tmp_path):
    silos, told = related_silos(n_nodes=10), []
    first = learn_study(silos, StudySettings(degree=3), checkpoint=tmp_path)
    again = learn_study(
        silos, StudySettings(degree=3), checkpoint=tmp_path, telling=Telling(progress=lambda *what: told.append(what))
    )
    assert told == []
    np.testing.assert_array_equal(first.consensus, again.consensus)
    assert first.coupling_curve == again.coupling_curve


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "oneshot", "coupling": "auto"}, "no such parameter|chooses at home"),
        ({"method": "algorithm1", "coupling": "auto"}, "chooses at home"),
        ({"weights": "equal", "coupling": "auto"}, "adaptive weights"),
        ({"metric": "precomputed", "coupling": "auto"}, "holds out rows"),
        ({"coupling": "often"}, "coupling"),
    ],
)
def test_what_cannot_be_chosen_is_refused(options, message):
    rng = np.random.default_rng(0)
    tables = [np.abs(np.subtract.outer(a, a)) for a in rng.normal(size=(3, 6))]
    with pytest.raises(ParameterError, match=message):
        ConsensusGraph(**options).fit(tables)


def test_without_rows_or_with_many_pairs_the_coupling_is_the_fixed_one(monkeypatch):
    rng = np.random.default_rng(0)
    distances = [np.abs(np.subtract.outer(a, a)) for a in rng.normal(size=(3, 6))]
    assert ConsensusGraph(metric="precomputed").fit(distances).coupling_ == 0.5
    monkeypatch.setattr("silograph.analysis.choosing.MOST_NUMBERS", 100)
    assert ConsensusGraph().fit(make_silos(seed=0).signals).coupling_ == 0.5


def test_one_block_of_rows_is_enough_to_learn():
    silos = related_silos(n_samples=2)
    study = learn_study([replace(silo) for silo in silos], StudySettings())
    assert study.converged
