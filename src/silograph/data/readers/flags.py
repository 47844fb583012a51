"""A column that says which rows count, such as that of scrubbed volumes: true or false, in any usual spelling."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.types import BoolVector
from silograph.errors import SignalError

WORDS = {"true": True, "yes": True, "false": False, "no": False}


def kept_rows(flags: NDArray[Any], *, column: str, source: str, row_name: Callable[[int], int]) -> BoolVector:
    """Which rows to keep; raises for a cell that says neither."""
    if flags.dtype.kind == "b":
        return np.asarray(flags, dtype=np.bool_)
    kept = [_truth(cell) for cell in flags.tolist()]
    if None in kept:
        row = kept.index(None)
        raise SignalError(
            f"{source}, row {row_name(row)}, column {column!r}: expected true or false (yes or no, 1 or 0), which "
            f"says whether the row counts, got {flags[row]!s}. Mend the cell."
        )
    return np.array(kept, dtype=np.bool_)


def _truth(cell: object) -> bool | None:
    """Any number but 0 says yes; a gap says nothing."""
    text = str(cell).strip().casefold()
    if text in WORDS:
        return WORDS[text]
    try:
        number = float(text)
    except ValueError:
        return None
    return None if np.isnan(number) else number != 0
