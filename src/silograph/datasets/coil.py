"""COIL-20: 20 objects on a turntable, photographed every 5°, and silos of views from it.

Three formats are read, into the same numbers: an .npz file, Deng Cai's COIL20.mat, and the published folder of images.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.checks import check_whole
from silograph._util.extras import required
from silograph._util.types import Matrix
from silograph.datasets.archives import ANEW, numbers, read_npz
from silograph.datasets.locate import COIL20, locate
from silograph.errors import DataError, ParameterError

N_OBJECTS, N_POSES, SIDE = 20, 72, 32
SHAPE = (N_OBJECTS, N_POSES, SIDE * SIDE)
FILE_NAME = re.compile(r"obj(\d+)__(\d+)\.png")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coil20:
    """The images: (20 objects, 72 poses, 1024 pixels) from 0 to 1; pixels run down the columns of a 32 × 32 image."""

    images: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoilSilos:
    """Views of some objects: each view a silo, each image a node, each pixel a sample."""

    signals: dict[str, Matrix]  # view -> (1024 pixels, nodes)
    labels: NDArray[np.int64]  # each node's object
    names: tuple[str, ...]  # of the nodes


def load_coil20(path: str | Path | None = None) -> Coil20:
    """Read COIL-20 from an .npz or .mat file or a folder of images (default: from the folder `$SILOGRAPH_DATA`).

    An .npz file has the array `X_f32` (0 to 1) or `X_u8` (0 to 255), (20, 72, 1024). A .mat file has `fea` (1440, 1024)
    and `gnd`. Images are called `obj1__0.png` to `obj20__71.png`; those of 128 × 128 pixels are shrunk by taking the
    mean of each 4 × 4 block, which is how `X_f32` was made.
    """
    place = locate(COIL20, path)
    if place.is_dir():
        return Coil20(images=_from_folder(place))
    readers = {".npz": _from_npz, ".mat": _from_mat}
    reader = readers.get(place.suffix.lower())
    if reader is None:
        raise DataError(f"{place}: expected .npz, .mat or a folder of images, got {place.suffix or 'no suffix'!r}.")
    return Coil20(images=reader(place))


def coil_silos(coil: Coil20, objects: Sequence[int], n_poses: int = 12, n_views: int = 3) -> CoilSilos:
    """Silos of `n_views` views: view v has the poses v·n_poses, v·n_poses + 1, … of each object.

    Objects are numbered from 0, as in `coil.images` (`obj1` of the files is 0). A node is an object and a place in the
    view, so that all views have the same nodes: the paper's 3 silos of 1024 samples on 48 nodes, for four objects.
    """
    chosen = [_check_object(number) for number in objects]
    if not chosen or len(set(chosen)) != len(chosen):
        raise ParameterError(f"objects: expected different objects, got {list(objects)!r}. Name each one once.")
    check_whole("n_poses", n_poses, least=1)
    check_whole("n_views", n_views, least=1)
    if n_poses * n_views > N_POSES:
        raise ParameterError(
            f"n_poses, n_views: expected {N_POSES} poses at most, got {n_views} views of {n_poses}. Lower one of them."
        )
    signals = {}
    for view in range(n_views):
        poses = slice(view * n_poses, (view + 1) * n_poses)
        signals[f"view{view + 1}"] = np.ascontiguousarray(coil.images[chosen, poses].reshape(-1, SIDE * SIDE).T)
    names = tuple(f"object{number}_pose{pose}" for number in chosen for pose in range(n_poses))
    return CoilSilos(signals=signals, labels=np.repeat(np.array(chosen, dtype=np.int64), n_poses), names=names)


def _check_object(number: Any) -> int:
    check_whole("objects", number, least=0)
    if number >= N_OBJECTS:
        raise ParameterError(f"objects: expected numbers from 0 to {N_OBJECTS - 1}, got {number}.")
    return int(number)


def _from_npz(path: Path) -> Matrix:
    arrays = read_npz(path, ())
    key = next((name for name in ("X_f32", "X_u8") if name in arrays), None)
    if key is None:
        raise DataError(f"{path}: expected an array 'X_f32' or 'X_u8', got {', '.join(arrays) or 'none'}. {ANEW}")
    return _unit(numbers(arrays[key], SHAPE, what=f"{path}, {key}"), what=f"{path}, {key}")


def _from_mat(path: Path) -> Matrix:
    from scipy.io import loadmat  # a third of a second to import, for those who have such a file

    try:
        content = loadmat(path, variable_names=["fea", "gnd"])
        features, objects = np.asarray(content["fea"]), np.ravel(content["gnd"])
    except Exception as error:  # SciPy raises whatever its parsers meet
        raise DataError(
            f"{path}: expected a .mat file with 'fea' and 'gnd', but reading failed ({error}). {ANEW}"
        ) from error
    values = numbers(features, (N_OBJECTS * N_POSES, SIDE * SIDE), what=f"{path}, fea")
    if not np.array_equal(np.sort(objects), np.repeat(np.arange(1, N_OBJECTS + 1), N_POSES)):
        raise DataError(f"{path}, gnd: expected each object from 1 to {N_OBJECTS} {N_POSES} times, got others. {ANEW}")
    return _unit(values[np.argsort(objects, kind="stable")].reshape(SHAPE), what=f"{path}, fea")


def _from_folder(folder: Path) -> Matrix:
    image = required("PIL.Image", extra="images", purpose="to read images")
    found = {
        tuple(map(int, match.groups())): file for file in folder.iterdir() if (match := FILE_NAME.fullmatch(file.name))
    }
    out = np.empty(SHAPE)
    for number in range(N_OBJECTS):
        for pose in range(N_POSES):
            file = found.get((number + 1, pose))
            if file is None:
                raise DataError(
                    f"{folder}: expected obj1__0.png to obj{N_OBJECTS}__{N_POSES - 1}.png, "
                    f"but obj{number + 1}__{pose}.png is missing ({len(found)} are there). Unpack the archive again."
                )
            out[number, pose] = _shrink(_pixels(image, file), file)
    return out / 255


def _pixels(image: Any, file: Path) -> Matrix:
    try:
        with image.open(file) as picture:
            return np.asarray(picture.convert("L"), dtype=np.float64)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(
            f"{file}: expected an image, but reading it failed ({error}). Unpack the archive again."
        ) from error


def _shrink(pixels: Matrix, file: Path) -> Matrix:
    """32 × 32 pixels, column by column."""
    height, width = pixels.shape
    if height != width or height % SIDE:
        raise DataError(
            f"{file}: expected 32 × 32 or 128 × 128 pixels, got {height} × {width}. Fetch 'processed' images."
        )
    block = height // SIDE
    small: Matrix = pixels.reshape(SIDE, block, SIDE, block).mean(axis=(1, 3))
    return small.ravel(order="F")


def _unit(values: Matrix, *, what: str) -> Matrix:
    """From 0 to 1, whether stored so or as 0 to 255."""
    if values.min() < 0 or values.max() > 255:
        raise DataError(
            f"{what}: expected grey values from 0 to 1 or 255, got {values.min():g} to {values.max():g}. {ANEW}"
        )
    return values / 255 if values.max() > 1 else values
