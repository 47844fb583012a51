"""What an experiment gives: tables of our numbers beside the paper's, figures, and remarks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from silograph._util.types import Vector

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT = ", exact"  # how the name of a row ends that is solved to the optimum
ALL_PRINTED, ALL_EXACT = "all, by the paper's iterations", "all, exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a table."""

    block: str  # the part of the table, such as "N = 20"
    row: str  # such as a method
    column: str  # such as a measure
    ours: float
    error: float | None = None  # standard error of ours
    paper: float | None = None  # None where the paper has no such number

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Numbers, shown block by block in the order given."""

    name: str
    title: str
    numbers: tuple[Number, ...]
    notes: tuple[str, ...] = ()
    digits: int = 3
    main: tuple[str, ...] = ()  # the columns that a narrow terminal shows; none: all

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks, in order."""
        return _in_order(number.block for number in self.numbers)

    def rows(self, block: str) -> tuple[str, ...]:
        """The rows of a block, in order."""
        return _in_order(number.row for number in self.numbers if number.block == block)

    def columns(self, block: str) -> tuple[str, ...]:
        """The columns of a block, in order."""
        return _in_order(number.column for number in self.numbers if number.block == block)

    def number(self, block: str, row: str, column: str) -> Number | None:
        """The number in a place, if there is one."""
        for number in self.numbers:
            if (number.block, number.row, number.column) == (block, row, column):
                return number
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A figure and what it shows."""

    name: str
    title: str
    caption: str
    figure: "Figure"
    data: Table | None = None  # the numbers drawn, where they are not those of a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of text, in Markdown."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """All that an experiment shows."""

    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    pages: tuple[Page, ...] = ()


def mean_and_error(values: Vector) -> tuple[float, float | None]:
    """The mean of independent values and its standard error; none for fewer than two."""
    if values.size < 2:
        return float(values.mean()), None
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def deviations(tables: Sequence[Table], columns: Sequence[str]) -> Table:
    """How far our numbers are from the paper's, row by row and over all that are run as the paper says.

    Rows of exact optima stand beside: the paper has none.
    """
    numbers: list[Number] = []
    for column in columns:
        near = [n for table in tables for n in table.numbers if n.column == column and n.difference is not None]
        groups = {row: [n for n in near if n.row == row] for row in _in_order(n.row for n in near)}
        groups[ALL_PRINTED] = [number for number in near if not number.row.endswith(EXACT)]
        groups[ALL_EXACT] = [number for number in near if number.row.endswith(EXACT)]
        for row, members in groups.items():
            apart = np.array([number.difference for number in members if number.difference is not None])
            if apart.size:
                measures = {
                    "mean absolute difference": np.abs(apart).mean(),
                    "mean difference": apart.mean(),
                    "largest": np.abs(apart).max(),
                }
                numbers += [
                    Number(block=column, row=row, column=name, ours=float(value)) for name, value in measures.items()
                ]
    return Table(name="deviations", title="Ours minus the paper's", numbers=tuple(numbers))


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
