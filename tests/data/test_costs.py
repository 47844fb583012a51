"""Tables as they are: gaps, flagged rows, nodes that are missing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from silograph import ParameterError, SignalError
from silograph.data.alignment import order_of
from silograph.data.costs import TableCosts, TableOptions, read_costs
from silograph.data.readers import source
from silograph.graph.pairs import Pairs

NODES = tuple("abcde")


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 300.0, columns=list(NODES))


def read(
    frame: pd.DataFrame, folder: Path, *, missing_nodes="error", blocks=False, nodes=NODES, **options
) -> TableCosts:
    path, how = folder / "t.csv", TableOptions(**options)
    frame.to_csv(path, index=False, na_rep="n/a")
    table = how.open(path)
    order = order_of(nodes, table.names, first="the study", silo="t.csv", missing_nodes=missing_nodes)
    return read_costs(
        path, table, Pairs.all(len(nodes)), how, order=order, missing_nodes=missing_nodes, blocks=blocks,
        on_progress=lambda part: None,
    )  # fmt: skip


def gappy(frame: pd.DataFrame, part=0.1) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return frame.mask(pd.DataFrame(rng.uniform(size=frame.shape) < part, columns=frame.columns))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("chunk_values", [35, 2**20])
def test_gaps_go_with_their_rows_or_leave_each_pair_its_own(frame, tmp_path, monkeypatch, standardize, chunk_values):
    monkeypatch.setattr(source, "CHUNK_VALUES", chunk_values)
    table = gappy(frame)
    with pytest.raises(
        SignalError, match=r"(?s)t\.csv, row \d+, column '.'.*got 'n/a'.*missing='rows'.*missing='pairs'"
    ):
        read(table, tmp_path, standardize=standardize)
    rows = read(table, tmp_path, missing="rows", standardize=standardize, blocks=True)
    whole = read(table.dropna(), tmp_path, standardize=standardize, blocks=True)
    assert rows.rows_dropped == 60 - len(table.dropna()) > 0
    assert (rows.n_samples, whole.rows_dropped) == (len(table.dropna()), 0)
    np.testing.assert_allclose(rows.cost, whole.cost, rtol=1e-9)
    pairs = read(table, tmp_path, missing="pairs", standardize=standardize, blocks=True)
    assert (pairs.n_samples, pairs.rows_dropped) == (60, 0)
    if standardize:
        corr = table.corr().to_numpy()[np.triu_indices(5, 1)]
        np.testing.assert_allclose(pairs.cost, 2 * (1 - corr), rtol=1e-7)
    np.testing.assert_allclose(pairs.blocks.cost(range(len(pairs.blocks.counts))), pairs.cost, rtol=1e-7)


@pytest.mark.parametrize("missing", ["rows", "pairs"])
@pytest.mark.parametrize("blocks", [False, True])
def test_without_gaps_every_way_to_treat_them_gives_the_same_bits(frame, tmp_path, missing, blocks):
    plain, other = read(frame, tmp_path, blocks=blocks), read(frame, tmp_path, missing=missing, blocks=blocks)
    assert plain.cost.tobytes() == other.cost.tobytes()
    if blocks:
        assert plain.blocks.sums.tobytes() == other.blocks.sums.tobytes()
        assert other.blocks.pair_counts is None


def test_when_every_row_has_a_gap_the_cure_is_pairs(frame, tmp_path):
    frame.iloc[:30, 0] = np.nan
    frame.iloc[30:, 1] = np.nan
    with pytest.raises(SignalError, match=r"at least 2 rows without gaps, got 0; 60 were dropped.*missing='pairs'"):
        read(frame, tmp_path, missing="rows")
    with pytest.raises(SignalError, match="rows that have both 'a' and 'b', got 0"):
        read(frame, tmp_path, missing="pairs")


def test_flagged_rows_are_left_out_with_their_gaps_and_counted(frame, tmp_path):
    flags = np.arange(60) % 4 > 0
    expected = read(frame[flags], tmp_path)
    scrubbed = frame.copy()
    scrubbed.loc[~flags, "b"] = np.nan
    for spelling in (
        flags,
        flags.astype(int),
        np.where(flags, "yes", "No"),
        np.where(flags, "True", "false"),
        flags * 2.5,
    ):
        kept = read(scrubbed.assign(good=spelling), tmp_path, keep_rows="good")
        assert kept.cost.tobytes() == expected.cost.tobytes()
        assert (kept.n_samples, kept.rows_dropped) == (45, 15)
    with pytest.raises(SignalError, match=r"row 4, column 'good': expected true or false .*got maybe"):
        read(frame.assign(good=["1", "0", "maybe"] + ["1"] * 57), tmp_path, keep_rows="good")
    with pytest.raises(SignalError, match="row 3, column 'good': expected true or false"):
        read(frame.assign(good=[1, np.nan] + [1] * 58), tmp_path, keep_rows="good")
    with pytest.raises(SignalError, match=r"that column 'good' keeps, got 1 of 60"):
        read(frame.assign(good=[1] + [0] * 59), tmp_path, keep_rows="good")
    with pytest.raises(SignalError, match=r"no column is called 'bad'.*keep_rows"):
        read(frame, tmp_path, keep_rows="bad")


def test_rows_dropped_for_gaps_and_for_flags_are_counted_together(frame, tmp_path):
    frame.iloc[5, 0] = np.nan
    read_ = read(frame.assign(good=[0] * 4 + [1] * 56), tmp_path, keep_rows="good", missing="rows")
    assert (read_.n_samples, read_.rows_dropped) == (55, 5)


@pytest.mark.parametrize("missing", ["error", "rows", "pairs"])
@pytest.mark.parametrize("how", ["absent", "empty", "constant"])
@pytest.mark.parametrize("blocks", [False, True])
def test_a_node_is_missing_whose_column_is_absent_empty_or_constant(frame, tmp_path, missing, how, blocks):
    there = frame[["a", "c", "e"]]
    alone = read(there, tmp_path, nodes=("a", "c", "e"), blocks=blocks)
    table = {"absent": there, "empty": frame.assign(b=np.nan, d=np.nan), "constant": frame.assign(b=7.5, d=0.1)}[how]
    found = read(table[table.columns[::-1]], tmp_path, missing_nodes="allow", missing=missing, blocks=blocks)
    assert found.present.tolist() == [0, 2, 4]
    assert (found.n_samples, found.rows_dropped) == (60, 0)
    np.testing.assert_allclose(found.cost, alone.cost, rtol=1e-9)
    if blocks:
        np.testing.assert_allclose(found.blocks.sums, alone.blocks.sums, rtol=1e-9)


def test_a_table_with_all_nodes_lacks_none_and_gives_the_same_bits(frame, tmp_path):
    found = read(frame, tmp_path, missing_nodes="allow")
    assert found.present is None
    assert found.cost.tobytes() == read(frame, tmp_path).cost.tobytes()


def test_a_column_that_is_empty_at_first_is_not_empty(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_VALUES", 35)
    late = frame.copy()
    late.loc[:20, "b"] = np.nan
    with pytest.raises(SignalError, match="column 'b'"):
        read(late, tmp_path, missing_nodes="allow")
    assert read(late, tmp_path, missing_nodes="allow", missing="rows").rows_dropped == 21


def test_unless_nodes_may_be_missing_the_error_names_the_cure(frame, tmp_path):
    cure = r"missing_nodes='allow'"
    with pytest.raises(SignalError, match=rf"(?s)column 'b'.*seems to be empty.*{cure}"):
        read(frame.assign(b=np.nan), tmp_path)
    with pytest.raises(SignalError, match=rf"1 of the nodes are: 'd'.*{cure}"):
        read(frame.assign(d=3.0), tmp_path, standardize=True)
    with pytest.raises(ValueError, match=rf"missing: 'd'.*{cure}"):
        read(frame.drop(columns="d"), tmp_path)
    assert read(frame.assign(d=3.0), tmp_path).present is None  # not standardised, it is a node like any other


def test_a_table_of_fewer_than_two_nodes_is_refused(frame, tmp_path):
    with pytest.raises(SignalError, match="expected at least 2 nodes whose columns are there and vary, got only 'c'"):
        read(frame.assign(a=1, b=2, d=np.nan, e=3), tmp_path, missing_nodes="allow")
    with pytest.raises(SignalError, match="got none"):
        read(frame * 0, tmp_path, missing_nodes="allow")


def test_distances_may_lack_nodes_too(frame, tmp_path):
    square = pd.DataFrame(np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))), columns=list(NODES))
    some = square.iloc[[0, 2, 4]][["a", "c", "e"]]
    found = read(some, tmp_path, missing_nodes="allow", precomputed=True)
    assert found.present.tolist() == [0, 2, 4]
    assert found.cost.tolist() == [2.0, 4.0, 2.0]


@pytest.mark.parametrize(
    "options", [{"missing": "guess"}, {"precomputed": True, "missing": "rows"}, {"precomputed": True, "keep_rows": "x"}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ParameterError):
        TableOptions(**options)
