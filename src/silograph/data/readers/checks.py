"""What every table of signals must satisfy, whatever it was read from."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from silograph._util.naming import setting
from silograph._util.types import BoolVector, Matrix
from silograph.errors import SignalError

GAPS = ("", "n/a", "N/A", "NA", "NaN", "nan", "NAN", "null", "NULL", ".")  # texts that say: no value


def may_lack() -> str:
    """How to learn from several silos where one lacks a node."""
    return f"of several silos, let this one lack the node ({setting('missing_nodes', 'allow')})"


def no_guess() -> str:
    """How to learn from a table with gaps."""
    return (
        f"Leave out rows with gaps ({setting('missing', 'rows')}), or learn from what is there "
        f"({setting('missing', 'pairs')}): silograph does not guess missing values."
    )


def no_node(name: str) -> str:
    """What to do about a column of a file that may be none of the nodes."""
    return f"If {name!r} is not a node, drop the column: {setting('drop', [name])}"


def mend(name: str) -> str:
    """What to do about a cell of a file that is no finite number."""
    return f"Mend the cell, or drop its row. {no_node(name)}"


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


def check_finite(
    values: Matrix,
    names: Sequence[str],
    *,
    source: str,
    gaps: bool | BoolVector = False,
    kept: BoolVector | None = None,
    find: Callable[[int, int], tuple[int, str]] | None = None,
) -> None:
    """No infinity, and no NaN but where there may be `gaps` (anywhere, or in some columns) and in rows that go.

    `find` tells what a row and a cell are called in an error; without it rows are counted from 1.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    bad = ~finite & ~(np.isnan(values) & gaps)
    if kept is not None:
        bad &= kept[:, None]
    if not bad.any():
        return
    row, column = (int(place) for place in np.argwhere(bad)[0])
    value = values[row, column]
    line, text = (row + 1, plain_cell(value)) if find is None else find(row, column)
    cure = "Mend the cell, or drop its row or its column." if np.isinf(value) else no_guess()
    if np.isnan(values[:, column]).all():
        drop = "Drop it" if find is None else f"Drop it ({setting('drop', [names[column]])})"
        cure = f"The column seems to be empty. {drop}, or, {may_lack()}."
    raise SignalError(f"{source}, row {line}, column {names[column]!r}: expected a finite number, got {text}.\n{cure}")


def plain_cell(value: float) -> str:
    """What a number is called in an error."""
    return "NaN" if np.isnan(value) else str(value)
