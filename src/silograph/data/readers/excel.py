"""Excel sheets through pandas and openpyxl (the extra `excel`)."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.extras import required
from silograph._util.naming import setting
from silograph.data.readers.checks import GAPS, mend
from silograph.data.readers.source import Chunk, Source, Wanted
from silograph.data.readers.text import is_header
from silograph.errors import SignalError
from silograph.graph.pairs import default_names

PURPOSE = "to read Excel files"


def open_excel(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """The first sheet, or the one that `key` names; a first column without a name holds row labels and is left out."""
    head, body = (_row(row) for row in [*_sheet(path, key, n_rows=2), (), ()][:2])
    if not head:
        raise SignalError(f"{path.name}: the sheet is empty. Say which one with {setting('key')}.")
    named = is_header(head, body) if header is None else header
    labels = tuple(head) if named else default_names(len(head))
    keep, flag = wanted.choose(labels, source=path.name)
    keep = [column for column in keep if not (named and len(head) > 1 and not head[0] and column == 0)]
    names = tuple(labels[column] for column in keep)

    def chunks() -> Iterator[Chunk]:
        cells = _sheet(path, key)[int(named) :]
        values = np.empty((len(cells), len(keep)))
        for sample, row in enumerate(cells):
            for place, column in enumerate(keep):
                where = f"{path.name}, row {sample + 1 + named}, column {names[place]!r}"
                values[sample, place] = _number(row[column], where, names[place])
        yield Chunk(values, 1.0, None if flag is None else np.array([row[flag] for row in cells], dtype=object))

    return Source(names, chunks, first_row=1 + named)


def _sheet(path: Path, key: str | None, n_rows: int | None = None) -> list[tuple[Any, ...]]:
    """The sheet's rows, as far as there is anything in them."""
    pandas = required("pandas", extra="excel", purpose=PURPOSE)
    required("openpyxl", extra="excel", purpose=PURPOSE)
    try:
        frame = pandas.read_excel(
            path, sheet_name=0 if key is None else key, header=None, nrows=n_rows, dtype=object, engine="openpyxl",
            na_values=[], keep_default_na=False,
        )  # fmt: skip
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise SignalError(f"{path.name}: not an Excel file (.xlsx). Check how it was written.") from error
    except ValueError as error:  # pandas' word for a sheet that is not there
        raise SignalError(f"{path.name}: {error}. Say which sheet holds the signals with {setting('key')}.") from error
    return list(frame.itertuples(index=False, name=None))


def _row(cells: tuple[Any, ...]) -> list[str]:
    return [str(cell).strip() for cell in cells]


def _number(cell: object, where: str, name: str) -> float:
    if str(cell).strip() in GAPS:
        return np.nan
    try:
        if isinstance(cell, bool):
            raise ValueError(cell)
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SignalError(f"{where}: expected a finite number, got {str(cell)!r}.\n{mend(name)}") from None
