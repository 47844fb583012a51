"""Half-samples: complementary, the same in any order, and honest about chance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import ConsensusGraph
from silograph.analysis import stability as module
from silograph.analysis.choosing import learn_study
from silograph.analysis.false_edges import FalseEdges
from silograph.analysis.stability import study_stability, table_stability
from silograph.datasets import make_silos
from silograph.errors import ParameterError, SignalError
from silograph.local.learn import Settings, learn
from silograph.methods.common.settings import StudySettings
from testing.silos_with_rows import related_silos, silo_with_rows

FIELDS = ("frequency", "mean", "low", "high", "score", "strength_low", "strength_high")


def told(silos, n_halves=8, **options):
    settings = StudySettings(degree=3, coupling=0.5)
    return study_stability(silos, settings, learn_study(silos, settings), n_halves, **options)


def assert_same(one, other):
    for here, there in [(one.consensus, other.consensus), *((one.silos[n], other.silos[n]) for n in one.silos)]:
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


def test_two_halves_are_all_rows_and_share_none():
    silo = related_silos(n_samples=48)[0]
    for number in range(6):
        one, other = (module._half_of(silo, n, 0) for n in (2 * number, 2 * number + 1))
        np.testing.assert_allclose((one.cost + other.cost) / 2, silo.cost, rtol=1e-12)


def test_the_numbers_are_the_same_whatever_the_number_of_threads():
    silos = related_silos(n_nodes=10)
    assert_same(told(silos, workers=1), told(silos, workers=3))


def test_half_samples_that_were_kept_are_not_learned_again(tmp_path, monkeypatch):
    silos = related_silos(n_nodes=10)
    first = told(silos, kept=tmp_path)
    monkeypatch.setattr(module._Learner, "_of_rows", None)
    assert_same(first, told(silos, kept=tmp_path))
    assert_same(first, told(silos, n_halves=8, kept=tmp_path))


def test_an_edge_that_all_rows_shout_is_found_in_every_half():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(80, 8)) for _ in range(3)]
    for X in tables:
        X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=80)
    model = ConsensusGraph(degree=2, stability=20).fit(tables)
    assert model.consensus_stability_[0, 1] == 1
    assert (model.stabilities_[:, 0, 1] == 1).all()
    stable = model.stable_graph(0.9)
    assert ("0", "1") in {edge[:2] for edge in stable.edges()} or stable.n_edges == 0 or 0 in stable.rows
    assert stable.n_edges <= model.consensus_graph_.n_edges
    low, high = model.stability_.consensus.low, model.stability_.consensus.high
    assert (low <= model.stability_.consensus.mean + 1e-12).all()
    assert (model.stability_.consensus.mean <= high + 1e-12).all()


def test_pure_noise_has_no_more_stable_edges_than_the_bound_says():
    """Each stable edge of independent nodes is false; over studies, their mean number is within the bound."""
    rng, found, bounds = np.random.default_rng(4), [], []
    for _ in range(12):
        silos = [silo_with_rows(f"s{k}", rng.normal(size=(60, 14))) for k in range(3)]
        settings = StudySettings(degree=2, coupling=0.5)
        stability = study_stability(silos, settings, learn_study(silos, settings), 30)
        found.append((stability.consensus.frequency >= 0.9).sum())
        bounds.append(stability.consensus.false_edges.bound(0.9))
    assert np.mean(found) <= np.mean(bounds) + 2 * np.std(found) / np.sqrt(12)


def test_of_many_silos_halves_are_of_silos():
    silos = related_silos(n=20, n_nodes=6, n_samples=40)
    many = told(silos, n_halves=4)
    assert many.of == "silos"
    assert told(silos[:19], n_halves=4).of == "rows"
    assert_same(many, told(silos, n_halves=4, workers=2))


def test_beside_one_consensus_chance_is_stable_so_that_no_bound_is_told():
    """Silos of noise that fuse: half-samples of the rows have the consensus' edges, each of which is false."""
    rng = np.random.default_rng(5)
    silos = [silo_with_rows(f"s{k}", rng.normal(size=(32, 12))) for k in range(20)]
    for coupling, is_told in ((1.5, False), (0.0, True)):
        settings = StudySettings(degree=2, coupling=coupling)
        stability = study_stability(silos, settings, learn_study(silos, settings), 10)
        own = stability.silos["s0"]
        found, basis = int((own.frequency >= 0.9).sum()), own.false_edges
        assert basis.one_consensus is not is_told
        assert (basis.bound(0.9) < basis.n_pairs) is is_told
        assert stability.consensus.false_edges.bound(0.9) < basis.n_pairs
        if not is_told:
            assert found > basis.one_mode(0.9)
            assert "drawn to the consensus as it is" in basis.says(0.9, found)


def test_where_half_of_the_silos_may_lack_a_node_halves_are_of_rows():
    tables = list(make_silos(seed=2, n_silos=20, n_nodes=8, n_samples=24).signals.values())
    for table in tables[2:]:
        table[:, 3] = np.nan
    model = ConsensusGraph(degree=2, coupling=0.4, missing_nodes="allow", stability=12).fit(tables)
    assert model.stability_.of == "rows"
    assert model.consensus_stability_[3].max() > 0


def test_of_one_table_the_graph_of_half_its_rows_is_what_it_would_learn_from_them():
    X = np.random.default_rng(2).normal(size=(64, 9)).cumsum(axis=1)
    silo = silo_with_rows("x", X)
    learned = learn(silo.cost, silo.pairs, Settings(degree=3))
    table = table_stability(silo, learned.problem, 2)
    halves = [module._half_of(silo, number, 0).cost for number in (0, 1)]
    graphs = [learn(cost, silo.pairs, Settings(alpha=learned.alpha, beta=learned.beta)).solution.w for cost in halves]
    np.testing.assert_array_equal(table.consensus.frequency, np.mean([w > 0 for w in graphs], axis=0))
    np.testing.assert_allclose(table.consensus.mean, np.mean(graphs, axis=0), atol=1e-9)


def test_the_quorum_counts_silos_in_which_an_edge_is_stable():
    model = ConsensusGraph(stability=10).fit(make_silos(seed=1, n_silos=3).signals)
    stable = [model.stable_graph(0.8, name).adjacency() > 0 for name in model.silo_names_]
    for least in (1, 2, 3):
        quorum = model.quorum_graph(least, 0.8)
        np.testing.assert_array_equal(quorum.adjacency() > 0, np.sum(stable, axis=0) >= least)
    with pytest.raises(ParameterError, match="at most 3, the number of silos"):
        model.quorum_graph(4)


@given(p=st.integers(10, 5000), part=st.floats(0.01, 0.5), b=st.integers(1, 100), t=st.floats(0.51, 1))
def test_bounds_fall_with_the_threshold_and_grow_with_the_number_of_edges(p, part, b, t):
    basis = FalseEdges(n_pairs=p, n_edges=part * p, n_halves=2 * b)
    assert basis.worst_case(t) == pytest.approx((part * p) ** 2 / p / (2 * t - 1))
    assert basis.bound(t) <= p
    assert basis.bound(min(t + 0.01, 1.0)) <= basis.bound(t) + 1e-9
    assert basis.bound(t) <= replace(basis, n_edges=min(1.2 * part * p, p)).bound(t) + 1e-9


def test_the_bound_of_one_mode_is_that_of_shah_and_samworth():
    """Their example: p = 1000, q = 50, θ = .05, B = 50, τ = .9 and .6."""
    basis = FalseEdges(n_pairs=1000, n_edges=50, n_halves=100)
    assert basis.one_mode(0.9) == pytest.approx(2.5 * 4 * (0.1 + 0.01) / 1.02)
    assert basis.one_mode(0.6) == pytest.approx(2.5 / (2 * (0.2 - 0.01)))
    assert "At most" in basis.says(0.9, 40)
    assert "cannot be bounded" in basis.says(0.9, 1)
    assert "nothing to bound" in basis.says(0.9, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stability": 5}, "even number, got 5"),
        ({"stability": -2}, "stability"),
        ({"stability": 4, "method": "fedavg"}, "small weights on every pair"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        ConsensusGraph(**options).fit(make_silos(seed=0, n_silos=2).signals)


def test_too_few_rows_are_told_by_the_silo_s_name():
    tables = {
        "oslo": np.random.default_rng(0).normal(size=(3, 5)),
        "lima": np.random.default_rng(1).normal(size=(30, 5)),
    }
    with pytest.raises(SignalError, match="oslo: has 3 rows, too few to halve"):
        ConsensusGraph(stability=4).fit(tables)


def test_a_model_that_was_not_asked_says_how_to_ask():
    with pytest.raises(AttributeError, match="stability=50"):
        _ = ConsensusGraph().fit(make_silos(seed=0, n_silos=2).signals).stability_


@pytest.mark.parametrize(
    "options",
    [
        {"method": "oneshot"},
        {"method": "oneshot", "sums": 3, "sparsity": 0.1},
        {"method": "oneshot", "pull": 2.0},
        {"method": "independent"},
        {"method": "pooled"},
        {"method": "mrmtl"},
        {"method": "ditto"},
        {"method": "exact", "missing_nodes": "allow"},
    ],
    ids=str,
)
def test_half_samples_of_every_exact_method_find_most_of_its_edges_again(options):
    signals = make_silos(seed=3, n_silos=3, n_samples=80, n_nodes=12).signals
    model = ConsensusGraph(stability=6, **options).fit(signals)
    for weights, frequency in [
        (model.consensus_, model.consensus_stability_),
        *zip(model.adjacencies_, model.stabilities_, strict=True),
    ]:
        assert frequency[weights > 0].mean() > 0.6
        assert frequency[weights > 0].mean() > frequency[weights == 0].mean() + 0.3


def test_silos_keep_the_pulls_that_they_chose_on_all_rows():
    silos = related_silos(n_nodes=10)
    chooses = StudySettings(degree=3, method="oneshot")
    study = learn_study(silos, chooses)
    pulls = {study.evidence[silo.name]["pull"] for silo in silos}
    told = study_stability(silos, chooses, study, 4)
    at_each = {pull: study_stability(silos, replace(chooses, pull=pull), study, 4) for pull in pulls}
    for silo in silos:
        same = at_each[study.evidence[silo.name]["pull"]].silos[silo.name]
        np.testing.assert_allclose(told.silos[silo.name].mean, same.mean, atol=1e-8)
