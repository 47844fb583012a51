"""Brains learned and compared as anyone would learn and compare them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from silograph import ConsensusGraph, compare_groups
from silograph.datasets import load_abide
from silograph.experiments.brains import differences, edges_and_weights, learn_brains, subjects_of
from silograph.experiments.table5 import study_of
from silograph.graph.graph import Graph


def test_edges_are_counted_above_the_threshold_and_their_weights_averaged():
    weights = np.array([[0.5, 0.01, 0.3, 0.0], [0.0, 0.0, 0.005, 0.0], [0.2, 0.4, 0.6, 0.8]])
    counts, means = edges_and_weights(weights, 0.01)
    np.testing.assert_array_equal(counts, [2, 0, 4])
    np.testing.assert_allclose(means, [0.4, 0.0, 0.5])


def test_subjects_are_compared_as_by_the_command(session):
    data, found = load_abide(session.abide), learn_brains(study_of(session))
    upper = np.triu_indices(len(data.regions), 1)
    graphs = {}
    for subject, weights in zip(data.series, found["weights"], strict=True):
        half = np.zeros((len(data.regions), len(data.regions)))
        half[upper] = weights
        graphs[subject] = Graph.from_adjacency(half + half.T, data.regions)
    model = SimpleNamespace(graphs_=graphs, consensus_graph_=graphs[subject], n_samples_seen_=[9] * len(graphs))
    told = compare_groups(model, data.groups, permutations=300)
    ours = differences(found["weights"], found["is_autistic"], 300)
    assert told.groups == ("autism", "control")
    tested = np.isfinite(ours.p)
    assert ours.p_family[tested] == pytest.approx(told.edges.p_family[np.isfinite(told.edges.p)])
    number_of_edges = differences((found["weights"] > 0).sum(axis=1)[:, None].astype(float), found["is_autistic"], 300)
    assert number_of_edges.p[0] == pytest.approx(told.graphs.p[0])


@pytest.mark.parametrize(("method", "name"), [("exact", "exact"), ("ppgl", "algorithm1")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_brains_are_those_of_the_estimator(method, name, session):
    data = load_abide(session.abide)
    found = learn_brains(replace(study_of(session), method=method, nu=10.0, lam=0.1))
    model = ConsensusGraph(alpha=1.0, beta=0.7, nu=10.0, lam=0.1, zeta=0.5, method=name, standardize=True, n_jobs=1)
    model.fit(data.series)
    upper = np.triu_indices(len(data.regions), 1)
    np.testing.assert_allclose(found["weights"], model.adjacencies_[:, *upper], atol=1e-9)
    np.testing.assert_allclose(found["consensus"], model.consensus_[upper], atol=1e-9)
    np.testing.assert_allclose(found["gamma"], model.contributions_, rtol=1e-6)
    assert found["is_autistic"].tolist() == [data.groups[subject] == "autism" for subject in data.series]


def test_all_subjects_or_as_many_of_each_group_at_random(session):
    everyone, study = load_abide(session.abide), study_of(session)
    assert list(subjects_of(study).series) == list(everyone.series)
    draws = [subjects_of(replace(study, subjects=4, seed=seed)) for seed in (0, 0, 1)]
    for drawn in draws:
        assert sorted(drawn.groups.values()) == ["autism"] * 4 + ["control"] * 4
        assert list(drawn.series) == [subject for subject in everyone.series if subject in drawn.groups]
    assert list(draws[0].series) == list(draws[1].series)
    assert list(draws[0].series) != list(draws[2].series)
