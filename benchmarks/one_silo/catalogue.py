"""Who competes and on what, as plain facts: the runner reads them without loading NumPy or any solver."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

OURS = "silograph"


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A column of the table."""

    name: str
    module: str  # in benchmarks.solvers
    first_order: bool = True
    published: bool = True  # in this form by its authors
    max_nodes: int = 2000
    needs: str | None = None  # a package that may be missing
    quick: bool = True  # also in the short version


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the table: one instance."""

    dataset: str
    n_nodes: int
    degree: int

    def __str__(self) -> str:
        return f"{self.dataset}, degree {self.degree}, d = {self.n_nodes}"


COMPETITORS = (
    Competitor(name=OURS, module="silograph_newton", first_order=False, max_nodes=1_000_000),
    Competitor(name="fdpg", module="fdpg", quick=False),
    Competitor(name="fdpg-restart", module="fdpg"),
    Competitor(name="fdpg-search", module="fdpg", published=False),
    Competitor(name="fbf", module="fbf"),
    Competitor(name="fbf-scaled", module="fbf", published=False, quick=False),
    Competitor(name="gradient-paper", module="silograph_gradient", quick=False),
    Competitor(name="gradient", module="silograph_gradient", published=False),
    Competitor(name="pygsp2", module="pygsp2", max_nodes=1000, needs="pygsp2"),
    Competitor(name="pygsp2-safe", module="pygsp2", published=False, max_nodes=200, needs="pygsp2", quick=False),
    Competitor(name="clarabel", module="cvxpy_clarabel", first_order=False, max_nodes=200, needs="cvxpy"),
)

DATASETS = ("smooth", "iid", "mixed")

FULL = (
    *(Case(dataset=s, n_nodes=d, degree=5) for s, d in product(DATASETS, (50, 200, 500, 1000, 2000))),
    *(Case(dataset="smooth", n_nodes=d, degree=20) for d in (500, 1000)),
    *(Case(dataset="smooth", n_nodes=d, degree=5) for d in (4000, 10_000)),
)

QUICK = tuple(Case(dataset="smooth", n_nodes=d, degree=5) for d in (50, 200))
