"""NumPy's own files: .npy, mapped into memory and so of any size, and .npz."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.naming import setting
from silograph.data.readers.source import Chunk, Source, Wanted, refuse_key, rows_per_chunk
from silograph.errors import SignalError
from silograph.graph.pairs import default_names


def open_npy(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """An array (samples, nodes); its nodes are numbered."""
    refuse_key(path, key)
    del header
    return _source(lambda: _load(path, mmap_mode="r"), None, wanted, path.name)


def open_npz(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """The array `key`, or 'X', or the only matrix of numbers; 'names', where there is one, names the nodes."""
    del header
    archive = _load(path)
    if key is None:
        matrices = [name for name in archive.files if archive[name].ndim == 2 and archive[name].dtype.kind in "fiu"]
        key = "X" if "X" in archive.files else matrices[0] if len(matrices) == 1 else None
    if key is None or key not in archive.files:
        raise SignalError(
            f"{path.name}: expected an array {'X' if key is None else key!r} of signals, "
            f"got {', '.join(repr(name) for name in archive.files) or 'none'}. Say which one with {setting('key')}."
        )
    names = archive["names"] if "names" in archive.files else None
    return _source(lambda: _load(path)[key], names, wanted, f"{path.name}, array {key!r}")


def _load(path: Path, **options: Any) -> Any:
    try:
        return np.load(path, allow_pickle=False, **options)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise SignalError(
            f"{path.name}: not a NumPy file of numbers. Write it with numpy.save or numpy.savez."
        ) from error


def _source(read: Callable[[], NDArray[Any]], names: NDArray[Any] | None, wanted: Wanted, source: str) -> Source:
    """The array is let go until its values are wanted: a process may open only so many files."""
    shape, dtype = (lambda values: (values.shape, values.dtype))(read())
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise SignalError(
            f"{source}: expected a matrix (samples, nodes) of numbers, got shape {shape} of {dtype}. "
            "Give one matrix, rows being samples."
        )
    labels = default_names(shape[1]) if names is None else tuple(str(name) for name in np.ravel(names))
    if len(labels) != shape[1]:
        raise SignalError(f"{source}: expected {shape[1]} names, one per column, got {len(labels)}.")
    keep, flag = wanted.choose(labels, source=source)
    whole = len(keep) == len(labels)

    def chunks() -> Iterator[Chunk]:
        values, rows = read(), rows_per_chunk(shape[1])
        for start in range(0, values.shape[0], rows):
            part = np.asarray(values[start : start + rows])
            done = min(1.0, (start + rows) / values.shape[0])
            yield Chunk(part if whole else part[:, keep], done, None if flag is None else part[:, flag])

    return Source(tuple(labels[column] for column in keep), chunks)
