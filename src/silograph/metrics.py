"""How near a learned graph is to a known one: the paper's four measures, and two that rank pairs.

    precision = TP/(TP + FP)    recall = TP/(TP + FN)    F = 2TP/(2TP + FN + FP)    relative error = ‖ŵ − w*‖/‖w*‖

TP, FP and FN are numbers of pairs, each pair counted once. A pair is an edge of the truth where its weight is above 0,
and is found where the estimate is above `threshold`. Weights are compared as they are: neither graph is rescaled.

Truth and estimate may each be a `Graph`, a symmetric (nodes, nodes) matrix, or a vector with one number per pair. Two
graphs are aligned by the names of their nodes; a matrix or vector is taken in the order of the other's nodes. Diagonals
are not read.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from silograph._util.types import Matrix, Vector
from silograph.errors import GraphError, ParameterError
from silograph.graph.graph import Graph
from silograph.graph.pairs import condensed_index

Weights: TypeAlias = Graph | ArrayLike  # a graph, a (nodes, nodes) matrix, or one number per pair

SYMMETRY = 1e-10  # relative to the largest entry; what two ways of rounding may differ by


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The paper's four measures of one learned graph."""

    precision: float
    recall: float
    f_score: float
    relative_error: float


def score(truth: Weights, estimate: Weights, threshold: float = 0.0) -> Scores:
    """All four measures at once; an edge is found where its estimated weight is above `threshold`.

    The paper's tables need a threshold of 0.01, because its method leaves small weights where there is no edge.
    """
    expected, learned = _aligned_weights(truth, estimate)
    true, found, both = _counts(expected, learned, threshold)
    return Scores(
        precision=_ratio(both, found),
        recall=_ratio(both, true),
        f_score=_ratio(2 * both, true + found),
        relative_error=_relative_error(expected, learned),
    )


def precision(truth: Weights, estimate: Weights, threshold: float = 0.0) -> float:
    """The share of the found edges that are true; 0 where none is found, as in scikit-learn."""
    _, found, both = _counts(*_aligned_weights(truth, estimate), threshold)
    return _ratio(both, found)


def recall(truth: Weights, estimate: Weights, threshold: float = 0.0) -> float:
    """The share of the true edges that are found; 0 where there is none to find, as in scikit-learn."""
    true, _, both = _counts(*_aligned_weights(truth, estimate), threshold)
    return _ratio(both, true)


def f_score(truth: Weights, estimate: Weights, threshold: float = 0.0) -> float:
    """The harmonic mean of precision and recall; 0 where both graphs are empty, as in scikit-learn."""
    true, found, both = _counts(*_aligned_weights(truth, estimate), threshold)
    return _ratio(2 * both, true + found)


def relative_error(truth: Weights, estimate: Weights) -> float:
    """‖ŵ − w*‖/‖w*‖ without rescaling: 0 when equal, 1 for an empty estimate; an error for an empty truth."""
    return _relative_error(*_aligned_weights(truth, estimate))


def roc_auc(truth: Weights, scores: Weights) -> float:
    """The chance that a true edge scores above a pair that is none, a tie counting half.

    Scores may be negative, such as `SmoothGraph.scores_`: −inf ranks last, and a pair whose score is NaN, of which
    nothing is known, is left out. The truth must have an edge, and a pair without one.
    """
    is_edge, values = _aligned_scores(truth, scores)
    positive = int(is_edge.sum())
    negative = is_edge.size - positive
    if negative == 0:
        raise ParameterError("truth: expected a pair without an edge, got edges only. Use relative_error instead.")
    _, level, count = np.unique(values, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[level]  # of tied scores, the mean rank
    return float((rank[is_edge].sum() - positive * (positive + 1) / 2) / (positive * negative))


def average_precision(truth: Weights, scores: Weights) -> float:
    """Σ_k (R_k − R_{k−1})·P_k over the distinct scores from the highest on: the area under precision by recall.

    Tied scores are taken in together, so that the order in which pairs are stored does not matter. −inf ranks last, and
    pairs whose score is NaN are left out, as for `roc_auc`.
    """
    is_edge, values = _aligned_scores(truth, scores)
    order = np.argsort(-values, kind="stable")
    last_of_level = np.append(np.flatnonzero(np.diff(values[order])), values.size - 1)
    found = np.cumsum(is_edge[order])[last_of_level]
    gained = np.diff(found, prepend=0) / found[-1]
    return float((gained * found / (last_of_level + 1)).sum())


def _counts(truth: Vector, estimate: Vector, threshold: float) -> tuple[int, int, int]:
    """How many edges are true, how many are found, and how many are both."""
    if not threshold >= 0:  # also when it is NaN
        raise ParameterError(
            f"threshold: expected a weight ≥ 0, got {threshold}. At 0, every positive weight is an edge."
        )
    is_edge, found = truth > 0, estimate > threshold
    return int(is_edge.sum()), int(found.sum()), int((is_edge & found).sum())


def _relative_error(truth: Vector, estimate: Vector) -> float:
    size = float(np.linalg.norm(truth))
    if size == 0:
        raise ParameterError("truth: expected at least one edge, got none, and no error is relative to nothing.")
    return float(np.linalg.norm(estimate - truth)) / size


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _aligned_weights(truth: Weights, estimate: Weights) -> tuple[Vector, Vector]:
    """Both as weights ≥ 0 of the same pairs; pairs that are an edge of neither graph may be left out."""
    if isinstance(truth, Graph) and isinstance(estimate, Graph):
        return _on_common_edges(truth, _renamed(truth, estimate))
    expected, learned = _on_all_pairs(truth, estimate, "estimate")
    for name, weights in (("truth", expected), ("estimate", learned)):
        if weights.size and weights.min() < 0:
            raise ParameterError(
                f"{name}: expected weights ≥ 0, got {weights.min():g}. "
                "Choose what a negative weight means: clip it at 0, or take absolute values."
            )
    return expected, learned


def _aligned_scores(truth: Weights, scores: Weights) -> tuple[np.ndarray, Vector]:
    """For every pair of which something is known, whether it is an edge of the truth, and the rank of its score."""
    if isinstance(truth, Graph) and isinstance(scores, Graph):
        scores = _renamed(truth, scores)
    expected, values = _on_all_pairs(truth, scores, "scores", as_scores=True)
    if expected.size and expected.min() < 0:
        raise ParameterError(
            f"truth: expected weights ≥ 0, got {expected.min():g}. Clip them, or take absolute values."
        )
    known = ~np.isnan(values)
    is_edge = expected[known] > 0
    if not is_edge.any():
        raise ParameterError("truth: expected at least one edge to rank first, got none.")
    return is_edge, np.unique(values[known], return_inverse=True)[1].astype(np.float64)


def _renamed(truth: Graph, estimate: Graph) -> Graph:
    """The estimate with its nodes in the truth's order."""
    if estimate.names == truth.names:
        return estimate
    lacking = sorted(set(truth.names) - set(estimate.names))
    surplus = sorted(set(estimate.names) - set(truth.names))
    if lacking or surplus:
        example = f"{lacking[0]!r} is only in the truth" if lacking else f"{surplus[0]!r} is only in the estimate"
        raise GraphError(
            f"estimate: expected the same {truth.n_nodes} node names as in the truth, got {estimate.n_nodes} of which "
            f"{len(surplus)} differ ({example}). Rename or drop nodes until both have the same."
        )
    return estimate.reordered(truth.names)


def _on_common_edges(truth: Graph, estimate: Graph) -> tuple[Vector, Vector]:
    """Weights on the union of both graphs' edges: a graph of many nodes has far more pairs than edges."""
    codes = [condensed_index(graph.n_nodes, graph.rows, graph.cols) for graph in (truth, estimate)]
    union = np.union1d(*codes)
    out = np.zeros((2, union.size))
    for row, code, graph in zip(out, codes, (truth, estimate), strict=True):
        row[np.searchsorted(union, code)] = graph.weights
    return out[0], out[1]


def _on_all_pairs(truth: Weights, estimate: Weights, name: str, *, as_scores: bool = False) -> tuple[Vector, Vector]:
    expected, learned = _pair_values(truth, "truth"), _pair_values(estimate, name, as_scores=as_scores)
    if expected.size != learned.size:
        raise ParameterError(
            f"{name}: expected {expected.size} pairs as in the truth, got {learned.size}. "
            "Give both on the same nodes, in the same order."
        )
    return expected, learned


def _pair_values(values: Weights, name: str, *, as_scores: bool = False) -> Vector:
    """One number per pair, in the order of the upper triangle row by row: finite, but that scores may be unknown."""
    table = values.adjacency() if isinstance(values, Graph) else _numbers(values, name)
    if table.ndim == 2:
        return _upper_triangle(table, name, as_scores=as_scores)
    _check_values(table, name, as_scores=as_scores)
    return table


def _check_values(values: Vector, name: str, *, as_scores: bool) -> None:
    wrong = np.flatnonzero(np.isposinf(values) if as_scores else ~np.isfinite(values))
    if wrong.size:
        raise ParameterError(
            f"{name}, pair {wrong[0] + 1}: expected a finite number, got {values[wrong[0]]}. "
            "Put 0 where there is no edge, or leave the pair out of both."
        )


def _numbers(values: ArrayLike, name: str) -> Vector | Matrix:
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name}: expected a Graph or an array of numbers, got {type(values).__name__}. "
            "Make a sparse matrix dense, or a Graph of it."
        ) from error
    if table.ndim == 1 or (table.ndim == 2 and table.shape[0] == table.shape[1]):
        return table
    raise ParameterError(
        f"{name}: expected one number per pair or a (nodes, nodes) matrix, got shape {table.shape}. "
        "Score one graph at a time."
    )


def _upper_triangle(matrix: Matrix, name: str, *, as_scores: bool) -> Vector:
    rows, cols = np.triu_indices(matrix.shape[0], 1)
    upper, lower = np.asarray(matrix[rows, cols]), np.asarray(matrix[cols, rows])
    for half in (upper, lower):
        _check_values(half, name, as_scores=as_scores)
    both = np.isfinite(upper) & np.isfinite(lower)
    largest = float(np.abs(upper[both]).max(initial=0.0))
    apart = np.abs(np.subtract(upper, lower, out=np.zeros_like(upper), where=both)) > SYMMETRY * largest
    skew = np.flatnonzero(apart | ~(both | np.isclose(upper, lower, equal_nan=True)))
    if skew.size:
        i, j = int(rows[skew[0]]), int(cols[skew[0]])
        raise ParameterError(
            f"{name}, row {i + 1}, column {j + 1}: expected a symmetric matrix, got {matrix[i, j]:g} here and "
            f"{matrix[j, i]:g} across the diagonal. Make it symmetric, for example (A + A.T)/2."
        )
    return upper
