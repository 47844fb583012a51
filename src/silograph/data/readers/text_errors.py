"""Find what is wrong in a text table: a slow, careful second reading that names the line and the column."""

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from silograph.data.readers.checks import NO_GUESS
from silograph.errors import SignalError

if TYPE_CHECKING:
    from silograph.data.readers.text import Layout


def explain(layout: "Layout", error: Exception) -> NoReturn:
    """Raise a `SignalError` for the first row that is wrong; `error` is what the fast reader said."""
    source = layout.path.name
    for number, (line, cells) in enumerate(_records(layout)):
        if len(cells) != layout.n_columns:
            raise SignalError(
                f"{source}, row {line}: expected {layout.n_columns} values, got {len(cells)}. "
                "Mend the row: every row needs one value per column."
            ) from error
        for column, name in zip(layout.keep, layout.names, strict=True):
            problem = _problem(cells[column], layout.decimal)
            if problem:
                # Text from the first row on is a column of labels, not a gap in a column of numbers
                cure = NO_GUESS if number else f"If {name!r} is not a node, drop the column (drop=, or --drop)."
                raise SignalError(
                    f"{source}, row {line}, column {name!r}: expected a finite number, got {problem}.\n{cure}"
                ) from error
    raise SignalError(f"{source}: the table cannot be read ({error}). Check how it was written.") from error


def _problem(cell: str, decimal: str) -> str | None:
    """What came instead of a finite number, or None."""
    if not cell:
        return "an empty cell"
    try:
        value = float(cell.replace(decimal, "."))
    except ValueError:
        return repr(cell)
    if "_" in cell:  # Python's float takes it, no table means it
        return repr(cell)
    return None if np.isfinite(value) else repr(cell)


def _records(layout: "Layout") -> Iterator[tuple[int, list[str]]]:
    with layout.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
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
