"""Molène, from a file written here."""

import numpy as np
import pytest

from silograph.datasets import load_molene
from silograph.errors import DataError, ParameterError


def write(folder, **other):
    rng = np.random.default_rng(0)
    content = {"T": rng.normal(280, 3, size=(3, 5, 24)).astype(np.float32), "coords": rng.normal(size=(5, 2)), **other}
    np.savez(folder / "molene_temp.npz", **content)
    return folder / "molene_temp.npz", content


def test_hours_are_samples_and_stations_are_nodes(tmp_path, monkeypatch):
    path, content = write(tmp_path)
    found = load_molene(path)
    assert np.array_equal(found.signals, content["T"][0].T)
    assert np.array_equal(found.coordinates, content["coords"])
    assert found.names == ("0", "1", "2", "3", "4")
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path))
    assert np.array_equal(load_molene(variable="lowest").signals, content["T"][2].T)


def test_stations_keep_their_names(tmp_path):
    names = ("Brest", "Rennes", "Vannes", "Lorient", "Quimper")
    assert load_molene(write(tmp_path, names=np.array(names))[0]).names == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"T": np.zeros((5, 24))}, "T: expected 3 × any × any numbers, got 5 × 24"),
        ({"T": np.full((3, 5, 24), np.nan)}, r"T\[0, 0, 0\]: expected a finite number, got nan"),
        ({"coords": np.zeros((4, 2))}, "coords: expected 5 × 2 numbers, got 4 × 2"),
        ({"names": np.array(["Brest"] * 5)}, "names: expected 5 different names"),
    ],
)
def test_a_file_with_something_else_is_refused(change, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load_molene(write(tmp_path, **change)[0])


def test_a_variable_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="variable: expected 'temperature' or 'highest' or 'lowest', got 'wind'"):
        load_molene(write(tmp_path)[0], variable="wind")
