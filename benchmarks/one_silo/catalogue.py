"""Who competes on one silo's problem, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.suite import OURS, Competitor, Record, Scale, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance."""

    dataset: str
    n_nodes: int
    degree: int

    def __str__(self) -> str:
        return f"{self.dataset}, degree {self.degree}, d = {self.n_nodes}"


EVERYBODY = (
    Competitor(name=OURS, module="silograph_newton", first_order=False),
    Competitor(name="fdpg", module="fdpg", max_nodes=2000, quick=False),
    Competitor(name="fdpg-restart", module="fdpg", max_nodes=2000),
    Competitor(name="fdpg-search", module="fdpg", max_nodes=2000, published=False),
    Competitor(name="fbf", module="fbf", max_nodes=2000),
    Competitor(name="fbf-scaled", module="fbf", max_nodes=2000, published=False, quick=False),
    Competitor(name="gradient-paper", module="silograph_gradient", max_nodes=2000, quick=False),
    Competitor(name="gradient", module="silograph_gradient", max_nodes=2000, published=False),
    Competitor(name="pygsp2", module="pygsp2", max_nodes=1000, needs=("pygsp2",)),
    Competitor(name="pygsp2-safe", module="pygsp2", published=False, max_nodes=200, needs=("pygsp2",), quick=False),
    Competitor(name="clarabel", module="cvxpy_clarabel", first_order=False, max_nodes=200, needs=("cvxpy",)),
)

DATASETS = ("smooth", "iid", "mixed")

CASES = (
    *(Case(dataset=s, n_nodes=d, degree=5) for s, d in product(DATASETS, (50, 200, 500, 1000, 2000))),
    *(Case(dataset="smooth", n_nodes=d, degree=20) for d in (500, 1000)),
    *(Case(dataset="smooth", n_nodes=d, degree=5) for d in (4000, 10_000)),
)
QUICK = tuple(Case(dataset="smooth", n_nodes=d, degree=5) for d in (50, 200))


def gave_up(competitor: Competitor, case: Case, earlier: Sequence[Record]) -> bool:
    """Whether a solver missed even the easy target on a smaller instance of the same kind."""
    for record in earlier:
        same_kind = (record["case"]["dataset"], record["case"]["degree"]) == (case.dataset, case.degree)
        missed = not record["solvers"].get(competitor.name, {"seconds": "unknown"})["seconds"]
        if competitor.name != OURS and same_kind and record["case"]["n_nodes"] < case.n_nodes and missed:
            return True
    return False


SUITE = Suite(
    name="one_silo",
    case=Case,
    competitors=EVERYBODY,
    full=Scale(cases=CASES, time_limit=60.0),
    quick=Scale(cases=QUICK, time_limit=2.0),
    gave_up=gave_up,
)
