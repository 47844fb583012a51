"""Which silos are doubtful before anything is learned: by their tables, or by what sites tell of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from silograph._util.checks import MOST_NAMED, list_names
from silograph._util.naming import setting
from silograph._util.types import Vector
from silograph.analysis.doubts import CHANCE, Doubt, list_remarks
from silograph.data.costs import TableCosts
from silograph.data.serial import effective_samples

UNLIKE = 30.0  # ratio of mean squared differences beyond which units may differ: signals that differ by 5.5
LOUD = 1e4  # ratio of the largest squared difference to the typical one, beyond which a few nodes rule: 100 in signals
SAME = 1e-6  # relative difference up to which costs are the same numbers, perhaps in float32
FEWEST_SAME = 10  # pairs of nodes; fewer may agree by chance where signals have few values
FLAT = 2  # times as many nodes as samples, or more: perhaps rows are nodes
WORTH = 0.5  # part of the samples below which it matters that they resemble each other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFacts:
    """What is known of a silo's table. None: not known here."""

    name: str
    n_nodes: int
    n_samples: int | None = None
    fewest_rows: int | None = None  # that a pair of nodes has, where gaps leave some fewer than others
    scale: float | None = None  # its mean squared difference
    cost: Vector | None = None
    sha256: str | None = None
    gaps: int = 0  # empty cells
    serial: float | None = None  # median lag-1 autocorrelation
    row_counter: str | None = None
    constant: tuple[str, ...] = ()  # nodes whose value never changes


def facts_of(name: str, n_nodes: int, read: TableCosts, *, sha256: str | None = None) -> TableFacts:
    """The facts of a table that was read; `n_nodes` are those of the study."""
    return TableFacts(
        name=name,
        n_nodes=n_nodes if read.present is None else int(read.present.size),
        n_samples=read.n_samples,
        fewest_rows=read.fewest_rows,
        scale=read.average,
        cost=read.cost,
        sha256=sha256,
        gaps=read.gaps,
        serial=read.serial,
        row_counter=read.row_counter,
        constant=read.constant,
    )


def doubts_about_tables(tables: Sequence[TableFacts], *, standardize: bool) -> tuple[Doubt, ...]:
    """What is doubtful of these tables, each by itself and among each other."""
    found = (
        None if standardize else _scale(tables),  # standardised, all have one unit
        None if standardize else _amplitudes(tables),
        _duplicate(tables),
        _samples(tables),
        _serial(tables),
        _row_counter(tables),
        _constant(tables),
    )
    return tuple(doubt for doubt in found if doubt is not None)


def _scale(tables: Sequence[TableFacts]) -> Doubt | None:
    sizes = {table.name: table.scale for table in tables if table.scale is not None}
    far = {name: f"{size:.3g}" for name, size in sizes.items() if _is_far(name, sizes)}
    if not far:
        return None
    if 2 * len(far) >= len(sizes):  # two silos, or as many in one unit as in another: none is the usual one
        low, high = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        ends = {low: f"{sizes[low]:.3g}", high: f"{sizes[high]:.3g}"}
        seen = f"Mean squared differences of silos lie far apart: {list_remarks(ends)}."
    else:
        others = np.median([size for name, size in sizes.items() if name not in far])
        seen = f"Mean squared differences are far from those of the other silos ({others:.3g}) in {list_remarks(far)}."
    cure = "Are all tables in the same units? If not, convert them, or learn with standardize."
    return Doubt("scale", tuple(far), f"{seen} {cure} If so, look for values that are far too large.")


def _amplitudes(tables: Sequence[TableFacts]) -> Doubt | None:
    """Nodes much louder than the others: they rule the graph, and the optimum is hard to reach."""
    loud = {}
    for table in tables:
        positive = np.zeros(0) if table.cost is None else table.cost[table.cost > 0]
        if positive.size and (ratio := float(positive.max() / np.median(positive))) > LOUD:
            loud[table.name] = f"{ratio:.0e} times"
    if not loud:
        return None
    seen = f"The largest mean squared difference of two nodes is far from the typical one in {list_remarks(loud)}."
    cure = "Are all nodes in the same units? If not, convert them, or learn with standardize."
    return Doubt("amplitudes", tuple(loud), f"{seen} {cure} Loud nodes rule the graph, and it is hard to compute.")


def _is_far(name: str, sizes: dict[str, float]) -> bool:
    """Whether a silo's size is far from the median of the others: of an even number, from both in the middle."""
    others = sorted(size for other, size in sizes.items() if other != name)
    if not others:
        return False
    middle = others[(len(others) - 1) // 2], others[len(others) // 2]
    return all(max(sizes[name], one) > UNLIKE * min(sizes[name], one) for one in middle)


def _duplicate(tables: Sequence[TableFacts]) -> Doubt | None:
    groups: list[list[str]] = []
    order = sorted((table for table in tables if table.scale is not None), key=lambda table: table.scale or 0.0)
    for one, other in pairwise(order):  # the same data have the same scale: only neighbours can be the same
        if not _is_same(one, other):
            continue
        if groups and groups[-1][-1] == one.name:
            groups[-1].append(other.name)
        else:
            groups.append([one.name, other.name])
    if not groups:
        return None
    listed = "; ".join(list_names(sorted(group)) for group in groups[:MOST_NAMED])
    more = f" and {len(groups) - MOST_NAMED} more groups" if len(groups) > MOST_NAMED else ""
    text = f"The same data stand under several names and count several times: {listed}{more}. Keep one of each."
    return Doubt("duplicate", tuple(sorted(name for group in groups for name in group)), text)


def _is_same(one: TableFacts, other: TableFacts) -> bool:
    if one.sha256 is not None and one.sha256 == other.sha256:
        return True
    if one.cost is None or other.cost is None or (one.n_samples, one.n_nodes) != (other.n_samples, other.n_nodes):
        return False
    scale, enough = float(one.cost.mean()), one.cost.size == other.cost.size >= FEWEST_SAME
    if not enough or abs(scale - float(other.cost.mean())) > SAME * scale:
        return False
    return np.allclose(one.cost, other.cost, rtol=SAME, atol=SAME * scale)


def _samples(tables: Sequence[TableFacts]) -> Doubt | None:
    """Fewer samples than nodes, at all or at a pair; where every table is flat, rows may be nodes."""
    known = [(table.name, table.n_samples, table.n_nodes) for table in tables if table.n_samples is not None]
    few = {table.name: remark for table in tables if (remark := _few(table))}
    if not few:
        return None
    if all(n_nodes > FLAT * n_samples for _, n_samples, n_nodes in known):
        text = f"Far more columns (nodes) than rows (samples): {list_remarks(few)}. Is it the other way round? If not: "
        return Doubt("transposed", tuple(few), text + CHANCE[0].lower() + CHANCE[1:])
    return Doubt("samples", tuple(few), f"Fewer samples than nodes: {list_remarks(few)}. {CHANCE}")


def _few(table: TableFacts) -> str | None:
    if table.n_samples is None:
        return None
    if table.n_samples < table.n_nodes:
        return f"{table.n_samples} samples for {table.n_nodes} nodes"
    if table.fewest_rows is not None and table.fewest_rows < table.n_nodes:
        return f"gaps leave a pair {table.fewest_rows} of {table.n_samples} samples, for {table.n_nodes} nodes"
    return None


def _serial(tables: Sequence[TableFacts]) -> Doubt | None:
    found = {}
    for table in tables:
        if table.serial is None or table.n_samples is None:
            continue
        worth = effective_samples(table.n_samples, table.serial)
        if worth < min(table.n_nodes, WORTH * table.n_samples):
            found[table.name] = (worth, table)
    if not found:
        return None
    worth, worst = min(found.values(), key=lambda one: one[0] / one[1].n_nodes)
    text = (
        f"Samples resemble the ones before them in {list_names(list(found))}: most in {worst.name!r}, whose "
        f"{worst.n_samples} samples are worth about {worth:.0f} independent ones (lag-1 autocorrelation "
        f"{worst.serial:.2f}), for {worst.n_nodes} nodes. {CHANCE}"
    )
    return Doubt("serial", tuple(found), text)


def _row_counter(tables: Sequence[TableFacts]) -> Doubt | None:
    found = {table.name: table.row_counter for table in tables if table.row_counter is not None}
    if not found:
        return None
    columns = list(dict.fromkeys(found.values()))
    text = (
        f"A column counts the rows and was taken for a node: {list_names(columns)} in {list_names(list(found))}. "
        f"If it is no node, drop it: {setting('drop', columns[:MOST_NAMED])}"
    )
    return Doubt("row_counter", tuple(found), text)


def _constant(tables: Sequence[TableFacts]) -> Doubt | None:
    """Nodes that were most likely not observed: unstandardised, nothing else refuses them."""
    found = {table.name: list_names(table.constant) for table in tables if table.constant}
    if not found:
        return None
    text = (
        f"Columns that never change are taken for signals: {list_remarks(found)}. The edges there tell of amplitudes "
        f"alone. If nothing was observed, let silos lack nodes ({setting('missing_nodes', 'allow')}), or drop these "
        "columns."
    )
    return Doubt("constant", tuple(found), text)
