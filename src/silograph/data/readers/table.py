"""One table of signals on disk: opened by its suffix, read in chunks, checked as it is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from silograph._util.types import Matrix
from silograph.data.readers import arrays, parquet, text
from silograph.data.readers.checks import check_finite, check_names, check_table
from silograph.data.readers.source import Source
from silograph.errors import SignalError

READERS: dict[str, Callable[..., Source]] = {
    ".csv": text.open_delimited,
    ".tsv": text.open_delimited,
    ".1d": text.open_1d,
    ".npy": arrays.open_npy,
    ".npz": arrays.open_npz,
    ".parquet": parquet.open_parquet,
}
SUFFIXES = tuple(READERS)


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """A table (samples, nodes) with named nodes, that is read as often as `chunks` is called."""

    path: Path
    names: tuple[str, ...]
    _source: Source

    @property
    def n_nodes(self) -> int:
        """The number of nodes, that is, columns."""
        return len(self.names)

    def chunks(self, on_progress: Callable[[float], None] = lambda part: None) -> Iterator[Matrix]:
        """The samples, a few thousand rows at a time; `on_progress` is told the part of the file read so far."""
        n_samples = 0
        for values, part in self._source.chunks():
            check_finite(values, self.names, source=self.path.name, first_row=self._source.first_row + n_samples)
            n_samples += values.shape[0]
            yield values
            on_progress(part)
        check_table(n_samples, self.n_nodes, source=self.path.name)


def open_signals(
    path: str | Path, *, drop: Sequence[str] = (), key: str | None = None, header: bool | None = None
) -> Signals:
    """Open a table of signals: CSV, TSV, AFNI/PCP .1D, .npy, .npz or Parquet; rows are samples, columns are nodes.

    Parameters
    ----------
    path : str or Path
        The file; its suffix says the format.
    drop : sequence of str
        Names of columns that are not nodes, such as a time stamp.
    key : str, optional
        Which array of an .npz file holds the signals (default: 'X', or the only matrix).
    header : bool, optional
        Whether the first row of a CSV or TSV file names the nodes (default: found out from the row).
    """
    path = Path(path)
    if path.is_dir():
        raise SignalError(f"{path}: expected a file, got a folder. Name the table inside it.")
    if not path.exists():
        raise SignalError(f"{path}: no such file. Check the path.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise SignalError(
            f"{path.name}: expected one of {', '.join(SUFFIXES)}, got {path.suffix or 'no suffix'!r}. "
            "Unpack or convert it first."
        )
    try:
        if path.stat().st_size == 0:
            raise SignalError(f"{path.name}: the file is empty. Check how it was written.")
        source = reader(path, drop=tuple(drop), key=key, header=header)
    except PermissionError as error:
        raise SignalError(f"{path}: the file cannot be read ({error.strerror}). Check its permissions.") from error
    check_names(source.names, source=path.name)
    check_table(2, len(source.names), source=path.name)
    return Signals(path, source.names, source)
