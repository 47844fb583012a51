"""One table of signals on disk: opened by its suffix, read in chunks, checked as it is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.types import BoolVector, Matrix
from silograph.data.readers import arrays, arrow, excel, text
from silograph.data.readers.checks import check_finite, check_names, check_table, plain_cell
from silograph.data.readers.flags import kept_rows
from silograph.data.readers.source import Chunk, Source, Wanted
from silograph.errors import SignalError

READERS: dict[str, Callable[..., Source]] = {
    ".csv": text.open_delimited,
    ".tsv": text.open_delimited,
    ".1d": text.open_1d,
    ".csv.gz": text.open_delimited,
    ".tsv.gz": text.open_delimited,
    ".1d.gz": text.open_1d,
    ".npy": arrays.open_npy,
    ".npz": arrays.open_npz,
    ".parquet": arrow.open_parquet,
    ".feather": arrow.open_feather,
    ".xlsx": excel.open_excel,
}
SUFFIXES = tuple(READERS)
SUFFIXES_SHOWN = ", ".join(SUFFIXES).replace(".1d", ".1D")  # as AFNI writes it; read in capitals or not


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, both of 'x.csv.gz', in small letters."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """A table (samples, nodes) with named nodes, that is read as often as `chunks` is called."""

    path: Path
    names: tuple[str, ...]
    _source: Source
    _wanted: Wanted

    @property
    def n_nodes(self) -> int:
        """The number of nodes, that is, columns."""
        return len(self.names)

    def chunks(
        self,
        on_progress: Callable[[float], None] = lambda part: None,
        *,
        gaps: bool | BoolVector = False,
        on_flagged: Callable[[int], None] = lambda n_rows: None,
    ) -> Iterator[Matrix]:
        """The samples, a few thousand rows at a time; `on_progress` is told the part of the file read so far.

        Gaps are NaN where there may be `gaps`, anywhere or in some columns, and else an error. `on_flagged` is told how
        many rows the column of flags dropped.
        """
        n_rows, n_samples = 0, 0
        for chunk in self._source.chunks():
            values = self._checked(chunk, n_rows, gaps)
            n_rows += chunk.values.shape[0]
            n_samples += values.shape[0]
            yield values
            on_progress(chunk.part)
        on_flagged(n_rows - n_samples)
        if n_samples < 2 <= n_rows:
            raise SignalError(
                f"{self.path.name}: expected at least 2 samples (rows) that column {self._wanted.keep_rows!r} keeps, "
                f"got {n_samples} of {n_rows}. Check what the column says."
            )
        check_table(n_samples, self.n_nodes, source=self.path.name)

    def empty(self) -> BoolVector:
        """Which columns hold no value at all."""
        empty = np.ones(self.n_nodes, dtype=np.bool_)
        for values in self.chunks(gaps=True):
            empty &= np.isnan(values).all(axis=0)
            if not empty.any():
                break
        return empty

    def flags(self) -> Iterator[NDArray[Any]]:
        """The cells of the column that is to say which rows count, as they are."""
        return (chunk.flags for chunk in self._source.chunks() if chunk.flags is not None)

    def row_labels(self) -> list[str]:
        """What rows are called in their first cells, or nothing, for each row: to tell what is wrong with a table."""
        if self._source.labels is not None:
            return self._source.labels()
        return [""] * sum(chunk.values.shape[0] for chunk in self._source.chunks())

    def _checked(self, chunk: Chunk, n_before: int, gaps: bool | BoolVector) -> Matrix:
        def find(row: int, column: int) -> tuple[int, str]:
            """What a row and a cell are called in an error."""
            if self._source.find is not None:
                return self._source.find(n_before + row, column)
            return self._source.first_row + n_before + row, plain_cell(chunk.values[row, column])

        source, kept = self.path.name, None
        if chunk.flags is not None:
            column = self._wanted.keep_rows or ""
            kept = kept_rows(chunk.flags, column=column, source=source, row_name=lambda row: find(row, 0)[0])
        check_finite(chunk.values, self.names, source=source, gaps=gaps, kept=kept, find=find)
        return chunk.values if kept is None else chunk.values[kept]


def open_signals(
    path: str | Path,
    *,
    drop: Sequence[str] = (),
    key: str | None = None,
    header: bool | None = None,
    keep_rows: str | None = None,
) -> Signals:
    """Open a table of signals: CSV, TSV, AFNI/PCP .1D (also packed, .gz), .npy, .npz, Parquet, Feather or Excel.

    Rows are samples, columns are nodes.

    Parameters
    ----------
    path : str or Path
        The file; its suffix says the format.
    drop : sequence of str
        Names of columns that are not nodes, such as a time stamp, or patterns such as 'global_*'.
    key : str, optional
        Which array of an .npz file holds the signals (default: 'X', or the only matrix), or which sheet of an .xlsx
        file (default: the first).
    header : bool, optional
        Whether the first row of a CSV, TSV or Excel file names the nodes (default: found out from the row).
    keep_rows : str, optional
        A column, no node, that says which rows count: those where it is true, yes, or not 0.
    """
    path = Path(path)
    if path.is_dir():
        raise SignalError(f"{path}: expected a file, got a folder. Name the table inside it.")
    if not path.exists():
        raise SignalError(f"{path}: no such file. Check the path.")
    reader = READERS.get(suffix_of(path))
    if reader is None:
        raise SignalError(
            f"{path.name}: expected one of {SUFFIXES_SHOWN}, got {suffix_of(path) or 'no suffix'!r}. "
            "Unpack or convert it first."
        )
    try:
        if path.stat().st_size == 0:
            raise SignalError(f"{path.name}: the file is empty. Check how it was written.")
        wanted = Wanted(tuple(drop), keep_rows)
        source = reader(path, wanted=wanted, key=key, header=header)
    except PermissionError as error:
        raise SignalError(f"{path}: the file cannot be read ({error.strerror}). Check its permissions.") from error
    check_names(source.names, source=path.name)
    check_table(2, len(source.names), source=path.name)
    return Signals(path, source.names, source, wanted)
