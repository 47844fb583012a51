"""COIL-20 in its three formats, written here from the same made-up images, and silos of views."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from silograph.datasets import Coil20, coil_silos, load_coil20
from silograph.errors import DataError, ParameterError

FILES = {"X_f32", "X_u8", "mat", "mat of bytes", "32", "128"}


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Grey values in whole numbers, so that every format holds them exactly."""
    return np.random.default_rng(0).integers(0, 256, size=(20, 72, 1024), dtype=np.uint8)


def write(images: np.ndarray, kind: str, folder):
    """The images in one format: the path to load."""
    if kind.startswith("X"):
        values = images / np.float32(255) if kind == "X_f32" else images
        np.savez(folder / "coil20.npz", **{kind: values})
        return folder / "coil20.npz"
    if kind.startswith("mat"):
        values = images.reshape(1440, 1024)
        # Objects interleaved: it is the label that says which is which, and their order that says the pose
        order = np.arange(1440).reshape(20, 72).T.ravel()
        labels = np.repeat(np.arange(1, 21), 72)
        fea = values[order] if "bytes" in kind else values[order] / 255
        savemat(folder / "COIL20.mat", {"fea": fea, "gnd": labels[order, None]})
        return folder / "COIL20.mat"
    (folder / "coil-20-proc").mkdir()
    for number in range(20):
        for pose in range(72):
            picture = images[number, pose].reshape(32, 32, order="F")
            if kind == "128":
                picture = np.kron(picture, np.ones((4, 4), dtype=np.uint8))
            Image.fromarray(picture).save(folder / "coil-20-proc" / f"obj{number + 1}__{pose}.png", compress_level=0)
    return folder / "coil-20-proc"


@pytest.mark.parametrize("kind", sorted(FILES))
def test_every_format_gives_the_same_images(images, kind, tmp_path, monkeypatch):
    path = write(images, kind, tmp_path)
    assert np.allclose(load_coil20(path).images, images / 255, rtol=0, atol=1e-7)
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path))
    assert np.array_equal(load_coil20().images, load_coil20(path).images)


def test_a_block_of_pixels_becomes_its_mean(images, tmp_path):
    folder = write(images, "32", tmp_path)
    rng = np.random.default_rng(1)
    picture = rng.integers(0, 256, size=(128, 128), dtype=np.uint8)
    Image.fromarray(picture).save(folder / "obj3__7.png")
    small = load_coil20(folder).images[2, 7].reshape(32, 32, order="F") * 255
    assert small[5, 9] == pytest.approx(picture[20:24, 36:40].mean())


def test_a_view_has_the_next_poses_of_each_object_and_pixels_are_samples(images):
    coil = Coil20(images=images / 255)
    silos = coil_silos(coil, [7, 0, 19, 3])
    assert list(silos.signals) == ["view1", "view2", "view3"]
    assert all(values.shape == (1024, 48) for values in silos.signals.values())
    assert np.array_equal(silos.signals["view2"][:, 0], coil.images[7, 12])
    assert np.array_equal(silos.signals["view3"][:, 12 + 5], coil.images[0, 24 + 5])
    assert silos.labels.tolist() == [7] * 12 + [0] * 12 + [19] * 12 + [3] * 12
    assert silos.names[12 + 5] == "object0_pose5"
    assert len(set(silos.names)) == 48


def test_views_of_other_sizes_do_not_overlap(images):
    silos = coil_silos(Coil20(images=images / 255), range(20), n_poses=18, n_views=4)
    assert np.array_equal(np.hstack([silos.signals[f"view{view}"][:, :18] for view in (1, 2, 3, 4)]).T, images[0] / 255)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objects": [0, 20]}, "objects: expected numbers from 0 to 19, got 20"),
        ({"objects": [0, -1]}, "objects: expected a whole number ≥ 0, got -1"),
        ({"objects": [0, 0]}, r"objects: expected different objects, got \[0, 0\]"),
        ({"objects": []}, "objects: expected different objects"),
        ({"objects": [0], "n_poses": 30}, "expected 72 poses at most, got 3 views of 30"),
        ({"objects": [0], "n_views": 0}, "n_views: expected a whole number ≥ 1"),
    ],
)
def test_views_that_do_not_exist_are_refused(images, arguments, message):
    with pytest.raises(ParameterError, match=message):
        coil_silos(Coil20(images=images), **arguments)


def test_a_missing_or_broken_image_is_named(images, tmp_path):
    folder = write(images, "32", tmp_path)
    (folder / "obj4__9.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"obj4__9\.png: expected an image.*Unpack"):
        load_coil20(folder)
    Image.fromarray(np.zeros((48, 32), dtype=np.uint8)).save(folder / "obj4__9.png")
    with pytest.raises(DataError, match=r"obj4__9\.png: expected 32 × 32 or 128 × 128 pixels, got 48 × 32"):
        load_coil20(folder)
    (folder / "obj4__9.png").unlink()
    with pytest.raises(DataError, match=r"obj4__9\.png is missing \(1439 are there\)"):
        load_coil20(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": np.zeros(3)}, r"coil20\.npz: expected an array 'X_f32' or 'X_u8', got X\."),
        ({"X_f32": np.zeros((20, 72, 1023))}, "X_f32: expected 20 × 72 × 1024 numbers, got 20 × 72 × 1023"),
        ({"X_f32": np.full((20, 72, 1024), -1.0)}, "expected grey values from 0 to 1 or 255, got -1 to -1"),
        ({"X_f32": np.full((20, 72, 1024), np.nan)}, r"X_f32\[0, 0, 0\]: expected a finite number, got nan"),
        ({"X_f32": np.full((20, 72, 1024), "a")}, "expected 20 × 72 × 1024 numbers, got .* of type <U1"),
    ],
)
def test_an_npz_file_with_something_else_is_refused(content, message, tmp_path):
    np.savez(tmp_path / "coil20.npz", **content)
    with pytest.raises(DataError, match=message):
        load_coil20(tmp_path / "coil20.npz")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"fea": np.zeros((1440, 1024))}, r"expected a \.mat file with 'fea' and 'gnd'.*gnd"),
        ({"fea": np.zeros((9, 1024)), "gnd": np.ones((9, 1))}, "fea: expected 1440 × 1024 numbers, got 9 × 1024"),
        ({"fea": np.zeros((1440, 1024)), "gnd": np.ones((1440, 1))}, "gnd: expected each object from 1 to 20 72 times"),
    ],
)
def test_a_mat_file_with_something_else_is_refused(content, message, tmp_path):
    savemat(tmp_path / "COIL20.mat", content)
    with pytest.raises(DataError, match=message):
        load_coil20(tmp_path / "COIL20.mat")


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "coil.mat").write_bytes(b"not a MATLAB file")
    with pytest.raises(DataError, match=r"coil\.mat: expected a \.mat file"):
        load_coil20(tmp_path / "coil.mat")
    (tmp_path / "coil.zip").write_bytes(b"")
    with pytest.raises(DataError, match=r"expected \.npz, \.mat or a folder of images, got '\.zip'"):
        load_coil20(tmp_path / "coil.zip")
