"""What a reader of a file format hands over, and which columns of a table it is to hand over."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from silograph._util.naming import setting
from silograph._util.types import Matrix
from silograph.errors import SignalError

CHUNK_VALUES = 2**20  # numbers per chunk: 8 MB, well below what a machine has and well above what a chunk costs


class UnknownColumnError(SignalError):
    """A column to be dropped is not there."""

    def __init__(self, column: str, source: str) -> None:
        super().__init__(f"{source}: no column is called {column!r}, so it cannot be dropped. Check the name.")
        self.column = column


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some rows of a table."""

    values: Matrix
    part: float  # of the file that has been read so far
    flags: NDArray[Any] | None = None  # the cells of the column that says which rows count


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Node names, and a way to read the values in chunks."""

    names: tuple[str, ...]
    chunks: Callable[[], Iterator[Chunk]]
    first_row: int = 1  # what the first sample's row is called in an error
    find: Callable[[int, int], tuple[int, str]] | None = None  # row and text of a sample's cell at a node, for an error
    labels: Callable[[], list[str]] | None = None  # the first cell of each row, for an error


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns are no nodes: those to drop, by name or pattern, and the one that says which rows count."""

    drop: tuple[str, ...] = ()
    keep_rows: str | None = None

    def choose(self, names: Sequence[str], *, source: str) -> tuple[list[int], int | None]:
        """The numbers of the nodes' columns, and that of the column of flags."""
        gone = {column for one in self.drop for column in dropped_by(one, names, source=source)}
        if self.keep_rows is not None:
            if self.keep_rows not in names:
                raise SignalError(
                    f"{source}: no column is called {self.keep_rows!r}, so it cannot say which rows to keep "
                    f"({setting('keep_rows')}). Check the name."
                )
            gone.add(names.index(self.keep_rows))
        flag = None if self.keep_rows is None else names.index(self.keep_rows)
        return [column for column in range(len(names)) if column not in gone], flag


def rows_per_chunk(n_columns: int) -> int:
    """As many rows as make a chunk."""
    return max(1, CHUNK_VALUES // max(1, n_columns))


def dropped_by(one: str, names: Sequence[str], *, source: str) -> list[int]:
    """The columns that a name, or else a pattern such as 'global_*', drops; raises if there are none."""
    found = [column for column, name in enumerate(names) if name == one]
    found = found or [column for column, name in enumerate(names) if fnmatchcase(name, one)]
    if not found:
        raise UnknownColumnError(one, source)
    return found


def refuse_key(path: Path, key: str | None) -> None:
    """Only some formats have something to choose from."""
    if key is not None:
        raise SignalError(
            f"{path.name}: a key ({key!r}) chooses an array of an .npz file or a sheet of an .xlsx file. Leave it out."
        )
