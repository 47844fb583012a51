"""Arrays of a published data set, read without running anything that a file may hold, and checked."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.types import Matrix
from silograph.errors import DataError

Arrays = dict[str, NDArray[Any]]
ANEW = "Fetch or write the file anew."


def read_npz(path: Path, needed: Sequence[str]) -> Arrays:
    """Every array of an .npz file, which must have the needed ones."""
    try:
        with path.open("rb") as file:  # NumPy may leave a damaged file open
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in archive.files}  # an .npy file has no .files
    except (
        ValueError,
        OSError,
        EOFError,
        AttributeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DataError(
            f"{path}: expected an .npz file of plain arrays, but reading it failed ({error}). {ANEW} "
            "Pickled arrays are refused, as reading them can run code."
        ) from error
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: expected the arrays {', '.join(map(repr, needed))}, "
            f"got {', '.join(map(repr, arrays)) or 'none'}. {ANEW}"
        )
    return arrays


def numbers(values: NDArray[Any], shape: tuple[int | None, ...], *, what: str) -> Matrix:
    """The values as finite numbers of that shape, where None stands for any length above 0."""
    fits = values.ndim == len(shape) and all(
        length > 0 if wanted is None else length == wanted for length, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits or values.dtype.kind not in "fiu":
        wanted = " × ".join("any" if length is None else str(length) for length in shape)
        raise DataError(
            f"{what}: expected {wanted} numbers, "
            f"got {' × '.join(map(str, values.shape)) or 'one value'} of type {values.dtype}. {ANEW}"
        )
    out: Matrix = values.astype(np.float64)
    if not np.isfinite(out).all():
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(out))[0])
        raise DataError(f"{what}{list(place)}: expected a finite number, got {out[place]}. {ANEW}")
    return out
