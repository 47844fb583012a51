import numpy as np
import pytest

from silograph import SignalError, open_signals


def read(path, **options) -> tuple[tuple[str, ...], list[list[float]]]:
    signals = open_signals(path, **options)
    return signals.names, np.vstack(list(signals.chunks())).tolist()


def written(folder, name: str, content: str | bytes):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TWO_ROWS = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("plain.csv", "a,b,c\n1,2,3\n4,5.5,6\n", "abc"),
        ("spaces.csv", "a, b ,c\n1, 2, 3\n4, 5.5 ,6\n", "abc"),
        ("windows.csv", "\ufeffa,b,c\r\n1,2,3\r\n4,5.5,6\r\n", "abc"),
        ("quoted.csv", '"a","b","c"\n"1",2,3\n4,5.5,6\n', "abc"),
        ("blank_lines.csv", "\n\na,b,c\n1,2,3\n\n4,5.5,6\n\n", "abc"),
        ("no_final_newline.csv", "a,b,c\n1,2,3\n4,5.5,6", "abc"),
        ("no_header.csv", "1,2,3\n4,5.5,6\n", "012"),
        ("european.csv", "a;b;c\n1;2;3\n4;5,5;6\n", "abc"),
        ("european_no_header.csv", "1,0;2;3\n4;5,5;6\n", "012"),
        ("tabs_in.csv", "a\tb\tc\n1\t2\t3\n4\t5.5\t6\n", "abc"),
        ("table.tsv", "a\tb\tc\n1\t2\t3\n4\t5.5\t6\n", "abc"),
        ("trailing.csv", "a,b,c,\n1,2,3,\n4,5.5,6,\n", "abc"),
        ("row_labels.csv", ",a,b,c\nx1,1,2,3\nx2,4,5.5,6\n", "abc"),
        ("pandas_default.csv", ",0,1,2\n0,1,2,3\n1,4,5.5,6\n", "012"),
        ("r_write_table.csv", '"a","b","c"\n"x1",1,2,3\n"x2",4,5.5,6\n', "abc"),
        ("commented.csv", "# scanner 3\n# 2014\na,b,c\n1,2,3\n4,5.5,6\n", "abc"),
        ("exponents.csv", "a,b,c\n1e0,0.2e1,+3\n4,5.5,60e-1\n", "abc"),
        ("afni.1D", "# a comment of some words\n 1  2 3\n# another\n4 5.5\t6\n", "012"),
        ("pcp.1D", "#a\t#b\t#c\n1\t2\t3\n4\t5.5\t6\n", "abc"),
    ],
)
def test_a_table_in_text_is_read_with_its_names(tmp_path, name, content, names):
    assert read(written(tmp_path, name, content)) == (tuple(names), TWO_ROWS)


def test_a_column_that_is_not_a_node_can_be_dropped(tmp_path):
    path = written(tmp_path, "t.csv", "date,a,b\n2014-01-01,1,2\n2014-01-02,3,4\n")
    assert read(path, drop=["date"]) == (("a", "b"), [[1, 2], [3, 4]])
    with pytest.raises(SignalError, match=r"row 2, column 'date'.*\n.*drop the column"):
        read(path)
    with pytest.raises(SignalError, match="no column is called 'day'"):
        open_signals(path, drop=["day"])


def test_numbers_may_be_names_when_the_rows_below_have_fractions(tmp_path):
    atlas = written(tmp_path, "atlas.csv", "2001,2002,2101\n1.5,2.5,0.25\n0.5,1.5,2\n")
    assert read(atlas) == (("2001", "2002", "2101"), [[1.5, 2.5, 0.25], [0.5, 1.5, 2]])
    assert read(atlas, header=False)[0] == ("0", "1", "2")
    counts = written(tmp_path, "counts.csv", "3,1,2\n1,2,3\n5,6,7\n")
    assert len(read(counts)[1]) == 3
    assert read(counts, header=True) == (("3", "1", "2"), [[1, 2, 3], [5, 6, 7]])


def test_a_key_is_for_npz_files_only(tmp_path):
    with pytest.raises(SignalError, match=r"chooses an array of an \.npz file"):
        open_signals(written(tmp_path, "t.csv", "a,b\n1,2\n3,4\n"), key="X")


def test_names_may_hold_delimiters_and_other_alphabets(tmp_path):
    path = written(tmp_path, "t.csv", '"gyrus, left","Großhirn"\n1,2\n3,4\n')
    assert read(path)[0] == ("gyrus, left", "Großhirn")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "empty.csv: the file is empty"),
        ("blank.csv", "\n \n", "blank lines or comments only"),
        ("header.csv", "a,b\n", "at least 2 samples .rows., got 0"),
        ("one_sample.csv", "a,b\n1,2\n", "at least 2 samples .rows., got 1"),
        ("one_node.csv", "a\n1\n2\n", "at least 2 nodes .columns., got 1"),
        ("text.csv", "a,b\n1,2\n3,n/a\n", "text.csv, row 3, column 'b': expected a finite number, got 'n/a'"),
        ("word.csv", "a,b\n1,2\n3,four\n", "row 3, column 'b': expected a finite number, got 'four'"),
        ("nan.csv", "a,b\n1,2\nNaN,4\n", "row 3, column 'a': expected a finite number, got 'NaN'"),
        ("inf.csv", "a,b\n1,2\n3,-inf\n", "row 3, column 'b': expected a finite number, got '-inf'"),
        ("gap.csv", "a,b,c\n1,2,3\n4,,6\n", "row 3, column 'b': expected a finite number, got an empty cell"),
        ("doubles.csv", "a,b,a\n1,2,3\n4,5,6\n", "got 'a' in columns 1, 3"),
        ("unnamed.csv", "a,,c\n1,2,3\n4,5,6\n", "column 2: expected a node name"),
        ("short.csv", "a,b,c\n1,2,3\n4,5\n", "short.csv, row 3: expected 3 values, got 2"),
        ("long.csv", "a,b,c\n1,2,3\n4,5,6,7\n", "long.csv, row 3: expected 3 values, got 4"),
        ("long_first.csv", "a,b\n1,2,3\n4,5\n", "row 3: expected 3 values, got 2"),
        ("break.csv", '"a\nx",b\n1,2\n3,4\n', "without line breaks"),
        ("longer_first.csv", "a,b\n1,2,3,4\n4,5\n", "row 2: expected 2 values, got 4"),
        ("after_blanks.csv", "\na,b\n\n1,2\n3,x\n", "row 5, column 'b'"),
        ("underscore.csv", "a,b\n1,2\n3,1_000\n", "got '1_000'"),
        ("latin1.csv", "a,é\n1,2\n3,4\n".encode("latin-1"), "expected UTF-8 text"),
        ("utf16.csv", "a,b\n1,2\n".encode("utf-16"), "not UTF-8"),
        ("excel.csv", b"PK\x03\x04junk", "zip or Excel file"),
        ("ragged.1D", "1 2 3\n4 5\n", "row 2: expected 3 values, got 2"),
        ("words.1D", "1 2 3\n4 x 6\n", "row 2, column '1': expected a finite number, got 'x'"),
        ("comments.1D", "# only\n# words\n", "comments only"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path, name, content, message):
    with pytest.raises(SignalError, match=message):
        read(written(tmp_path, name, content))


def test_an_error_far_into_a_long_file_is_found(tmp_path):
    rows = ["a,b"] + [f"{k},{k}" for k in range(700_000)]
    rows[600_001] = "1,?"
    with pytest.raises(SignalError, match=r"row 600002, column 'b'.*got '\?'"):
        read(written(tmp_path, "long.csv", "\n".join(rows)))


def test_a_long_file_comes_in_chunks_with_progress(tmp_path, rng):
    X = rng.normal(size=(400_000, 4))
    path = tmp_path / "long.csv"
    np.savetxt(path, X, delimiter=",", fmt="%.6g")
    parts: list[float] = []
    chunks = list(open_signals(path).chunks(parts.append))
    assert len(chunks) > 1
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    np.testing.assert_allclose(np.vstack(chunks), X, rtol=1e-5)
