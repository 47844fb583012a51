import numpy as np
import pandas as pd
import pytest

from silograph import SignalError, open_signals


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.normal(size=(300_000, 5))


def whole(path, **options) -> np.ndarray:
    return np.vstack(list(open_signals(path, **options).chunks()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_an_npy_file_is_read_in_chunks_whatever_its_numbers(tmp_path, X, dtype):
    np.save(tmp_path / "x.npy", (100 * X).astype(dtype))
    signals = open_signals(tmp_path / "x.npy")
    assert signals.names == ("0", "1", "2", "3", "4")
    assert len(list(signals.chunks())) > 1
    np.testing.assert_array_equal(whole(tmp_path / "x.npy"), (100 * X).astype(dtype))


def test_an_npz_file_names_its_nodes_and_its_array(tmp_path, X):
    np.savez(tmp_path / "x.npz", X=X, other=X[:5], names=list("vwxyz"))
    assert open_signals(tmp_path / "x.npz").names == tuple("vwxyz")
    np.testing.assert_array_equal(whole(tmp_path / "x.npz"), X)
    np.testing.assert_array_equal(whole(tmp_path / "x.npz", key="other", drop=["v", "z"]), X[:5, 1:4])
    np.savez(tmp_path / "only.npz", table=X, n=3)
    np.testing.assert_array_equal(whole(tmp_path / "only.npz"), X)


def test_a_parquet_file_is_read_without_the_index_of_pandas(tmp_path, X):
    frame = pd.DataFrame(X, columns=list("vwxyz"), index=[f"t{k}" for k in range(len(X))])
    frame.to_parquet(tmp_path / "x.parquet")
    assert open_signals(tmp_path / "x.parquet").names == tuple("vwxyz")
    np.testing.assert_array_equal(whole(tmp_path / "x.parquet"), X)
    np.testing.assert_array_equal(whole(tmp_path / "x.parquet", drop=["w"]), X[:, [0, 2, 3, 4]])


def test_single_precision_is_read_as_such(tmp_path, X):
    single = X[:100].astype(np.float32)
    np.save(tmp_path / "x.npy", single)
    pd.DataFrame(single, columns=list("vwxyz")).to_parquet(tmp_path / "x.parquet")
    pd.DataFrame(single, columns=list("vwxyz")).to_feather(tmp_path / "x.feather")
    for name in ("x.npy", "x.parquet", "x.feather"):
        read = whole(tmp_path / name)
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, single)


def test_bad_parquet_files_are_refused_by_place(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, None], "b": [1, 2, 3], "c": ["x", "y", "z"]})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(SignalError, match="column 'c': expected numbers"):
        open_signals(tmp_path / "t.parquet")
    with pytest.raises(SignalError, match="row 3, column 'a': expected a finite number, got NaN"):
        whole(tmp_path / "t.parquet", drop=["c"])
    (tmp_path / "junk.parquet").write_text("junk")
    with pytest.raises(SignalError, match="not a Parquet file"):
        open_signals(tmp_path / "junk.parquet")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 3, 4))}, "expected a matrix .samples, nodes. of numbers"),
        ({"X": np.array([["a", "b"]])}, "of numbers"),
        ({"A": np.ones((3, 3)), "B": np.ones((3, 3))}, "Say which one with key"),
        ({"X": np.ones((3, 3)), "names": list("ab")}, "expected 3 names"),
        ({"X": np.ones((3, 3)), "names": list("aab")}, "different node names"),
        ({"X": np.array([[1, 2], [3, np.inf]])}, "row 2, column '1': expected a finite number, got inf"),
    ],
)
def test_bad_npz_files_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(SignalError, match=message):
        whole(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_a_file_that_numpy_did_not_write_is_refused(tmp_path, name):
    (tmp_path / name).write_text("junk")
    with pytest.raises(SignalError, match="not a NumPy file"):
        open_signals(tmp_path / name)


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(SignalError, match="not a NumPy file of numbers"):
        open_signals(tmp_path / "x.npy")


def test_a_missing_file_a_folder_and_an_unknown_suffix_are_refused(tmp_path):
    with pytest.raises(SignalError, match="no such file"):
        open_signals(tmp_path / "x.csv")
    with pytest.raises(SignalError, match="got a folder"):
        open_signals(tmp_path)
    (tmp_path / "x.mat").write_text("x")
    with pytest.raises(SignalError, match=r"expected one of \.csv, \.tsv"):
        open_signals(tmp_path / "x.mat")
