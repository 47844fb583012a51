"""Who competes on the joint problem, on what, and what else is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.contest import Contest
from benchmarks.processes import StepError, build, work, work_alone
from benchmarks.suite import OURS, Competitor, Effort, Part, Record, Suite

NAME = "joint"
ONE_WORKER = "silograph, 1 worker"
SPARSITY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance."""

    n_silos: int
    n_nodes: int
    coupling: float
    n_samples: int = 176

    def __str__(self) -> str:
        return f"I = {self.n_silos}, d = {self.n_nodes}, coupling {self.coupling:g}"


COMPETITORS = (
    Competitor(name=OURS, module="silograph_exact"),
    Competitor(name=ONE_WORKER, module="silograph_exact"),
    Competitor(name="clarabel", module="cvxpy_cones", needs=("cvxpy", "clarabel")),
    Competitor(name="scs", module="cvxpy_cones", needs=("cvxpy", "scs")),
    Competitor(name="algorithm1", module="silograph_algorithm1"),
    Competitor(name="algorithm1-numpy", module="algorithm1_numpy"),
    Competitor(name="admm", module="admm"),
    Competitor(name="admm-squares", module="admm", same_model=False),
)

# Other models on the same data, called once with their own stopping rules
NEIGHBOURS = (
    Competitor(name="gglasso", module="gglasso_group", same_model=False, needs=("gglasso",)),
    Competitor(name="nilearn", module="nilearn_group", same_model=False, needs=("nilearn",)),
)
EVERYBODY = (*COMPETITORS, *NEIGHBOURS)

CASES = (
    *(Case(n_silos=5, n_nodes=34, coupling=coupling) for coupling in (0.3, 0.7, 1.0, 1.5)),
    *(Case(n_silos=5, n_nodes=20, coupling=coupling) for coupling in (0.7, 1.0)),
    *(Case(n_silos=20, n_nodes=34, coupling=coupling) for coupling in (0.7, 1.0)),
    *(Case(n_silos=5, n_nodes=100, coupling=coupling) for coupling in (0.7, 1.0)),
)
QUICK = (Case(n_silos=5, n_nodes=34, coupling=0.7),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another model, on signals of so many silos and nodes."""

    model: str
    n_silos: int = 5
    n_nodes: int = 34
    n_samples: int = 176

    def __str__(self) -> str:
        return f"{self.model}, I = {self.n_silos}, d = {self.n_nodes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A size at which set-up and rounds are timed, all settings left alone."""

    axis: str  # what grows: n_nodes, n_samples or n_silos
    n_silos: int
    n_nodes: int
    n_samples: int

    def __str__(self) -> str:
        return f"growth with {AXES[self.axis]}, I = {self.n_silos}, d = {self.n_nodes}, N = {self.n_samples}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stress:
    """All stress instances of one size, whose rounds are counted."""

    n_nodes: int

    def __str__(self) -> str:
        return f"d = {self.n_nodes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Half-samples of the same silos, learned in one call."""

    n_studies: int
    n_silos: int
    n_nodes: int
    n_samples: int = 176

    def __str__(self) -> str:
        return f"{self.n_studies} half-samples, I = {self.n_silos}, d = {self.n_nodes}"


AXES = {"n_nodes": "d", "n_samples": "N", "n_silos": "silos"}
STAGES = ("costs", "setup", "rounds", "per_round")
FITTED_FROM = {"n_nodes": 100, "n_samples": 300, "n_silos": 10}  # below, a constant part is most of the time
TIMED_NODES, TIMED_SILOS, TIMED_LIMIT = 100, 100, 30.0  # seconds that so many silos of so many nodes may take


def points(nodes: Sequence[int], samples: Sequence[int], silos: Sequence[int], n_nodes: int) -> tuple[Point, ...]:
    """More nodes, more samples, more silos, each with the rest as it is."""
    return (
        *(Point(axis="n_nodes", n_silos=5, n_nodes=d, n_samples=176) for d in nodes),
        *(Point(axis="n_samples", n_silos=5, n_nodes=n_nodes, n_samples=n) for n in samples),
        *(Point(axis="n_silos", n_silos=i, n_nodes=n_nodes, n_samples=176) for i in silos),
    )


GROWTH = points(
    (20, 50, 100, 200, 300, 500, 700, 1000), (100, 300, 1000, 3000, 10_000), (2, 5, 10, 25, 50, 100, 200), TIMED_NODES
)
QUICK_GROWTH = points((10, 20, 40), (100, 300, 1000), (2, 5, 10), 20)

ROUND_TOLERANCES = (1e-6, 1e-8)
ROUND_NODES = (5, 10, 12, 20, 34, 40, 50, 60, 100, 200)  # the sizes of testing/silo_problems.py

BATCHES = (Batch(n_studies=100, n_silos=5, n_nodes=34), Batch(n_studies=100, n_silos=12, n_nodes=111))
QUICK_BATCHES = (Batch(n_studies=10, n_silos=5, n_nodes=34),)
BATCH_TOL = 1e-6


def measure_neighbour(case: Neighbour, effort: Effort, earlier: Sequence[Record]) -> Record:
    """Time another model on the same signals."""
    (competitor,) = (one for one in NEIGHBOURS if one.name == case.model)
    if missing := competitor.missing():
        return {"outcome": f"skipped: {', '.join(missing)} not installed"}
    signals = Case(n_silos=case.n_silos, n_nodes=case.n_nodes, coupling=0.7, n_samples=case.n_samples)
    with TemporaryDirectory() as name:
        instance = build(NAME, Path(name), signals)
        try:
            found = work(NAME, "other", Path(name), case.model, effort.laps)
        except StepError as error:
            return {"outcome": str(error)}
    return {"outcome": "ran", "our_degree": instance["mean_degree"]} | found


def measure_growth(point: Point, effort: Effort, earlier: Sequence[Record]) -> Record:
    """Seconds, rounds and memory at one size."""
    found: Record = work_alone(NAME, "growth", point.n_silos, point.n_nodes, point.n_samples, effort.laps)
    return found


def count_rounds(case: Stress, effort: Effort, earlier: Sequence[Record]) -> Record:
    """Rounds until certified, over all regimes."""
    return {"found": work_alone(NAME, "rounds", case.n_nodes)}


def measure_batch(case: Batch, effort: Effort, earlier: Sequence[Record]) -> Record:
    """Many studies in one call."""
    shape = (case.n_studies, case.n_silos, case.n_nodes, case.n_samples)
    found: Record = work_alone(NAME, "batch", *shape, effort.laps)
    return found


CONTEST = Contest(suite=NAME, competitors=COMPETITORS)
OTHERS = tuple(Neighbour(model=one.name) for one in NEIGHBOURS)
SUITE = Suite(
    name=NAME,
    parts={
        "instances": Part(full=CASES, quick=QUICK, measure=CONTEST.measure),
        "neighbours": Part(full=OTHERS, quick=OTHERS, measure=measure_neighbour),
        "growth": Part(full=GROWTH, quick=QUICK_GROWTH, measure=measure_growth),
        "rounds": Part(
            full=[Stress(n_nodes=d) for d in ROUND_NODES],
            quick=[Stress(n_nodes=d) for d in ROUND_NODES[:2]],
            measure=count_rounds,
        ),
        "batches": Part(full=BATCHES, quick=QUICK_BATCHES, measure=measure_batch),
    },
)
