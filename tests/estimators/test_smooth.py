import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from silograph import DegreeWarning, PairsError, ParameterError, SignalError, SmoothGraph
from testing.problems import smooth_signals

# scikit-learn skips its array API check unless an environment variable of SciPy's is set; it is not ours to claim.
SKIPPED = {"check_array_api_input"}


@pytest.mark.parametrize(
    "model",
    [SmoothGraph(), SmoothGraph(alpha=1.0, beta=0.5), SmoothGraph(degree=1, zeta=0.1), SmoothGraph(solver="gradient")],
    ids=str,
)
def test_scikit_learn_finds_nothing_to_complain_about(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (SkipTestWarning, ConvergenceWarning, DegreeWarning))
        report = check_estimator(model, on_fail=None)
    assert [entry["check_name"] for entry in report if entry["status"] == "failed"] == []
    assert {entry["check_name"] for entry in report if entry["status"] == "skipped"} <= SKIPPED
    assert len(report) > 30


@pytest.fixture
def X(rng) -> np.ndarray:
    return smooth_signals(rng, 120, 24)


def test_an_answer_carries_its_evidence(X):
    model = SmoothGraph(degree=4).fit(X)
    assert model.gap_ <= 1e-8
    assert model.converged_
    assert model.degree_ == pytest.approx(4, rel=0.02)
    adjacency = model.adjacency_
    np.testing.assert_array_equal(adjacency, adjacency.T)
    np.testing.assert_array_equal(np.diag(adjacency), 0)
    assert (adjacency >= 0).all()
    z = pdist(X.T, "sqeuclidean") / len(X)
    w = squareform(adjacency)
    value = z @ w + 2 * model.beta_ * w @ w - model.alpha_ * np.log(adjacency.sum(axis=1)).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-12)


def test_scores_rank_present_edges_by_weight_and_absent_ones_by_reduced_cost(X):
    model = SmoothGraph(degree=4).fit(X)
    scores, adjacency = model.scores_, model.adjacency_
    np.testing.assert_array_equal(scores[adjacency > 0], adjacency[adjacency > 0])
    absent = (adjacency == 0) & ~np.eye(24, dtype=bool)
    assert (scores[absent] <= 0).all()
    assert len(np.unique(scores[absent])) > 100
    np.testing.assert_array_equal(np.diag(scores), -np.inf)


def test_frames_give_named_nodes_and_the_same_graph(X):
    names = [f"region {k}" for k in range(24)]
    plain = SmoothGraph(degree=4).fit(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = SmoothGraph(degree=4).fit(frame)
        assert model.graph_.names == tuple(names)
        np.testing.assert_array_equal(model.adjacency_, plain.adjacency_)
    assert plain.graph_.names[:2] == ("0", "1")


def test_it_clones_pickles_and_works_in_a_pipeline(X):
    model = SmoothGraph(degree=4, forbidden=[(0, 1)]).fit(X)
    back = pickle.loads(pickle.dumps(model))
    assert back.graph_ == model.graph_
    assert clone(model).get_params() == model.get_params()
    piped = make_pipeline(StandardScaler(), SmoothGraph(degree=4)).fit(X)[-1]
    alone = SmoothGraph(degree=4, standardize=True).fit(X)
    np.testing.assert_allclose(piped.adjacency_, alone.adjacency_, atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 5))
def test_partial_fit_on_parts_learns_what_fit_learns_on_the_whole(seed, parts):
    X = smooth_signals(np.random.default_rng(seed), 60, 12)
    whole = SmoothGraph(alpha=0.5, beta=0.5).fit(X)
    model = SmoothGraph(alpha=0.5, beta=0.5)
    for part in np.array_split(X, parts):
        model.partial_fit(part)
    np.testing.assert_allclose(model.adjacency_, whole.adjacency_, atol=1e-9)
    assert model.n_samples_seen_ == 60


def test_partial_fit_may_start_with_a_single_sample(X):
    model = SmoothGraph(degree=4).partial_fit(X[:1])
    assert not hasattr(model, "graph_")
    model.partial_fit(X[1:])
    np.testing.assert_allclose(model.adjacency_, SmoothGraph(degree=4).fit(X).adjacency_, atol=1e-9)


def test_fit_forgets_what_was_seen_before(X, rng):
    model = SmoothGraph(degree=4).fit(rng.normal(size=(50, 24)))
    assert model.fit(X).n_samples_seen_ == 120


def test_precomputed_distances_give_the_graph_of_the_signals(X):
    distances = squareform(pdist(X.T, "sqeuclidean")) / len(X)
    model = SmoothGraph(degree=4, metric="precomputed").fit(distances)
    np.testing.assert_allclose(model.adjacency_, SmoothGraph(degree=4).fit(X).adjacency_, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (((2, 5), 9.0), "row 3, column '5': expected a symmetric matrix"),
        (((2, 5), -1.0), "row 3, column '5': expected a distance ≥ 0, got -1"),
        (((4, 4), 1.0), "row 5, column '4': expected 0 from a node to itself"),
        (((4, 1), np.nan), "row 5, column '1': expected a finite number, got NaN"),
    ],
)
def test_bad_distances_are_refused_by_place(X, change, message):
    distances = squareform(pdist(X.T, "sqeuclidean"))
    distances[change[0]] = change[1]
    with pytest.raises(SignalError, match=message):
        SmoothGraph(metric="precomputed").fit(distances)


def test_distances_that_are_not_square_are_refused(X):
    with pytest.raises(SignalError, match="square matrix"):
        SmoothGraph(metric="precomputed").fit(X)
    with pytest.raises(ParameterError, match="standardize"):
        SmoothGraph(metric="precomputed", standardize=True).fit(np.zeros((3, 3)))
    with pytest.raises(ParameterError, match="precomputed"):
        SmoothGraph(metric="precomputed").partial_fit(np.zeros((3, 3)))


def test_allowed_and_forbidden_pairs_are_obeyed_by_name_or_number(X):
    names = [f"n{k}" for k in range(24)]
    frame = pd.DataFrame(X, columns=names)
    free = SmoothGraph(alpha=1.0, beta=1.0).fit(frame)
    strongest = max(free.graph_.edges(), key=lambda edge: edge[2])[:2]
    bound = SmoothGraph(alpha=1.0, beta=1.0, forbidden=[strongest]).fit(frame)
    assert not bound.graph_.to_networkx().has_edge(*strongest)
    assert bound.objective_ > free.objective_
    ring = [(k, (k + 1) % 24) for k in range(24)]
    ringed = SmoothGraph(alpha=1.0, beta=1.0, allowed=ring).fit(frame)
    assert set(zip(ringed.graph_.rows.tolist(), ringed.graph_.cols.tolist(), strict=True)) <= {
        (min(pair), max(pair)) for pair in ring
    }
    with pytest.raises(PairsError, match="'n99'"):
        SmoothGraph(allowed=[("n0", "n99")]).fit(frame)


def test_numbers_that_may_be_names_or_positions_are_refused(X):
    frame = pd.DataFrame(X[:, :3], columns=[10, 11, 12])
    with pytest.raises(PairsError, match="names or positions"):
        SmoothGraph(forbidden=[(10, 11)]).fit(frame)
    assert SmoothGraph(forbidden=[("10", "11")]).fit(frame).adjacency_[0, 1] == 0


def test_distances_whose_rows_are_in_another_order_are_refused(X):
    names = [f"n{k}" for k in range(24)]
    frame = pd.DataFrame(squareform(pdist(X.T)), columns=names, index=names[::-1])
    with pytest.raises(SignalError, match="same order"):
        SmoothGraph(metric="precomputed").fit(frame)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_any_sensible_magnitude_gives_the_same_graph(X, scale):
    expected = SmoothGraph(degree=4).fit(X).adjacency_
    np.testing.assert_allclose(SmoothGraph(degree=4).fit(scale * X).adjacency_, expected, atol=1e-9)


def test_a_positive_zeta_may_leave_nodes_isolated(X):
    model = SmoothGraph(alpha=1e-3, beta=1.0, zeta=1.0).fit(X)
    assert model.converged_
    assert (model.adjacency_.sum(axis=1) == 0).any()


def test_stopping_early_warns_with_the_gap_and_the_cure(X):
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* max_iter or tol"):
        SmoothGraph(alpha=1.0, beta=1e-3, max_iter=1).fit(X)


def test_a_degree_that_ties_forbid_warns_and_takes_the_nearest():
    with pytest.warns(DegreeWarning, match="the nearest, 9, was taken"):
        SmoothGraph(degree=3).fit(np.eye(10))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pd.DataFrame({"a": [1.0, 2, 3], "b": ["1", "x", "3"]}),
            "row 2, column 'b': expected a finite number, got 'x'",
        ),
        (
            pl.DataFrame({"a": [1.0, 2, 3], "b": ["1", "x", "3"]}),
            "row 2, column 'b': expected a finite number, got 'x'",
        ),
        (
            pd.DataFrame({"a": [1.0, 2, np.nan], "b": [1.0, 2, 3]}),
            "row 3, column 'a': expected a finite number, got NaN",
        ),
        (pd.DataFrame([[1.0, 2], [3, 4]], columns=["a", "a"]), "different node names, got 'a'"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "row 1, column '1': expected a finite number, got inf"),
        (np.ma.masked_greater(np.eye(3), 0.5), "masked values"),
        ("brain.csv", "got the path 'brain.csv'"),
        (np.eye(3) * 1e80, r"expected magnitudes between 1e-70 and 1e\+70, got"),
        (np.eye(3) * 1e300, r"expected magnitudes between 1e-70 and 1e\+70, got"),
        (np.full((3, 3), 1e200) * [1, 2, 3], r"expected magnitudes between 1e-70 and 1e\+70, got"),
        (np.eye(3) * 1e-200, r"expected magnitudes between 1e-70 and 1e\+70, got"),
        (np.ones((1, 3)), "1 sample"),
        (np.ones((3, 1)), "1 feature"),
        (np.ones(3), "2D array"),
    ],
)
def test_bad_signals_are_refused_by_place(table, message):
    with pytest.raises(ValueError, match=message):
        SmoothGraph().fit(table)


def test_a_constant_node_learns_unless_it_must_be_standardised(X):
    X[:, 3] = 1.5
    assert SmoothGraph(alpha=1.0, beta=1.0).fit(X).converged_
    with pytest.raises(SignalError, match="1 of the nodes are: '3'"):
        SmoothGraph(standardize=True).fit(X)


@pytest.mark.filterwarnings("ignore:.*ells are empty")
@pytest.mark.parametrize("standardize", [False, True])
def test_gaps_go_with_their_rows_or_leave_each_pair_its_own(rng, standardize):
    X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6))
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    whole = X[~np.isnan(X).any(axis=1)]
    with pytest.raises(SignalError, match=r"missing='rows'"):
        SmoothGraph(degree=2, standardize=standardize).fit(X)
    with pytest.warns(UserWarning, match=f"{80 - len(whole)} rows have gaps and were left out"):
        rows = SmoothGraph(degree=2, standardize=standardize, missing="rows").fit(X)
    assert (rows.rows_dropped_, rows.n_samples_seen_) == (80 - len(whole), len(whole))
    assert rows.graph_ == SmoothGraph(degree=2, standardize=standardize).fit(whole).graph_
    pairs = SmoothGraph(degree=2, standardize=standardize, missing="pairs").fit(X)
    cost = np.zeros((6, 6))
    for i, j in np.ndindex(6, 6):
        x, y = X[~np.isnan(X[:, [i, j]]).any(axis=1)][:, [i, j]].T
        cost[i, j] = 2 * (1 - np.corrcoef(x, y)[0, 1]) if standardize else np.mean((x - y) ** 2)
    np.fill_diagonal(cost, 0.0)
    expected = SmoothGraph(degree=2, metric="precomputed").fit((cost + cost.T) / 2)
    np.testing.assert_allclose(pairs.adjacency_, expected.adjacency_, rtol=1e-6, atol=1e-9)
    parts = SmoothGraph(degree=2, standardize=standardize, missing="pairs")
    for part in np.array_split(X, 5):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.adjacency_, pairs.adjacency_, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*ells are empty")
def test_masked_values_and_nulls_of_frames_are_gaps_where_there_may_be_some(rng):
    X = rng.normal(size=(40, 5))
    X[3, 2] = np.nan
    expected = SmoothGraph(degree=2, missing="pairs").fit(X)
    frame = pd.DataFrame(X)
    for table in (
        np.ma.masked_invalid(X),
        frame,
        frame.astype("Float64"),
        frame.astype(object).where(frame.notna(), None),
    ):
        assert np.allclose(SmoothGraph(degree=2, missing="pairs").fit(table).adjacency_, expected.adjacency_)
    with pytest.raises(SignalError, match="no masked values"):
        SmoothGraph().fit(np.ma.masked_invalid(X))
    with pytest.raises(SignalError, match="got inf"):
        SmoothGraph(missing="pairs").fit(np.where(np.isnan(X), np.inf, X))
    for wrong in ({"missing": "guess"}, {"missing": "rows", "metric": "precomputed"}):
        with pytest.raises(ParameterError, match="missing"):
            SmoothGraph(**wrong).fit(X)


@pytest.fixture
def large_from_24(monkeypatch):
    """As if 24 nodes were many."""
    monkeypatch.setattr("silograph.local.large.LARGE", 24)
    monkeypatch.setattr("silograph.estimators.smooth.LARGE", 24)


@pytest.mark.parametrize("options", [{"standardize": True}, {"missing": "rows"}, {"zeta": 0.01}])
def test_many_nodes_have_the_graph_of_few(X, large_from_24, options):
    X = X.astype(np.float32)
    model = SmoothGraph(degree=4, **options).fit(X)
    stored = SmoothGraph(alpha=model.alpha_, beta=model.beta_, neighbours=0, **options).fit(X)
    assert model.gap_ <= 1e-8
    assert model.degree_ == pytest.approx(4, rel=0.02)
    assert model.n_samples_seen_ == 120
    np.testing.assert_allclose(model.graph_.adjacency(), stored.graph_.adjacency(), atol=1e-10)
    assert pickle.loads(pickle.dumps(model)).graph_ == model.graph_


def test_many_nodes_have_a_sparse_adjacency_and_no_scores(X, large_from_24):
    model = SmoothGraph(degree=4).fit(X)
    np.testing.assert_array_equal(model.adjacency_.toarray(), model.graph_.adjacency())
    with pytest.raises(ParameterError, match=r"scores_.*neighbours=0"):
        _ = model.scores_
    with pytest.raises(ParameterError, match=r"partial_fit.*fit all samples at once"):
        model.partial_fit(X)
    assert SmoothGraph(degree=4, neighbours=0).fit(X).scores_.shape == (24, 24)


@pytest.mark.parametrize("options", [{"solver": "gradient"}, {"missing": "pairs"}, {"forbidden": [(0, 1)]}])
def test_what_needs_stored_costs_has_them_however_many_nodes(X, large_from_24, options):
    model = SmoothGraph(degree=4, **options).fit(X)
    assert np.isfinite(model.scores_[2:, 2:]).any()


def test_gaps_among_many_nodes_are_refused_or_go_with_their_rows(X, large_from_24):
    gappy = X.copy()
    gappy[3, 2] = np.nan
    with pytest.raises(SignalError, match="row 4"):
        SmoothGraph(degree=4).fit(gappy)
    with pytest.warns(UserWarning, match="1 rows"):
        model = SmoothGraph(degree=4, missing="rows").fit(gappy)
    assert model.n_samples_seen_ == 119
    assert model.graph_ == SmoothGraph(degree=4).fit(np.delete(X, 3, axis=0)).graph_
