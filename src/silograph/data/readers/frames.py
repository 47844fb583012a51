"""Tables in memory: pandas and polars frames, known by their manners rather than by an import."""

from typing import Any

import numpy as np

from silograph.data.readers.checks import check_names, no_guess
from silograph.errors import SignalError


def is_frame(table: Any) -> bool:
    """Whether the table has named columns."""
    return hasattr(table, "columns") and hasattr(table, "to_numpy")


def frame_names(frame: Any) -> tuple[str, ...]:
    """The names of the columns, checked."""
    names = tuple(str(name) for name in frame.columns)
    check_names(names, source="signals")
    return names


def check_index(frame: Any, names: tuple[str, ...]) -> None:
    """A square table whose rows are named like its columns must have both in the same order."""
    rows = tuple(str(name) for name in frame.index) if hasattr(frame, "index") and is_frame(frame) else names
    if rows != names and set(rows) == set(names):
        raise SignalError("distances: expected rows and columns in the same order. Reorder the rows like the columns.")


def check_numbers(frame: Any, *, gaps: bool = False) -> None:
    """Raise for the first column that holds something else than numbers, or gaps where there may be some."""
    for position, name in enumerate(frame_names(frame)):
        column = np.asarray(frame.iloc[:, position] if hasattr(frame, "iloc") else frame[name])
        if column.dtype.kind in "fiub":
            continue
        for row, value in enumerate(column.tolist(), start=1):
            if gaps and (value is None or type(value).__name__ == "NAType"):
                continue
            try:
                float(value)
            except (TypeError, ValueError):
                cure = no_guess() if row > 1 else f"If {name!r} is not a node, drop the column."
                raise SignalError(
                    f"signals, row {row}, column {name!r}: expected a finite number, got {value!r}.\n{cure}"
                ) from None
