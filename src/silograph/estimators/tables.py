"""What `fit` of several silos accepts, turned into named tables of the same nodes in the same order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_array

from silograph._util.types import IntVector, Matrix
from silograph.data.alignment import check_silo_names, order_of
from silograph.data.costs import Missing, without_gaps
from silograph.data.readers.checks import check_finite, no_guess
from silograph.data.readers.frames import check_index, check_numbers, frame_names, is_frame
from silograph.errors import SignalError, SilosError
from silograph.graph.pairs import default_names

NEWCOMER, CONSENSUS = "newcomer", "the consensus"
HOW = "Give a list or dict of tables (samples, nodes), or one table and groups=."


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One silo's values, columns in the order of `names`, or of those of them that the silo has."""

    silo: str
    values: Matrix
    names: tuple[str, ...]
    present: IntVector | None = None  # numbers of the names that the silo has, rising; None: all
    rows_dropped: int = 0  # for their gaps

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.names if self.present is None else tuple(self.names[node] for node in self.present)


def tables_of(
    X: Any, groups: Any, *, square: bool, missing_nodes: bool = False, missing: Missing = "error"
) -> list[Table]:
    """The silos' tables; `square` ones are distances, whose rows are nodes too.

    If nodes may be missing, the names are those of all silos together, and a table has columns that are not empty.
    """
    if groups is not None:
        if square:
            raise SilosError("groups: distances cannot be split by rows. Give a list or dict of matrices.")
        parts = _split(X, groups)
    elif isinstance(X, Mapping):
        parts = {str(name): table for name, table in X.items()}
        if len(parts) != len(X):
            raise SilosError("X: two silos have the same name when written as text. Rename one.")
    elif (isinstance(X, Sequence) and not isinstance(X, str | bytes)) or _dimensions(X) == 3:
        parts = {f"silo_{number}": table for number, table in enumerate(X, start=1)}
    else:
        raise SilosError(f"X: expected several silos, got one {type(X).__name__}. {HOW}")
    check_silo_names(list(parts))
    gaps = missing_nodes or missing != "error"
    tables = [_table(name, table, square=square, gaps=gaps) for name, table in parts.items()]
    if missing_nodes:
        tables = _align_some(tables, named=all(is_frame(table) for table in parts.values()), square=square)
    else:
        tables = [_align(tables[0], table, square=square) for table in tables]
    return [_treat_gaps(table, missing) for table in tables] if gaps else tables


def newcomer_of(
    X: Any, nodes: tuple[str, ...], *, square: bool, missing_nodes: bool = False, missing: Missing = "error"
) -> Table:
    """A table on these nodes: a frame by the names of its columns, an array of as many columns by their order."""
    gaps = missing_nodes or missing != "error"
    table = _table(NEWCOMER, X, square=square, gaps=gaps)
    if not is_frame(X) and len(table.names) == len(nodes):
        table = replace(table, names=nodes)
    if missing_nodes:
        order_of(  # raises for others
            nodes, table.names, first=CONSENSUS, silo=NEWCOMER, missing_nodes="allow", newcomer=True
        )
        table = _align_one(table, nodes, square=square)
    else:
        first = Table(CONSENSUS, np.empty((0, len(nodes))), nodes)
        table = _align(first, table, square=square, newcomer=True)
    return _treat_gaps(table, missing) if gaps else table


def check_input(X: Any, *, source: str, gaps: bool = False) -> Any:
    """The table, masked values being gaps; raises for what only looks like one: a path, columns of no numbers."""
    if isinstance(X, str | PathLike):
        raise SignalError(
            f"{source}: expected a table, got the path {str(X)!r}. Read it first, for example with pandas."
        )
    if np.ma.is_masked(X):
        if not gaps:
            raise SignalError(f"{source}: expected no masked values. {no_guess()}")
        return np.ma.filled(np.ma.asarray(X, dtype=np.float64), np.nan)
    if is_frame(X):
        check_numbers(X, gaps=gaps)
    return X


def _dimensions(X: Any) -> int:
    return int(getattr(X, "ndim", 0))


def _split(X: Any, groups: Any) -> dict[str, Any]:
    labels = np.asarray(groups, dtype=object).ravel()
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if labels.size != n_rows:
        raise SilosError(f"groups: expected one label per sample ({n_rows}), got {labels.size}.")
    if any(_is_missing(label) for label in labels):
        raise SilosError("groups: expected a label for each sample, got a missing one. Fill or drop those samples.")
    names = dict.fromkeys(str(label) for label in labels)
    if len(names) != len(set(labels)):
        raise SilosError("groups: two different labels are the same when written as text. Rename one.")
    text = np.array([str(label) for label in labels], dtype=object)
    table = X if is_frame(X) or hasattr(X, "shape") else np.asarray(X)
    return {name: _rows(table, np.flatnonzero(text == name)) for name in names}


def _is_missing(label: Any) -> bool:
    """None, NaN, and what pandas and polars call missing: nothing that equals itself."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label


def _rows(table: Any, index: np.ndarray) -> Any:
    return table.iloc[index] if hasattr(table, "iloc") else table[index]


def _table(silo: str, X: Any, *, square: bool, gaps: bool = False) -> Table:
    X = check_input(X, source=silo, gaps=gaps)
    if _dimensions(X) not in (0, 2) or (_dimensions(X) == 0 and np.ndim(X) != 2):
        raise SilosError(f"{silo}: expected a table (samples, nodes), got {np.ndim(X)} dimensions. {HOW}")
    values: Matrix = check_array(
        X,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # ours, below, says where
        ensure_min_samples=2,
        ensure_min_features=2,
        input_name=silo,
    )
    names = frame_names(X) if is_frame(X) else default_names(values.shape[1])
    if not gaps:
        check_finite(values, names, source=silo)
    if square:
        check_index(X, names)
    return Table(silo, values, names)


def _align(first: Table, table: Table, *, square: bool, newcomer: bool = False) -> Table:
    def rows() -> list[str]:
        return [""] * len(table.values)

    order = order_of(
        first.names, table.names, first=first.silo, silo=table.silo, rows=None if square else rows, newcomer=newcomer
    )
    if order is None:
        return table
    values = table.values[np.ix_(order, order)] if square else table.values[:, order]
    return Table(table.silo, values, first.names)


def _align_some(tables: list[Table], *, named: bool, square: bool) -> list[Table]:
    """Tables that may lack nodes: those whose columns are absent, or empty throughout."""
    first = tables[0]
    for table in tables if not named else ():
        if len(table.names) != len(first.names):
            raise SilosError(
                f"{table.silo}: expected the {len(first.names)} nodes of {first.silo}, got {len(table.names)} columns "
                "without names. Give frames, whose columns say which nodes are missing."
            )
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    return [_align_one(table, names, square=square) for table in tables]


def _align_one(table: Table, names: tuple[str, ...], *, square: bool) -> Table:
    values = table.values
    kept = np.flatnonzero(~np.isnan(values).all(axis=0))
    if kept.size < 2:
        raise SilosError(
            f"{table.silo}: expected at least 2 nodes whose columns are not empty, got {kept.size}. Leave the silo out."
        )
    column = {table.names[number]: number for number in kept.tolist()}
    present = np.array([node for node, name in enumerate(names) if name in column], dtype=np.int32)
    order = np.array([column[names[node]] for node in present], dtype=np.intp)
    values = np.ascontiguousarray(values[np.ix_(order, order)] if square else values[:, order])
    return Table(table.silo, values, names, None if present.size == len(names) else present)


def _treat_gaps(table: Table, missing: Missing) -> Table:
    """The table without infinities, and without the gaps that may not be or whose rows are to go."""
    check_finite(table.values, table.own_names, source=table.silo, gaps=missing != "error")
    if missing != "rows":
        return table
    values, dropped = without_gaps(table.values)
    return replace(table, values=values, rows_dropped=dropped)
