"""A table on disk, opened, its pairs chosen, turned into costs."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from silograph._util.naming import setting
from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.data.blocks import BlockReader, Blocks, blocks_of, fit_in_memory
from silograph.data.bounded import RowBounds
from silograph.data.distances import costs_of_distances
from silograph.data.moments import Moments
from silograph.data.pairwise import AnyMoments, add_rows, no_moments
from silograph.data.ranks import HeldTable, Transform, check_transform
from silograph.data.readers import Signals, open_signals
from silograph.data.readers.source import UnknownColumnError
from silograph.data.serial import SerialProducts
from silograph.data.tiles import CostTiles, node_moments
from silograph.errors import PairsError, ParameterError, SignalError
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs

Missing = Literal["error", "rows", "pairs"]
MissingNodes = Literal["error", "allow"]
HEADER_WORDS = {"source", "target", "from", "to", "node1", "node2", "node_1", "node_2", "node a", "node b", "i", "j"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How tables are to be read."""

    standardize: bool = False
    transform: Transform = "none"  # of each node's values: none, or normal scores, standardised
    drop: tuple[str, ...] = ()
    key: str | None = None
    header: bool | None = None
    precomputed: bool = False
    missing: Missing = "error"  # of gaps: refuse them, drop their rows, or use what is there
    keep_rows: str | None = None  # a column that says which rows count
    allow: Path | None = None
    forbid: Path | None = None
    public: Path | None = None  # each node's public centre and scale; with epsilon, `standardize` means these

    def __post_init__(self) -> None:
        check_missing(self.missing, precomputed=self.precomputed)
        check_transform(self.transform, precomputed=self.precomputed)
        if self.precomputed and self.standardize:
            raise ParameterError(
                f"{setting('standardize')}: precomputed distances cannot be standardised. Leave it out."
            )
        if self.precomputed and self.keep_rows is not None:
            raise ParameterError(
                f"{setting('keep_rows')}: precomputed distances have no rows to leave out. Leave it out."
            )

    @property
    def scaled(self) -> bool:
        """Whether nodes have unit variance in the end."""
        return self.standardize or self.transform == "ranks"

    def open(self, path: Path) -> Signals:
        """The table, its nodes known, its values not read yet."""
        return open_signals(path, drop=self.drop, key=self.key, header=self.header, keep_rows=self.keep_rows)

    def open_some(self, path: Path) -> tuple[Signals, tuple[str, ...]]:
        """One of several tables, and what it has to drop: a column may be missing in some of them."""
        here = self.drop
        while True:
            try:
                return replace(self, drop=here).open(path), here
            except UnknownColumnError as error:
                here = tuple(one for one in here if one != error.column)

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

    cost: Vector  # of the pairs; of none where there are tiles
    n_samples: int | None
    fewest_rows: int | None = None  # that a pair rests on; with gaps, some rest on fewer than others
    blocks: Blocks | None  # of rows; None where there are none, or too many pairs to keep any
    present: IntVector | None = None  # numbers of the nodes that the table has, rising; None: all
    rows_dropped: int = 0  # for gaps in them, or because `keep_rows` says so
    gaps: int = 0  # empty cells in what was learned from
    row_counter: str | None  # a column that looks like row numbers
    constant: tuple[str, ...] = ()  # nodes whose value never changes; where nodes may be missing, these are
    serial: float | None = None  # how much samples resemble the ones before: median lag-1 autocorrelation of the nodes
    tiles: CostTiles | None = None  # the costs of pairs too many to store
    moments: tuple[AnyMoments, ...] = ()  # of the blocks, if they are to be kept

    @property
    def average(self) -> float | None:
        """The mean cost; None without pairs."""
        if self.tiles is not None:
            return self.tiles.average()
        return float(self.cost.mean()) if self.cost.size else None

    def among(self, nodes: BoolVector, pairs: Pairs) -> "TableCosts":
        """The same without some of the nodes of `pairs`, the study's; all are the same but what is by pair."""
        before = np.arange(pairs.n_nodes, dtype=np.int32) if self.present is None else self.present
        kept = np.flatnonzero(nodes[before]).astype(np.int32)
        place = pairs.within(before)[0].within(kept)[1]
        blocks = None if self.blocks is None else self.blocks.at(place)
        return replace(self, cost=self.cost[place], blocks=blocks, present=before[kept])


def read_costs(
    path: Path,
    signals: Signals,
    pairs: Pairs,
    options: TableOptions,
    *,
    order: IntVector | None = None,
    missing_nodes: MissingNodes = "error",
    blocks: bool = False,
    moments: bool = False,
    tiles: bool = False,
    bounds: RowBounds | None = None,
    on_progress: Callable[[float], None],
) -> TableCosts:
    """The costs of one table; `order` are the columns to take for the nodes of the pairs, −1 for one that is absent.

    Where nodes may be missing, those with an empty or a constant column are missing, too. `blocks`: keep its rows in
    blocks, too, which takes sixteen times the memory. `moments`: keep those of the blocks. `tiles`: keep the table
    itself and no costs, for many nodes; then no nodes may be missing, and gaps are refused or go with their rows.
    `bounds`: bring rows to a length that everybody knows first; then public numbers, and not the table's own, centre
    and scale them. To rank its values, the table is held as well.
    """
    columns = np.arange(signals.n_nodes, dtype=np.int32) if order is None else order
    empty = np.zeros(signals.n_nodes, dtype=np.bool_)
    if missing_nodes == "allow" and not options.precomputed:
        empty = signals.empty()
    there = np.flatnonzero((columns >= 0) & ~empty[columns]).astype(np.int32)
    present = None if there.size == pairs.n_nodes else there
    if options.precomputed:
        return _read_distances(path, signals, pairs, columns, present, on_progress)
    own = pairs if present is None else pairs.within(present)[0]
    names = [signals.names[column] if column >= 0 else "" for column in columns]
    chosen = None if order is None and present is None else columns[there]
    seen, reader = node_moments(own.n_nodes) if tiles else no_moments(own, bounds), BlockReader(own, bounds)
    kept: list[Matrix] = []
    held = HeldTable(path.name) if options.transform == "ranks" else None
    row_counter, first, keep = None, True, (blocks or moments) and fit_in_memory(own)
    flagged: list[int] = []
    gappy, serial = 0, SerialProducts(signals.n_nodes if held is None else there.size)

    def take_in(rows: Matrix) -> None:
        nonlocal seen
        seen = add_rows(seen, rows)  # beside the blocks: costs have the same bits with and without
        if keep:
            reader.update(rows)
        if tiles:
            kept.append(rows)

    for chunk in signals.chunks(on_progress, gaps=empty | (options.missing != "error"), on_flagged=flagged.append):
        if held is None:
            serial.update(chunk)
        if first and chunk.shape[0] > 2 and (np.diff(chunk[:, 0]) == 1).all():
            row_counter = signals.names[0]
        first = False
        rows = chunk if chosen is None else chunk[:, chosen]
        if options.missing == "rows":
            rows, n_dropped = without_gaps(rows)
            gappy += n_dropped
        (take_in if held is None else held.add)(rows)
    for rows in () if held is None else held.scores():
        serial.update(rows)
        take_in(rows)
    parts = tuple(reader.finish()) if keep else ()
    costs = table_costs(
        seen,
        parts if blocks else (),
        standardize=options.scaled,
        names=names,
        source=path.name,
        row_counter=row_counter,
        present=present,
        missing_nodes=missing_nodes,
        rows_dropped=gappy + sum(flagged),
    )
    if isinstance(seen, Moments) and tiles:
        table = np.concatenate(kept)
        whole = CostTiles.of(table, seen, standardize=options.scaled, names=names, source=path.name)
        costs = replace(costs, tiles=whole)
    return replace(costs, serial=serial.correlation(), moments=parts if moments else ())


def table_costs(
    whole: AnyMoments,
    parts: Sequence[AnyMoments] = (),
    *,
    standardize: bool,
    names: Sequence[str],
    source: str,
    row_counter: str | None = None,
    present: IntVector | None = None,
    missing_nodes: MissingNodes = "error",
    rows_dropped: int = 0,
) -> TableCosts:
    """The costs of a table given by its moments and those of its blocks, on the nodes that are `present`.

    `names` are those of all nodes. Where nodes may be missing, those that are constant are.
    """
    if whole.n_samples < 2 and rows_dropped:
        raise SignalError(
            f"{source}: expected at least 2 rows without gaps, got {whole.n_samples}; {rows_dropped} were dropped. "
            f"Learn from what is there ({setting('missing', 'pairs')}), or drop columns with many gaps."
        )
    if missing_nodes == "allow" and whole.n_samples >= 2 and whole.constant().any():
        varying = np.flatnonzero(~whole.constant()).astype(np.int32)
        present = varying if present is None else present[varying]
        parts, whole = [part.within(varying) for part in parts], whole.within(varying)
    if present is not None:
        _check_left(present, names, source)
        names = [names[node] for node in present]
    cost = whole.costs(standardize=standardize, names=names, source=source)
    return TableCosts(
        cost=cost,
        n_samples=whole.n_samples,
        fewest_rows=whole.fewest,
        blocks=blocks_of(parts, whole, standardize=standardize) if len(parts) > 1 else None,
        present=present,
        rows_dropped=rows_dropped,
        gaps=whole.gaps,
        row_counter=row_counter,
        constant=tuple(names[int(node)] for node in np.flatnonzero(whole.constant())),
    )


def check_missing(missing: str, *, precomputed: bool) -> None:
    """Raise unless there is such a way to treat gaps, and rows to have them."""
    if missing not in get_args(Missing):
        raise ParameterError(f"missing: expected 'error', 'rows' or 'pairs', got {missing!r}.")
    if precomputed and missing != "error":
        raise ParameterError("missing: precomputed distances have no rows to leave out. Leave it out.")


def without_gaps(rows: Matrix) -> tuple[Matrix, int]:
    """The rows that have no gap, and how many have one."""
    whole = ~np.isnan(rows).any(axis=1)
    return (rows, 0) if whole.all() else (rows[whole], int((~whole).sum()))


def _read_distances(
    path: Path,
    signals: Signals,
    pairs: Pairs,
    columns: IntVector,
    present: IntVector | None,
    on_progress: Callable[[float], None],
) -> TableCosts:
    matrix = np.vstack(list(signals.chunks(on_progress)))
    chosen = columns if present is None else columns[present]
    if matrix.shape[0] == matrix.shape[1] and not np.array_equal(chosen, np.arange(len(matrix))):
        matrix = matrix[np.ix_(chosen, chosen)]
    names = [signals.names[column] for column in chosen]
    if present is not None:
        _check_left(present, signals.names, path.name)
        pairs = pairs.within(present)[0]
    cost = costs_of_distances(matrix, pairs, names, source=path.name)
    return TableCosts(cost=cost, n_samples=None, blocks=None, present=present, row_counter=None)


def _check_left(present: IntVector, names: Sequence[str], source: str) -> None:
    if present.size < 2:
        left = f"only {names[int(present[0])]!r}" if present.size else "none"
        raise SignalError(
            f"{source}: expected at least 2 nodes whose columns are there and vary, got {left}. Leave the silo out."
        )


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
