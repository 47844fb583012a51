"""Find what is wrong in a text table: a slow, careful second reading that names the line and the column."""

import csv
import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from silograph.data.readers.checks import GAPS, mend, no_node
from silograph.errors import SignalError

if TYPE_CHECKING:
    from silograph.data.readers.text import Layout


def unpacked(file: BinaryIO, path: Path) -> Any:
    """The content of a file that was opened in bytes: that of a .gz file unpacked."""
    return gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file


def open_text(path: Path, *, errors: str = "strict") -> Any:
    """A file as text, unpacked."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return path.open(encoding="utf-8-sig", errors=errors, newline="")


def explain(layout: "Layout", error: Exception) -> NoReturn:
    """Raise a `SignalError` for the first row that is wrong; `error` is what the fast reader said."""
    fault = fault_of(layout) or f": the table cannot be read ({error}). Check how it was written."
    raise SignalError(layout.path.name + fault) from error


def fault_of(layout: "Layout") -> str | None:
    """What is wrong in the first row that no reading can mend, beginning with its place; gaps are no fault."""
    for number, (line, cells) in enumerate(_records(layout)):
        if len(cells) != layout.n_columns:
            return (
                f", row {line}: expected {layout.n_columns} values, got {len(cells)}. "
                "Mend the row: every row needs one value per column."
            )
        for column, name in zip(layout.keep, layout.names, strict=True):
            if not _is_readable(cells[column], layout.decimal):
                # Text from the first row on is a column of labels, not a slip in a column of numbers
                cure = mend(name) if number else no_node(name)
                got = repr(cells[column])
                return f", row {line}, column {name!r}: expected a finite number, got {got}.\n{cure}"
    return None


def cell_of(layout: "Layout", sample: int, column: int) -> tuple[int, str]:
    """The line that a sample stands in, and the text of its cell in some column of the file."""
    line, cells = next(islice(_records(layout), sample, None))
    return line, repr(cells[column]) if cells[column] else "an empty cell"


def labels_of(layout: "Layout") -> list[str]:
    """The first cell of each row."""
    return [cells[0] for _, cells in _records(layout)]


def _is_readable(cell: str, decimal: str) -> bool:
    if cell in GAPS:
        return True
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in cell  # Python's float takes it, no table means it


def _records(layout: "Layout") -> Iterator[tuple[int, list[str]]]:
    with open_text(layout.path, errors="replace") as file:
        for _ in range(layout.first_line - 1):
            next(file)
        if layout.delimiter is None:
            for line, text in enumerate(file, start=layout.first_line):
                cells = text.partition(layout.comment or "\n")[0].split()
                if cells:
                    yield line, cells
            return
        reader = csv.reader(file, delimiter=layout.delimiter, skipinitialspace=True)
        for record in reader:
            cells = [cell.strip() for cell in record]
            if len(cells) == layout.n_columns + 1 and not cells[-1]:
                cells.pop()
            if cells and cells != [""]:
                yield layout.first_line - 1 + reader.line_num, cells
