"""Every pair has a rank: edges by their weight, all others below them by how far they are from being one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph import ConsensusGraph, SmoothGraph
from silograph.analysis.choosing import with_strongest
from silograph.analysis.scores import scores_of
from silograph.datasets import make_silos
from silograph.engine.study import learn_silos
from silograph.methods.common.settings import StudySettings
from silograph.metrics import average_precision
from testing.silos_with_rows import related_silos

EXACT = [
    {"coupling": 0.0},
    {"coupling": 0.4},
    {"coupling": 0.9, "sparsity": 0.4},
    {"coupling": 3.0},
    {"coupling": 0.5, "weights": "equal"},
    {"method": "oneshot"},
    {"method": "oneshot", "sums": 3, "sparsity": 0.2},
    {"method": "independent"},
    {"method": "pooled"},
    {"method": "ditto"},
    {"method": "mrmtl"},
]


@pytest.mark.parametrize("options", EXACT, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_edges_have_their_weight_and_all_others_less_than_nothing(options, whole):
    silos, chosen = related_silos(n_nodes=12), StudySettings(alpha=0.6, beta=0.3, **options)
    study = learn_silos(silos, chosen)
    if not whole:
        study = with_strongest(study, silos, StudySettings(degree=3, **options))
    scores = scores_of(silos, chosen, study)
    for w, score in [
        (study.consensus, scores.consensus),
        *((study.graphs[s.name], scores.silos[s.name]) for s in silos),
    ]:
        np.testing.assert_array_equal(score[w > 0], w[w > 0])
        assert (score[w == 0] < 0).all()
        absent = score[w == 0]
        assert np.unique(absent).size >= 0.9 * absent.size  # ranked, not tied


def test_absent_edges_of_a_silo_alone_are_scored_as_its_own_graph_scores_them():
    silos = {f"s{k}": X for k, X in enumerate(make_silos(seed=1, n_silos=2).signals.values())}
    model = ConsensusGraph(alpha=0.5, beta=0.25, method="independent").fit(silos)
    for own, X in zip(model.scores_, silos.values(), strict=True):
        alone = SmoothGraph(alpha=0.5, beta=0.25).fit(X).scores_
        np.testing.assert_allclose(own, alone, rtol=1e-6, atol=1e-9)


def test_the_consensus_scores_are_what_it_would_be_if_nothing_were_cut_off_at_zero():
    """That is t with Σ s_i (w_i − t) = λ of w_i = (a_i + s_i t)/(q + s_i); where no w_i is below zero, t is u."""
    silos = related_silos(n_nodes=12)
    chosen = StudySettings(alpha=0.3, beta=0.15, coupling=0.4, sparsity=0.3, tol=1e-12)
    study, q = learn_silos(silos, chosen), 0.6
    t = scores_of(silos, chosen, study).consensus
    graphs, problems = study.graphs.values(), [silo.problem(alpha=0.3, beta=0.15, zeta=0.0) for silo in silos]
    a = [q * w - problem.gradient(w) for w, problem in zip(graphs, problems, strict=True)]
    strengths = np.array([study.rho / np.linalg.norm(w - study.consensus) for w in graphs])
    h = strengths / (q + strengths)
    absent, inside = study.consensus == 0, np.all([study.consensus > 0, *(w > 0 for w in graphs)], axis=0)
    assert absent.any()
    assert inside.any()
    np.testing.assert_allclose(((h @ a - study.lam) / (q * h.sum()))[inside], study.consensus[inside], atol=1e-4)
    ranked = h * np.minimum(h / np.median(h), 1) ** 3  # all silos are equally long
    expected = (ranked @ a - study.lam) / (q * ranked.sum())
    np.testing.assert_allclose(t[absent], expected[absent] - max(expected[absent].max(), 0.0), rtol=1e-6, atol=1e-9)


def test_where_all_silos_are_at_the_consensus_absent_pairs_are_scored_by_the_sum_of_slopes():
    silos, chosen = related_silos(n_nodes=12), StudySettings(alpha=0.3, beta=0.15, coupling=3.0, sparsity=0.3)
    study = learn_silos(silos, chosen)
    slopes = sum(s.problem(alpha=0.3, beta=0.15, zeta=0.0).gradient(study.graphs[s.name]) for s in silos)
    absent = study.consensus == 0
    assert absent.any()
    expected = -(study.lam + slopes[absent]) / (len(silos) * 0.6)
    assert (study.lam + slopes[absent] > -1e-3 * study.lam).all()  # optimality: Σ v ≤ λ
    np.testing.assert_allclose(scores_of(silos, chosen, study).consensus[absent], np.minimum(expected, 0), atol=1e-9)


@pytest.mark.filterwarnings("ignore::silograph.errors.DoubtfulSilosWarning")  # of tables that nothing relates
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), coupling=st.sampled_from([0.2, 0.7, 1.5]))
def test_relabelling_nodes_and_silos_relabels_scores(seed, coupling):
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(40, 7)) @ rng.normal(size=(7, 7)) for _ in range(3)]
    order, turn = rng.permutation(7), [2, 0, 1]
    options = {"alpha": 0.5, "beta": 0.25, "coupling": coupling, "tol": 1e-10}
    here = ConsensusGraph(**options).fit(tables)
    there = ConsensusGraph(**options).fit([tables[k][:, order] for k in turn])
    unit = np.abs(here.consensus_scores_[np.triu_indices(7, 1)]).max()
    moved = here.consensus_scores_[np.ix_(order, order)]
    np.testing.assert_allclose(there.consensus_scores_, moved, atol=1e-4 * unit)
    np.testing.assert_allclose(there.scores_, here.scores_[turn][:, order][:, :, order], atol=1e-3 * unit)


def test_nothing_is_said_of_pairs_that_a_silo_lacks():
    tables = list(make_silos(seed=3, n_silos=3).signals.values())
    tables[0] = tables[0].copy()
    tables[0][:, 4] = np.nan
    model = ConsensusGraph(missing_nodes="allow", coupling=0.5).fit(tables)
    assert np.isnan(model.scores_[0][4, [0, 7]]).all()
    assert not np.isnan(model.scores_[1:]).any()
    assert not np.isnan(model.consensus_scores_).any()
    assert (np.isnan(model.adjacencies_) <= np.isnan(model.scores_) | np.eye(20, dtype=bool)).all()


def test_a_long_silo_counts_more_in_the_order_of_the_consensus_and_not_in_its_weights():
    silos, chosen = related_silos(n_nodes=12), StudySettings(alpha=0.3, beta=0.15, coupling=0.4)
    longer = [replace(silo, n_samples=silo.n_samples * 4**number) for number, silo in enumerate(silos)]
    equal, unequal = ((study := learn_silos(some, chosen), scores_of(some, chosen, study)) for some in (silos, longer))
    np.testing.assert_array_equal(unequal[0].consensus, equal[0].consensus)
    absent = equal[0].consensus == 0
    assert (np.argsort(unequal[1].consensus[absent]) != np.argsort(equal[1].consensus[absent])).any()


def test_methods_without_an_optimum_and_noise_have_none():
    tables = list(make_silos(seed=3, n_silos=3).signals.values())
    with pytest.raises(AttributeError, match="gradient steps"):
        _ = ConsensusGraph(method="fedavg").fit(tables).scores_
    pytest.importorskip("opendp")
    with pytest.raises(AttributeError, match="epsilon forbids"):
        _ = ConsensusGraph(method="oneshot", epsilon=1.0, delta=1e-5).fit(tables).consensus_scores_


def test_scores_rank_true_edges_better_than_weights():
    drawn = make_silos(seed=5, n_samples=60)
    model = ConsensusGraph().fit(drawn.signals)
    off = ~np.eye(20, dtype=bool)
    ranked = np.where(off, model.consensus_scores_, 0.0)
    assert average_precision(drawn.consensus, ranked) > average_precision(drawn.consensus, model.consensus_) + 0.02
