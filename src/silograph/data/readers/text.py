"""Tables in text: CSV, TSV and AFNI/PCP .1D, read by pandas and, when something is wrong, once more to say where.

Rows are called by their line in the file, as an editor counts them.
"""

import csv
import gzip
import threading
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.extras import required
from silograph._util.types import Matrix
from silograph.data.readers.checks import GAPS
from silograph.data.readers.source import Chunk, Source, Wanted, refuse_key, rows_per_chunk
from silograph.data.readers.text_errors import cell_of, explain, fault_of, labels_of, open_text, unpacked
from silograph.errors import SignalError
from silograph.graph.pairs import default_names

BAD_GZIP = "the packed file is damaged or cut off. Copy it once more"
ONE_AT_A_TIME = threading.Lock()  # `catch_warnings` is one for all threads: the last to leave may put back another's


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text table is written."""

    path: Path
    names: tuple[str, ...]  # of the kept columns
    keep: tuple[int, ...]  # their numbers in the file
    flag: int | None  # the number of the column that says which rows count
    n_columns: int  # of the file
    first_line: int  # of the values, counted from 1
    delimiter: str | None  # None: white space
    decimal: str = "."
    comment: str | None = None


def open_delimited(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """A CSV or TSV file, with a header of node names or without; lines that start with '#' may come first.

    The delimiter of a .csv file is a comma, a semicolon or a tab, whichever its first line has most of; with semicolons
    the decimal sign may be a comma. A first column without a name holds row labels and is left out.
    """
    refuse_key(path, key)
    first, rest, first_line = _beginning(path)
    delimiter = "\t" if ".tsv" in path.name.lower()[-7:] else max(",;\t", key=first.count)
    head, body = _cells(first, delimiter, path), _cells(rest.lstrip().partition("\n")[0], delimiter, path)
    # Where commas are free to be decimal signs, they are unless a point is seen
    decimal = "," if delimiter == ";" and "." not in rest else "."
    named = is_header(head, body, decimal) if header is None else header
    if named and len(body) == len(head) + 1:  # R's write.table leaves the labels' column out of the header
        head = ["", *head]
    labels = tuple(head) if named else default_names(len(head))
    unnamed = named and len(head) > 1 and not head[0]
    keep, flag = wanted.choose(labels, source=path.name)
    keep = [column for column in keep if not (unnamed and column == 0)]
    return _source(
        Layout(
            path=path,
            names=tuple(labels[column] for column in keep),
            keep=tuple(keep),
            flag=flag,
            n_columns=len(head),
            first_line=first_line + named,
            delimiter=delimiter,
            decimal=decimal,
        )
    )


def open_1d(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """An AFNI .1D file: white space between numbers, '#' before comments; '#2001 #2002 …' (PCP) names the nodes."""
    refuse_key(path, key)
    del header  # names come after '#', so that there is nothing to tell apart
    labels: tuple[str, ...] = ()
    with _open_text(path) as file:
        for line in file:
            words = line.split()
            if line.startswith("#"):
                labels = tuple(word.lstrip("#") for word in words if word != "#")
            elif words:
                n_columns = len(words)
                break
        else:
            raise SignalError(f"{path.name}: expected rows of numbers, got comments only. Check how it was written.")
    if len(labels) != n_columns:  # a comment, not a line of names
        labels = default_names(n_columns)
    keep, flag = wanted.choose(labels, source=path.name)
    return _source(
        Layout(
            path=path,
            names=tuple(labels[column] for column in keep),
            keep=tuple(keep),
            flag=flag,
            n_columns=n_columns,
            first_line=1,
            delimiter=None,
            comment="#",
        )
    )


def is_header(head: Sequence[str], body: Sequence[str] = (), decimal: str = ".") -> bool:
    """Whether a first row holds names.

    It does when there is a word in it; when it is 0, 1, 2, …, as pandas numbers columns; and when its cells are
    different whole numbers, as those of an atlas, while the row below is mostly fractions.
    """
    if any(cell not in GAPS and not _is_number(cell, decimal) for cell in head):
        return True
    rest = list(head[1:] if head and not head[0] else head)
    if len(rest) > 2 and rest == [str(column) for column in range(len(rest))]:
        return True
    labels = all(cell.isdecimal() for cell in rest) and len(set(rest)) == len(rest) > 1
    return labels and sum(decimal in cell for cell in body) > len(body) / 2


def _source(layout: Layout) -> Source:
    return Source(
        layout.names,
        lambda: _chunks(layout),
        first_row=layout.first_line,
        find=lambda sample, node: cell_of(layout, sample, layout.keep[node]),
        labels=lambda: labels_of(layout),
    )


def _chunks(layout: Layout) -> Iterator[Chunk]:
    pandas = required("pandas", extra="files", purpose="to read text tables")
    size = layout.path.stat().st_size
    # One column more than the file should have: whatever lands in it makes its row too long
    columns = range(layout.n_columns + 1)
    kept = set(layout.keep) | {layout.n_columns}
    with layout.path.open("rb") as file, unpacked(file, layout.path) as content:
        try:
            reader = pandas.read_csv(
                content,
                header=None,
                names=columns,
                index_col=False,
                skiprows=layout.first_line - 1,
                sep=r"\s+" if layout.delimiter is None else layout.delimiter,
                comment=layout.comment,
                decimal=layout.decimal,
                dtype={column: np.float64 if column in kept else str for column in columns},
                na_values={column: [""] if column == layout.n_columns else list(GAPS) for column in columns},
                keep_default_na=False,
                chunksize=rows_per_chunk(layout.n_columns),
                skipinitialspace=True,
                encoding="utf-8-sig",
            )
            lengths_known = False
            while (frame := _next_frame(reader)) is not None:
                if frame[layout.n_columns].notna().any():
                    raise ValueError("a row is too long")
                # A row that is too short ends with gaps, just as one whose last cells are empty
                if not lengths_known and frame[layout.n_columns - 1].isna().any():
                    if fault_of(layout) is not None:
                        raise ValueError("a row is too short")
                    lengths_known = True
                flags = None if layout.flag is None else frame[layout.flag].to_numpy(dtype=object)
                yield Chunk(_values(frame, layout), file.tell() / size, flags)
        except pandas.errors.EmptyDataError:
            return
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SignalError(f"{layout.path.name}: {BAD_GZIP} ({error}).") from error
        except (ValueError, pandas.errors.ParserWarning) as error:  # pandas' ParserError is a ValueError
            explain(layout, error)


def _next_frame(reader: Any) -> Any:
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("error")  # pandas warns, and goes on, where it loses cells of a long row
        return next(reader, None)


def _values(frame: Any, layout: Layout) -> Matrix:
    whole = len(layout.keep) == layout.n_columns
    values: Matrix = frame.to_numpy()[:, :-1] if whole else frame[list(layout.keep)].to_numpy(dtype=np.float64)
    return values


def _beginning(path: Path) -> tuple[str, str, int]:
    """The first line that is not blank, some text after it, and that line's number."""
    try:
        with _open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip() and not line.startswith("#"):
                    return line, file.read(2**16), number
    except UnicodeDecodeError as error:
        raise SignalError(f"{path.name}: expected UTF-8 text, got {error.reason}. Save the table as UTF-8.") from error
    raise SignalError(f"{path.name}: the file has blank lines or comments only. Check how it was written.")


def _open_text(path: Path) -> Any:
    with path.open("rb") as file, unpacked(file, path) as content:
        try:
            head = content.read(4096)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SignalError(f"{path.name}: {BAD_GZIP} ({error}).") from error
    if head.startswith(b"PK\x03\x04"):
        raise SignalError(f"{path.name}: this is a zip or Excel file. Call it .xlsx, or export the sheet as CSV.")
    if b"\0" in head:
        raise SignalError(f"{path.name}: this is a binary file or not UTF-8. Save the table as UTF-8 text.")
    return open_text(path)


def _cells(line: str, delimiter: str, path: Path) -> list[str]:
    if line.count('"') % 2:
        raise SignalError(f"{path.name}: expected node names without line breaks. Rename the columns.")
    cells = [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])]
    return cells[:-1] if len(cells) > 1 and not cells[-1] else cells  # a delimiter at the end of the line


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
