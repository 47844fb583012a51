"""ConsensusGraph on tables that lack nodes."""

import warnings

import numpy as np
import pandas as pd
import pytest

from silograph import ConsensusGraph, NodesWarning, ParameterError, SilosError
from testing.silo_problems import silo_signals

NAMES = [f"region {k}" for k in range(9)]


@pytest.fixture
def frames(rng) -> dict[str, pd.DataFrame]:
    tables = silo_signals(rng, "different", 4, 9, 60)
    return {name: pd.DataFrame(table, columns=NAMES) for name, table in zip("abcd", tables, strict=True)}


def fitted(tables, **settings) -> ConsensusGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ConsensusGraph(degree=3, missing_nodes="allow", **settings).fit(tables)


@pytest.mark.parametrize("standardize", [False, True])
def test_absent_constant_and_empty_columns_are_the_same(frames, standardize):
    absent, constant, empty = ({**frames} for _ in range(3))
    absent["b"] = frames["b"].drop(columns=["region 2", "region 7"])
    constant["b"] = frames["b"].assign(**{"region 2": 3.7, "region 7": 1e9})
    empty["b"] = frames["b"].assign(**{"region 2": np.nan, "region 7": np.nan})
    first, *others = (fitted(tables, standardize=standardize) for tables in (absent, constant, empty))
    assert first.graphs_["b"].names == tuple(name for name in NAMES if name not in ("region 2", "region 7"))
    for other in others:
        np.testing.assert_array_equal(other.consensus_, first.consensus_)
        np.testing.assert_array_equal(other.adjacencies_, first.adjacencies_)


def test_what_was_not_observed_is_nan_and_what_is_no_edge_is_zero(frames):
    tables = {"a": frames["a"][NAMES[:6]], "b": frames["b"][NAMES[3:]], "c": frames["c"][NAMES[3:]]}
    model = fitted(tables)
    assert list(model.feature_names_in_) == NAMES
    assert np.isnan(model.adjacencies_[0, 6:]).all()
    assert np.isfinite(model.adjacencies_[0, :6, :6]).all()
    assert np.isnan(model.consensus_[:3, 6:]).all()  # no silo has both
    assert np.isfinite(model.consensus_[3:, 3:]).all()
    assert np.nansum(model.adjacencies_[0]) == pytest.approx(2 * model.graphs_["a"].weights.sum())


def test_the_order_in_which_columns_are_first_met_is_that_of_nodes(frames):
    model = fitted({"a": frames["a"][NAMES[4:]], "b": frames["b"][NAMES[::-1]], "c": frames["c"]})
    assert list(model.feature_names_in_) == NAMES[4:] + NAMES[:4][::-1]
    straight = fitted({"c": frames["c"], "a": frames["a"][NAMES[4:]], "b": frames["b"]})
    order = [list(model.feature_names_in_).index(name) for name in NAMES]
    np.testing.assert_allclose(model.consensus_[np.ix_(order, order)], straight.consensus_, atol=1e-7)


def test_pairs_that_one_silo_alone_has_are_told(frames):
    tables = {name: frames[name] if name == "a" else frames[name][NAMES[1:]] for name in "abc"}
    with pytest.warns(NodesWarning, match=r"8 pairs of nodes are in one silo alone \(a 8\)"):
        ConsensusGraph(degree=3, missing_nodes="allow").fit(tables)


def test_distances_may_lack_nodes(frames):
    def distances(frame: pd.DataFrame) -> pd.DataFrame:
        x = frame.to_numpy()
        matrix = ((x[:, :, None] - x[:, None, :]) ** 2).mean(axis=0)
        return pd.DataFrame(matrix, index=frame.columns, columns=frame.columns)

    tables = {**frames, "b": frames["b"][NAMES[2:]]}
    given = fitted({name: distances(frame) for name, frame in tables.items()}, metric="precomputed", coupling=0.5)
    np.testing.assert_allclose(given.consensus_, fitted(tables, coupling=0.5).consensus_, atol=1e-9)


def test_columns_without_names_cannot_say_which_are_missing(frames):
    with pytest.raises(SilosError, match="without names"):
        fitted([frames["a"].to_numpy(), frames["b"].to_numpy()[:, :7]])
    table = frames["b"].to_numpy().copy()
    table[:, 3] = np.nan
    assert fitted([frames["a"].to_numpy(), table, frames["c"].to_numpy()]).graphs_["silo_2"].n_nodes == 8


def test_by_default_nothing_may_be_missing_and_the_cure_is_named(frames):
    with pytest.raises(SilosError, match="missing_nodes='allow'"):
        ConsensusGraph().fit({"a": frames["a"], "b": frames["b"][NAMES[1:]]})
    with pytest.raises(ParameterError, match="missing_nodes"):
        ConsensusGraph(method="fedavg", missing_nodes="allow").fit(frames)


def test_a_node_that_is_constant_everywhere_is_an_error_that_names_it(frames):
    with pytest.raises(SilosError, match="none has 'region 5'"):
        fitted({name: frame.assign(**{"region 5": 1.0}) for name, frame in frames.items()})
