"""What a reader of a file format hands over."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from silograph._util.types import Matrix
from silograph.errors import SignalError

CHUNK_VALUES = 2**20  # numbers per chunk: 8 MB, well below what a machine has and well above what a chunk costs


class UnknownColumnError(SignalError):
    """A column to be dropped is not there."""

    def __init__(self, column: str, source: str) -> None:
        super().__init__(f"{source}: no column is called {column!r}, so it cannot be dropped. Check the name.")
        self.column = column


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Node names, and a way to read the values in chunks, each with the part of the file read so far."""

    names: tuple[str, ...]
    chunks: Callable[[], Iterator[tuple[Matrix, float]]]
    first_row: int = 1  # what the first sample's row is called in an error


def rows_per_chunk(n_columns: int) -> int:
    """As many rows as make a chunk."""
    return max(1, CHUNK_VALUES // max(1, n_columns))


def kept_columns(names: Sequence[str], drop: Sequence[str], *, source: str) -> list[int]:
    """The numbers of the columns that stay when those named in `drop` go."""
    for name in drop:
        if name not in names:
            raise UnknownColumnError(name, source)
    return [column for column, name in enumerate(names) if name not in drop]


def refuse_key(path: Path, key: str | None) -> None:
    """Only an .npz file has arrays to choose from."""
    if key is not None:
        raise SignalError(f"{path.name}: a key ({key!r}) chooses an array of an .npz file. Leave it out.")
