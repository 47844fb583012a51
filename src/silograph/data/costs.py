"""A table on disk, opened, its pairs chosen, turned into costs."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.data.blocks import BlockReader, Blocks, blocks_of, fit_in_memory, merged
from silograph.data.distances import costs_of_distances
from silograph.data.moments import Moments
from silograph.data.readers import Signals, open_signals
from silograph.data.readers.source import UnknownColumnError
from silograph.data.serial import SerialProducts
from silograph.errors import PairsError, ParameterError, SignalError
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs

HEADER_WORDS = {"source", "target", "from", "to", "node1", "node2", "node_1", "node_2", "node a", "node b", "i", "j"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How tables are to be read."""

    standardize: bool = False
    drop: tuple[str, ...] = ()
    key: str | None = None
    header: bool | None = None
    precomputed: bool = False
    missing: Literal["error", "rows", "pairs"] = "error"  # of gaps: refuse them, drop their rows, or use what is there
    keep_rows: str | None = None  # a column that says which rows count
    allow: Path | None = None
    forbid: Path | None = None

    def __post_init__(self) -> None:
        if self.precomputed and self.standardize:
            raise ParameterError("--standardize: precomputed distances cannot be standardised. Leave it out.")

    def open(self, path: Path) -> Signals:
        """The table, its nodes known, its values not read yet."""
        return open_signals(path, drop=self.drop, key=self.key, header=self.header)

    def open_all(self, paths: Sequence[Path]) -> list[Signals]:
        """Several tables. A column to drop may be missing in some, but not in all."""
        tables, met = [], set[str]()
        for path in paths:
            here = list(self.drop)
            while True:
                try:
                    tables.append(open_signals(path, drop=tuple(here), key=self.key, header=self.header))
                    break
                except UnknownColumnError as error:
                    here.remove(error.column)
            met.update(here)
        for column in self.drop:
            if column not in met:
                raise SignalError(f"--drop {column}: none of the tables has a column of that name. Check the name.")
        return tables

    def pairs(self, names: Sequence[str], *, zeta: float) -> Pairs:
        """The pairs that may be edges."""
        listed = self.allow or self.forbid
        return choose_pairs(
            names,
            allowed=None if self.allow is None else read_pairs(self.allow, names),
            forbidden=None if self.forbid is None else read_pairs(self.forbid, names),
            may_isolate=zeta > 0,
            source=None if listed is None else listed.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCosts:
    """What reading a table yields."""

    cost: Vector
    n_samples: int | None
    blocks: Blocks | None  # of rows; None where there are none, or too many pairs to keep any
    present: IntVector | None = None  # numbers of the nodes that the table has, rising; None: all
    rows_dropped: int = 0  # for gaps in them, or because `keep_rows` says so
    row_counter: str | None  # a column that looks like row numbers
    serial: float | None = None  # how much samples resemble the ones before: median lag-1 autocorrelation of the nodes


def read_costs(
    path: Path,
    signals: Signals,
    pairs: Pairs,
    options: TableOptions,
    *,
    order: np.ndarray | None = None,
    blocks: bool = False,
    on_progress: Callable[[float], None],
) -> TableCosts:
    """The costs of one table; `order` are the columns to take for the nodes of the pairs.

    `blocks`: keep its rows in blocks, too, which takes sixteen times the memory.
    """
    names = signals.names if order is None else [signals.names[column] for column in order]
    if options.precomputed:
        matrix = np.vstack(list(signals.chunks(on_progress)))
        if order is not None:
            matrix = matrix[np.ix_(order, order)] if matrix.shape[0] == matrix.shape[1] else matrix
        return TableCosts(
            cost=costs_of_distances(matrix, pairs, names, source=path.name),
            n_samples=None,
            blocks=None,
            row_counter=None,
        )
    moments, reader, row_counter, first = Moments(pairs), BlockReader(pairs), None, True
    keep, serial = blocks and fit_in_memory(pairs), SerialProducts(signals.n_nodes)
    for chunk in signals.chunks(on_progress):
        serial.update(chunk)
        if first and chunk.shape[0] > 2 and (np.diff(chunk[:, 0]) == 1).all():
            row_counter = signals.names[0]
        first = False
        (reader if keep else moments).update(chunk if order is None else chunk[:, order])
    costs = table_costs(
        reader.finish() if keep else [moments],
        pairs,
        standardize=options.standardize,
        names=names,
        source=path.name,
        row_counter=row_counter,
    )
    return replace(costs, serial=serial.correlation())


def table_costs(
    parts: Sequence[Moments],
    pairs: Pairs,
    *,
    standardize: bool,
    names: Sequence[str],
    source: str,
    row_counter: str | None = None,
) -> TableCosts:
    """The costs of a table given by the moments of its blocks."""
    whole = parts[0] if len(parts) == 1 else merged(parts, pairs)
    cost = whole.costs(standardize=standardize, names=names, source=source)
    blocks = blocks_of(parts, whole, standardize=standardize) if len(parts) > 1 else None
    return TableCosts(cost=cost, n_samples=whole.n_samples, blocks=blocks, row_counter=row_counter)


def read_pairs(path: Path, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of node names, two per row; a first row like "source,target" is a header, further columns are ignored."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise PairsError(f"{path}: the list of pairs cannot be read ({error}). Check the path.") from error
    if rows and {cell.casefold() for cell in rows[0][:2]} <= HEADER_WORDS and not set(rows[0][:2]) <= set(names):
        rows = rows[1:]
    for line, row in enumerate(rows, start=1):
        if len(row) < 2:
            raise PairsError(f"{path.name}, pair {line}: expected two node names, got {row[0]!r}. Separate by a comma.")
    return [(row[0], row[1]) for row in rows]
