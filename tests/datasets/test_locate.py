"""Data that are absent or damaged: the error says where to look, where to get them, and under which terms."""

import subprocess
import sys

import numpy as np
import pytest

import silograph.datasets
from silograph.datasets import load_abide, load_coil20, load_molene
from silograph.errors import DataError

LOADERS = pytest.mark.parametrize(
    ("loader", "name", "source", "terms"),
    [
        (load_coil20, "coil20.npz", "Columbia University", "research use"),
        (load_abide, "nyu_ho_176x111.npz", "Preprocessed Connectomes Project", "non-commercial research"),
        (load_molene, "molene_temp.npz", "Météo-France", "Licence Ouverte"),
    ],
)


@LOADERS
def test_data_that_are_absent_can_be_found_with_the_message_alone(loader, name, source, terms, tmp_path, monkeypatch):
    monkeypatch.delenv("SILOGRAPH_DATA", raising=False)
    messages = []
    with pytest.raises(DataError, match="no path was given and SILOGRAPH_DATA is not set") as error:
        loader()
    messages.append(str(error.value))
    with pytest.raises(DataError, match="elsewhere does not exist") as error:
        loader(tmp_path / "elsewhere")
    messages.append(str(error.value))
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path))
    with pytest.raises(DataError, match=rf"expected '{name}'.* in {tmp_path} \(SILOGRAPH_DATA\), got none") as error:
        loader()
    messages.append(str(error.value))
    for message in messages:
        assert source in message
        assert terms in message
        assert "set SILOGRAPH_DATA to that folder" in message


@LOADERS
def test_a_damaged_file_is_named(loader, name, source, terms, tmp_path):
    path = tmp_path / name
    np.savez_compressed(path, T=np.random.default_rng(0).normal(size=(3, 50, 50)))
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    for content in (whole[: len(whole) // 2], bytes(broken), b"", b"some text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: expected an \.npz file of plain arrays.*Fetch or write"):
            loader(path)


@LOADERS
def test_pickled_arrays_are_refused(loader, name, source, terms, tmp_path):
    path = tmp_path / name
    for key in ("T", "X", "X_f32"):
        np.savez(path, **{key: np.array([{"a": 1}, print], dtype=object)})
        with pytest.raises(DataError, match=rf"{name}: .*[Pp]ickled arrays are refused"):
            loader(path)


@LOADERS
def test_a_single_array_is_not_an_archive(loader, name, source, terms, tmp_path):
    with (tmp_path / name).open("wb") as file:
        np.save(file, np.zeros((3, 3)))
    with pytest.raises(DataError, match=rf"{name}: expected an \.npz file"):
        loader(tmp_path / name)


@pytest.mark.parametrize("loader", [load_abide, load_molene])
def test_an_array_that_is_missing_is_named(loader, tmp_path):
    np.savez(tmp_path / "data.npz", other=np.zeros(3))
    with pytest.raises(DataError, match=r"data\.npz: expected the arrays '[XT]', .*, got 'other'"):
        loader(tmp_path / "data.npz")


def test_the_path_given_wins_over_the_environment(tmp_path, monkeypatch):
    for folder, value in ((tmp_path / "a", 1.0), (tmp_path / "b", 2.0)):
        folder.mkdir()
        np.savez(folder / "molene_temp.npz", T=np.full((3, 2, 2), value), coords=np.zeros((2, 2)))
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path / "a"))
    assert load_molene().signals[0, 0] == 1
    assert load_molene(tmp_path / "b" / "molene_temp.npz").signals[0, 0] == 2
    assert load_molene(tmp_path / "b").signals[0, 0] == 2  # the folder stands for the file it is known by


def test_the_public_names_are_explained():
    for name in silograph.datasets.__all__:
        assert getattr(silograph.datasets, name).__doc__


def test_importing_datasets_does_not_import_what_reads_files():
    heavy = ("pandas", "PIL", "nilearn", "sklearn", "scipy.io")
    program = f"import sys, silograph.datasets; print(*[name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
