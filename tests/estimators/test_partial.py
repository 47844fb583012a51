"""PartialCorrelationGraph: what it accepts, what it refuses, what it tells."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from silograph import ParameterError, PartialCorrelationGraph, SignalError
from testing.silo_problems import silo_signals


@pytest.fixture
def signals(rng) -> dict[str, np.ndarray]:
    return dict(zip(("oslo", "lima", "kyoto"), silo_signals(rng, "different", 3, 9), strict=True))


@pytest.fixture
def frames(signals) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(x, columns=[f"node {k}" for k in range(9)]) for name, x in signals.items()}


def test_it_learns_signed_partial_correlations_of_each_silo_and_of_what_they_share(signals):
    model = PartialCorrelationGraph(degree=3).fit(signals)
    assert model.partial_correlations_.shape == (3, 9, 9)
    assert model.consensus_.shape == (9, 9)
    assert list(model.graphs_) == model.silo_names_ == ["oslo", "lima", "kyoto"]
    np.testing.assert_array_equal(np.diag(model.consensus_), 1)
    assert (model.consensus_ < 0).any()
    assert ((model.shrinkage_ > 0) & (model.shrinkage_ <= 1)).all()
    assert 0 < model.ridge_ <= 1
    assert np.isfinite(model.log_likelihood_).all()
    assert model.n_samples_seen_ == [len(x) for x in signals.values()]
    assert model.n_features_in_ == 9


def test_graphs_have_the_strongest_pairs_and_matrices_their_signs(signals):
    model = PartialCorrelationGraph(degree=2).fit(signals)
    assert model.consensus_graph_.n_edges == 9
    graph, signed = model.graphs_["lima"], model.adjacencies_[1]
    np.testing.assert_array_equal(graph.adjacency(), np.abs(signed))
    kept = signed != 0
    np.testing.assert_array_equal(signed[kept], model.partial_correlations_[1][kept])
    np.testing.assert_array_equal(np.abs(model.consensus_adjacency_), model.consensus_graph_.adjacency())


def test_lists_dicts_frames_and_groups_are_the_same(signals, frames):
    model = PartialCorrelationGraph().fit(signals)
    labels, together = np.repeat(list(signals), [len(x) for x in signals.values()]), np.vstack(list(signals.values()))
    for other in (
        PartialCorrelationGraph().fit(list(signals.values())),
        PartialCorrelationGraph().fit(frames),
        PartialCorrelationGraph().fit({name: pl.from_pandas(frame) for name, frame in frames.items()}),
        PartialCorrelationGraph().fit(together, groups=labels),
    ):
        np.testing.assert_array_equal(other.partial_correlations_, model.partial_correlations_)


def test_frames_are_aligned_by_name(frames):
    model = PartialCorrelationGraph().fit(frames)
    other = PartialCorrelationGraph().fit(dict(frames, lima=frames["lima"][frames["lima"].columns[::-1]]))
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=1e-10)
    assert list(other.feature_names_in_) == [f"node {k}" for k in range(9)]


def test_silos_in_other_units_are_the_same_once_standardised(signals):
    model = PartialCorrelationGraph().fit(signals)
    other = PartialCorrelationGraph().fit(dict(signals, lima=1000 * signals["lima"] + 5))
    np.testing.assert_allclose(other.partial_correlations_, model.partial_correlations_, atol=1e-9)


def test_rows_with_gaps_are_refused_or_left_out(signals):
    gappy = dict(signals, lima=signals["lima"].copy())
    gappy["lima"][3, 2] = np.nan
    with pytest.raises(SignalError, match="lima, row"):
        PartialCorrelationGraph().fit(gappy)
    with pytest.warns(UserWarning, match="lima: 1"):
        model = PartialCorrelationGraph(missing="rows").fit(gappy)
    assert model.rows_dropped_ == [0, 1, 0]
    without = PartialCorrelationGraph().fit(dict(signals, lima=np.delete(signals["lima"], 3, axis=0)))
    np.testing.assert_array_equal(model.consensus_, without.consensus_)
    gappy["lima"][1:, 0] = np.nan
    with pytest.raises(SignalError, match="without gaps, got 1"):
        PartialCorrelationGraph(missing="rows").fit(gappy)


def test_parameters_and_tables_that_make_no_sense_are_refused(signals):
    for degree in (9, 0, "many"):
        with pytest.raises(ParameterError, match="degree: expected"):
            PartialCorrelationGraph(degree=degree).fit(signals)
    with pytest.raises(ParameterError, match="missing"):
        PartialCorrelationGraph(missing="pairs").fit(signals)


def test_it_has_scikit_learn_s_manners(signals):
    model = PartialCorrelationGraph(degree=2, standardize=False)
    with pytest.raises(NotFittedError):
        _ = model.judgement_
    assert clone(model).get_params() == model.get_params()
    fitted = pickle.loads(pickle.dumps(model.fit(signals)))
    np.testing.assert_array_equal(fitted.consensus_, model.consensus_)
    assert fitted.judgement_ == model.judgement_


def test_one_table_is_one_silo(signals, frames):
    model, listed = PartialCorrelationGraph().fit(signals["oslo"]), PartialCorrelationGraph().fit([signals["oslo"]])
    np.testing.assert_array_equal(model.consensus_, listed.consensus_)
    np.testing.assert_array_equal(model.partial_correlations_[0], model.consensus_)
    assert list(PartialCorrelationGraph().fit(pl.from_pandas(frames["oslo"])).feature_names_in_) == list(frames["oslo"])


def test_scikit_learn_complains_of_nothing():
    report = check_estimator(PartialCorrelationGraph(), on_skip=None, on_fail=None)
    assert [entry["check_name"] for entry in report if entry["status"] == "failed"] == []
