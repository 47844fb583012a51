"""What a suite tells the runner, as plain facts: they are read without loading NumPy or any solver.

A suite is a package: `catalogue.SUITE` says which parts it has, `steps` is what its worker processes do, `report` makes
the page, and `solvers`, where others compete, holds one file per competitor. To measure something else, add a part to
a suite, or a suite to `NAMES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

OURS = "silograph"
NAMES = ("start", "one_silo", "joint")  # in this order: what is short comes first

Case = Any  # a part's own frozen dataclass of plain values: what is measured, saved and kept as one
Record = dict[str, Any]  # what was measured on one case, as it is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A column of a table."""

    name: str
    module: str  # in the suite's solvers
    needs: tuple[str, ...] = ()  # packages that may be missing
    quick: bool = True  # also in the short version
    first_order: bool = True
    published: bool = True  # in this form by its authors
    max_nodes: int | None = None
    same_model: bool = True  # others are listed apart, and never as a ratio

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [package for package in self.needs if not find_spec(package)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: all, or what fits into two minutes."""

    quick: bool
    time_limit: float  # seconds per solver and instance
    laps: int  # how often solvers take their turns, or a point is measured


FULL = Effort(quick=False, time_limit=5.0, laps=5)
QUICK = Effort(quick=True, time_limit=1.0, laps=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Measurements of one kind."""

    full: Sequence[Case]
    quick: Sequence[Case]
    measure: Callable[[Case, Effort, Sequence[Record]], Record]  # the case, how much, what was found on earlier cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A benchmark: what is told on one page."""

    name: str  # of the package
    parts: Mapping[str, Part]


def find_suite(name: str) -> Suite:
    """The suite of this name."""
    suite: Suite = importlib.import_module(f"benchmarks.{name}.catalogue").SUITE
    return suite
