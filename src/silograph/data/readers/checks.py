"""What every table of signals must satisfy, whatever it was read from."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from silograph._util.types import Matrix
from silograph.errors import SignalError

NO_GUESS = "Drop the row, or fill it before learning: silograph does not guess missing values."


def check_names(names: Sequence[str], *, source: str) -> None:
    """Names must be there, printable and different, as graph files and tables are keyed by them."""
    for column, name in enumerate(names, start=1):
        if not name.strip():
            raise SignalError(f"{source}, column {column}: expected a node name, got {name!r}. Name the column.")
        if not name.isprintable():
            raise SignalError(
                f"{source}, column {column}: expected a printable node name, got {name!r}. "
                "Remove line breaks and control characters."
            )
    doubles = [name for name, count in Counter(names).items() if count > 1]
    if doubles:
        places = [str(column) for column, name in enumerate(names, start=1) if name == doubles[0]]
        raise SignalError(
            f"{source}: expected different node names, got {doubles[0]!r} in columns {', '.join(places)}"
            + (f", and {len(doubles) - 1} more names twice" if len(doubles) > 1 else "")
            + ". Rename or drop a column."
        )


def check_table(n_samples: int, n_nodes: int, *, source: str) -> None:
    """A graph needs two nodes, a distance two samples."""
    if n_nodes < 2:
        raise SignalError(
            f"{source}: expected at least 2 nodes (columns), got {n_nodes}. "
            "Rows are samples and columns are nodes; transpose the table if it is the other way round."
        )
    if n_samples < 2:
        raise SignalError(
            f"{source}: expected at least 2 samples (rows), got {n_samples}. "
            "Rows are samples and columns are nodes; transpose the table if it is the other way round."
        )


def check_finite(values: Matrix, names: Sequence[str], *, source: str, first_row: int) -> None:
    """No NaN, no infinity; `first_row` is what the first row is called in an error."""
    if np.isfinite(values).all():
        return
    row, column = np.argwhere(~np.isfinite(values))[0]
    value = values[row, column]
    raise SignalError(
        f"{source}, row {first_row + row}, column {names[column]!r}: expected a finite number, "
        f"got {'NaN' if np.isnan(value) else value}.\n{NO_GUESS}"
    )
