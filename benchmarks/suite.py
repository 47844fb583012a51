"""What a suite tells the runner, as plain facts: they are read without loading NumPy or any solver.

A suite is a package: `catalogue.SUITE` says who competes and on what, `steps` is what its worker processes do, `report`
makes the page, and `solvers` holds one file per competitor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

OURS = "silograph"
NAMES = ("one_silo", "joint")

Case = Any  # a suite's own dataclass: one instance, a row of its table
Record = dict[str, Any]  # what was measured on one instance, as it is saved


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
    same_model: bool = True

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [package for package in self.needs if not find_spec(package)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured: all, or what fits into a minute."""

    cases: Sequence[Case]
    time_limit: float  # seconds per solver and instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A benchmark."""

    name: str  # of the package
    case: type  # of the cases
    competitors: Sequence[Competitor]
    full: Scale
    quick: Scale
    gave_up: Callable[[Competitor, Case, Sequence[Record]], bool] = lambda competitor, case, earlier: False
    parts: Mapping[str, Callable[[bool], Any]] = field(default_factory=dict)  # further measurements; of whether quick

    @property
    def package(self) -> str:
        """Where its modules are."""
        return f"benchmarks.{self.name}"
