"""Rows of bounded length, and their second moments as exact integers: what noise can be measured against.

    x ↦ (x − centre)/scale ↦ y = x − its mean ↦ y/‖y‖, or y cut to the longest length ↦ steps of 2⁻²⁰, towards zero

Costs z_ij = M_ii + M_jj − 2 M_ij depend on a row through y alone. Centres, scales and the longest length are public. So
a row that is replaced by another changes M = Σ yyᵀ, as the vector (diagonal, √2 · rest), by √2 times the square of the
longest length at most, whatever the rows are. Nothing here depends on other rows, and none is refused for its size.

Moments are counted in steps of 2⁻⁴⁰ and are the same whatever the order of rows and however they come in chunks.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.data.moments import BLOCK_ROWS, add_block, add_listed
from silograph.errors import ParameterError, SignalError
from silograph.graph.pairs import Pairs

STEPS = 2**20  # of a row that is as long as may be
CHUNK_ROWS = 4096  # sums of so many products of up to 2⁴⁰ are below 2⁵³: float64 has them exactly
MOST_ROWS = 2**22 - 1  # a squared difference is at most 2⁴¹, and int64 ends at 2⁶³
FARTHEST = 1e300  # what overflowed when it was centred and scaled counts as this


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBounds:
    """How rows are brought to a length that everybody knows."""

    longest: float = 1.0
    unit: bool = True  # whether each row is made as long as that; else longer ones are cut to it
    centres: tuple[float, ...] | None = None  # one per node, subtracted first
    scales: tuple[float, ...] | None = None  # then divided by

    def steps_of(self, rows: Matrix) -> Matrix:
        """The bounded rows in whole steps, as float64."""
        if not np.isfinite(rows).all():
            raise SignalError("signals: expected finite numbers, got NaN or infinity.")
        out = np.array(rows, dtype=np.float64, order="C")
        n_nodes = out.shape[1]
        centres = np.zeros(n_nodes) if self.centres is None else np.array(self.centres)
        scales = np.ones(n_nodes) if self.scales is None else np.array(self.scales)
        _bound(out, centres, scales, self.longest, self.unit)
        return out


class BoundedMoments:
    """The moments of the bounded rows seen so far; in all else like `Moments`."""

    __slots__ = ("bounds", "cross", "n_samples", "pairs", "squares")

    def __init__(self, pairs: Pairs, bounds: RowBounds) -> None:
        self.pairs, self.bounds = pairs, bounds
        self.n_samples = 0
        self.squares = np.zeros(pairs.n_nodes, dtype=np.int64)  # the diagonal of M, in steps of 2⁻⁴⁰ longest²
        self.cross = np.zeros(pairs.size, dtype=np.int64)  # and the rest

    def like(self) -> "BoundedMoments":
        """Those of no rows yet."""
        return BoundedMoments(self.pairs, self.bounds)

    def update(self, signals: Matrix) -> None:
        """Add samples, rows of (samples, nodes)."""
        self._count(signals.shape[0])
        for start in range(0, signals.shape[0], CHUNK_ROWS):
            self._update_chunk(self.bounds.steps_of(signals[start : start + CHUNK_ROWS]))

    def absorb(self, other: "BoundedMoments") -> None:
        """Add another block's rows to these."""
        self._count(other.n_samples)
        self.squares = self.squares + other.squares
        self.cross = self.cross + other.cross

    def within(self, nodes: IntVector) -> "BoundedMoments":
        """Rows are bounded over all nodes, so that no table may lack some."""
        raise SignalError("nodes: rows of bounded length need all nodes of the study.")

    @property
    def gaps(self) -> int:
        """The number of empty cells: none."""
        return 0

    @property
    def fewest(self) -> int:
        """The number of rows that the pair with the fewest has: all have all."""
        return self.n_samples

    def constant(self) -> BoolVector:
        """None: a row's length depends on all its nodes, and no node is refused or left out for being constant."""
        return np.zeros(self.pairs.n_nodes, dtype=np.bool_)

    def squared_differences(self, whole: "BoundedMoments", *, standardize: bool) -> Vector:
        """Σ over rows of (y_i − y_j)² for each pair."""
        both = self.squares[self.pairs.rows] + self.squares[self.pairs.cols]
        steps = both - 2 * self.cross
        out: Vector = steps.astype(np.float64) * (self.bounds.longest / STEPS) ** 2
        return out

    def costs(
        self, *, standardize: bool = False, names: Sequence[str] | None = None, source: str = "signals"
    ) -> Vector:
        """z/N for each pair; rows were centred and scaled, if at all, before they were bounded."""
        if self.n_samples < 2:
            raise SignalError(f"{source}: expected at least 2 samples, got {self.n_samples}. Add samples.")
        cost: Vector = self.squared_differences(self, standardize=False) / self.n_samples
        return cost

    def _count(self, n_rows: int) -> None:
        self.n_samples += n_rows
        if self.n_samples > MOST_ROWS:
            raise SignalError(f"signals: expected at most {MOST_ROWS} rows with epsilon, got more. Split the table.")

    def _update_chunk(self, steps: Matrix) -> None:
        self.squares = self.squares + np.einsum("ij,ij->j", steps, steps).astype(np.int64)
        cross = np.zeros(self.pairs.size)
        if self.pairs.listed_rows is None or self.pairs.listed_cols is None:
            for start in range(0, self.pairs.n_nodes, BLOCK_ROWS):
                add_block(steps[:, start : start + BLOCK_ROWS].T @ steps[:, start:], start, cross)
        else:
            add_listed(self.pairs.listed_rows, self.pairs.listed_cols, np.ascontiguousarray(steps.T), cross)
        self.cross = self.cross + cross.astype(np.int64)


def read_public(path: Path, names: Sequence[str]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Each node's centre and scale, in the order of `names`, from a CSV of node,centre,scale."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: the public numbers cannot be read ({error}). Check the path.") from error
    if rows and rows[0][:3] == ["node", "centre", "scale"]:
        rows = rows[1:]
    found = {row[0]: _public_numbers(path, row) for row in rows}
    lacks = [name for name in names if name not in found]
    if lacks or len(found) != len(names) or len(rows) != len(found):
        what = f"it lacks {lacks[0]!r}" if lacks else "it has others, or some of them twice"
        raise ParameterError(f"{path.name}: expected one row for each of the {len(names)} nodes, but {what}.")
    return tuple(found[name][0] for name in names), tuple(found[name][1] for name in names)


def _public_numbers(path: Path, row: Sequence[str]) -> tuple[float, float]:
    try:
        _, centre, scale = row
        numbers = float(centre), float(scale)
    except ValueError:
        numbers = np.nan, np.nan
    if not (all(map(isfinite, numbers)) and numbers[1] > 0):
        raise ParameterError(
            f"{path.name}: expected rows of a node, its centre and its scale > 0, got {','.join(row)!r}."
        )
    return numbers


@kernel
def _bound(rows: Matrix, centres: Vector, scales: Vector, longest: float, unit: bool) -> None:
    """Bring every row to whole steps, in place."""
    n_nodes = rows.shape[1]
    for k in range(rows.shape[0]):
        row = rows[k]
        total, largest = 0.0, 0.0
        for i in range(n_nodes):
            row[i] = min(max((row[i] - centres[i]) / scales[i], -FARTHEST), FARTHEST)
            total += row[i]
            largest = max(largest, abs(row[i]))
        mean, peak = total / n_nodes, 0.0
        for i in range(n_nodes):
            row[i] -= mean
            peak = max(peak, abs(row[i]))
        if peak <= 1e-15 * n_nodes * largest:  # nothing but rounding
            _fill_public(row, unit)
            continue
        square = 0.0
        for i in range(n_nodes):
            row[i] /= peak
            square += row[i] * row[i]
        length = np.sqrt(square)
        part = 1 / length if unit else min(1 / length, peak / longest)
        for i in range(n_nodes):
            row[i] = np.trunc(row[i] * part * STEPS)
        _keep_length(row)


@kernel
def _fill_public(row: Vector, unit: bool) -> None:
    """A row without differences: of unit ones a fixed vector of mean zero, and of those that are only cut, nothing."""
    half = row.size // 2 if unit else 0
    size = np.trunc(STEPS / np.sqrt(2.0 * half)) if half > 0 else 0.0
    for i in range(row.size):
        row[i] = 0.0 if i >= 2 * half else (size if i % 2 == 0 else -size)


@kernel
def _keep_length(row: Vector) -> None:
    """Rounding before the steps were whole may have made a row longer than it may be: by a step at most."""
    square = 0.0
    for i in range(row.size):
        square += row[i] * row[i]
    if square > float(STEPS) * STEPS:
        for i in range(row.size):
            row[i] -= np.sign(row[i])
