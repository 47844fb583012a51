"""Who competes on one silo's problem, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.contest import Contest
from benchmarks.processes import work_alone
from benchmarks.suite import OURS, Competitor, Effort, Part, Record, Suite

NAME = "one_silo"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A size at which silograph's own stages are timed."""

    axis: str  # what grows: n_nodes or n_samples
    n_nodes: int
    n_samples: int

    def __str__(self) -> str:
        return f"growth with {AXES[self.axis]}, d = {self.n_nodes}, N = {self.n_samples}"


AXES = {"n_nodes": "d", "n_samples": "N"}
STAGES = ("costs", "solve", "fit")
FITTED_FROM = {"n_nodes": 500, "n_samples": 1000}  # below, a constant part is most of the time


def points(nodes: Sequence[int], samples: Sequence[int], n_nodes: int) -> tuple[Point, ...]:
    """More nodes with 100 samples, and more samples of so many nodes."""
    return (
        *(Point(axis="n_nodes", n_nodes=d, n_samples=100) for d in nodes),
        *(Point(axis="n_samples", n_nodes=n_nodes, n_samples=n) for n in samples),
    )


GROWTH = points((50, 100, 200, 500, 1000, 2000, 4000, 10_000), (100, 300, 1000, 3000, 10_000, 30_000), 500)
QUICK_GROWTH = points((50, 100, 200), (100, 300, 1000), 50)


def gave_up(competitor: Competitor, case: Case, earlier: Sequence[Record]) -> bool:
    """Whether a solver missed even the easy target on a smaller instance of the same kind."""
    for record in earlier:
        same_kind = (record["case"]["dataset"], record["case"]["degree"]) == (case.dataset, case.degree)
        missed = not record["solvers"].get(competitor.name, {"laps": "unknown"})["laps"]
        if competitor.name != OURS and same_kind and record["case"]["n_nodes"] < case.n_nodes and missed:
            return True
    return False


def measure_growth(point: Point, effort: Effort, earlier: Sequence[Record]) -> Record:
    """How long each stage takes at one size."""
    found: Record = work_alone(NAME, "growth", point.n_nodes, point.n_samples, effort.laps)
    return found


CONTEST = Contest(suite=NAME, competitors=EVERYBODY, gave_up=gave_up)
SUITE = Suite(
    name=NAME,
    parts={
        "instances": Part(full=CASES, quick=QUICK, measure=CONTEST.measure),
        "growth": Part(full=GROWTH, quick=QUICK_GROWTH, measure=measure_growth),
    },
)
