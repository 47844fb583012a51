"""The paper's measures, against scikit-learn and against what they mean."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score, roc_auc_score

from silograph.errors import GraphError, ParameterError
from silograph.graph.graph import Graph
from silograph.metrics import Scores, average_precision, f_score, precision, recall, relative_error, roc_auc, score


def matrix_of(vector: np.ndarray) -> np.ndarray:
    n_nodes = round((1 + np.sqrt(1 + 8 * vector.size)) / 2)
    out = np.zeros((n_nodes, n_nodes))
    out[np.triu_indices(n_nodes, 1)] = vector
    return out + out.T


def sparse_pair(n_nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth and estimate, with zeros in both and, as weights are rounded, many ties."""
    rng = np.random.default_rng(seed)
    size = n_nodes * (n_nodes - 1) // 2
    truth, estimate = np.maximum(np.round(rng.normal(size=(2, size)), 1), 0)
    truth[0] = 1.0  # so that there is an edge to find
    return truth, estimate


graphs = given(n_nodes=st.integers(3, 12), seed=st.integers(0, 2**32 - 1))


@graphs
def test_precision_recall_and_f_score_are_those_of_scikit_learn(n_nodes, seed):
    truth, estimate = sparse_pair(n_nodes, seed)
    for threshold in (0.0, 0.3, 100.0):
        expected, found = truth > 0, estimate > threshold
        assert precision(truth, estimate, threshold) == pytest.approx(precision_score(expected, found, zero_division=0))
        assert recall(truth, estimate, threshold) == pytest.approx(recall_score(expected, found, zero_division=0))
        assert f_score(truth, estimate, threshold) == pytest.approx(f1_score(expected, found, zero_division=0))


@graphs
def test_ranking_measures_are_those_of_scikit_learn_also_with_ties(n_nodes, seed):
    truth, scores = sparse_pair(n_nodes, seed)
    truth[-1] = 0.0
    scores = scores - 0.5  # scores may be negative
    assert roc_auc(truth, scores) == pytest.approx(roc_auc_score(truth > 0, scores))
    assert average_precision(truth, scores) == pytest.approx(average_precision_score(truth > 0, scores))


@graphs
def test_rankings_take_scores_as_they_are_with_minus_infinity_last_and_unknown_pairs_left_out(n_nodes, seed):
    truth, scores = sparse_pair(n_nodes, seed)
    truth[-1] = 0.0
    odd = np.random.default_rng(seed).choice([0.0, -np.inf, np.nan], size=scores.size, p=[0.6, 0.2, 0.2])
    odd[[0, -1]] = 0.0  # an edge and a pair without one stay
    with_odd, known = scores + odd, ~np.isnan(odd)
    finite = np.where(np.isinf(odd), -100.0, scores)[known]
    square = matrix_of(with_odd)
    np.fill_diagonal(square, -np.inf)
    for measure, judge in ((roc_auc, roc_auc_score), (average_precision, average_precision_score)):
        expected = pytest.approx(judge(truth[known] > 0, finite))
        assert measure(truth, with_odd) == expected
        assert measure(matrix_of(truth), square) == expected


@graphs
def test_the_f_score_is_the_harmonic_mean_of_precision_and_recall(n_nodes, seed):
    truth, estimate = sparse_pair(n_nodes, seed)
    found = score(truth, estimate)
    if found.precision > 0:
        assert found.f_score == pytest.approx(2 / (1 / found.precision + 1 / found.recall))
    else:
        assert found.f_score == 0


@graphs
def test_vectors_matrices_and_graphs_give_the_same_scores(n_nodes, seed):
    vectors = sparse_pair(n_nodes, seed)
    matrices = [matrix_of(vector) for vector in vectors]
    named = [Graph.from_adjacency(matrix) for matrix in matrices]
    expected = score(*vectors, 0.2)
    for truth in (vectors[0], matrices[0], named[0]):
        for estimate in (vectors[1], matrices[1], named[1]):
            assert asdict(score(truth, estimate, 0.2)) == pytest.approx(asdict(expected))
            assert average_precision(truth, estimate) == pytest.approx(average_precision(*vectors))


@graphs
def test_graphs_are_aligned_by_name_and_not_by_position(n_nodes, seed):
    truth, estimate = (Graph.from_adjacency(matrix_of(vector)) for vector in sparse_pair(n_nodes, seed))
    shuffled = estimate.reordered(np.random.default_rng(seed).permutation(estimate.names).tolist())
    assert asdict(score(truth, shuffled)) == pytest.approx(asdict(score(truth, estimate)))
    assert average_precision(truth, shuffled) == pytest.approx(average_precision(truth, estimate))


@graphs
def test_ranking_measures_see_only_the_order_of_the_scores(n_nodes, seed):
    truth, scores = sparse_pair(n_nodes, seed)
    truth[-1] = 0.0
    assert roc_auc(truth, np.exp(scores) - 7) == pytest.approx(roc_auc(truth, scores))
    assert average_precision(truth, np.exp(scores) - 7) == pytest.approx(average_precision(truth, scores))
    assert roc_auc(truth, scores) + roc_auc(truth, -scores) == pytest.approx(1)


def test_scores_that_are_all_alike_rank_at_chance():
    truth = np.array([1.0, 0, 0, 2, 0, 0])
    assert roc_auc(truth, np.ones(6)) == 0.5
    assert average_precision(truth, np.ones(6)) == pytest.approx(1 / 3)


def test_the_truth_itself_scores_perfectly():
    truth = np.array([0.5, 0, 2.0])
    assert score(truth, truth) == Scores(precision=1, recall=1, f_score=1, relative_error=0)
    assert roc_auc(truth, truth) == average_precision(truth, truth) == 1


def test_an_empty_estimate_has_no_precision_and_a_relative_error_of_one():
    assert score([1.0, 0, 2], np.zeros(3)) == Scores(precision=0, recall=0, f_score=0, relative_error=1)


def test_an_empty_truth_has_no_recall():
    assert (
        recall(np.zeros(3), [1.0, 0, 0])
        == precision(np.zeros(3), [1.0, 0, 0])
        == f_score(np.zeros(3), np.zeros(3))
        == 0
    )


def test_the_relative_error_is_not_rescaled():
    assert relative_error([3.0, 4.0, 0], [6.0, 8.0, 0]) == pytest.approx(1)


def test_the_threshold_applies_to_the_estimate_only_and_is_exclusive():
    assert score([0.005, 0, 1], [0.005, 0.01, 1], 0.01) == Scores(
        precision=1, recall=0.5, f_score=pytest.approx(2 / 3), relative_error=pytest.approx(0.01, rel=1e-3)
    )


def test_two_large_graphs_are_compared_without_listing_their_pairs():
    names = [str(node) for node in range(200_000)]  # 2e10 pairs
    truth = Graph.from_edges(names, [0, 1, 2], [199_999, 2, 3], [1.0, 1, 1])
    estimate = Graph.from_edges(names, [0, 1, 5], [199_999, 2, 6], [1.0, 1, 1])
    assert score(truth, estimate).f_score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("truth", "estimate", "message"),
    [
        ([1.0, 0, 0], [1.0, 0], r"estimate: expected 3 pairs .* got 2"),
        (np.ones((2, 3)), np.ones(3), r"truth: expected one number per pair .* \(2, 3\)"),
        ([1.0, 0, 0], [1.0, np.nan, 0], "estimate, pair 2: expected a finite number, got nan"),
        (matrix_of(np.ones(3)), np.array([[0, 1, 1], [1, 0, 1], [np.nan, 1, 0]]), "estimate, pair 2: .* got nan"),
        (np.triu(np.ones((3, 3))), np.ones(3), "truth, row 1, column 2: expected a symmetric matrix, got 1 here and 0"),
        ([1.0, 0, 0], [1.0, -2, 0], "estimate: expected weights ≥ 0, got -2"),
        (["a", "b", "c"], [1.0, 0, 0], "truth: expected a Graph or an array of numbers, got list"),
        (np.zeros(3), [1.0, 0, 0], "truth: expected at least one edge"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(truth, estimate, message):
    with pytest.raises(ParameterError, match=message):
        score(truth, estimate)


def test_graphs_on_other_nodes_are_refused_with_a_name():
    truth = Graph.from_adjacency(np.ones((3, 3)) - np.eye(3), ["a", "b", "c"])
    with pytest.raises(GraphError, match="1 differ \\('b' is only in the truth\\)"):
        score(truth, Graph.from_adjacency(truth.adjacency(), ["a", "x", "c"]))


@pytest.mark.parametrize("threshold", [-1.0, np.nan])
def test_a_threshold_below_zero_is_refused(threshold):
    with pytest.raises(ParameterError, match="threshold: expected a weight ≥ 0"):
        f_score([1.0], [1.0], threshold)


@pytest.mark.parametrize(("truth", "message"), [(np.zeros(3), "at least one edge"), (np.ones(3), "without an edge")])
def test_a_ranking_needs_both_edges_and_others(truth, message):
    with pytest.raises(ParameterError, match=message):
        roc_auc(truth, np.arange(3.0))


@pytest.mark.parametrize("measure", [roc_auc, average_precision])
def test_a_ranking_needs_a_truth_without_negative_weights(measure):
    with pytest.raises(ParameterError, match="truth: expected weights ≥ 0"):
        measure([1.0, -1, 0], np.arange(3.0))
