"""Normal scores: what they are, and what they make of no matter."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from silograph import ConsensusGraph, ParameterError, SignalError, SmoothGraph, learn_files, read_run
from silograph.data import ranks
from silograph.data.ranks import normal_scores
from silograph.data.readers import source
from testing.silo_problems import silo_signals

NODES = list("abcdefgh")
RISING = [np.exp, np.arctan, lambda x: x**3, lambda x: 1e6 * x - 7, lambda x: np.sign(x) * np.log1p(np.abs(x))]


def tables(n_silos: int = 3) -> dict[str, pd.DataFrame]:
    signals = silo_signals(np.random.default_rng(5), "different", n_silos, len(NODES))
    return {f"s{number}": pd.DataFrame(table, columns=NODES) for number, table in enumerate(signals)}


def bent(table: pd.DataFrame, first: int = 0) -> pd.DataFrame:
    """Each node through another strictly increasing function."""
    return pd.DataFrame({name: RISING[(first + k) % len(RISING)](table[name]) for k, name in enumerate(table)})


def written(folder: Path, frames: dict[str, pd.DataFrame]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False, na_rep="n/a", float_format="%.17g")
    return sorted(folder.glob("*.csv"))


@given(n=st.integers(2, 60), levels=st.integers(2, 9), seed=st.integers(0, 2**32 - 1))
def test_a_score_is_the_normal_quantile_of_the_mean_rank(n, levels, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n).astype(float)
    x[rng.uniform(size=n) < 0.2] = np.nan
    there = x[~np.isnan(x)]
    below = np.array([(there < value).sum() + ((there == value).sum() - 1) / 2 for value in x])
    expected = np.where(np.isnan(x), np.nan, norm.ppf((below + 0.5) / max(there.size, 1)))
    np.testing.assert_allclose(normal_scores(x[:, None])[:, 0], expected, rtol=1e-12, atol=1e-12)


def test_a_constant_column_is_zero_throughout():
    assert (normal_scores(np.full((7, 2), 3.7)) == 0.0).all()


@pytest.mark.parametrize("first", range(len(RISING)))
def test_a_rising_transform_of_any_node_leaves_every_bit(first):
    (_, table), *_ = tables().items()
    one, other = (SmoothGraph(degree=3, ranks=True).fit(x) for x in (table, bent(table, first)))
    np.testing.assert_array_equal(one.scores_, other.scores_)


def test_of_several_silos_as_well_and_each_may_have_its_own(tmp_path):
    frames = tables()
    others = {name: bent(table, k) for k, (name, table) in enumerate(frames.items())}
    one, other = (ConsensusGraph(degree=3, ranks=True, stability=4).fit(x) for x in (frames, others))
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_array_equal(one.stabilities_, other.stabilities_)
    assert one.coupling_curve_ == other.coupling_curve_
    run = learn_files(written(tmp_path / "t", others), degree=3, transform="ranks", out=tmp_path / "run")
    np.testing.assert_array_equal(run.consensus_graph.weights, one.consensus_graph_.weights)
    assert read_run(tmp_path / "run").parameters["transform"] == "ranks"


@pytest.mark.parametrize("missing", ["rows", "pairs"])
def test_gaps_have_no_rank_and_their_rows_go_before(tmp_path, missing):
    frames = tables()
    for table in frames.values():
        table.iloc[3:9, 2] = table.iloc[7:12, 5] = np.nan
    others = {name: bent(table, k) for k, (name, table) in enumerate(frames.items())}
    settings = {"degree": 3, "coupling": 0.5, "transform": "ranks", "missing": missing}
    one, other = (learn_files(written(tmp_path / n, x), **settings) for n, x in (("a", frames), ("b", others)))
    assert one.graphs == other.graphs
    if missing == "rows":
        whole = {name: table.dropna() for name, table in frames.items()}
        same = learn_files(written(tmp_path / "c", whole), degree=3, coupling=0.5, transform="ranks")
        assert same.graphs == one.graphs


def test_costs_are_those_of_standardised_scores_however_the_file_is_read(tmp_path, monkeypatch):
    frames = tables()
    paths = written(tmp_path, frames)
    scores = {name: pd.DataFrame(normal_scores(table.to_numpy()), columns=NODES) for name, table in frames.items()}
    model = ConsensusGraph(degree=3, coupling=0.5, standardize=True).fit(scores)
    whole = learn_files(paths, degree=3, coupling=0.5, transform="ranks")
    monkeypatch.setattr(source, "CHUNK_VALUES", 100)
    pieces = learn_files(paths, degree=3, coupling=0.5, transform="ranks")
    assert whole.graphs == pieces.graphs == model.graphs_
    assert whole.silos[0].mean_squared_difference == pieces.silos[0].mean_squared_difference


def test_ordinal_items_with_many_ties_are_learned():
    answers = {name: (table.rank(pct=True) * 4).round() for name, table in tables().items()}
    model = ConsensusGraph(degree=3, ranks=True).fit(answers)
    assert model.converged_
    assert model.consensus_graph_.n_edges > 0


def test_a_constant_node_is_an_error_or_missing_where_nodes_may_be(tmp_path):
    frames = tables()
    frames["s1"]["c"] = 2.0
    paths = written(tmp_path, frames)
    with pytest.raises(SignalError, match=r"s1\.csv: what is constant cannot be standardised.*'c'"):
        learn_files(paths, degree=3, transform="ranks")
    run = learn_files(paths, degree=3, transform="ranks", missing_nodes="allow")
    assert run.silos[1].missing_nodes == ("c",)


def test_many_nodes_are_ranked_too_as_the_table_is_held_anyhow(monkeypatch, tmp_path):
    (name, table), *_ = tables().items()
    whole = learn_files(written(tmp_path, {name: table}), degree=3, transform="ranks")
    monkeypatch.setattr("silograph.local.large.LARGE", 4)
    tiled = learn_files(written(tmp_path, {name: bent(table)}), degree=3, transform="ranks")
    np.testing.assert_allclose(tiled.main.adjacency(), whole.main.adjacency(), atol=1e-6)


def test_what_is_too_large_to_be_held_is_refused_politely(monkeypatch, tmp_path):
    monkeypatch.setattr(ranks, "MOST_VALUES", 1000)
    monkeypatch.setattr(source, "CHUNK_VALUES", 100)
    with pytest.raises(SignalError, match=r"s0\.csv: ranks need the whole table in memory, and it has more than 1000"):
        learn_files(written(tmp_path, tables(1)), degree=3, transform="ranks")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transform": "rank"}, "expected 'none' or 'ranks'"),
        ({"transform": "ranks", "precomputed": True}, "precomputed distances have no values to rank"),
        ({"transform": "ranks", "epsilon": 1.0, "delta": 1e-5}, "changes the ranks of all others"),
    ],
)
def test_what_ranks_cannot_be_of_is_refused_with_the_reason(tmp_path, settings, message):
    paths = written(tmp_path, tables())
    with pytest.raises(ParameterError, match=message):
        learn_files(paths, **settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "precomputed"}, "precomputed distances have no values to rank"),
        ({"epsilon": 1.0, "delta": 1e-5}, "changes the ranks of all others"),
    ],
)
def test_estimators_refuse_the_same(settings, message):
    with pytest.raises(ParameterError, match=message):
        ConsensusGraph(ranks=True, **settings).fit(tables())


def test_samples_cannot_be_added_to_ranks():
    (_, table), *_ = tables().items()
    with pytest.raises(ParameterError, match="change the ranks of those before"):
        SmoothGraph(ranks=True).partial_fit(table)
