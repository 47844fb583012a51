"""Every format reads the same table alike: its names, its numbers, its gaps and its flagged rows."""

import gzip

import numpy as np
import pandas as pd
import pytest

from silograph import SignalError, open_signals
from silograph.data.readers.table import SUFFIXES


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    frame = pd.DataFrame(rng.normal(size=(40, 4)).round(3), columns=["a", "b", "c", "d"])
    return frame.assign(good=(np.arange(40) % 3 > 0).astype(float))


def write(frame: pd.DataFrame, folder, suffix: str):
    """The table, with numbers for names where a format has none."""
    path = folder / f"t{suffix}"
    kind = suffix.removesuffix(".gz")
    if kind in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if kind == ".csv" else "\t", na_rep="n/a")
    elif kind == ".1d":
        lines = ["\t".join(f"#{name}" for name in frame), *("\t".join(map(str, row)) for row in frame.to_numpy())]
        data = "\n".join(lines).encode()
        path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    elif kind == ".npy":
        np.save(path, frame.to_numpy())
    elif kind == ".npz":
        np.savez(path, X=frame.to_numpy(), names=np.array(frame.columns, dtype=str))
    elif kind == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        getattr(frame, f"to_{kind[1:]}")(path)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_reads_alike(frame, tmp_path, suffix):
    frame.iloc[3, 1] = frame.iloc[4, 0] = np.nan
    path = write(frame, tmp_path, suffix)
    good, drop = ("4", "3") if suffix == ".npy" else ("good", "d")
    table = open_signals(path, drop=[drop], keep_rows=good)
    assert table.names == (("0", "1", "2") if suffix == ".npy" else ("a", "b", "c"))
    parts: list[float] = []
    dropped: list[int] = []
    values = np.vstack(list(table.chunks(parts.append, gaps=True, on_flagged=dropped.append)))
    np.testing.assert_array_equal(values, frame[frame.good > 0][["a", "b", "c"]].to_numpy())
    assert (parts[-1], dropped) == (1.0, [14])
    where = "row 6" if suffix in (".csv", ".tsv", ".1d", ".csv.gz", ".tsv.gz", ".1d.gz", ".xlsx") else "row 5"
    with pytest.raises(SignalError, match=rf"t{suffix}, {where}, column '[a0]': expected a finite number"):
        list(table.chunks())


@pytest.mark.parametrize("cell", ["", "n/a", "N/A", "NA", "NaN", "nan", "null", "."])
def test_these_words_are_gaps(tmp_path, cell):
    path = tmp_path / "t.tsv"
    path.write_text(f"a\tb\n1\t2\n{cell}\t4\n5\t{cell}\n")
    values = np.vstack(list(open_signals(path).chunks(gaps=True)))
    np.testing.assert_array_equal(values, [[1, 2], [np.nan, 4], [5, np.nan]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n,4\nx,5\n", "row 4, column 'a': expected a finite number, got 'x'"),
        ("a,b\n1,2\nn/a,inf\n3,4\n", r"row 3, column 'b': expected a finite number, got 'inf'\.\nMend"),
        ("a,b,c\n1,2,3\n1,\n3,4,5\n", "row 3: expected 3 values, got 2"),
        ("a,b\n1,2\n3,4,n/a\n", "row 3: expected 2 values, got 3"),
        ("a,b\n1,None\n3,4\n", "row 2, column 'b': expected a finite number, got 'None'"),
    ],
)
def test_what_is_no_gap_stays_an_error_where_gaps_are_fine(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SignalError, match=message):
        list(open_signals(tmp_path / "t.csv").chunks(gaps=True))


def test_a_row_of_gaps_and_numbers_is_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("1,n/a,2\n3,4,5\n6,7,8\n")
    assert open_signals(tmp_path / "t.csv").names == ("0", "1", "2")


def test_gaps_may_be_in_some_columns_only(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,\n3,4\n")
    table = open_signals(tmp_path / "t.csv")
    assert np.isnan(next(iter(table.chunks(gaps=np.array([False, True]))))[0, 1])
    with pytest.raises(SignalError, match="row 2, column 'b'"):
        list(table.chunks(gaps=np.array([True, False])))


@pytest.mark.parametrize(
    ("drop", "left"),
    [
        (["global_*"], ("a", "b", "b*")),
        (["*_x", "a"], ("b", "b*", "global_y")),
        (["global_[xy]", "b"], ("a", "b*")),
        (["b*"], ("a", "b", "global_x", "global_y")),
    ],
)
def test_a_pattern_drops_what_it_matches_and_an_exact_name_wins(tmp_path, drop, left):
    (tmp_path / "t.csv").write_text("a,b,b*,global_x,global_y\n1,2,3,4,5\n2,3,4,5,6\n")
    assert open_signals(tmp_path / "t.csv", drop=drop).names == left


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n")
    with pytest.raises(SignalError, match=r"no column is called 'z\*'"):
        open_signals(tmp_path / "t.csv", drop=["z*"])


def test_a_sheet_is_chosen_by_its_name(frame, tmp_path):
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"note": ["ours"]}).to_excel(writer, sheet_name="about", index=False)
        frame.to_excel(writer, sheet_name="signals")
    table = open_signals(path, key="signals")
    assert table.names == tuple(frame.columns)
    np.testing.assert_array_equal(np.vstack(list(table.chunks())), frame.to_numpy())
    with pytest.raises(SignalError, match=r"'nothing'.*with key"):
        open_signals(path, key="nothing")
    mixed = frame.astype(object)
    mixed.iloc[2, 0] = "x"
    mixed.to_excel(path, index=False)
    with pytest.raises(SignalError, match="row 4, column 'a': expected a finite number, got 'x'"):
        list(open_signals(path).chunks())


def test_sheets_without_names_have_numbered_nodes(frame, tmp_path):
    frame.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    assert open_signals(tmp_path / "t.xlsx").names == ("0", "1", "2", "3", "4")
    pd.DataFrame().to_excel(tmp_path / "none.xlsx")
    with pytest.raises(SignalError, match="the sheet is empty"):
        open_signals(tmp_path / "none.xlsx")


@pytest.mark.parametrize("suffix", [".csv.gz", ".1d.gz", ".xlsx", ".feather", ".parquet"])
def test_a_damaged_file_is_named(frame, tmp_path, suffix):
    path = write(frame, tmp_path, suffix)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(
        SignalError, match=f"t{suffix}: (the packed file is damaged|not an? (Excel|Feather|Parquet) file)"
    ):
        list(open_signals(path).chunks())
    path.write_bytes(b"junk, junk")
    with pytest.raises(SignalError, match=f"t{suffix}: "):
        list(open_signals(path).chunks())
